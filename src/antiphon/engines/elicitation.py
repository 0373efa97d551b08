"""An MCP server asks the user something: passed on to the client, if it can show it. Else the server is told no."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.agent.forms import misfits
from antiphon.engines.inquiry import Body
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from antiphon.protocol.salvage import salvage
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking, Visit

__all__ = ["CANCEL", "DECLINE", "ask_by_form", "ask_on_page", "form_of"]

DECLINE: Final = {"action": "decline"}
CANCEL: Final = {"action": "cancel"}
_PAGES: Final = ("https://", "http://")


async def ask_by_form(stage: "Asking", message: str, schema: dict[str, Any] | None) -> Body:
    """Have the user fill in the server's form."""
    form = form_of(schema)
    if form is None or not stage.session.client.shows_forms:
        return dict(DECLINE)
    asked = v1.FormElicitation(message=message, requested_schema=form, session_id=stage.session.id)
    match await stage.request(m.CREATE_ELICITATION, asked):
        case v1.Accepted(content=content) if not list(misfits(content or {}, form)):
            return {"action": "accept", "content": content or {}}
        case v1.Accepted() | v1.Declined():
            return dict(DECLINE)
        case _:
            return dict(CANCEL)


async def ask_on_page(stage: "Asking", message: str, url: str | None) -> "tuple[Body, Visit | None]":
    """Have the user go to the server's page. Whoever knows that they are done there completes the visit."""
    if not stage.session.client.opens_pages:
        return dict(DECLINE), None
    if url is None or not url.lower().startswith(_PAGES):  # a server may not have the user run something
        return dict(DECLINE), None
    visit = await stage.visit(message, url)
    return ({"action": "accept"}, visit) if visit else (dict(DECLINE), None)


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
