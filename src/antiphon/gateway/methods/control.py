"""What a client does with a session besides its turns: its title, the prompts that wait, and links for others."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.gateway.events import notification
from antiphon.gateway.methods.overview import links_of
from antiphon.gateway.turns import LATER
from antiphon.text import one_line

if TYPE_CHECKING:
    from msgspec import Raw

    from antiphon.gateway.base import GatewaySession
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.clients.connection import GatewayConnection
    from antiphon.gateway.session import HubSession

__all__ = ["cancel_prompt", "rename_session", "share_row", "share_session"]

TITLE: Final = 200
"""Characters of a title."""


class _RenameParams(msgspec.Struct):
    title: str


async def rename_session(client: "RemoteClient", session: "HubSession", params: "Raw") -> object:
    """Give a session a title that those of the agent do not replace; an empty one gives it back to the agent. It is an event for all."""
    if why := session.hub.quotas.refuse_change(client.principal):
        raise RequestError(Code.INVALID_REQUEST, why, LATER, hint="try again in a minute")
    title = one_line(msgspec.json.decode(params, type=_RenameParams).title[: 10 * TITLE]).strip()[:TITLE]
    shown = title or session.row.agent_title
    session.row = msgspec.structs.replace(session.row, title=shown, renamed=bool(title))
    session.save()
    session.hub.feed.changed(session)
    session.hub.note(client.principal, "rename", session.key, title)
    update = {"sessionUpdate": "session_info_update", "title": shown or None}
    await session.stored(notification("session/update", {"sessionId": session.id, "update": update}))
    return {}


class _CancelParams(msgspec.Struct):
    prompt: str


async def cancel_prompt(client: "RemoteClient", session: "HubSession", params: "Raw") -> object:
    """Cancel a prompt that waits, by its name."""
    name = msgspec.json.decode(params, type=_CancelParams).prompt
    if not session.turns.remove(name):
        raise RequestError(Code.RESOURCE_NOT_FOUND, f"no prompt `{name[:64]}` waits in this session")
    session.hub.note(client.principal, "cancel prompt", session.key, name)
    return {}


class _ShareParams(msgspec.Struct):
    role: str = ""
    lifetime: float | None = None
    name: str = ""


async def share_session(client: "RemoteClient", session: "HubSession", params: "Raw") -> object:
    """Return a link that shows a session to a person without a token."""
    return await share_row(client, session.row, params)


async def share_row(client: "GatewayConnection[Any]", row: "GatewaySession", params: "Raw") -> object:
    """Return a link that shows the session of a row to a person without a token."""
    given = msgspec.json.decode(params, type=_ShareParams)
    links = links_of(client.hub)
    return await links.share(row, client.principal, role=given.role, lifetime=given.lifetime, name=given.name)
