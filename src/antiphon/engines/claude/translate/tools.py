"""What a tool call is about, from its name and its input: the title, the sort of work, the places and a preview."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from antiphon.engines.claude.translate import previews, titles
from antiphon.engines.claude.translate.fields import number, text
from antiphon.engines.claude.translate.partial import members_so_far
from antiphon.engines.wording import absolute, line_number
from antiphon.policy.rules import canonical
from antiphon.protocol import v1

__all__ = ["Description", "describe", "early_title", "kind_of", "path_of"]


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

_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
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
"""The arguments that a title is made of. Until one of them has arrived whole there is nothing to say."""

_FILES: Final = ("file_path", "notebook_path", "path")
_PREVIEWS: Final[Mapping[str, Callable[[dict[str, Any], str], list[v1.ToolContent]]]] = {
    **dict.fromkeys(("Bash", "Monitor", "PowerShell"), previews.of_command),
    **dict.fromkeys(("Edit", "MultiEdit", "Write"), previews.of_edit),
    "NotebookEdit": previews.of_cell,
    "ExitPlanMode": previews.of_plan,
    **dict.fromkeys(("Agent", "CronCreate", "ScheduleWakeup", "Task", "WebFetch"), previews.of_prompt),
    "SendMessage": previews.of_message,
    "AskUserQuestion": previews.of_questions,
    "ReportFindings": previews.of_findings,
}
_SHOWN_ELSEWHERE: Final = frozenset(_TELLING) | set(_KINDS) | {"CronList", "EnterWorktree", "ExitWorktree"}


def describe(name: str, tool_input: Any, cwd: str) -> Description:
    """How the call is shown. The input may lack anything."""
    values = tool_input if isinstance(tool_input, dict) else {}
    title = titles.title_of(name, values, cwd)
    return Description(
        title=title,
        kind=kind_of(name),
        name=canonical(name) or name,
        locations=_locations(name, values, cwd),
        content=[*previews.of_rest(name, values, title), *_preview(name, values, cwd)],
    )


def early_title(name: str, partial_json: str, cwd: str) -> str | None:
    """The title as soon as what it is about has arrived whole in the input, which may end anywhere."""
    telling = _TELLING.get(name)
    if telling is None:
        return None
    values = members_so_far(partial_json)
    return titles.title_of(name, values, cwd) if text(values, *telling) else None


def kind_of(name: str) -> v1.ToolKind:
    """The sort of work; that of a server's tool is not ours to know."""
    return _KINDS.get(canonical(name) or name, _KIND.OTHER)


def path_of(tool_input: Any, cwd: str) -> str | None:
    """The file that a call is about, absolute."""
    path = text(tool_input, *_FILES)
    return absolute(path, cwd) if path else None


def _locations(name: str, values: dict[str, Any], cwd: str) -> list[v1.ToolLocation]:
    if kind_of(name) not in (_KIND.READ, _KIND.EDIT, _KIND.SEARCH):
        return []
    path = path_of(values, cwd)
    if path is None:
        return []
    offset = number(values, "offset") if name == "Read" else None
    return [v1.ToolLocation(path=path, line=line_number(offset))]


def _preview(name: str, values: dict[str, Any], cwd: str) -> list[v1.ToolContent]:
    known = _PREVIEWS.get(name)
    if known is not None:
        return known(values, cwd)
    return [] if name in _SHOWN_ELSEWHERE else previews.of_anything(values)
