"""A question of an MCP server, as the CLI passes it on."""

from typing import TYPE_CHECKING, Final

from antiphon.engines.elicitation import ask_by_form, ask_on_page
from antiphon.engines.inquiry import Body
from antiphon.engines.recent import trim
from antiphon.engines.wording import prose

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking, Visit
    from antiphon.engines.claude import wire

__all__ = ["ask_for_server"]

MOST_PAGES: Final = 64
"""Pages whose end is waited for. Servers need not say when the user is done."""


async def ask_for_server(request: "wire.Elicitation", stage: "Asking", pages: "dict[str, Visit]") -> Body:
    """Ask by a form or on a page. The pages that the user agreed to go to are remembered by the server's id for them."""
    if request.mode != "url":
        return await ask_by_form(stage, _message(request), request.requested_schema)
    body, visit = await ask_on_page(stage, _message(request), request.url)
    if visit is not None and request.elicitation_id is not None:
        pages[request.elicitation_id] = visit
        trim(pages, MOST_PAGES)
    return body


def _message(request: "wire.Elicitation") -> str:
    """Who asks is said first: the words are the server's own."""
    who = request.display_name or request.mcp_server_name or "An MCP server"
    said = (f"{who} asks: {request.message}", request.title, request.description)
    return prose("\n".join(part for part in said if part))
