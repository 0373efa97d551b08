"""What an admin may ask of a gateway: how it is, its tokens and shares, its sessions and its audit log. One request, one result."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from antiphon import __version__
from antiphon.errors import AcpError
from antiphon.gateway.access.audit import PAGE, shown
from antiphon.gateway.access.tokens import AccessToken
from antiphon.gateway.base import AccessRole, GatewaySession, Principal, ServedHub
from antiphon.gateway.data import GatewayData

__all__ = ["Admin", "AdminError", "AdminRequest", "role_of"]

SHARE_LIFETIME: Final = 7 * 24 * 3600.0
"""Seconds for which a share is good, unless another time is given."""


class AdminError(AcpError):
    """What an admin asked for cannot be done."""


class AdminRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One request. Which of the fields count depends on the action."""

    action: str
    name: str = ""
    role: str = ""
    id: int = 0
    sessions: list[str] = []
    lifetime: float | None = None
    after: int | None = None
    """The entry after which the audit log is read forwards."""
    before: int | None = None
    """The entry before which it is read backwards."""
    limit: int | None = None
    """Entries at once. Without `after` and `before` they are the newest."""


class Admin:
    """Answers the requests of admins, for the server and for a command that has the data for itself."""

    def __init__(self, data: GatewayData, hub: ServedHub | None = None) -> None:
        self._data = data
        self._tokens = data.tokens
        self._hub = hub
        self._began = time.time()

    async def answer(self, request: AdminRequest, principal: Principal, address: str = "") -> Mapping[str, object]:
        """Do what is asked for, and return what came of it.

        Raises:
            AdminError: it cannot be done; the hint says why.
        """
        actions = {
            "status": self._status,
            "tokens": self._list_tokens,
            "create token": self._create_token,
            "revoke": self._revoke,
            "shares": self._list_shares,
            "share": self._share,
            "launch": self._launch,
            "sessions": self._sessions,
            "delete session": self._delete_session,
            "audit": self._audit,
        }
        action = actions.get(request.action)
        if action is None:
            raise AdminError(f"there is no action `{request.action}`", hint=f"one of: {', '.join(actions)}")
        result = await action(request)
        if request.action not in ("status", "tokens", "shares", "sessions", "audit"):
            detail = " ".join(part for part in (request.name, request.role, str(request.id or "")) if part)
            self._data.audit.add(
                request.action, actor=principal.name, token=principal.token_id, address=address, detail=detail
            )
        return result

    async def _status(self, request: AdminRequest) -> Mapping[str, object]:
        return {
            "state": "running" if self._hub is not None else "stopped",
            "since": self._began if self._hub is not None else None,
            "data": str(self._data.directory),
            "bytes": await self._data.used_bytes(),
            "stored_sessions": len(await self._data.all()),
            "tokens": len(self._tokens.list("token")),
            "shares": len(self._tokens.list("share")),
            "browsers": len(self._tokens.list("browser")),
            "audit_is_whole": await self._data.audit.broken() is None,
            "version": __version__,
            **({} if self._hub is None else await self._of_hub(self._hub)),
        }

    async def _of_hub(self, hub: ServedHub) -> Mapping[str, object]:
        return {
            **hub.counts(),
            "uptime": time.time() - self._began,
            "health": hub.health,
            "agents": await hub.agents_now(),
        }

    # Tokens.

    async def _list_tokens(self, request: AdminRequest) -> Mapping[str, object]:
        return {"tokens": [self._shown_token(token) for token in self._tokens.list("token", "browser")]}

    def _shown_token(self, token: AccessToken) -> Mapping[str, object]:
        """A token or share as a list has it, with the number of browsers that are signed in with it."""
        return {**token.shown(), "browsers": len(self._tokens.browsers(token.id))}

    async def _create_token(self, request: AdminRequest) -> Mapping[str, object]:
        role = role_of(request.role or "drive")
        token, secret = await self._tokens.create(
            "token", _name(request), role, lifetime=_lifetime(request), is_numbered=not request.name
        )
        return {**token.shown(), "secret": secret}

    async def _revoke(self, request: AdminRequest) -> Mapping[str, object]:
        token = await self._tokens.revoke(request.id)
        if token is None:
            raise AdminError(f"there is no token {request.id}", hint="`antiphon serve tokens` lists them")
        return token.shown()

    async def _list_shares(self, request: AdminRequest) -> Mapping[str, object]:
        return {"shares": [self._shown_token(token) for token in self._tokens.list("share")]}

    async def _share(self, request: AdminRequest) -> Mapping[str, object]:
        if not request.sessions:
            raise AdminError("a share is for one session or more", hint="`antiphon serve sessions` lists them")
        keys = [(await self._session(text)).key for text in request.sessions]
        role = role_of(request.role or "watch")
        if role >= AccessRole.ADMIN:
            raise AdminError("a share cannot have the role admin", hint="give it `watch` or `drive`")
        lifetime = _lifetime(request) or SHARE_LIFETIME
        token, secret = await self._tokens.create(
            "share", _name(request), role, sessions=keys, lifetime=lifetime, is_numbered=not request.name
        )
        return {**token.shown(), "secret": secret}

    async def _launch(self, request: AdminRequest) -> Mapping[str, object]:
        return {"code": await self._tokens.launch_code(role_of(request.role or "admin"))}

    # Sessions.

    async def _sessions(self, request: AdminRequest) -> Mapping[str, object]:
        return {"sessions": [_shown(row) for row in await self._data.all()]}

    async def _delete_session(self, request: AdminRequest) -> Mapping[str, object]:
        rows = [await self._session(text) for text in request.sessions]
        for row in rows:
            if self._hub is not None:
                await self._hub.delete_stored(row)
            else:
                await self._data.delete(row.key)
        return {"deleted": [_shown(row) for row in rows]}

    async def _session(self, text: str) -> GatewaySession:
        rows: Sequence[GatewaySession] = await self._data.all()
        exact = [row for row in rows if text in (row.key, row.session_id)]
        found = exact or [row for row in rows if text and (row.key.startswith(text) or row.session_id.startswith(text))]
        if len(found) == 1:
            return found[0]
        problem = "several sessions begin with" if found else "there is no session"
        raise AdminError(f"{problem} `{text}`", hint="`antiphon serve sessions` lists them")

    async def _audit(self, request: AdminRequest) -> Mapping[str, object]:
        limit = PAGE if request.limit is None else request.limit
        if not 1 <= limit <= PAGE or (request.after is not None and request.before is not None):
            hint = f"give `after` or `before` or none of them, and a `limit` from 1 to {PAGE}"
            raise AdminError("these entries of the audit log cannot be read", hint=hint)
        if request.after is None and (request.before is not None or request.limit is not None):
            entries = await self._data.audit.read_back(request.before, limit)
        else:
            entries = await self._data.audit.read(request.after or 0, limit)
        return {"entries": [shown(entry) for entry in entries], "broken": await self._data.audit.broken()}


def role_of(word: str) -> AccessRole:
    """Return the role of a name.

    Raises:
        AdminError: there is none.
    """
    try:
        return AccessRole[word.upper()]
    except KeyError:
        raise AdminError(f"there is no role `{word}`", hint="one of: watch, drive, admin") from None


def _name(request: AdminRequest) -> str:
    if not request.name.isprintable() or len(request.name) > 100:
        raise AdminError("a name has at most 100 characters that can be printed", hint="choose another name")
    return request.name or request.action.split()[-1]


def _lifetime(request: AdminRequest) -> float | None:
    if request.lifetime is not None and not 0 < request.lifetime < 10 * 365 * 24 * 3600:
        raise AdminError("a token is good for some time, and for ten years at most", hint="give its time as `12h`")
    return request.lifetime


def _shown(row: GatewaySession) -> dict[str, object]:
    names = ("key", "agent", "session_id", "cwd", "title", "created", "archived", "owner")
    used = {"updated": row.updated or row.created, "running": bool(row.turn)}
    return {**{name: getattr(row, name) for name in names}, **used}
