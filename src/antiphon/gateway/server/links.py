"""What clients with the right role have the program around the hub do: links for other people and devices, and the requests of admins.

A link carries its secret in the fragment, which browsers neither send nor log.
"""

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.gateway.access.tokens import LAUNCH_LIFETIME, AccessTokens
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.server.admin import Admin, AdminRequest, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from antiphon.gateway.base import GatewaySession

__all__ = ["PageLinks"]

LIFETIME: Final = 7 * 24 * 3600.0
"""Seconds for which a share is good, unless another time is given."""


class PageLinks:
    """Makes links to the page of a gateway, and answers the requests of admins."""

    def __init__(self, admin: Admin, tokens: AccessTokens, url: str) -> None:
        """`url` is where browsers reach the gateway; empty if they do not."""
        self._admin = admin
        self._tokens = tokens
        self._url = url

    async def administer(self, params: "Raw", principal: Principal) -> "Mapping[str, object]":
        """Do what an admin asks for, as `/api/admin` does."""
        request = msgspec.json.decode(params, type=AdminRequest)
        return await self._admin.answer(request, principal, principal.address)

    async def share(
        self, row: "GatewaySession", principal: Principal, *, role: str, lifetime: float | None, name: str
    ) -> "Mapping[str, object]":
        """Make a link that shows one session to a person without a token."""
        url = self._reached()
        request = AdminRequest("share", name=name, role=role, sessions=[row.key], lifetime=lifetime or LIFETIME)
        made = await self._admin.answer(request, principal, principal.address)
        place = f"/session/{quote(row.agent, '')}/{quote(row.session_id, '')}"
        link = f"{url}/#token={made['secret']}&to={place}"
        return {"id": made["id"], "url": link, "expires": made["expires"], "qr": qr_code(link)}

    async def launch(self, principal: Principal, role: str) -> "Mapping[str, object]":
        """Make a link that signs another device in, with at most the role of the principal."""
        url = self._reached()
        wanted = principal.role if not role else role_of(role)
        if exceeds(wanted, principal):
            raise RequestError(Code.INVALID_REQUEST, f"this token cannot hand out the role {wanted.name.lower()}")
        link = f"{url}/#code={await self._tokens.launch_code(wanted, parent_of_device(principal))}"
        return {"url": link, "expires": self._tokens.now() + LAUNCH_LIFETIME, "qr": qr_code(link)}

    def _reached(self) -> str:
        if not self._url:
            hint = "start it without --unix, or name what is in front of it with --public-url"
            raise RequestError(Code.INVALID_REQUEST, "no browser reaches the Unix socket of this gateway", hint=hint)
        return self._url


def exceeds(role: AccessRole, principal: Principal) -> bool:
    """Whether a principal would hand out more than it has."""
    return role > principal.role


def parent_of_device(principal: Principal) -> int | None:
    """Return the token that another device of a principal is a browser of: it ends with that. An admin may make tokens as it likes."""
    return None if principal.role >= AccessRole.ADMIN else int(principal.root_id)


def qr_code(text: str) -> dict[str, object] | None:
    """Return a QR code without its margin: its rows, 1 for a dark module. None without the package that makes it."""
    try:
        import segno
    except ImportError:
        return None
    rows = [
        "".join("1" if module else "0" for module in row) for row in segno.make(text, micro=False, error="m").matrix
    ]
    return {"size": len(rows), "rows": rows}
