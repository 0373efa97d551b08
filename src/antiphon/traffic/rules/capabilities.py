"""What a side has not offered is not requested from it.

Each of these rules is a row of a table. It is tested by every use of what it is about, and also by every prompt (for the client)
and every finished turn with an update (for the agent) in which it could have been broken: the other side cannot do it, and
nothing was requested.
"""

from collections.abc import Callable, Sequence
from functools import partial

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in
from antiphon.traffic.state import TrafficState

Uses = Callable[[Entry], Sequence[str]]
"""What in a line makes use of a capability, in words for a sentence."""

OPENING = ("session/new", "session/load", "session/resume", "session/fork")
TURN_DONE = "answer session/prompt"


def _check_capability(
    side: Side, capability: str, uses: Uses, on: frozenset[str], entry: Entry, state: TrafficState
) -> list[str] | None:
    asked = state.request
    if state.initialized is None and (asked is None or asked is not state.initialize):
        return None
    if entry.method is None and "result" not in entry.msg:
        return None
    used = uses(entry) if _name(entry, asked) in on else ()
    if state.offers(side.value, capability):
        return [] if used else None
    if not used and _name(entry, asked) == TURN_DONE and not _did_something(state):
        return None  # a turn in which nothing happens tests nothing
    other = "client" if side is Side.AGENT else "agent"
    return [f"{one}, although the {other} does not offer `{capability}`" for one in used]


def _did_something(state: TrafficState) -> bool:
    """Whether the turn that ends here has shown anything to the user: a message, a tool call, a request."""
    session = state.session(state.request)
    turn = session.turn_of(state.request) if session is not None else None
    return turn is not None and turn.updates_sent > 0


def _name(entry: Entry, asked: Entry | None) -> str:
    """What the line is, as rules name it."""
    if entry.method == "session/update":
        return f"update {as_object(entry.params.get('update')).get('sessionUpdate')}"
    return entry.method or (f"answer {asked.method}" if asked is not None else "")


def _capability(
    id: str, side: Side, capability: str, what: str, *, uses: Uses, on: tuple[str, ...], link: str
) -> None:  # fmt: skip
    other, path = ("client", "clientCapabilities") if side is Side.AGENT else ("agent", "agentCapabilities")
    rule(
        f"capability.{id}",
        side,
        Level.MUST,
        f"{what} only if the {other} offers `{capability}`.",
        link=link,
        fix=f"Look at `{path}.{capability}` of the {other} first, and do without where it is missing.",
        on=(*on, TURN_DONE if side is Side.AGENT else "session/prompt"),
    )(partial(_check_capability, side, capability, uses, frozenset(on)))


def _by_itself(entry: Entry) -> list[str]:
    """The line is the use."""
    update = as_object(entry.params.get("update")).get("sessionUpdate")
    return [f"`{update if entry.method == 'session/update' else entry.method}` was sent"]


def _elicitation(mode: str, entry: Entry) -> list[str]:
    return [f"`elicitation/create` asked for a {mode}"] if entry.params.get("mode") == mode else []


def _boolean_options(entry: Entry) -> list[str]:
    source = as_object(entry.params.get("update")) or as_object(as_object(entry.msg).get("result"))
    options = [one for one in objects_in(source.get("configOptions")) if one.get("type") == "boolean"]
    return [f"the option `{one.get('id')}` is of the type boolean" for one in options]


def _terminal_logins(entry: Entry) -> list[str]:
    offered = objects_in(as_object(as_object(entry.msg).get("result")).get("authMethods"))
    return [f"the method `{one.get('id')}` is of the type terminal" for one in offered if one.get("type") == "terminal"]


def prompt_blocks(type: str, entry: Entry) -> list[str]:
    found = any(one.get("type") == type for one in objects_in(entry.params.get("prompt")))
    return [f"the prompt has a block of the type {type}"] if found else []


def _mcp_servers(type: str, entry: Entry) -> list[str]:
    found = [one for one in objects_in(entry.params.get("mcpServers")) if one.get("type") == type]
    return [f"the MCP server `{one.get('name')}` is of the type {type}" for one in found]


def more_directories(entry: Entry) -> list[str]:
    return ["`additionalDirectories` was sent"] if entry.params.get("additionalDirectories") else []


TERMINAL_METHODS = tuple(f"terminal/{name}" for name in ("create", "output", "wait_for_exit", "kill", "release"))
CARRY_OPTIONS = (
    *(f"answer {method}" for method in (*OPENING, "session/set_config_option")),
    "update config_option_update",
)

for _id, _path, _what, _on, _link in (
    ("fs-read", "fs.readTextFile", "Files are read through the client", ("fs/read_text_file",), "file-system#checking-support"),
    ("fs-write", "fs.writeTextFile", "Files are written through the client", ("fs/write_text_file",), "file-system#checking-support"),
    ("terminal", "terminal", "Commands are run in terminals of the client", TERMINAL_METHODS, "terminals#checking-support"),
    ("notices", "session.notices", "Notices are sent", ("update notice",), "schema#clientcapabilities"),
    ("compaction", "session.compaction", "Compactions are sent", ("update compaction_update", "update compaction_summary_chunk"),
     "schema#clientcapabilities"),
    ("plan", "plan", "Plans with an id are sent", ("update plan_update", "update plan_removed"), "schema#clientcapabilities"),
    ("subagents", "subagents", "Subagents are sent",
     ("update subagent_update", "update session_message", "update session_message_chunk"), "schema#clientcapabilities"),
):  # fmt: skip
    _capability(_id, Side.AGENT, _path, _what, uses=_by_itself, on=_on, link=_link)

for _mode in ("form", "url"):
    _capability(
        f"elicitation-{_mode}", Side.AGENT, f"elicitation.{_mode}", f"The user is asked by a {_mode}",
        uses=partial(_elicitation, _mode), on=("elicitation/create",), link="elicitation#checking-support",
    )  # fmt: skip
_capability(
    "boolean-option", Side.AGENT, "session.configOptions.boolean", "Options of the type boolean are offered",
    uses=_boolean_options, on=CARRY_OPTIONS, link="session-config-options",
)  # fmt: skip
_capability(
    "terminal-auth", Side.AGENT, "auth.terminal", "Logins in a terminal are offered",
    uses=_terminal_logins, on=("answer initialize",), link="authentication",
)  # fmt: skip

for _id, _path, _what, _on, _link in (
    ("load", "loadSession", "Sessions are loaded", ("session/load",), "session-setup#loading-sessions"),
    ("list", "sessionCapabilities.list", "Sessions are listed", ("session/list",), "session-list"),
    ("resume", "sessionCapabilities.resume", "Sessions are resumed", ("session/resume",), "session-setup#resuming-sessions"),
    ("close", "sessionCapabilities.close", "Sessions are closed", ("session/close",), "session-setup#closing-active-sessions"),
    ("delete", "sessionCapabilities.delete", "Sessions are deleted", ("session/delete",), "session-delete"),
    ("fork", "sessionCapabilities.fork", "Sessions are forked", ("session/fork",), "schema#sessioncapabilities"),
    ("logout", "auth.logout", "The client logs out", ("logout",), "authentication#logging-out"),
):  # fmt: skip
    _capability(_id, Side.CLIENT, _path, _what, uses=_by_itself, on=_on, link=_link)

for _id, _path, _type, _what in (
    ("image", "image", "image", "Images are sent"),
    ("audio", "audio", "audio", "Audio is sent"),
    ("embedded-context", "embeddedContext", "resource", "Embedded resources are sent"),
):
    _capability(
        _id, Side.CLIENT, f"promptCapabilities.{_path}", _what, uses=partial(prompt_blocks, _type), on=("session/prompt",),
        link="initialization#prompt-capabilities",
    )  # fmt: skip
for _type in ("http", "sse"):
    _capability(
        f"mcp-{_type}", Side.CLIENT, f"mcpCapabilities.{_type}", f"MCP servers of the type {_type} are sent",
        uses=partial(_mcp_servers, _type), on=OPENING, link="session-setup#checking-transport-support",
    )  # fmt: skip
_capability(
    "additional-directories", Side.CLIENT, "sessionCapabilities.additionalDirectories", "More directories are sent",
    uses=more_directories, on=OPENING, link="session-setup#additional-workspace-roots",
)  # fmt: skip
