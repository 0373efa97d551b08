"""An MCP server asks the user something; or Codex does, about one of its tools: the same method, told apart by `_meta`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.telling import as_json, explained
from antiphon.engines.labels import prose, sentence
from antiphon.engines.questions import DECLINE, Body, ask_on_page, fill_in_form, noted, pick, pick_alone, text
from antiphon.errors import NotSupported
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["ask_for_server"]

_Kind = v1.PermissionOptionKind
_ALLOW: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
_SESSION: Final = v1.PermissionOption("allow_session", "Always allow this tool in this session", _Kind.ALLOW_ALWAYS)
_ALWAYS: Final = v1.PermissionOption("allow_always_tool", "Always allow this tool, in all projects", _Kind.ALLOW_ALWAYS)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
_YES: Final = v1.PermissionOption("accept", "Yes", _Kind.ALLOW_ONCE)
_NO: Final = v1.PermissionOption("decline", "No", _Kind.REJECT_ONCE)

_PERSIST: Final = {_SESSION.option_id: "session", _ALWAYS.option_id: "always"}
_FORMS: Final = ("form", "openai/form", "openaiForm", None)


async def ask_for_server(asked: wire.Elicitation, stage: "Asking", call: v1.ToolCallPatch | None) -> Body:
    """Ask whatever it is."""
    if asked.mode == "url":
        # Codex does not pass on when the user is done there, so the client is not told either.
        body, _ = await ask_on_page(stage, _message(asked), asked.url)
        return body
    if asked.mode not in _FORMS:
        raise NotSupported(f"a question in the way of {noted(asked.mode)} cannot be shown")
    if asked.is_for_tool:
        return await _ask_about_tool(asked, stage, call)
    if not asked.fields and not stage.session.client.shows_forms:
        return await _yes_or_no(asked, stage)
    return await fill_in_form(stage, _message(asked), asked.requested_schema)


def _message(asked: wire.Elicitation) -> str:
    """Who asks is said first: the words are the server's own."""
    return prose(f"{asked.server_name or 'An MCP server'} asks: {asked.message}")


async def _ask_about_tool(asked: wire.Elicitation, stage: "Asking", call: v1.ToolCallPatch | None) -> Body:
    options = [_ALLOW, *_lasting(asked, stage), _REJECT]
    described = (asked.meta or {}).get("tool_description")
    notes = [asked.message, described if isinstance(described, str) else None]
    if call is None:
        chosen = await pick_alone(stage, explained(_alone(asked, stage), notes), options)
    else:
        chosen = await pick(stage, explained(call, notes), options)
    if chosen is None or chosen is _REJECT:
        return dict(DECLINE)
    persist = _PERSIST.get(chosen.option_id)
    return {"action": "accept", "content": None, "_meta": None if persist is None else {"persist": persist}}


def _lasting(asked: wire.Elicitation, stage: "Asking") -> Iterator[v1.PermissionOption]:
    offered = (asked.meta or {}).get("persist")
    offered = offered if isinstance(offered, list) else [offered]
    if "session" in offered:
        yield _SESSION
    # Codex keeps it with the server in its own settings; a server that the client brought is not there.
    ours = any(getattr(server, "name", None) == asked.server_name for server in stage.session.mcp_servers)
    if "always" in offered and not ours:
        yield _ALWAYS


def _alone(asked: wire.Elicitation, stage: "Asking") -> v1.ToolCallPatch:
    """The question as a call of its own. A client's rules see neither name nor arguments, so that none for another tool can allow it."""
    arguments = (asked.meta or {}).get("tool_params")
    return v1.ToolCallPatch(
        stage.next_id("question"),
        title=sentence(asked.message) or f"Use a tool of {asked.server_name}",
        kind=v1.ToolKind.OTHER,
        content=[text(as_json(arguments))] if arguments else [],
        raw_input={},
    )


async def _yes_or_no(asked: wire.Elicitation, stage: "Asking") -> Body:
    """A form with nothing to fill in, for clients without forms."""
    message = _message(asked)
    call = v1.ToolCallPatch(
        stage.next_id("question"), title=sentence(message), kind=v1.ToolKind.OTHER, content=[text(noted(message))]
    )
    chosen = await pick_alone(stage, call, [_YES, _NO], question=True)
    return {"action": "accept", "content": {}} if chosen is _YES else dict(DECLINE)
