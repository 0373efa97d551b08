"""How a tool call is shown before its result, from its name and its input: title, kind, locations and a preview."""

import json
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from antiphon.engines.claude.translate.content import diffs_of, items, number, text
from antiphon.engines.labels import absolute_path, line_number, one_line, sentence, shown_path, shown_text, title
from antiphon.policy.rules import canonical
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import exact, fenced

__all__ = [
    "Description",
    "describe",
    "early_title",
    "kind_of",
    "members_so_far",
    "of_anything",
    "of_cell",
    "of_command",
    "of_edit",
    "of_findings",
    "of_message",
    "of_plan",
    "of_prompt",
    "of_questions",
    "of_rest",
    "path_of",
    "server_tool",
    "title_of",
]

# Titles of tool calls: one line that names the file, the command or whatever else the call is about.

_Values = JsonObject


def title_of(name: str, values: _Values, cwd: str) -> str:
    """Return the title, also where arguments are missing."""
    known = _TITLES.get(name)
    if known is not None:
        return known(values, cwd)
    if (server := server_tool(name)) is not None:
        return one_line(f"{server[1]} ({server[0]})")
    return one_line(name) or "Tool"


def server_tool(name: str) -> tuple[str, str] | None:
    """Split `mcp__server__tool` into server and tool."""
    if not name.startswith("mcp__"):
        return None
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return (server, tool) if server and tool else None


def _file(values: _Values, cwd: str) -> str | None:
    path = text(values, "file_path", "notebook_path", "path")
    return shown_path(path, cwd) if path else None


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
    about, kind = text(values, "description") or "", text(values, "subagent_type")
    agent_name = "" if kind in (None, "general-purpose") else one_line(kind or "", 40)
    return sentence(f"{agent_name}: {about}" if agent_name and about else about or agent_name) or "Sub-agent"


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
    questions = [question for each in items(values, "questions") if (question := text(each, "question"))]
    return f"Ask {len(questions)} questions" if len(questions) > 1 else sentence("".join(questions)) or "Ask a question"


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
    return title("Enter the worktree", text(values, "name") or (shown_path(path, cwd) if path else None))


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


# Complete members of a JSON object that is still arriving.

_DECODER: Final = json.JSONDecoder(strict=False)
_LOOKED_AT: Final = 8192
"""Characters that are read. What a call is about comes first; the text of a file may follow, and is not parsed with every piece."""


def members_so_far(text: str) -> JsonObject:
    """The members of an object that have arrived whole, in `text`, which may end anywhere."""
    text = text[:_LOOKED_AT]
    found: JsonObject = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return found
    at = _skip(text, at + 1)
    try:
        while text[at : at + 1] == '"':
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                break
            value, at = _DECODER.raw_decode(text, _skip(text, at + 1))
            at = _skip(text, at)
            if text[at : at + 1] not in (",", "}") and not isinstance(value, str | list | dict):
                break  # a number may go on
            found[name] = value
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
    except (ValueError, RecursionError):
        pass  # the rest has not arrived, or never was JSON
    return found


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


# Previews: what a call is going to do, for the user to read before it does it.

_Content = list[v1.ToolContent]
_LONGEST: Final = 4000
"""Characters that are shown of arguments without a preview of their own."""

_IN_TITLE: Final = {
    "Glob": ("pattern",), "Grep": ("pattern", "glob"), "Skill": ("skill", "command"), "SlashCommand": ("command",),
    "WebFetch": ("url",), "WebSearch": ("query",),
    **dict.fromkeys(("ReadMcpResource", "ReadMcpResourceDir", "ReadMcpResourceDirTool", "ReadMcpResourceTool"), ("uri",)),
}  # fmt: skip
"""Arguments that the title has, unless they are too long for it."""

_BESIDE_TITLE: Final = {
    "ExitWorktree": ("discard_changes",), "Monitor": ("ws",), "Skill": ("args",), "WebSearch": ("allowed_domains", "blocked_domains"),
    "Workflow": ("script", "scriptPath", "args", "resumeFromRunId"),
}  # fmt: skip
"""Arguments that do not fit into a title, and that describe what the call does."""


def of_command(values: _Values, _: str) -> _Content:
    """What the command is for, and the command itself where the title has only a part of it."""
    command = text(values, "command") or ""
    content: _Content = []
    if about := text(values, "description", "command_description"):
        content.append(shown_text(about))
    if command and one_line(command) != command:
        content.append(shown_text(fenced(exact(command), "sh")))
    if values.get("dangerouslyDisableSandbox") is True:
        content.append(shown_text("It runs outside of the sandbox."))
    return content


def of_edit(values: _Values, cwd: str) -> _Content:
    """Return the change, as far as the input has it."""
    path = text(values, "file_path", "path")
    if path is None:
        return []
    content = next((values[name] for name in ("content", "file_text", "file_content") if name in values), None)
    return list(
        diffs_of(absolute_path(path, cwd), {**values, "content": content} if content is not None else values, None)
    )


def of_cell(values: _Values, _: str) -> _Content:
    """The new text of a notebook's cell. It is not a diff: that would have to be one of the whole file."""
    source = text(values, "new_source")
    return [shown_text(fenced(source, "" if values.get("cell_type") == "markdown" else "python"))] if source else []


def of_plan(values: _Values, _: str) -> _Content:
    """Describe a call that shows a plan."""
    plan = text(values, "plan")
    return [shown_text(plan)] if plan else []


def of_prompt(values: _Values, _: str) -> _Content:
    """Return the prompt for another agent, or for this one later."""
    prompt = text(values, "prompt")
    return [shown_text(prompt)] if prompt else []


def of_message(values: _Values, _: str) -> _Content:
    """Return the message to another agent."""
    value = text(values, "message", "content")
    return [shown_text(value)] if value else []


def of_questions(values: _Values, _: str) -> _Content:
    """The questions with what may be answered."""
    return [shown_text(value) for each in items(values, "questions") if (value := _question_preview(each))]


def of_findings(values: _Values, _: str) -> _Content:
    """What was found, and where."""
    lines = []
    for each in items(values, "findings"):
        line = number(each, "line")
        where = f"`{text(each, 'file') or '?'}{f':{line}' if line else ''}`"
        lines.append(f"- {where}: {sentence(text(each, 'summary') or '', 500)}")
    return [shown_text("\n".join(lines))] if lines else []


def of_anything(values: _Values) -> _Content:
    """Return the arguments as JSON: a user who is asked for permission has to see them."""
    if not values:
        return []
    value = exact(msgspec.json.format(msgspec.json.encode(values), indent=2).decode("utf-8", "replace"))
    return [shown_text(fenced(value if len(value) <= _LONGEST else value[:_LONGEST] + "\n…", "json"))]


def of_rest(name: str, values: _Values, title: str) -> _Content:
    """Return what belongs to the call and is not in its title, or not whole."""
    cut = [each for each in _IN_TITLE.get(name, ()) if (value := text(values, each)) and exact(value) not in title]
    more = [each for each in _BESIDE_TITLE.get(name, ()) if values.get(each)]
    return [shown_text(f"{each}:\n{_as_it_is(values[each])}") for each in (*cut, *more)]


def _as_it_is(value: object) -> str:
    if isinstance(value, str):
        return fenced(exact(value))
    return fenced(exact(msgspec.json.encode(value).decode("utf-8", "replace")), "json")


def _question_preview(values: object) -> str:
    questions = text(values, "question")
    if not questions:
        return ""
    choices = []
    for each in items(values, "options"):
        label, about = text(each, "label"), text(each, "description")
        if label:
            choices.append(f"- {sentence(label)}{f': {sentence(about, 300)}' if about else ''}")
    return "\n".join([questions, *choices])


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is shown before there is a result. `name` is the one that the policy's rules know."""

    title: str
    kind: v1.ToolKind
    name: str
    locations: list[v1.ToolLocation] = msgspec.field(default_factory=list)
    content: list[v1.ToolContent] = msgspec.field(default_factory=list)


_KIND: Final = v1.ToolKind
_KINDS: Final[Mapping[str, v1.ToolKind]] = {
    **dict.fromkeys(("Bash", "KillBash", "KillShell", "Monitor", "PowerShell", "TaskStop"), _KIND.EXECUTE),
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit", "Write"), _KIND.EDIT),
    **dict.fromkeys((
        "AgentOutputTool", "BashOutput", "ListAgents", "ListMcpResources", "ListMcpResourcesTool", "LS", "NotebookRead", "Read",
        "ReadMcpResource", "ReadMcpResourceDir", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReadNotifications", "TaskOutput",
    ), _KIND.READ),
    **dict.fromkeys(("Glob", "Grep", "ToolSearch"), _KIND.SEARCH),
    **dict.fromkeys(("WebFetch", "WebSearch"), _KIND.FETCH),
    **dict.fromkeys((
        "Agent", "ReportFindings", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TodoRead", "TodoWrite", "Workflow",
    ), _KIND.THINK),
    **dict.fromkeys(("EnterPlanMode", "ExitPlanMode"), _KIND.SWITCH_MODE),
}  # fmt: skip

_TITLE_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("Bash", "Monitor", "PowerShell"), ("command",)),
    **dict.fromkeys(
        ("Edit", "MultiEdit", "Read", "Write"), ("file_path",)
    ),  # not `path`: the other one may follow, and wins
    **dict.fromkeys(("NotebookEdit", "NotebookRead"), ("notebook_path",)),
    **dict.fromkeys(("Glob", "Grep"), ("pattern",)),
    "LS": ("path",),
    "WebFetch": ("url",),
    **dict.fromkeys(("ToolSearch", "WebSearch"), ("query",)),
    **dict.fromkeys(("Agent", "Task"), ("description",)),
    "TaskCreate": ("subject",),
    **dict.fromkeys(("TaskGet", "TaskUpdate"), ("taskId",)),
    "Skill": ("skill",),
    "SlashCommand": ("command",),
    **dict.fromkeys(
        ("ReadMcpResource", "ReadMcpResourceDir", "ReadMcpResourceDirTool", "ReadMcpResourceTool"), ("uri",)
    ),
    "CronCreate": ("cron",),
    "CronDelete": ("id",),
    **dict.fromkeys(("BashOutput", "TaskOutput"), ("task_id", "bash_id")),
    **dict.fromkeys(("KillBash", "KillShell", "TaskStop"), ("task_id", "shell_id")),
    "EnterWorktree": ("name",),
    "ScheduleWakeup": ("reason",),
    "SendMessage": ("to",),
}
"""The arguments that a title is made of. Before one of them has arrived whole the title does not change."""

_FILES: Final = ("file_path", "notebook_path", "path")
_PREVIEWS: Final[Mapping[str, Callable[[JsonObject, str], list[v1.ToolContent]]]] = {
    **dict.fromkeys(("Bash", "Monitor", "PowerShell"), of_command),
    **dict.fromkeys(("Edit", "MultiEdit", "Write"), of_edit),
    "NotebookEdit": of_cell,
    "ExitPlanMode": of_plan,
    **dict.fromkeys(("Agent", "CronCreate", "ScheduleWakeup", "Task", "WebFetch"), of_prompt),
    "SendMessage": of_message,
    "AskUserQuestion": of_questions,
    "ReportFindings": of_findings,
}
_NO_PREVIEW: Final = frozenset(_TITLE_ARGUMENTS) | set(_KINDS) | {"CronList", "EnterWorktree", "ExitWorktree"}


def describe(name: str, tool_input: object, cwd: str) -> Description:
    """Return how the call is shown. Any part of the input may be missing."""
    values = tool_input if isinstance(tool_input, dict) else {}
    title = title_of(name, values, cwd)
    return Description(
        title=title,
        kind=kind_of(name),
        name=canonical(name) or name,
        locations=_locations(name, values, cwd),
        content=[*of_rest(name, values, title), *_preview(name, values, cwd)],
    )


def early_title(name: str, partial_json: str, cwd: str) -> str | None:
    """Return the title as soon as one of its arguments has arrived whole in the input, which may end anywhere."""
    arguments = _TITLE_ARGUMENTS.get(name)
    if arguments is None:
        return None
    values = members_so_far(partial_json)
    return title_of(name, values, cwd) if text(values, *arguments) else None


def kind_of(name: str) -> v1.ToolKind:
    """Return the kind of work; that of an MCP server's tool is not known."""
    return _KINDS.get(canonical(name) or name, _KIND.OTHER)


def path_of(tool_input: object, cwd: str) -> str | None:
    """Return the absolute path of the file that a call is about."""
    path = text(tool_input, *_FILES)
    return absolute_path(path, cwd) if path else None


def _locations(name: str, values: JsonObject, cwd: str) -> list[v1.ToolLocation]:
    if kind_of(name) not in (_KIND.READ, _KIND.EDIT, _KIND.SEARCH):
        return []
    path = path_of(values, cwd)
    if path is None:
        return []
    offset = number(values, "offset") if name == "Read" else None
    return [v1.ToolLocation(path=path, line=line_number(offset))]


def _preview(name: str, values: JsonObject, cwd: str) -> list[v1.ToolContent]:
    known = _PREVIEWS.get(name)
    if known is not None:
        return known(values, cwd)
    return [] if name in _NO_PREVIEW else of_anything(values)
