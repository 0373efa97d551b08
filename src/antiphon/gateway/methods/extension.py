"""The extension methods of the gateway, by their names: who may use each, and what answers it.

Those about the whole gateway are answered on every connection, also on one whose agent does not start. What a client may not see is left
out of their answers: a share is for its sessions alone, and knows of no others.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from antiphon.errors import AcpError, Code
from antiphon.gateway.base import EXTENSION, AccessRole
from antiphon.gateway.methods.control import cancel_prompt, rename_session, share_session
from antiphon.gateway.methods.documents import export_session, session_changes
from antiphon.gateway.methods.files import list_directories, list_files
from antiphon.gateway.methods.history import read_events
from antiphon.gateway.methods.overview import administer, gateway_info, launch_device
from antiphon.gateway.methods.rows import follow_sessions, list_sessions
from antiphon.gateway.methods.search import search_sessions
from antiphon.gateway.turns import error_object, for_role
from antiphon.rpc.envelope import BAD_INPUT, Request, error_frame, head_of_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.clients.connection import GatewayConnection
    from antiphon.gateway.session import HubSession

__all__ = ["ExtensionMethods", "GatewayMethods", "introduction"]

SESSION_METHODS: Final = ("_antiphon/session/attach", "_antiphon/session/detach")
"""Those of `session_methods.py`."""

_log = logging.getLogger(__name__)

OfGateway: TypeAlias = "Callable[[GatewayConnection[Any], Raw], Awaitable[object]]"
"""Finds the result of a request about the whole gateway."""

OfSession: TypeAlias = "Callable[[RemoteClient, HubSession, Raw], Awaitable[object]]"
"""Finds the result of a request about one session."""


class _OfGateway(NamedTuple):
    answer: OfGateway
    role: AccessRole | None = None
    """The role that it needs in all sessions; None: every client may, and sees what is for it."""


class _OfSession(NamedTuple):
    answer: OfSession
    role: AccessRole = AccessRole.WATCH
    """The role that it needs in the session."""
    everywhere: bool = False
    """Whether the role is needed in all sessions, so that no share has it."""


_GATEWAY: Final = {
    "_antiphon/gateway/info": _OfGateway(gateway_info),
    "_antiphon/sessions/list": _OfGateway(list_sessions),
    "_antiphon/sessions/follow": _OfGateway(follow_sessions),
    "_antiphon/sessions/search": _OfGateway(search_sessions),
    "_antiphon/gateway/launch": _OfGateway(launch_device, AccessRole.DRIVE),
    "_antiphon/gateway/admin": _OfGateway(administer, AccessRole.ADMIN),
    "_antiphon/gateway/directories": _OfGateway(list_directories, AccessRole.DRIVE),
}
_SESSION: Final = {
    "_antiphon/session/read": _OfSession(read_events),
    "_antiphon/session/changes": _OfSession(session_changes),
    "_antiphon/session/export": _OfSession(export_session),
    "_antiphon/session/files": _OfSession(list_files, AccessRole.DRIVE),
    "_antiphon/session/rename": _OfSession(rename_session, AccessRole.DRIVE),
    "_antiphon/session/cancel_prompt": _OfSession(cancel_prompt, AccessRole.DRIVE),
    "_antiphon/session/share": _OfSession(share_session, AccessRole.ADMIN, everywhere=True),
}


class _SessionParams(msgspec.Struct, rename="camel"):
    session_id: str


def introduction(client: "GatewayConnection[Any]") -> dict[str, object]:
    """Return what the result of `initialize` says about the extension and this client."""
    about: dict[str, object] = {
        "extension": EXTENSION,
        "methods": [*SESSION_METHODS, *ExtensionMethods.NAMES],
        "numbers": client.offer.numbers,
        "merged": client.offer.merged,
        "name": client.principal.name,
    }
    if client.may(AccessRole.DRIVE):  # others open no session
        about["roots"] = [*client.hub.files.roots]
    return about


Client = TypeVar("Client", bound="GatewayConnection[Any]")


class GatewayMethods(Generic[Client]):
    """The requests of one client about the whole gateway. One is answered after the other: each may be large."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._order = asyncio.Lock()

    def is_of_gateway(self, method: str) -> bool:
        """Whether a method is about the whole gateway, and so needs no agent."""
        return method in _GATEWAY

    def handle(self, request: Request) -> bool:
        """Handle a request about the whole gateway. False: it is another one."""
        method = _GATEWAY.get(request.method)
        if method is None:
            return False
        if method.role is not None and not self._client.may(method.role):
            self._refuse_role(request, method.role)
        else:
            self._start(request, lambda: method.answer(self._client, request.params))
        return True

    def _refuse_role(self, request: Request, role: AccessRole) -> None:
        self._client.refuse(request, Code.INVALID_REQUEST, "this token may not do that", recovery=for_role(role))

    def _start(self, request: Request, find: "Callable[[], Awaitable[object]]", session_id: str | None = None) -> None:
        self._client.hub.run(self._answer(request, find, session_id))

    async def _answer(self, request: Request, find: "Callable[[], Awaitable[object]]", session_id: str | None) -> None:
        client = self._client
        try:
            async with self._order:
                await client.room()
                async with client.hub.quotas.place(client.principal):
                    if client.closed.is_set():
                        return  # its token may have been revoked while it waited
                    result = msgspec.json.encode(await find())
                client.put(b"%b%b}" % (head_of_answer(request.id), result), session_id, request.id)
        except AcpError as error:
            client.put(error_frame(request.id, error_object(error)), session_id, request.id)
        except BAD_INPUT as error:
            client.refuse(request, Code.INVALID_PARAMS, f"`{request.method}` cannot be read: {error}")
        except Exception:
            _log.exception("a request `%s` of a client failed", request.method)
            client.refuse(request, Code.INTERNAL_ERROR, "Internal error")


class ExtensionMethods(GatewayMethods["RemoteClient"]):
    """The requests of one client that only the extension has: about the whole gateway, and about one session."""

    NAMES: Final = (*_SESSION, *_GATEWAY)

    def handle(self, request: Request) -> bool:
        """Handle a request of the extension. False: it is another one."""
        if (method := _SESSION.get(request.method)) is None:
            return super().handle(request)
        self._with_session(request, method)
        return True

    def _with_session(self, request: Request, method: _OfSession) -> None:
        try:
            session_id = msgspec.json.decode(request.params, type=_SessionParams).session_id
        except BAD_INPUT as error:
            self._client.refuse(request, Code.INVALID_PARAMS, f"`{request.method}` cannot be read: {error}")
            return

        async def answer(session: "HubSession") -> object:
            try:
                return await method.answer(self._client, session, request.params)
            finally:
                session.release_if_idle()

        def found(session: "HubSession") -> None:
            if method.everywhere and not self._client.may(method.role):
                self._refuse_role(request, method.role)
                session.release_if_idle()
            else:
                self._start(request, lambda: answer(session), session_id)

        self._client.with_session(request, session_id, AccessRole.WATCH if method.everywhere else method.role, found)
