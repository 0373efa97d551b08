"""The gateway as a client sees it before it opens a session: who the client is, the agents, links for other devices, and what admins do."""

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from antiphon import __version__
from antiphon.errors import Code, RequestError
from antiphon.gateway.base import AccessRole, HubLinks, SessionQuery
from antiphon.gateway.settings import HubSettings

if TYPE_CHECKING:
    from antiphon.gateway.clients.connection import GatewayConnection
    from antiphon.gateway.methods.base import GatewayHub, ListedAgent

__all__ = ["administer", "gateway_info", "launch_device"]

RECENT: Final = 12
"""Directories of earlier sessions that are offered for a new one."""

LOOKED_AT: Final = 200
"""Sessions in which they are looked for."""


async def gateway_info(client: "GatewayConnection[Any]", params: Raw) -> object:
    """Return what a page needs to begin: the version, who the client is, the agents, and where sessions may be opened."""
    hub, principal = client.hub, client.principal
    opens = client.may(AccessRole.DRIVE)
    agents = [*hub.agents.values()]
    if principal.sessions is not None:  # one agent's name could be that of a customer
        query = SessionQuery(tuple(hub.agents), principal.sessions, limit=LOOKED_AT)
        shared = {each.row.agent for each in await hub.rows.listed(query)}
        agents = [agent for agent in agents if agent.name in shared]
    return {
        "version": __version__,
        "page": hub.facts.page,
        "name": principal.name,
        "role": principal.role.name.lower(),
        "share": principal.sessions is not None,
        "agents": [await _agent(hub, agent, opens=opens) for agent in agents],
        "roots": [*hub.files.roots] if opens else [],
        "recent": await _recent(hub) if opens else [],
    }


async def _agent(hub: "GatewayHub", agent: "ListedAgent", *, opens: bool) -> dict[str, object]:
    settings = HubSettings(await hub.rows.settings(agent.name)).result() if opens else b"{}"
    return {
        "name": agent.name,
        "title": agent.title,
        "default": agent.name == hub.facts.default,
        "state": agent.state.value,
        "settings": Raw(settings) if settings != b"{}" else None,
    }


async def _recent(hub: "GatewayHub") -> list[str]:
    """Return the directories of the sessions that were used last, as far as a new one may be opened there."""
    listed = await hub.rows.listed(SessionQuery(tuple(hub.agents), limit=LOOKED_AT))
    directories = [*dict.fromkeys(each.row.cwd for each in listed)][:RECENT]
    return [*await hub.files.usable(directories)]


# What the program around the hub does.


def links_of(hub: "GatewayHub") -> HubLinks:
    """Return what makes links and answers admins.

    Raises:
        RequestError: no server is around this hub.
    """
    if hub.links is None:
        raise RequestError(Code.INVALID_REQUEST, "this gateway cannot be reached yet", hint="try again in a moment")
    return hub.links


class _LaunchParams(msgspec.Struct):
    role: str = ""


async def launch_device(client: "GatewayConnection[Any]", params: Raw) -> object:
    """Return an address that signs another device in, with at most the role of this client."""
    role = msgspec.json.decode(params, type=_LaunchParams).role
    made = await links_of(client.hub).launch(client.principal, role)
    client.hub.note(client.principal, "launch", "", role or client.principal.role.name.lower())
    return made


async def administer(client: "GatewayConnection[Any]", params: Raw) -> object:
    """Do what an admin asks for."""
    return await links_of(client.hub).administer(params, client.principal)
