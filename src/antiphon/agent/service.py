"""The service of one client: which request goes where."""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from antiphon.agent.client import ConnectedClient
from antiphon.agent.prompts import STEERING, read_steering
from antiphon.agent.sessions import AgentSessions, wait_for_ends
from antiphon.aio import background, ignore_result, maybe_await
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.agent.agent import Agent
    from antiphon.transports.base import Transport

__all__ = ["AgentService", "serve"]

_log = logging.getLogger(__name__)

AHEAD_DELAY: Final = 0.05
"""Seconds that a client is connected before `Agent.ahead` is called: one that only sends `initialize` is gone by then."""


async def serve(agent: "Agent", transport: "Transport", asked: v1.Initialize | None = None) -> None:
    """Serve one client until it is gone. `asked` is its `initialize`, if that has been answered already."""
    if asked is None and 2 in agent.versions:
        transport = _versioned(agent, transport)
    service = AgentService(agent, transport, asked)
    agent._clients += 1
    ahead = asyncio.ensure_future(_call_ahead(agent))
    ahead.add_done_callback(ignore_result)
    try:
        async with service.connection:
            try:
                await service.connection.wait_closed()
            finally:  # also when this task is cancelled while the client is still there
                await service.sessions.end()
    finally:
        await service.sessions.end()  # those that were being opened until the connection was closed
        ahead.cancel()
        agent._clients -= 1
        if not agent._clients:
            await wait_for_ends([asyncio.ensure_future(_close(agent))], "what sessions share")


def _versioned(agent: "Agent", transport: "Transport") -> "Transport":
    """Return the transport with what it needs to find out whether its client speaks another version than version 1."""
    from antiphon.connection.negotiation import AgentNegotiation
    from antiphon.protocol.translate.choice import by_request, v2_client

    clock = asyncio.get_running_loop().time
    return AgentNegotiation(
        transport, partial(by_request, clock, agent.versions, make=partial(v2_client, extended=True))
    )


async def _call_ahead(agent: "Agent") -> None:
    if agent.ahead is not None:
        await asyncio.sleep(AHEAD_DELAY)
        await maybe_await(agent.ahead())


async def _close(agent: "Agent") -> None:
    await maybe_await(agent.close())


class AgentService:
    """The handlers of one client's requests. A hook that is not filled in has none, so its method is refused as unknown."""

    def __init__(self, agent: "Agent", transport: "Transport", asked: v1.Initialize | None = None) -> None:
        self._agent = agent
        self.connection = Connection(transport, self._router(), version=V1)
        self.client = ConnectedClient(self.connection, asked)
        self.sessions = AgentSessions(agent, self.client)
        self._fill(self.connection.router)

    def _router(self) -> Router:
        router = Router()
        router.other_request = self._extension
        if self._agent._extensions:
            router.other_notice = self._extension_notice
        router.on_request(m.INITIALIZE, self._initialize)
        router.on_request(m.AUTHENTICATE, self._authenticate)
        if self._agent.does("logout"):
            router.on_request(m.LOGOUT, self._logout)
        return router

    def _fill(self, router: Router) -> None:
        sessions, does = self.sessions, self._agent.does
        router.on_request(m.NEW_SESSION, sessions.new)
        router.on_request(m.PROMPT, sessions.prompt)
        router.on_notice(m.CANCEL, sessions.cancel)
        router.on_request(m.SET_MODE, sessions.set_mode)
        router.on_request(m.SET_MODEL, sessions.set_model)
        router.on_request(m.SET_CONFIG_OPTION, sessions.set_config_option)
        router.on_request(m.CLOSE_SESSION, sessions.close)
        if does("load_session"):
            router.on_request(m.LOAD_SESSION, sessions.load)
        if does("resume_session"):
            router.on_request(m.RESUME_SESSION, sessions.resume)
        if does("fork_session"):
            router.on_request(m.FORK_SESSION, sessions.fork)
        if does("list_sessions"):
            router.on_request(m.LIST_SESSIONS, sessions.list)
        if does("delete_session"):
            router.on_request(m.DELETE_SESSION, sessions.delete)

    def _initialize(self, asked: v1.Initialize) -> v1.InitializeResult:
        self.client._introduce(asked)
        asyncio.get_running_loop().call_soon(self.connection.settle)
        return self._agent.initialize(asked)

    async def _authenticate(self, asked: v1.Authenticate) -> v1.AuthenticateResult:
        offered = [getattr(method, "id", None) for method in self._agent.auth_methods]
        method_id = self._agent.auth_aliases.get(asked.method_id, asked.method_id)
        if method_id not in offered:
            names = ", ".join(f"`{each}`" for each in offered) or "none: there is nothing to sign in to"
            wrong = f"there is no method `{asked.method_id}` to sign in; on offer: {names}"
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong)
        await maybe_await(self._agent.authenticate(method_id))
        return v1.AuthenticateResult()

    async def _logout(self, _: v1.Logout) -> v1.LogoutResult:
        await maybe_await(self._agent.logout())
        return v1.LogoutResult()

    async def _extension(self, method: str, params: Raw) -> object:
        if method == m.CANCEL.name:  # a notification; some clients send it as a request, and wait for a response
            self.sessions.cancel(m.CANCEL.read_params(params).value)
            return {}
        if method == STEERING and self._agent.does("steer"):
            return await self.sessions.steer(read_steering(params))
        if method.startswith("_antiphon/v2/") and self.client.version > 1:
            return self.sessions.cancel_part(method, params)
        handler = self._agent._extensions.get(method)
        if handler is None:
            raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        return await maybe_await(handler(msgspec.json.decode(params)))

    def _extension_notice(self, method: str, params: Raw) -> None:
        if (handler := self._agent._extensions.get(method)) is None:
            _log.debug("a notification `%s` has no handler", method)
        else:
            _ = background(_handle(method, handler, msgspec.json.decode(params)))


async def _handle(method: str, handler: "Callable[[Any], object]", params: object) -> None:
    try:
        await maybe_await(handler(params))
    except Exception:  # a notification has no response for the error
        _log.exception("the handler of `%s` failed", method)
