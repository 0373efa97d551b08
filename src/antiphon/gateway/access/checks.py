"""Who is let in: the checks that every request passes, whatever its route, and the principal that it comes from.

The checks are functions of this module, each for one attack; a request is refused by the first that says so. Doubt refuses.
"""

import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from antiphon.gateway.access.audit import AccessLog
from antiphon.gateway.access.tokens import AccessToken, AccessTokens
from antiphon.gateway.base import AccessRole, Principal
from antiphon.transports.asgi.connections import Scope
from antiphon.transports.asgi.heads import LOOPBACK, Refusal, foreign_host, foreign_origin, header_of, refused_headers
from antiphon.transports.asgi.sockets import sign_in_socket

__all__ = ["COOKIE", "SUBPROTOCOL", "Access", "AccessRules", "Visitor"]

COOKIE: Final = "antiphon"
SUBPROTOCOL: Final = "acp.bearer."
"""The start of the WebSocket subprotocol that carries a token, for browsers, which can set no header there."""

FAILURES: Final = 5
"""Different wrong secrets of one address in `WINDOW`, after which it has to wait. The same one again is not a guess."""

ALL_FAILURES: Final = 50
"""Wrong secrets of all addresses in `WINDOW`, after which those that never had a right one have to wait."""

HOPS: Final = 16
"""Addresses of proxies behind each other that are looked at: a header may hold thousands."""

WINDOW: Final = 60.0
LONGEST_WAIT: Final = 900.0
ADDRESSES: Final = 4096
"""Addresses that are remembered; those that failed longest ago are forgotten."""

_SECRETS_IN_QUERY: Final = ("token=", "access_token=", "code=", "password=")
_log = logging.getLogger(__name__)

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class AccessRules(msgspec.Struct, frozen=True):
    """How this gateway is reached."""

    hosts: frozenset[str] = LOOPBACK
    """Names in `Host` that are ours, in small letters and without a port."""
    origins: frozenset[str] = frozenset()
    """Origins of pages that may use this gateway besides its own."""
    proxies: tuple[Network, ...] = ()
    """Addresses of proxies whose `X-Forwarded-For` is believed."""
    proxies_only: bool = False
    """Whether other machines are let in by those proxies alone: they have TLS, and this gateway has not."""
    secure: bool = False
    """Whether browsers reach it over TLS."""
    no_auth: bool = False
    """Whether every request has the role admin. On loopback alone."""

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers take the longer name only over TLS, for the whole host and nothing else."""
        return f"__Host-{COOKIE}" if self.secure else COOKIE


class Visitor(msgspec.Struct, frozen=True):
    """A request that has passed all checks."""

    principal: Principal | None
    """None: it has shown no secret."""
    token: AccessToken | None
    address: str
    subprotocol: str | None = None


class Access:
    """Decides about every request of a gateway."""

    def __init__(
        self,
        tokens: AccessTokens,
        audit: AccessLog,
        rules: AccessRules,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tokens = tokens
        self.rules = rules
        self._audit = audit
        self.failures = FailureCounter(clock)

    def visit(self, scope: Scope) -> Visitor | Refusal:
        """Decide about a request: who it comes from, or why it is refused. Without a secret it comes from no one that is known."""
        address = client_address(scope, self.rules.proxies)
        for check in (check_peer, check_headers, check_host, check_fetch_site, check_origin, check_query):
            if (refusal := check(scope, self.rules)) is not None:
                return refusal
        if self.rules.no_auth:
            sign_in_socket(scope)
            return Visitor(Principal("anyone", AccessRole.ADMIN), None, address)
        secret, how = secret_of(scope, self.rules)
        if not secret:
            return Visitor(None, None, address)
        token = self.check_secret(secret, address)
        if isinstance(token, Refusal):
            return token
        if how == COOKIE and (refusal := check_cookie(scope)) is not None:
            return refusal
        if (refusal := check_sockets(scope, token)) is not None:
            return refusal
        subprotocol = f"{SUBPROTOCOL}{secret}" if how == SUBPROTOCOL else None
        return Visitor(token.principal, token, address, subprotocol)

    def check_secret(self, secret: str, address: str) -> AccessToken | Refusal:
        """Return the token of a secret. Wrong ones are counted, and too many make the wrong ones of an address wait.

        A right one never waits: else another program on the same address could keep the owner out.
        """
        token = self.tokens.find(secret)
        if token is None:
            if (wait := check_failures(self.failures, address)) > 0:
                return _too_many(wait)
            self.note_failure(secret, address)
            return Refusal(401, "this token is not valid", _CHALLENGE)
        self.failures.succeeded(address)
        return token

    def note_failure(self, secret: str, address: str) -> None:
        """Count a wrong secret, and write to the audit log that there was one."""
        if self.failures.failed(address, secret):
            _log.warning("a wrong secret from %s", address)
            self._audit.add("login failed", actor="", address=address)

    def is_browser(self, scope: Scope) -> bool:
        """Whether a request comes from a page."""
        return bool(header_of(scope, b"origin") or header_of(scope, b"sec-fetch-site"))


_CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)
UNKNOWN: Final = Refusal(401, "a token is needed: send it as `Authorization: Bearer …`", _CHALLENGE)


def _too_many(wait: float) -> Refusal:
    return Refusal(429, "too many wrong tokens: wait", ((b"retry-after", str(int(wait) + 1).encode()),))


# The checks. Each returns why a request is refused, or None.


def check_peer(scope: Scope, rules: AccessRules) -> Refusal | None:
    """Refuse other machines that come without TLS, past the proxy: their tokens could be read on the way."""
    peer = peer_address(scope)
    if not rules.proxies_only or not _is_address(peer) or is_among(peer, (*rules.proxies, *_THIS_MACHINE)):
        return None
    return Refusal(403, "this gateway is reached through its proxy")


_THIS_MACHINE: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


def check_headers(scope: Scope, rules: AccessRules) -> Refusal | None:
    """Refuse headers that are too large, or of which there may be one and there are two: proxies and we may read another one."""
    return refused_headers(scope)


def check_host(scope: Scope, rules: AccessRules) -> Refusal | None:
    """Refuse a name that is not ours: a page of another site may have had it point to this machine (DNS rebinding)."""
    if not foreign_host(scope, rules.hosts):
        return None
    return Refusal(421, "this gateway does not have that name: start it with --public-url to give it one")


def check_fetch_site(scope: Scope, rules: AccessRules) -> Refusal | None:
    """Refuse what a browser says comes from another site."""
    site = header_of(scope, b"sec-fetch-site")
    if site in ("", "same-origin", "none") or header_of(scope, b"origin").lower() in rules.origins:
        return None
    if (
        scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/"
        and header_of(scope, b"sec-fetch-mode") == "navigate" and header_of(scope, b"sec-fetch-dest") == "document"
    ):  # fmt: skip
        return None  # a link to the page, which acts on nothing
    return Refusal(403, "requests from other sites are not allowed")


def check_origin(scope: Scope, rules: AccessRules) -> Refusal | None:
    """Refuse pages of other origins: their scripts may send requests here, with the cookies of the user."""
    if not foreign_origin(scope, rules.origins, "https" if rules.secure else "http"):
        return None
    return Refusal(403, "this origin is not allowed")


def check_query(scope: Scope, rules: AccessRules) -> Refusal | None:
    """Refuse secrets in addresses, which are logged and shown everywhere."""
    query = scope.get("query_string", b"").decode("latin-1").lower()
    if any(part.startswith(_SECRETS_IN_QUERY) for part in query.split("&")):
        return Refusal(400, "a secret does not belong into an address: revoke it, and send the next as a header")
    return None


def check_cookie(scope: Scope) -> Refusal | None:
    """Refuse a cookie without an origin where something may be changed: a browser always names the origin there."""
    changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
    return Refusal(403, "the origin is missing") if changes and not header_of(scope, b"origin") else None


def check_failures(failures: "FailureCounter", address: str) -> float:
    """Return the seconds that an address has to wait because of wrong secrets."""
    return failures.wait_of(address)


def check_sockets(scope: Scope, token: AccessToken) -> Refusal | None:
    """Refuse a token on more sockets than one client needs: those of others would find no room."""
    if sign_in_socket(scope, str(token.root)):
        return None
    return Refusal(429, "this token has too many sockets", ((b"retry-after", b"10"), (b"connection", b"close")))


def check_role(principal: Principal, role: AccessRole) -> Refusal | None:
    """Refuse a principal that may not do what needs this role with everything."""
    return None if principal.may(role) else Refusal(403, "this token may not do that")


# What they look at.


def peer_address(scope: Scope) -> str:
    """Return the address that a connection comes from; `local` for a Unix socket. One of IPv4 is written as such on any socket."""
    client = scope.get("client")
    if not client or not client[0]:
        return "local"
    text = str(client[0])
    mapped = ipaddress.ip_address(text) if _is_address(text) else None
    return str(getattr(mapped, "ipv4_mapped", None) or text)


def client_address(scope: Scope, proxies: Sequence[Network]) -> str:
    """Return the address of the client. What proxies say of it is believed as far as they are ours."""
    address = peer_address(scope)
    if not is_among(address, proxies):
        return address
    forwarded = [part.strip() for name, value in scope["headers"] if name == b"x-forwarded-for"
                 for part in value.decode("latin-1").split(",")]  # fmt: skip
    for hop in reversed(forwarded[-HOPS:]):
        if not _is_address(hop):
            break
        address = hop
        if not is_among(hop, proxies):
            break
    return address


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_among(address: str, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of these networks."""
    return _is_address(address) and any(ipaddress.ip_address(address) in network for network in networks)


def secret_of(scope: Scope, rules: AccessRules) -> tuple[str, str]:
    """Return the secret that a request shows, and how. A header that is there counts, even if a cookie is there too."""
    if authorization := header_of(scope, b"authorization"):
        kind, _, secret = authorization.partition(" ")
        return (secret.strip() if kind.lower() == "bearer" else "?"), "bearer"
    for offered in scope.get("subprotocols") or ():
        if offered.startswith(SUBPROTOCOL):
            return offered.removeprefix(SUBPROTOCOL), SUBPROTOCOL
    # By hand: the parser of the standard library takes seconds for a long quoted value, and ours are never quoted.
    for part in header_of(scope, b"cookie").split(";"):
        name, _, secret = part.strip().partition("=")
        if name == rules.cookie and secret:
            return secret, COOKIE
    return "", ""


class FailureCounter:
    """Wrong secrets by address and in all, and how long an address has to wait because of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._addresses: OrderedDict[str, _Address] = OrderedDict()
        self._all: list[float] = []
        self._trusted: OrderedDict[str, None] = OrderedDict()

    def wait_of(self, address: str) -> float:
        """Return the seconds that an address has to wait; 0 if it may try."""
        now = self._clock()
        found = self._addresses.get(address)
        wait = found.until - now if found is not None else 0.0
        if wait <= 0 and address not in self._trusted:
            self._all = [moment for moment in self._all if moment > now - WINDOW]
            if len(self._all) >= ALL_FAILURES:
                wait = self._all[0] + WINDOW - now
        return max(0.0, wait)

    def failed(self, address: str, secret: str) -> bool:
        """Count a wrong secret, and return whether it is another one than before."""
        now = self._clock()
        found = self._addresses.setdefault(address, _Address())
        self._addresses.move_to_end(address)
        while len(self._addresses) > ADDRESSES:
            self._addresses.popitem(last=False)
        if now - found.last > max(WINDOW, 2 * found.delay):
            found.tried.clear()
            found.delay = 0.0
        short = sha256(secret.encode(errors="replace")).digest()[:8]
        if short in found.tried:
            return False
        found.tried.add(short)
        found.last = now
        self._all.append(now)
        if len(found.tried) >= FAILURES:
            found.delay = min(LONGEST_WAIT, 2 * found.delay or WINDOW / FAILURES)
            found.until = now + found.delay
        return True

    def succeeded(self, address: str) -> None:
        """Remember that an address had a right secret."""
        self._addresses.pop(address, None)
        self._trusted[address] = None
        self._trusted.move_to_end(address)
        while len(self._trusted) > ADDRESSES:
            self._trusted.popitem(last=False)


class _Address:
    def __init__(self) -> None:
        self.tried: set[bytes] = set()
        self.last = 0.0
        self.until = 0.0
        self.delay = 0.0
