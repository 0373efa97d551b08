"""The program `antiphon` with one check of the gateway switched off, or one limit changed: `weakened.py NAME serve …`.

The attacks of `test_attacks.py` get in here and nowhere else; so each of them is stopped by the check that is named.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any, Final

import msgspec

from antiphon.cli.main import main
from antiphon.cli.serve import control
from antiphon.gateway import data, hub, requests, session_methods
from antiphon.gateway.access import checks, login, messages, quotas, tokens
from antiphon.gateway.agents import host, link
from antiphon.gateway.base import HubLimits, Principal
from antiphon.gateway.clients import connection
from antiphon.gateway.hub import Hub
from antiphon.gateway.methods import files, permission
from antiphon.gateway.server import app, links, program
from antiphon.gateway.session_methods import SessionMethods
from antiphon.journal import runs
from antiphon.local import roots
from antiphon.local.roots import Roots
from antiphon.permission.gate import PermissionGate, Question
from antiphon.protocol import v1
from antiphon.store import database
from antiphon.transports.asgi import connections, endpoint, heads, server, sockets
from antiphon.transports.remote import CLOSE_TIMEOUT


def replace(module: ModuleType, name: str, new: object) -> None:
    """Replace a name of a module wherever it was imported."""
    old = getattr(module, name)
    for each in [*sys.modules.values()]:
        if each.__name__.startswith("antiphon") and getattr(each, name, None) is old:
            setattr(each, name, new)


def off(module: ModuleType, name: str, result: object = None) -> Callable[[], None]:
    """Return what makes a function of a module agree to everything."""
    return lambda: replace(module, name, lambda *_: result)


def prompts_stay() -> None:
    """Keep the prompts of a token that is good no longer."""
    Hub.drop_prompts = lambda *_: None  # type: ignore[method-assign]


def forwarded_address(scope: Any, proxies: object) -> str:
    """Believe any client what it says about its address."""
    return heads.header_of(scope, b"x-forwarded-for") or "local"


def any_token(store: tokens.TokenStore, secret: str) -> object:
    """Find the first token, whatever the secret is."""
    return store.list("token")[0]


def any_connection(self: Any, scope: Any, admission: object) -> object:
    """Find a connection by its id alone."""
    return self._connections.get(heads.header_of(scope, b"acp-connection-id"))


def lenient(self: Any, transport: Any, made: Any = server.BoundedRequests.connection_made) -> None:
    """Take requests whose length is given twice, and heads that are not quite HTTP."""
    names = (
        "headers",
        "chunked_length",
        "keep_alive",
        "transfer_encoding",
        "optional_cr_before_lf",
        "optional_lf_after_cr",
    )
    self.parser.set_dangerous_leniencies(**{f"lenient_{name}": True for name in names})
    made(self, transport)


async def token_as_cookie(self: Any, given: Any, address: str) -> object:
    """Give a browser the very token that it signed in with."""
    if not given.token:
        return await self._access.tokens.redeem(given.code)
    return self._access.check_secret(given.token, address), given.token


async def orphan(self: tokens.TokenStore, token: tokens.AccessToken) -> object:
    """Make a token for a browser that knows nothing of the one it came from."""
    return await self.create("browser", token.name, token.role)


def whole_opening(line: bytes, servers: Any, rules: object) -> messages.ReducedRequest:
    """Leave nothing out of a request that opens a session."""
    return messages.ReducedRequest(line, msgspec.json.encode(servers), [])


async def listen_on(self: connections.SocketConnection, reason: str) -> None:
    """Close a connection after the time that a client has to read what waits for it."""
    await asyncio.sleep(CLOSE_TIMEOUT)
    await self.close()


async def ask_about_all(self: object, agent: str, cwd: str, ask: Any) -> PermissionGate:
    """Ask people about everything, whatever the policy of the user says."""
    return PermissionGate(ask=ask, agent=agent)


def as_the_agent_says(question: Question) -> v1.ToolCallPatch:
    """Show the words of a command as they are, and no more."""
    action = question.action
    return v1.ToolCallPatch("call", title=" ".join(action.words or action.paths))


def set_on(owner: object, name: str, new: object) -> Callable[[], None]:
    """Return what sets an attribute."""
    return lambda: setattr(owner, name, new)


def servers_in_any_form() -> None:
    """Let MCP servers of clients through, however their keys are spelled: each of the two checks keeps such a server out alone."""
    replace(messages, "check_spelling", lambda *_: "")
    replace(messages, "reduced_opening", whole_opening)


def signal_while_starting() -> None:
    """Let a gateway get SIGTERM before it can be reached."""
    start = Hub.start

    async def signalled(self: Hub) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await start(self)

    Hub.start = signalled  # type: ignore[method-assign]


def short_times() -> None:
    """Let a client have a third of a second for whatever it has to do."""
    for name in ("HEAD_TIMEOUT", "BODY_TIMEOUT", "REST_TIMEOUT"):
        setattr(server, name, 0.3)
    setattr(login, "LOGIN_TIMEOUT", 0.3)  # noqa: B010 # it is final


def with_limits(**values: float) -> Callable[[], None]:
    """Return what sets limits of the hub."""
    init = Hub.__init__

    def limited(self: Hub, *given: Any, limits: HubLimits | None = None, **more: Any) -> None:
        init(self, *given, limits=msgspec.structs.replace(limits or HubLimits(), **values), **more)

    return lambda: setattr(Hub, "__init__", limited)


def slow_sign_in() -> None:
    """Let a token for a browser take long enough that others are revoked meanwhile."""
    create = tokens.TokenStore.create

    async def slow(self: tokens.TokenStore, kind: Any, *given: Any, **more: Any) -> Any:
        if kind == "browser":
            await self._database.run(lambda _: time.sleep(0.02))
        return await create(self, kind, *given, **more)

    tokens.TokenStore.create = slow  # type: ignore[assignment, method-assign]


def jumping_clock() -> None:
    """Let the clock be wrong by the seconds in a file."""
    true_time, true_now, place = time.time, database.utc_now, os.environ["ANTIPHON_TEST_CLOCK"]

    def wrong_by() -> float:
        try:
            with open(place, encoding="utf-8") as file:
                return float(file.read())
        except FileNotFoundError:
            return 0.0

    time.time = lambda: true_time() + wrong_by()
    time.time_ns = lambda: int(time.time() * 1e9)
    replace(database, "utc_now", lambda: true_now() + timedelta(seconds=wrong_by()))


def gate_before_commits() -> None:
    """Let a commit of events that finds a FIFO open it, and wait until its writer closes it."""
    store, place = runs._store, os.environ["ANTIPHON_TEST_GATE"]

    def wait(connection: Any, events: Any, times: Any, known: Any, jobs: Any) -> Any:
        if events and os.path.exists(place):
            with open(place, "rb") as fifo:
                fifo.read()
        return store(connection, events, times, known, jobs)

    runs._store = wait


def of_all_sessions(agents: tuple[str, ...], keys: object, rows: Any = data.rows_of) -> object:
    """Find rows of all sessions, whatever a token is for."""
    return rows(agents, None)


async def plain_git(directory: str, repository: object) -> object:
    """List files with git as people run it, with all that the repository sets."""
    command = ["git", "-C", directory, "ls-files", "--others", "--cached"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode().splitlines()


def device_of_no_token() -> None:
    """Let a link for another device make a token that depends on none, with any role."""
    replace(links, "exceeds", lambda *_: False)
    replace(links, "parent_of_device", lambda *_: None)


SWITCHES: Final[dict[str, Callable[[], None]]] = {
    "nothing": lambda: None,
    "check_headers": off(checks, "check_headers"),
    "check_host": off(checks, "check_host"),
    "check_fetch_site": off(checks, "check_fetch_site"),
    "check_origin": off(checks, "check_origin"),
    "check_query": off(checks, "check_query"),
    "check_cookie": off(checks, "check_cookie"),
    "check_failures": off(checks, "check_failures", 0.0),
    "check_role": off(checks, "check_role"),
    "check_exposure": off(program, "check_exposure"),
    "has_expired": off(tokens, "has_expired", False),
    "use_up": lambda: replace(tokens, "use_up", lambda codes, digest: codes.get(digest, tokens.NO_CODE)),
    "find": set_on(tokens.TokenStore, "find", any_token),
    "client_address": lambda: replace(checks, "client_address", forwarded_address),
    "may_sign_in_later": off(app, "may_sign_in_later", True),
    "is_over": off(login, "is_over", False),
    "BODY_LIMIT": set_on(app, "BODY_LIMIT", 1 << 30),
    "HEADER_LIMIT": set_on(server, "HEADER_LIMIT", 1 << 30),
    "short LOGIN_TIMEOUT": set_on(login, "LOGIN_TIMEOUT", 0.3),
    "sessions of a share": set_on(Principal, "may", lambda self, role, key=None: True),
    "short HEAD_TIMEOUT": set_on(server, "HEAD_TIMEOUT", 0.3),
    "short BODY_TIMEOUT": set_on(app, "BODY_TIMEOUT", 0.3),
    "short times": short_times,
    "phase_timeout": off(server, "phase_timeout"),
    "too_many": off(sockets, "too_many"),
    "few OWNER_SOCKETS": set_on(sockets, "OWNER_SOCKETS", 4),
    "has_too_many_sockets": off(sockets, "has_too_many_sockets", False),
    "small BODIES": set_on(endpoint, "BODIES", 0.0001),
    "holds_too_much": off(endpoint, "holds_too_much", False),
    "PIPELINED": set_on(server, "PIPELINED", 1 << 30),
    "HEADERS": set_on(server, "HEADERS", 1 << 30),
    "principal of a connection": set_on(endpoint.AcpEndpoint, "_connection", any_connection),
    "is_path": off(server, "is_path", True),
    "strict parser": set_on(server.BoundedRequests, "connection_made", lenient),
    "check_peer": off(checks, "check_peer"),
    "is_alive": off(control, "is_alive", True),
    "HELD": lambda: replace(login, "HELD", 1 << 30),
    "has_too_many_unsigned": off(app, "has_too_many_unsigned", False),
    "has_too_many": off(app, "has_too_many", ""),
    "abort": set_on(connections.SocketConnection, "abort", listen_on),
    "token of a browser": set_on(app.GatewayApp, "_sign_in", token_as_cookie),
    "parent of a token": set_on(tokens.TokenStore, "create_for_browser", orphan),
    "too_many_browsers": off(tokens, "too_many_browsers", ()),
    "root of a token": set_on(tokens.AccessToken, "root", property(lambda self: self.id)),
    "reduced_opening": lambda: replace(messages, "reduced_opening", whole_opening),
    "check_spelling": off(messages, "check_spelling", ""),
    "check_spelling and reduced_opening": servers_in_any_form,
    "REQUESTS": lambda: replace(messages, "REQUESTS", frozenset()),
    "WHOLE_AGENT": lambda: replace(messages, "WHOLE_AGENT", frozenset()),
    "owner of a session": set_on(SessionMethods, "_may_delete", lambda self, request, owner: True),
    "why_closed": lambda: replace(host, "why_closed", lambda *_, write: ""),
    "policy of the user": set_on(host.UserPolicy, "gate", ask_about_all),
    "what people are shown": lambda: replace(requests, "_call_asked", as_the_agent_says),
    "environment": lambda: replace(host, "gateway_environment", lambda ours, *_: dict(ours)),
    "SLICE": set_on(connection, "SLICE", 1e9),
    "has_too_many_parts": off(messages, "has_too_many_parts", False),
    "is_too_long": off(roots, "is_too_long", False),
    "DIRECTORIES": set_on(session_methods, "DIRECTORIES", 1 << 30),
    "SERVERS": set_on(messages, "SERVERS", 1 << 30),
    "was_revoked": off(tokens, "was_revoked", False),
    "slow sign-in": slow_sign_in,
    "own_name": lambda: replace(tokens, "own_name", lambda name, id, *, is_taken: name),
    "is_ours": off(link, "is_ours", False),
    "has_too_many_sessions": off(hub, "has_too_many_sessions", False),
    "has_done_often": off(quotas, "has_done_often", False),
    "few changes": with_limits(changes_per_minute=3),
    "waits_too_much": off(quotas, "waits_too_much", False),
    "little room for prompts": with_limits(waiting=100_000),
    "few token sessions": with_limits(token_sessions=3),
    "rows_of": lambda: replace(data, "rows_of", of_all_sessions),
    "git without settings": lambda: replace(files, "_by_git", plain_git),
    "FACTS": lambda: replace(permission, "FACTS", frozenset()),
    "drop_prompts": prompts_stay,
    "reaches_too_far": off(permission, "reaches_too_far", False),
    "parent_of_device": off(links, "parent_of_device"),
    "exceeds and parent_of_device": device_of_no_token,
    "quick restarts": with_limits(first_delay=0.01, longest_delay=0.05),
    "clock": jumping_clock,
    "gate": gate_before_commits,
    "signal while starting": signal_while_starting,
    "roots": set_on(Roots, "resolve", lambda self, path: path),
}


def run_weakened() -> int:
    """Switch off what is named first, and run the rest."""
    for name in sys.argv[1].split(","):
        SWITCHES[name]()
    return main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(run_weakened())
