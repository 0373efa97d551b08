"""What a side has not offered is not requested from it. Each of these rules is a row of a table, as in version 1."""

from collections.abc import Callable, Sequence
from functools import partial

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in
from antiphon.traffic.rules.capabilities import more_directories, prompt_blocks
from antiphon.traffic.state import SECOND, TrafficState

Uses = Callable[[Entry], Sequence[str]]
"""What in a line makes use of a capability, in words for a sentence."""

OPENING = ("session/new", "session/resume", "session/fork")
SESSION_METHODS = (
    "session/new", "session/list", "session/resume", "session/close", "session/prompt", "session/set_config_option",
    "tool_call/cancel", "terminal/cancel",
)  # fmt: skip
IDLE = "update state_update"


def _check_offer(side: Side, capability: str, uses: Uses, entry: Entry, state: TrafficState) -> list[str] | None:
    """A rule is tested by every use; that of the agent by the end of any work too, and that of the client by any prompt."""
    if state.initialized is None and (state.request is None or state.request is not state.initialize):
        return None
    if entry.method is None and "result" not in entry.msg:
        return None
    used = uses(entry)
    if state.offers(side.value, capability):
        return [] if used else None
    if not used and entry.method == "session/update" and not _ends_work(entry, state):
        return None
    other = "client" if side is Side.AGENT else "agent"
    return [f"{one}, although the {other} does not offer `{capability}`" for one in used]


def _ends_work(entry: Entry, state: TrafficState) -> bool:
    """Whether the session is idle again after something that the user could see."""
    session = state.session(entry)
    is_idle = as_object(entry.params.get("update")).get("state") == "idle"
    return is_idle and session is not None and getattr(session, "active", 0) > 0


def _offer(id: str, side: Side, capability: str, what: str, *, uses: Uses, on: tuple[str, ...], link: str) -> None:
    other = "client" if side is Side.AGENT else "agent"
    rule(
        f"capability.{id}",
        side,
        Level.MUST,
        f"{what} only if the {other} offers `{capability}`.",
        link=link,
        fix=f"Look at `capabilities.{capability}` of the {other} first, and do without where it is missing or null.",
        on=(*on, IDLE if side is Side.AGENT else "session/prompt"),
        versions=(SECOND,),
    )(partial(_check_offer, side, capability, uses))


def _methods(names: tuple[str, ...], entry: Entry) -> list[str]:
    return [f"`{entry.method}` was sent"] if entry.method in names else []


def _elicitation(mode: str, entry: Entry) -> list[str]:
    asks = entry.method == "elicitation/create" and entry.params.get("mode") == mode
    return [f"`elicitation/create` asked for a {mode}"] if asks else []


def _terminal_logins(entry: Entry) -> list[str]:
    offered = objects_in(as_object(as_object(entry.msg).get("result")).get("authMethods"))
    found = [one for one in offered if one.get("type") == "terminal"]
    return [f"the method `{one.get('methodId')}` is of the type terminal" for one in found]


def _mcp_servers(type: str, entry: Entry) -> list[str]:
    found = [one for one in objects_in(entry.params.get("mcpServers")) if one.get("type") == type]
    return [f"the server `{one.get('name')}` is of the type {type}" for one in found]


for _mode in ("form", "url"):
    _offer(
        f"elicitation-{_mode}", Side.AGENT, f"elicitation.{_mode}", f"The user is asked by a {_mode}",
        uses=partial(_elicitation, _mode), on=("elicitation/create",), link="schema#createelicitationresponse",
    )  # fmt: skip
_offer(
    "terminal-auth", Side.AGENT, "auth.terminal", "Logins in a terminal are offered",
    uses=_terminal_logins, on=("answer initialize",), link="schema#authmethodterminal",
)  # fmt: skip
_offer(
    "sessions", Side.CLIENT, "session", "Methods of sessions are used",
    uses=partial(_methods, SESSION_METHODS), on=SESSION_METHODS, link="schema#sessioncapabilities",
)  # fmt: skip
_offer(
    "delete", Side.CLIENT, "session.delete", "Sessions are deleted",
    uses=partial(_methods, ("session/delete",)), on=("session/delete",), link="schema#sessioncapabilities",
)  # fmt: skip
for _id, _name, _type, _what in (
    ("image", "image", "image", "Images are sent"),
    ("audio", "audio", "audio", "Audio is sent"),
    ("embedded-context", "embeddedContext", "resource", "Embedded resources are sent"),
):
    _offer(
        _id, Side.CLIENT, f"session.prompt.{_name}", _what, uses=partial(prompt_blocks, _type), on=(),
        link="schema#promptcapabilities",
    )  # fmt: skip
for _type in ("stdio", "http"):
    _offer(
        f"mcp-{_type}", Side.CLIENT, f"session.mcp.{_type}", f"MCP servers of the type {_type} are sent",
        uses=partial(_mcp_servers, _type), on=OPENING, link="schema#mcpserver",
    )  # fmt: skip
_offer(
    "additional-directories", Side.CLIENT, "session.additionalDirectories", "More directories are sent",
    uses=more_directories, on=OPENING, link="schema#sessioncapabilities",
)  # fmt: skip
