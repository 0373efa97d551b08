"""The ASGI application of a gateway: which request gets what, and who may have it.

/acp, /agents/NAME/acp   the agents, over WebSocket and streamable HTTP
/, /static/HASH/…        the page and its files; so are /worker.js, /app.webmanifest and /icons/…
/api/login               a launch code or a token becomes a cookie; who a cookie is
/api/admin               requests of an admin
/metrics                 numbers for Prometheus, for any token without limits
/healthz                 whether it runs, and nothing else
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Final

import msgspec

from antiphon.aio import background
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.gateway.access.audit import AccessLog
from antiphon.gateway.access.checks import (
    UNKNOWN,
    Access,
    Visitor,
    check_failures,
    check_role,
    check_sockets,
    client_address,
    secret_of,
)
from antiphon.gateway.access.login import HELD, serve_login
from antiphon.gateway.access.tokens import BROWSER_LIFETIME, AccessToken
from antiphon.gateway.base import AccessRole, Principal, ServedHub
from antiphon.gateway.server.admin import Admin, AdminRequest
from antiphon.gateway.server.page import is_page, serve_page
from antiphon.rpc.envelope import BAD_INPUT
from antiphon.transports.asgi.connections import Receive, Scope, Send, SocketConnection
from antiphon.transports.asgi.endpoint import AcpEndpoint, Admission, EndpointLimits, respond
from antiphon.transports.asgi.heads import Refusal, header_of
from antiphon.transports.base import Transport
from antiphon.transports.remote import CONNECTION_ID

__all__ = ["GatewayApp"]

BODY_LIMIT: Final = 64 * 1024
"""Bytes of the body of a request that is not a message."""

BODY_TIMEOUT: Final = 10.0
"""Seconds in which such a body has to arrive."""

TOKEN_CONNECTIONS: Final = 32
"""Connections that are open at a time with one token and the browsers that signed in with it."""

ADDRESS_UNSIGNED: Final = 8
"""Sockets of one address that have shown no token yet. Each has ten seconds."""

UNSIGNED: Final = 64
"""The same for all addresses: so few that those with a token always find room."""

_AGENT: Final = re.compile("/agents/([^/]+)/acp")
_JSON: Final = (b"content-type", b"application/json")
_log = logging.getLogger(__name__)

_COMMON: Final = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""Headers of every response that has not set them itself."""


class _Login(msgspec.Struct):
    code: str = ""
    token: str = ""
    device: str = ""


class GatewayApp:
    """All routes of a gateway."""

    def __init__(
        self,
        access: Access,
        hub: ServedHub,
        admin: Admin,
        audit: AccessLog,
        *,
        agents: Callable[[], Collection[str]],
        default: Callable[[], str],
        limits: EndpointLimits | None = None,
    ) -> None:
        """`agents` returns the names of the agents that there are now, `default` that of the one at `/acp`."""
        self._access = access
        self._hub = hub
        self._admin = admin
        self._audit = audit
        self.is_draining = False
        self._open: dict[str, dict[Transport, str]] = {}
        """The connections by the number of the token that they count for, each with that of the token that opened it."""
        self._closing: set[asyncio.Task[object]] = set()
        self._expiries: dict[int, asyncio.TimerHandle] = {}
        """What ends tokens that have connected, by their numbers."""
        self._unsigned: Counter[str] = Counter()
        """The sockets that have shown no token yet, by their addresses."""
        self._limits = limits or EndpointLimits()
        self._counters: Counter[tuple[str, str]] = Counter()
        self._agents = agents
        self._default = default
        self._endpoints: dict[str, AcpEndpoint] = {}
        """Those of the agents that were asked for, by their names."""
        self._routes: dict[str, Callable[[Scope, Receive, Send], Awaitable[None]]] = {
            "/healthz": self._health,
            "/api/login": self._login,
            "/api/admin": self._administer,
            "/metrics": self._metrics,
        }
        access.tokens.revoked = self.token_revoked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        send = self._watched(scope, send)
        endpoint = self._endpoint(scope["path"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "there is nothing here"})
            return
        route = self._page if is_page(scope["path"]) else self._routes.get(scope["path"], _nothing)
        try:
            await route(scope, receive, send)
        except AcpError as error:
            sentence, hint = sentence_and_hint(error)
            await _respond_json(send, 400, {"error": sentence, "hint": hint})

    def _endpoint(self, path: str) -> AcpEndpoint | None:
        """Return what serves the agent at a path; None if there is none now."""
        found = _AGENT.fullmatch(path)
        if path != "/acp" and found is None:
            return None
        name = self._default() if found is None else found[1]
        if name not in self._endpoints and (found is None or name in self._agents()):
            self._endpoints[name] = AcpEndpoint(admit=partial(self._admit, name), limits=self._limits)
        return self._endpoints.get(name)

    def drain(self) -> None:
        """Take no more work. Clients will see that their connections end because the gateway does."""
        self.is_draining = True
        for endpoint in self._endpoints.values():
            endpoint.going_away()

    async def close(self) -> None:
        """End all connections."""
        for timer in self._expiries.values():
            timer.cancel()
        await asyncio.gather(*(endpoint.close() for endpoint in self._endpoints.values()))
        await asyncio.gather(*self._closing, return_exceptions=True)

    def token_revoked(self, token: AccessToken, why: str = "the token was revoked") -> None:
        """End the connections that a token has opened, and drop its prompts that wait."""
        timer = self._expiries.pop(token.id, None)
        if timer is not None:
            timer.cancel()
        self._hub.drop_prompts(str(token.id), why)
        family = self._open.get(str(token.root), {})
        for transport in [each for each, opened_by in family.items() if opened_by == str(token.id)]:
            self._abort_soon(transport, why)

    def _end_in_time(self, token: AccessToken) -> None:
        """End a token when it expires, also if it has no connection then: its prompts may wait."""
        if token.expires is not None and token.id not in self._expiries:
            left = token.expires - self._access.tokens.now()
            end = partial(self.token_revoked, token, "the token has expired")
            self._expiries[token.id] = asyncio.get_running_loop().call_later(left, end)

    def _abort_soon(self, transport: Transport, why: str) -> None:
        _ = background(transport.abort(why), self._closing)

    def _watched(self, scope: Scope, send: Send) -> Send:
        """Add the common headers to a response, and count it."""

        async def watched(message: dict[str, object]) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = message.get("headers")
                given = [*headers] if isinstance(headers, list | tuple) else []
                names = {name for name, _ in given}
                message = {**message, "headers": [*given, *(item for item in _COMMON.items() if item[0] not in names)]}
                self._counters[scope["type"], str(message["status"])] += 1
            elif message["type"] == "websocket.accept":
                self._counters["websocket", "101"] += 1
            await send(message)

        return watched  # type: ignore[return-value] # a dictionary is a mutable mapping

    # The agents.

    async def _admit(self, agent: str, scope: Scope) -> Admission | Refusal:
        visitor = self._access.visit(scope)
        if isinstance(visitor, Refusal):
            return visitor
        opens = scope["type"] == "websocket" or (scope["method"] == "POST" and not header_of(scope, _CONNECTION))
        if opens and self.is_draining:
            return Refusal(503, "this gateway is about to stop", ((b"retry-after", b"60"),))
        if visitor.principal is None:
            if scope["type"] != "websocket" or not may_sign_in_later(self._access, scope):
                return UNKNOWN

            if has_too_many_unsigned(self._unsigned, visitor.address):
                return Refusal(429, "too many connections have not signed in", ((b"retry-after", b"10"),))
            return Admission(partial(self._serve_unsigned, scope, visitor.address, agent), limit=HELD)
        if opens and visitor.token is not None and (why := has_too_many(self._open, visitor.token)):
            return Refusal(429, why, ((b"retry-after", b"10"),))
        serving = partial(self._serve, token=visitor.token, address=visitor.address, agent=agent)
        return Admission(serving, visitor.principal, visitor.subprotocol)

    async def _serve_unsigned(self, scope: Scope, address: str, agent: str, transport: Transport) -> None:
        """Serve a socket that has shown no token yet."""
        self._unsigned[address] += 1
        try:
            found = await serve_login(transport, self._access, address, partial(has_too_many, self._open))
        finally:
            self._unsigned[address] -= 1
            self._unsigned += Counter()  # without those that are 0
        if found is not None:
            if check_sockets(scope, found[1]) is not None:
                await transport.abort("this token has too many sockets")
                return
            if isinstance(transport, SocketConnection):
                transport.set_limit(self._limits.message)
            await self._serve(*found, address=address, agent=agent)

    async def _serve(self, transport: Transport, token: AccessToken | None, address: str, agent: str) -> None:
        principal = msgspec.structs.replace(_ANYONE if token is None else token.principal, address=address)
        why = self._refused_now(token) or ("" if token is None else has_too_many(self._open, token))
        if why:  # others were let in, or it was revoked, since this request was looked at
            await transport.abort(why)
            return
        connections = self._open.setdefault(principal.root_id, {})
        connections[transport] = principal.token_id
        self._audit.add("connect", actor=principal.name, token=principal.token_id, address=address, detail=agent)
        if token is not None:
            self._end_in_time(token)
        try:
            await self._hub.serve(transport, principal, agent)
        finally:
            if why := self._refused_now(token):  # what it sent until now
                self._hub.drop_prompts(principal.token_id, why)
            connections.pop(transport, None)
            if not connections:
                self._open.pop(principal.root_id, None)

    def _refused_now(self, token: AccessToken | None) -> str:
        """Return why a token that was good when its request began is not any more; empty if it is. A body may take a minute."""
        return "" if token is None or self._access.tokens.is_good(token) else "the token was revoked"

    # The other routes.

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._access.visit(scope)
        if isinstance(visitor, Refusal) and visitor.status not in (401, 429):
            await respond(send, visitor.status, visitor.sentence, *visitor.headers)
        else:
            await serve_page(scope, send)

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._access.visit(scope)
        if isinstance(visitor, Refusal):
            await respond(send, visitor.status, visitor.sentence, *visitor.headers)
        else:
            await respond(send, 503 if self.is_draining else 200, "draining" if self.is_draining else "ok")

    async def _login(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._access.visit(scope)
        if isinstance(visitor, Refusal) and visitor.status != 401:  # an old cookie is what a login replaces
            await respond(send, visitor.status, visitor.sentence, *visitor.headers)
            return
        if scope["method"] in ("GET", "HEAD"):
            await self._show_login(visitor, send)
            return
        if scope["method"] == "DELETE":
            await self._logout(visitor, send)
            return
        body = await _json_body(scope, receive)
        if isinstance(body, Refusal):
            await respond(send, body.status, body.sentence, *body.headers)
            return
        try:
            given = msgspec.json.decode(body, type=_Login)
        except BAD_INPUT:
            await respond(send, 400, "the body has to be an object with `code` or `token`")
            return
        address = client_address(scope, self._access.rules.proxies)
        found = await self._sign_in(given, address)
        if isinstance(found, Refusal):
            await respond(send, found.status, found.sentence, *found.headers)
            return
        token, secret = found
        self._audit.add("login", actor=token.name, token=str(token.id), address=address)
        shown = _shown_login(token.principal, token)
        await _respond_json(send, 200, shown, (b"set-cookie", self._cookie(secret, BROWSER_LIFETIME)))

    async def _show_login(self, visitor: Visitor | Refusal, send: Send) -> None:
        """Respond with who a browser is signed in as: its script cannot read the cookie."""
        if isinstance(visitor, Refusal) or visitor.principal is None:
            refusal = visitor if isinstance(visitor, Refusal) else UNKNOWN
            await respond(send, refusal.status, refusal.sentence, *refusal.headers)
        else:
            await _respond_json(send, 200, _shown_login(visitor.principal, visitor.token))

    async def _sign_in(self, given: _Login, address: str) -> tuple[AccessToken, str] | Refusal:
        if given.token:
            found = self._access.check_secret(given.token, address)
            if isinstance(found, Refusal):
                return found
            return await self._access.tokens.create_for_browser(found) or Refusal(401, "this token is not valid")
        if (wait := check_failures(self._access.failures, address)) > 0:
            return Refusal(429, "too many wrong codes: wait", ((b"retry-after", str(int(wait) + 1).encode()),))
        redeemed = await self._access.tokens.redeem(given.code, given.device)
        if redeemed is None:
            self._access.note_failure(given.code, address)
            return Refusal(401, "this code is unknown, used or too old: `antiphon serve status --launch` makes another")
        self._access.failures.succeeded(address)
        return redeemed

    async def _logout(self, visitor: Visitor | Refusal, send: Send) -> None:
        if isinstance(visitor, Visitor) and visitor.token is not None and visitor.token.kind == "browser":
            await self._access.tokens.revoke(visitor.token.id)
        await respond(send, 204, "", (b"set-cookie", self._cookie("", 0)))

    def _cookie(self, secret: str, lifetime: float) -> bytes:
        secure = "; Secure" if self._access.rules.secure else ""
        name = self._access.rules.cookie
        return f"{name}={secret}; Path=/; Max-Age={int(lifetime)}; HttpOnly; SameSite=Strict{secure}".encode()

    async def _administer(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._allowed(scope, AccessRole.ADMIN)
        if isinstance(visitor, Refusal):
            await respond(send, visitor.status, visitor.sentence, *visitor.headers)
            return
        body = await _json_body(scope, receive)
        if self._refused_now(visitor.token):
            body = UNKNOWN
        if isinstance(body, Refusal):
            await respond(send, body.status, body.sentence, *body.headers)
            return
        try:
            request = msgspec.json.decode(body, type=AdminRequest)
        except BAD_INPUT as error:
            await _respond_json(send, 400, {"error": str(error), "hint": "send an object with `action`"})
            return
        principal = visitor.principal or _ANYONE
        await _respond_json(send, 200, await self._admin.answer(request, principal, visitor.address))

    async def _metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._allowed(scope, AccessRole.WATCH)
        if isinstance(visitor, Refusal):
            await respond(send, visitor.status, visitor.sentence, *visitor.headers)
            return
        body = _prometheus_text(self._hub.counts(), self._counters)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", _PROMETHEUS)]})
        await send({"type": "http.response.body", "body": body})

    def _allowed(self, scope: Scope, role: AccessRole) -> Visitor | Refusal:
        visitor = self._access.visit(scope)
        if isinstance(visitor, Refusal):
            return visitor
        if visitor.principal is None:
            return UNKNOWN
        return check_role(visitor.principal, role) or visitor


def _shown_login(principal: Principal, token: AccessToken | None) -> dict[str, object]:
    expires = None if token is None else token.expires
    return {"name": principal.name, "role": principal.role.name.lower(), "expires": expires}


_ANYONE: Final = Principal("anyone", AccessRole.ADMIN)
_CONNECTION: Final = CONNECTION_ID.lower().encode()
_PROMETHEUS: Final = b"text/plain; version=0.0.4; charset=utf-8"


def has_too_many(connections: Mapping[str, Collection[Transport]], token: AccessToken) -> str:
    """Return why a token may open no further connection; empty if it may. Its browsers count with it."""
    many = len(connections.get(str(token.root), ())) >= TOKEN_CONNECTIONS
    return "this token has too many connections" if many else ""


def has_too_many_unsigned(unsigned: Counter[str], address: str) -> bool:
    """Whether no further socket of an address is let in without a token."""
    return unsigned[address] >= ADDRESS_UNSIGNED or unsigned.total() >= UNSIGNED


def may_sign_in_later(access: Access, scope: Scope) -> bool:
    """Whether a socket without a secret is let in to send one with `authenticate`: never one of a page."""
    return not access.is_browser(scope) and not secret_of(scope, access.rules)[0]


def _prometheus_text(counts: Mapping[str, int], counters: Mapping[tuple[str, str], int]) -> bytes:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    class Numbers(Collector):
        def collect(self) -> Iterator[Metric]:
            for name, number in counts.items():
                yield GaugeMetricFamily(f"antiphon_{name}", f"Number of {name} now", value=number)
            requests = CounterMetricFamily("antiphon_requests", "Requests by status", labels=["kind", "status"])
            for (kind, status), number in counters.items():
                requests.add_metric([kind, status], number)
            yield requests

    registry = CollectorRegistry()
    registry.register(Numbers())
    return generate_latest(registry)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await respond(send, 404, "there is nothing here")


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _respond_json(send: Send, status: int, value: object, *headers: tuple[bytes, bytes]) -> None:
    body = msgspec.json.encode(value)
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _json_body(scope: Scope, receive: Receive) -> bytes | Refusal:
    """Return the body of a post that has to be JSON: a form of another site cannot send that without asking first."""
    if scope["method"] != "POST":
        return Refusal(405, "use POST", ((b"allow", b"POST"),))
    if header_of(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
        return Refusal(415, "the body has to be `application/json`")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > BODY_LIMIT:
                    return Refusal(413, f"the body has at most {BODY_LIMIT} bytes")
                if message["type"] != "http.request" or not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        return Refusal(408, "the body did not arrive in time")
