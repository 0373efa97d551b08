"""An MCP server asks the user something: passed on to the client, if it can show it. Else the server is told no."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.agent.forms import misfits
from antiphon.engines.claude.inquiry import Body
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from antiphon.protocol.salvage import salvage
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking, Visit
    from antiphon.engines.claude import wire

__all__ = ["DECLINE", "ask_for_server", "form_of"]

DECLINE: Final = {"action": "decline"}
_PAGES: Final = ("https://", "http://")


async def ask_for_server(request: "wire.Elicitation", stage: "Asking", pages: "dict[str, Visit]") -> Body:
    """Ask by a form or on a page. The pages that the user agreed to go to are remembered by the server's id for them."""
    client = stage.session.client
    if request.mode == "url":
        return await _page(request, stage, pages) if client.opens_pages else dict(DECLINE)
    form = form_of(request.requested_schema)
    if form is None or not client.shows_forms:
        return dict(DECLINE)
    asked = v1.FormElicitation(message=_message(request), requested_schema=form, session_id=stage.session.id)
    match await stage.request(m.CREATE_ELICITATION, asked):
        case v1.Accepted(content=content) if not list(misfits(content or {}, form)):
            return {"action": "accept", "content": content or {}}
        case v1.Accepted() | v1.Declined():
            return dict(DECLINE)
        case _:
            return {"action": "cancel"}


async def _page(request: "wire.Elicitation", stage: "Asking", pages: "dict[str, Visit]") -> Body:
    url = request.url or ""
    if not url.lower().startswith(_PAGES):  # a server may not have the user run something
        return dict(DECLINE)
    visit = await stage.visit(_message(request), url)
    if not visit:
        return dict(DECLINE)
    if request.elicitation_id is not None:
        pages[request.elicitation_id] = visit
    return {"action": "accept"}


def _message(request: "wire.Elicitation") -> str:
    """Who asks is said first: the words are the server's own."""
    who = request.display_name or request.mcp_server_name or "An MCP server"
    return "\n".join(part for part in (f"{who} asks: {request.message}", request.title, request.description) if part)


def form_of(schema: dict[str, Any] | None) -> v1.Form | None:
    """The server's form as the client takes it; None if it is none."""
    properties = (schema or {}).get("properties", {})
    if not isinstance(properties, dict):
        return None
    named = {name: _with_titles(each) for name, each in properties.items()}
    try:
        return salvage(encode({**(schema or {}), "properties": named}), v1.Form)
    except msgspec.ValidationError:
        return None


def _with_titles(field: Any) -> Any:
    """MCP's older way to give the values of a choice names."""
    if not isinstance(field, dict) or "enumNames" not in field:
        return field
    rest = {key: value for key, value in field.items() if key not in ("enum", "enumNames")}
    values, names = field.get("enum"), field["enumNames"]
    if not isinstance(values, list) or not isinstance(names, list) or len(values) != len(names):
        return {**rest, "enum": values}
    return {**rest, "oneOf": [{"const": value, "title": name} for value, name in zip(values, names, strict=True)]}
