"""The start and the end of a gateway: its data, its tokens, its hub, the sockets that it listens on, and the signals that end it."""

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from antiphon.client.launch import user_database
from antiphon.config.directories import config_dir, private_opener, state_dir
from antiphon.errors import AcpError, ExtraMissing
from antiphon.gateway.access.audit import AccessLog
from antiphon.gateway.access.checks import Access, AccessRules, Network, is_among
from antiphon.gateway.access.messages import ClientRules
from antiphon.gateway.agents.host import GatewayRoots, UserPolicy
from antiphon.gateway.base import AgentSource, HubFacts, HubLimits, Principal, ServedHub
from antiphon.gateway.data import GatewayData, Retention
from antiphon.gateway.hub import Hub
from antiphon.gateway.server.admin import Admin
from antiphon.gateway.server.app import GatewayApp
from antiphon.gateway.server.links import PageLinks
from antiphon.gateway.server.traces import hub_traces
from antiphon.transports.asgi.endpoint import EndpointLimits
from antiphon.transports.asgi.heads import LOOPBACK, host_name
from antiphon.transports.asgi.sockets import OpenSockets, bound_tcp, bound_unix
from antiphon.transports.remote import is_loopback
from antiphon.web.assets import page_hash

__all__ = [
    "ADDRESS_FILE", "GatewayAddress", "GatewaySource", "OpenGateway", "ServeOptions", "check_exposure", "end_signals", "local_gateway", "note_to", "serve",
]  # fmt: skip

ADDRESS_FILE: Final = "address.json"
"""The file in the data directory in which a gateway that runs says where it is. For commands of the same user."""

PRUNE_INTERVAL: Final = 3600.0
"""Seconds between two looks for what is too old or too much."""

MESSAGE_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of a message, unless another limit is given."""

_log = logging.getLogger(__name__)


class ServeOptions(msgspec.Struct, frozen=True):
    """How a gateway is to be reached, and what it serves."""

    host: str = "127.0.0.1"
    port: int = 0
    unix: Path | None = None
    data: Path | None = None
    no_auth: bool = False
    http2: bool = False
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    """Addresses of proxies in front of it; empty: none."""
    public_urls: tuple[str, ...] = ()
    """Addresses under which others reach it, such as `https://example.org`."""
    roots: tuple[str, ...] = ()
    client_files: bool = False
    """Whether agents use the files and terminals of the attached client, where it offers them."""
    client_rules: ClientRules = ClientRules()
    message_limit: int = MESSAGE_LIMIT
    limits: HubLimits = HubLimits()
    retention: Retention = Retention()


class GatewayAddress(msgspec.Struct, frozen=True):
    """Where a gateway is that runs."""

    pid: int
    url: str
    """Its address on this machine, without a path; empty if it has only a Unix socket."""
    unix: str = ""
    certificate: str = ""
    public_url: str = ""


def check_exposure(options: ServeOptions) -> None:
    """Refuse to be reached from other machines without a token, or without TLS here or in front of us.

    Raises:
        AcpError: the hint names what is missing.
    """
    if bool(options.certificate) != bool(options.key):
        raise AcpError("TLS needs a certificate and its key", hint="give both --tls-cert and --tls-key")
    if options.http2 and not options.certificate:
        raise AcpError("HTTP/2 needs TLS", hint="give --tls-cert and --tls-key, or leave out --http2")
    if options.unix is not None or is_loopback(options.host):
        if options.no_auth and (options.proxies or options.public_urls):
            raise AcpError(
                "without a token a gateway is for this machine alone", hint="leave out --no-auth, or --behind-proxy"
            )
        return
    if options.no_auth:
        raise AcpError(
            f"`{options.host}` can be reached from other machines, which needs a token",
            hint="leave out --no-auth, or listen on 127.0.0.1",
        )
    if not options.certificate and not options.proxies:
        raise AcpError(
            f"`{options.host}` can be reached from other machines, which needs TLS",
            hint="give --tls-cert and --tls-key, or --behind-proxy if a proxy on the way has TLS, or listen on 127.0.0.1",
        )


def _rules(options: ServeOptions) -> AccessRules:
    names = {host_name(urlsplit(url).netloc) for url in options.public_urls}
    if not is_loopback(options.host) and options.host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        names.add(options.host.lower())
    origins = frozenset(url.rstrip("/").lower() for url in options.public_urls)
    secure = bool(options.certificate) or any(url.startswith("https:") for url in options.public_urls)
    exposed = options.unix is None and not is_loopback(options.host)
    return AccessRules(
        hosts=LOOPBACK | names,
        origins=origins,
        proxies=_networks(options.proxies),
        proxies_only=exposed and not options.certificate,
        secure=secure,
        no_auth=options.no_auth,
    )


def _networks(texts: Sequence[str]) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text, strict=False) for text in texts)
    except ValueError as error:
        raise AcpError(
            f"--behind-proxy takes addresses: {error}", hint="such as 127.0.0.1 or 10.0.0.0/8, separated by commas"
        ) from error


class OpenGateway(msgspec.Struct, frozen=True):
    """What a gateway is made of, once it has started and before it can be reached."""

    data: GatewayData
    """Its file, with its tokens loaded."""
    hub: ServedHub
    agents: Callable[[], Collection[str]]
    """Returns the names of the agents that there are now."""
    default: Callable[[], str]
    """Returns the name of the one at `/acp`."""
    prune: Callable[[float], Awaitable[Sequence[str]]]
    """Deletes what is too old or too much at a time, in seconds since 1970, and returns the keys of the sessions."""
    has_turns: bool = True
    """Whether turns end with this process."""


GatewaySource: TypeAlias = Callable[[ServeOptions, AsyncExitStack], Awaitable[OpenGateway]]
"""Starts a gateway: what is to end behind its hub is put on the stack."""

Announce: TypeAlias = Callable[[GatewayAddress, Sequence[str], str, Callable[[], Awaitable[str]]], Awaitable[None]]
"""Gets the address of a gateway, its agents, the name of the one at `/acp`, and what makes launch codes."""


def local_gateway(agents: Mapping[str, AgentSource], default: str) -> GatewaySource:
    """Return what starts a gateway for the agents of this machine."""

    async def start(options: ServeOptions, stack: AsyncExitStack) -> OpenGateway:
        data = await stack.enter_async_context(GatewayData.open(options.data))
        await data.tokens.load()
        policy = UserPolicy(await stack.enter_async_context(user_database()))
        hub = Hub(
            agents,
            data,
            data.journal,
            roots=GatewayRoots(options.roots, (data.directory, state_dir(), config_dir())),
            limits=options.limits,
            gates=policy.gate,
            audit=partial(note_to, data.audit),
            client_rules=options.client_rules,
            traces=await stack.enter_async_context(hub_traces(os.environ)),
            client_files=options.client_files,
            facts=HubFacts(default=default, page=page_hash()),
        )
        await hub.start()

        async def prune(now: float) -> Sequence[str]:
            return await data.prune(options.retention, now=now)

        return OpenGateway(data, hub, lambda: agents, lambda: default, prune)

    return start


async def serve(
    options: ServeOptions,
    source: GatewaySource,
    announce: Announce,
    waiting: Callable[[int], None] = lambda turns: None,
) -> None:
    """Run a gateway until a signal ends it. `announce` is called once it can be reached.

    `waiting` gets the number of turns that are waited for after the first signal, if there are any.

    Raises:
        AcpError: it cannot be started; the hint says why.
    """
    check_exposure(options)
    rules = _rules(options)
    async with AsyncExitStack() as stack:
        asked, again = stack.enter_context(end_signals())  # first: a signal while we start ends us in order, too
        gateway = await source(options, stack)
        data, hub, tokens = gateway.data, gateway.hub, gateway.data.tokens
        # Of a gateway that was killed: its port may be another program's.
        (data.directory / ADDRESS_FILE).unlink(missing_ok=True)
        access = Access(tokens, data.audit, rules)
        limits = EndpointLimits(message=options.message_limit, connections=options.limits.connections)
        admin = Admin(data, hub)
        app = GatewayApp(access, hub, admin, data.audit, agents=gateway.agents, default=gateway.default, limits=limits)
        listening = stack.enter_context(_bound(options))
        await stack.enter_async_context(_serving(app, listening, options, rules))
        stack.push_async_callback(app.close)
        stack.push_async_callback(hub.close)  # before the connections: clients get the ends of their turns
        address = _address_of(listening, options)
        hub.links = PageLinks(admin, tokens, address.public_url or address.url)
        stack.enter_context(_address_file(data.directory, address))
        pruning = asyncio.ensure_future(_prune(gateway))
        stack.push_async_callback(_cancel, pruning)
        data.audit.add("start")
        await announce(address, [*gateway.agents()], gateway.default(), tokens.launch_code)
        await asked.wait()
        app.drain()
        await _drain(hub, again, waiting if gateway.has_turns else lambda turns: None)
        data.audit.add("stop")


def note_to(audit: AccessLog, principal: Principal, action: str, key: str, detail: str) -> None:
    """Write what a principal did to the audit log."""
    name, token, address = principal.name, principal.token_id, principal.address
    audit.add(action, actor=name, token=token, address=address, session=key, detail=detail)


@contextmanager
def end_signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Set the first event with the first signal that asks us to end, and the second event with the next."""
    loop = asyncio.get_running_loop()
    asked, again = asyncio.Event(), asyncio.Event()

    def signalled() -> None:
        (again if asked.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled)
    try:
        yield asked, again
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _drain(hub: ServedHub, again: asyncio.Event, waiting: Callable[[int], None]) -> None:
    """Let turns end; a second signal ends that wait."""
    if turns := hub.counts()["turns"]:
        waiting(turns)
    draining, hurried = asyncio.ensure_future(hub.drain()), asyncio.ensure_future(again.wait())
    await asyncio.wait([draining, hurried], return_when=asyncio.FIRST_COMPLETED)
    for task in (draining, hurried):
        task.cancel()
    await asyncio.gather(draining, hurried, return_exceptions=True)


async def _prune(gateway: OpenGateway) -> None:
    began = time.time() - time.monotonic()
    while True:
        try:
            # As the clock was at the start: one that is set forward while we run makes nothing old.
            for key in await gateway.prune(began + time.monotonic()):
                gateway.data.audit.add("delete old session", detail=key)
        except AcpError as error:
            _log.error("old sessions could not be deleted, it is tried again later: %s", error)
        await asyncio.sleep(PRUNE_INTERVAL)


async def _cancel(task: "asyncio.Future[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# Sockets.


@contextmanager
def _bound(options: ServeOptions) -> Iterator[socket.socket]:
    """Give the socket to listen on."""
    with ExitStack() as stack:
        try:
            if options.unix is not None:
                listening = stack.enter_context(bound_unix(options.unix))
            else:
                listening = stack.enter_context(bound_tcp(options.host, options.port))
        except OSError as error:
            if options.unix is not None:
                where, hint = str(options.unix), "choose another with --unix, or end the program that has it"
            else:
                where, hint = f"{options.host}:{options.port}", "choose another with --port, or 0 for a free one"
            raise AcpError(f"`{where}` cannot be used: {error.strerror}", hint=hint) from error
        yield listening


@asynccontextmanager
async def _serving(
    app: GatewayApp, listening: socket.socket, options: ServeOptions, rules: AccessRules
) -> AsyncIterator[None]:
    sockets = OpenSockets(partial(is_among, networks=rules.proxies))
    certificate = str(options.certificate) if options.certificate else None
    key = str(options.key) if options.key else None
    try:
        if options.http2:
            from antiphon.transports.asgi.http2 import listen_http2

            serving = listen_http2(
                app,
                listening,
                certificate=certificate or "",
                key=key or "",
                limit=options.message_limit,
                sockets=sockets,
            )
        else:
            from antiphon.transports.asgi.server import listen

            serving = listen(
                app, listening, certificate=certificate, key=key, limit=options.message_limit, sockets=sockets
            )
    except ImportError as error:
        raise ExtraMissing(
            f"a gateway needs the package `{error.name}`", hint="pip install 'antiphon[serve]'"
        ) from error
    async with serving:
        yield


def _address_of(listening: socket.socket, options: ServeOptions) -> GatewayAddress:
    public = options.public_urls[0].rstrip("/") if options.public_urls else ""
    certificate = str(options.certificate.absolute()) if options.certificate else ""
    if options.unix is not None:
        return GatewayAddress(os.getpid(), "", str(options.unix.absolute()), certificate, public)
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
    shown = f"[{host}]" if ":" in host else host
    return GatewayAddress(
        os.getpid(), f"{'https' if certificate else 'http'}://{shown}:{port}", "", certificate, public
    )


@contextmanager
def _address_file(directory: Path, address: GatewayAddress) -> Iterator[None]:
    """Say in a file where the gateway is, as long as it runs."""
    path = directory / ADDRESS_FILE
    with open(path, "wb", opener=private_opener) as file:
        file.write(msgspec.json.encode(address))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
