"""Titles of tool calls: one line that names the file, the command or whatever else the call is about."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from antiphon.engines.claude.translate.fields import items, number, text
from antiphon.engines.wording import one_line, sentence, shown, title

__all__ = ["server_tool", "title_of"]

_Values = dict[str, Any]


def title_of(name: str, values: _Values, cwd: str) -> str:
    """The title; with arguments missing, what can be said without them."""
    known = _TITLES.get(name)
    if known is not None:
        return known(values, cwd)
    if (server := server_tool(name)) is not None:
        return one_line(f"{server[1]} ({server[0]})")
    return one_line(name) or "Tool"


def server_tool(name: str) -> tuple[str, str] | None:
    """`mcp__server__tool` taken apart."""
    if not name.startswith("mcp__"):
        return None
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return (server, tool) if server and tool else None


def _file(values: _Values, cwd: str) -> str | None:
    path = text(values, "file_path", "notebook_path", "path")
    return shown(path, cwd) if path else None


def _command(values: _Values, _: str) -> str:
    return one_line(text(values, "command") or "") or "Run a command"


def _read(values: _Values, cwd: str) -> str:
    offset, limit, pages = number(values, "offset"), number(values, "limit"), text(values, "pages")
    start = max(offset or 1, 1)
    part = ""
    if limit is not None and limit > 0:
        part = f"(lines {start} to {start + limit - 1})"
    elif offset is not None and offset > 1:
        part = f"(from line {offset})"
    elif pages:
        part = f"(pages {one_line(pages, 40)})"
    return title("Read", _file(values, cwd) or "a file", part)


def _edit(values: _Values, cwd: str) -> str:
    count = len(items(values, "edits"))
    return title("Edit", _file(values, cwd) or "a file", f"({count} changes)" if count > 1 else "")


def _write(values: _Values, cwd: str) -> str:
    return title("Write", _file(values, cwd) or "a file")


def _cell(values: _Values, cwd: str) -> str:
    verb = {"insert": "Insert a cell in", "delete": "Delete a cell of"}.get(
        values.get("edit_mode") or "", "Edit a cell of"
    )
    return title(verb, _file(values, cwd) or "a notebook")


def _glob(values: _Values, cwd: str) -> str:
    path = _file(values, cwd)
    return title("Find", text(values, "pattern") or "files", f"in {one_line(path, 80)}" if path and path != "." else "")


def _grep(values: _Values, cwd: str) -> str:
    path, only = _file(values, cwd), text(values, "glob", "type")
    where = f"in {one_line(path, 80)}" if path and path != "." else ""
    pattern = text(values, "pattern")
    return title("Search for" if pattern else "Search", pattern, where, f"({one_line(only, 40)})" if only else "")


def _list(values: _Values, cwd: str) -> str:
    return title("List", _file(values, cwd) or "a directory")


def _fetch(values: _Values, _: str) -> str:
    return title("Fetch", text(values, "url") or "a page")


def _search_web(values: _Values, _: str) -> str:
    query = text(values, "query")
    return title("Search the web for" if query else "Search the web", query)


def _agent(values: _Values, _: str) -> str:
    about, sort = text(values, "description") or "", text(values, "subagent_type")
    who = "" if sort in (None, "general-purpose") else one_line(sort or "", 40)
    return sentence(f"{who}: {about}" if who and about else about or who) or "Sub-agent"


def _todos(values: _Values, _: str) -> str:
    count = len(items(values, "todos"))
    return f"Update the plan ({count} {'step' if count == 1 else 'steps'})" if count else "Update the plan"


def _new_task(values: _Values, _: str) -> str:
    subject = text(values, "subject")
    return sentence(f"Add a task: {subject}") if subject else "Add a task"


def _task(values: _Values, _: str) -> str:
    which = text(values, "taskId")
    if which is None:
        return "Update a task"
    status, subject = text(values, "status"), text(values, "subject")
    what = one_line(status.replace("_", " "), 40) if status else f"now “{sentence(subject, 100)}”" if subject else ""
    return one_line(f"Task {which}: {what}" if what else f"Update task {which}")


def _look_at_task(values: _Values, _: str) -> str:
    return title("Look at task", text(values, "taskId"))


def _question(values: _Values, _: str) -> str:
    asked = [question for each in items(values, "questions") if (question := text(each, "question"))]
    return f"Ask {len(asked)} questions" if len(asked) > 1 else sentence("".join(asked)) or "Ask a question"


def _findings(values: _Values, _: str) -> str:
    count = len(items(values, "findings"))
    return f"Report {count} finding{'' if count == 1 else 's'}" if count else "Report findings"


def _skill(values: _Values, _: str) -> str:
    return title("Use the skill", text(values, "skill", "command"))


def _slash(values: _Values, _: str) -> str:
    return one_line(text(values, "command") or "") or "Run a slash command"


def _find_tools(values: _Values, _: str) -> str:
    query = (text(values, "query") or "").removeprefix("select:")
    return title("Look up tools:" if query else "Look up tools", query or None)


def _schedule(values: _Values, _: str) -> str:
    return title("Schedule a prompt", text(values, "cron") and f"({values['cron']})")


def _wake(values: _Values, _: str) -> str:
    reason = text(values, "reason")
    return title("Wake up later:" if reason else "Wake up later", reason)


def _enter_worktree(values: _Values, cwd: str) -> str:
    path = text(values, "path")
    return title("Enter the worktree", text(values, "name") or (shown(path, cwd) if path else None))


def _leave_worktree(values: _Values, _: str) -> str:
    return "Remove the worktree" if values.get("action") == "remove" else "Leave the worktree"


def _message(values: _Values, _: str) -> str:
    to = text(values, "to")
    return title("Send a message to" if to else "Send a message", to)


def _resource(values: _Values, _: str) -> str:
    return title("Read", text(values, "uri") or "a resource")


def _about(verb: str, *names: str) -> Callable[[_Values, str], str]:
    def worded(values: _Values, _: str) -> str:
        return title(verb, text(values, *names))

    return worded


_TITLES: Final[Mapping[str, Callable[[_Values, str], str]]] = {
    **dict.fromkeys(("Bash", "Monitor", "PowerShell"), _command),
    **dict.fromkeys(("AgentOutputTool", "BashOutput", "TaskOutput"), _about("Look at the output of", "task_id", "bash_id", "agentId")),
    **dict.fromkeys(("KillBash", "KillShell", "TaskStop"), _about("Stop", "task_id", "shell_id")),
    **dict.fromkeys(("NotebookRead", "Read"), _read),
    **dict.fromkeys(("Edit", "MultiEdit"), _edit),
    "Write": _write, "NotebookEdit": _cell, "Glob": _glob, "Grep": _grep, "LS": _list, "WebFetch": _fetch, "WebSearch": _search_web,
    **dict.fromkeys(("Agent", "Task"), _agent),
    "TodoWrite": _todos, "TodoRead": _about("Look at the plan"),
    "TaskCreate": _new_task, "TaskUpdate": _task, "TaskGet": _look_at_task, "TaskList": _about("List the tasks"),
    "EnterPlanMode": _about("Plan first"), "ExitPlanMode": _about("Ready to code?"),
    "AskUserQuestion": _question, "ReportFindings": _findings, "Skill": _skill, "SlashCommand": _slash, "ToolSearch": _find_tools,
    "CronCreate": _schedule, "CronDelete": _about("Cancel the scheduled prompt", "id"), "CronList": _about("List scheduled prompts"),
    "ScheduleWakeup": _wake, "Workflow": _about("Run the workflow", "title", "name"), "ListAgents": _about("List agents"),
    "EnterWorktree": _enter_worktree, "ExitWorktree": _leave_worktree, "SendMessage": _message,
    **dict.fromkeys(("ReadMcpResource", "ReadMcpResourceDir", "ReadMcpResourceDirTool", "ReadMcpResourceTool"), _resource),
    **dict.fromkeys(("ListMcpResources", "ListMcpResourcesTool"), _about("List the resources of", "server")),
    "RefreshMcpTools": _about("Look for new tools of", "server"),
    "PushNotification": _about("Notify:", "message"), "ReadNotifications": _about("Read notifications"),
}  # fmt: skip
