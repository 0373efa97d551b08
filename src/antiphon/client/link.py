"""The live end of a connection to an agent: started, introduced, started again when it is lost, ended when it hangs.

Knows the handshake, signing in and retries. Knows nothing of sessions: whoever holds one sees by the connection whether it is still
open there.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import UNSET

from antiphon.aio import ignore_result, maybe_await
from antiphon.client.capabilities import Abilities
from antiphon.client.handlers import SignInHandler
from antiphon.connection.connection import Connection
from antiphon.connection.reports import Observer
from antiphon.connection.router import Router
from antiphon.errors import (
    AcpError,
    AuthRequired,
    Code,
    ConnectionClosed,
    LocalProtocolError,
    ProcessDied,
    RemoteProtocolError,
    RequestRefused,
    RequestTimeout,
)
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from antiphon.transports.process import ProcessTransport, spawn

__all__ = [
    "VERSION", "Link", "ProgramTarget", "Retry", "Target", "TransportTarget", "Tries", "Words", "target_of",
]  # fmt: skip

# Whom to connect to: a program that we start (by its words, or an agent's name), or a transport that somebody has made already.
# Knows how to reach an agent, and whether it can be reached again. Says nothing to it.

Words: TypeAlias = Sequence[str | os.PathLike[str]]
Target: TypeAlias = "str | Words | Transport | Servable"
"""An agent's name (such as `"demo"`), the words of a command, an `Agent` of this program, or a transport."""

# -P: or the directory it is started in would come first on the path, and with it whatever is called `msgspec.py` there.
DEMO: Final = ("-P", "-m", "antiphon", "agent", "--engine", "demo")
_SCHEMES: Final = ("http://", "https://", "ws://", "wss://", "unix://", "tcp://")


class ProgramTarget:
    """A command: it can be started as often as needed."""

    restartable = True

    def __init__(
        self, words: Words, name: str, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
    ) -> None:
        self.words = words
        self.name = name
        self._cwd = cwd
        self._env = env

    async def open(self) -> Transport:
        """Start it.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
        """
        return await spawn(self.words, cwd=self._cwd, env=self._env)

    async def close(self) -> None:
        """Do nothing: the connection has ended the program."""


class TransportTarget:
    """One end of a conversation that somebody else has set up: when it is over, it is over."""

    restartable = False
    name = "the agent"

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def open(self) -> Transport:
        """Return the transport itself."""
        return self._transport

    async def close(self) -> None:
        """Do nothing: the connection has closed it."""


@runtime_checkable
class Servable(Protocol):
    """An agent of this program: `antiphon.Agent`, which this package does not import."""

    async def serve(self, transport: Transport) -> None:
        """Serve one client over a transport until it is gone."""


class AgentTarget:
    """An agent of this program, served over memory. It can be served again and again."""

    restartable = True
    name = "the agent"

    def __init__(self, agent: Servable) -> None:
        self._agent = agent
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self) -> Transport:
        """Serve it to us."""
        ours, theirs = memory_pair()
        serving = asyncio.get_running_loop().create_task(self._agent.serve(theirs), name="serve an agent")
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        serving.add_done_callback(ignore_result)
        return ours

    async def close(self) -> None:
        """Wait until it is served no more. Its own limits bound the wait."""
        if self._serving:
            await asyncio.wait(tuple(self._serving))


def target_of(
    target: object, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
) -> ProgramTarget | TransportTarget | AgentTarget:
    """What `connect` was given, understood.

    Raises:
        AcpError: it is an address, which nothing here can reach yet; or an agent that is not known or not installed.
        LocalProtocolError: it is neither a name, nor a list of words, nor a transport.
    """
    if isinstance(target, Transport):
        if cwd is not None or env is not None:
            raise LocalProtocolError(
                "a transport has been made already: `cwd` and `env` are for programs that we start"
            )
        return TransportTarget(target)
    if isinstance(target, Servable):
        if env is not None:
            raise LocalProtocolError(
                "an agent of this program has its environment: `env` is for programs that we start"
            )
        return AgentTarget(target)
    if isinstance(target, str):
        if target == "demo":
            return ProgramTarget([sys.executable, *DEMO], "demo", cwd, env)
        return _named(target, cwd, env)
    if not isinstance(target, Sequence) or isinstance(target, bytes) or not target:
        raise LocalProtocolError(
            f'an agent is a name such as "demo", a list of the words of its command, an `Agent`, or a transport, not {target!r:.80}'
        )
    return ProgramTarget(target, os.path.basename(os.fspath(target[0])), cwd, env)


def _named(name: str, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None) -> ProgramTarget:
    """An agent by its name: the user's own, a known one, or one of the registry that the user gave."""
    if name.lower().startswith(_SCHEMES):
        # The host alone: the rest of an address may hold secrets anywhere.
        address = name.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
        raise AcpError(
            f"`{address}` cannot be reached: this version talks to programs that it starts, not over a network",
            hint="give the agent's command as a list of words",
        )
    from antiphon.catalogue.agents import AgentMissing, UnknownAgent, start_of  # only who asks by name pays for it

    try:
        found = start_of(name)
    except (AgentMissing, UnknownAgent) as error:
        raise type(error)(f"{error}, or give a list of the words of its command") from None
    env = found.environment() if env is None else {**env, **found.env}
    return ProgramTarget(found.command, name, found.cwd if cwd is None else cwd, env)


# When a request is worth asking again. Knows errors and patience; sends nothing.
# Asked again: what failed because the connection was lost (if the agent can be started again), because it took too long (-32001),
# because the session had expired (-32003, once it is open again), or because the agent itself has lost a connection (-32000 that says
# so): the second time that happens the agent is started again, if it can be. After a sign-in, what was refused for the lack of one (-32000), once;
# that is no failure to be patient with, so it is never repeated otherwise. Whatever else an agent refuses it will refuse again.


@dataclass(frozen=True, slots=True)
class Retry:
    """How patient to be: the seconds before each further try. `Retry(())` asks once."""

    delays: Sequence[float] = (1, 2, 4, 8)
    start_over: bool = True
    """Whether a new session may take the place of one that the agent has forgotten. It says so, but it knows nothing of before."""


class Tries:
    """The tries of one request."""

    def __init__(
        self,
        retry: Retry,
        *,
        can_reconnect: Callable[[], bool],
        sign_in: Callable[[RequestRefused, bool], Awaitable[None]],
        reconnect: Callable[[], Awaitable[None]],
    ) -> None:
        self._delays = iter(retry.delays)
        self._can_reconnect = can_reconnect
        self._sign_in = sign_in
        self._signed_in = False
        self._reconnect = reconnect
        self._closed = 0

    async def another(self, error: AcpError, expire: Callable[[], None] | None = None) -> None:
        """Return when it is time to ask again. `expire` marks the session that the request is about as no longer open.

        Raises:
            AcpError: the error itself, if asking again would not help or has been done often enough.
            AuthRequired: somebody has to sign in, and nobody here did.
        """
        if isinstance(error, RequestRefused) and error.wants_sign_in:
            await self._sign_in(error, self._signed_in)
            self._signed_in = True
            return
        delay = next(self._delays, None) if self._helps(error, expire) else None
        if delay is None:
            raise error
        _log.warning("trying again in %g s: %s", delay, error)
        await asyncio.sleep(delay)
        if isinstance(error, RequestRefused) and error.says_closed:
            self._closed += 1
            if self._closed > 1 and self._can_reconnect():
                await self._reconnect()

    def _helps(self, error: AcpError, expire: Callable[[], None] | None) -> bool:
        if isinstance(error, ConnectionClosed):
            return self._can_reconnect()
        if not isinstance(error, RequestRefused):
            return False
        if error.code == Code.SESSION_EXPIRED and expire is not None:
            expire()
            return True
        if error.says_closed:
            return True
        # By its meaning: some agents say "unsupported protocol version" with this code.
        return error.code == Code.REQUEST_TIMEOUT and error.meaning == "request timeout"


P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

VERSION: Final = 1
"""The version of the protocol that we speak. Newer ones are drafts, and some agents answer with any version they are asked for."""

LAST_WORDS: Final = 5
"""Lines of what an agent printed that an error shows."""

_HOW_TO_START: Final = (
    "check that its command speaks the Agent Client Protocol on stdin and stdout; many agents need an option for it"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How to keep the link to an agent: who signs in, when to try again, what sees reports, and for how long to wait."""

    authenticate: SignInHandler | None
    retry: Retry
    observer: Observer | None
    cancel_grace: float
    timeout: Timeout = UNSET


class Link:
    """One agent, over as many connections as it takes."""

    def __init__(
        self,
        target: ProgramTarget | TransportTarget | AgentTarget,
        router: Router,
        hello: v1.Initialize,
        how: "LinkOptions",
    ) -> None:
        self._timeout = how.timeout
        self.cancel_grace = how.cancel_grace
        self.closed = False
        self.lost: Callable[[], Awaitable[None]] | None = None
        """Called before a lost agent is started again: what belonged to it is of no use any more."""
        self._target = target
        self._router = router
        self._hello = hello
        self._authenticate = how.authenticate
        self.retry = how.retry
        self._observer = how.observer
        self._connection: Connection | None = None
        self._newborn: Connection | None = None
        self._welcome: v1.InitializeResult | None = None
        self._usable = False
        self._starting = asyncio.Lock()
        self._signing_in = asyncio.Lock()
        self._sign_ins = 0
        self._chores: set[asyncio.Task[None]] = set()

    # Who is there.

    @property
    def connection(self) -> Connection:
        """The connection of now, or the last one."""
        if self._connection is None:
            raise LocalProtocolError("not connected yet: use `async with connect(…)`")
        return self._connection

    @property
    def welcome(self) -> v1.InitializeResult:
        """How the agent introduced itself."""
        if self._welcome is None:
            raise LocalProtocolError("not connected yet: use `async with connect(…)`")
        return self._welcome

    @property
    def name(self) -> str:
        """What to call it."""
        info = self._welcome.agent_info if self._welcome is not None else None
        return (info.title or info.name) if info is not None else self._target.name

    @property
    def abilities(self) -> Abilities:
        """What it said that it can do."""
        return Abilities(f"`{self.name}`", self.welcome.agent_capabilities)

    @property
    def stderr(self) -> str:
        """The last lines that it wrote to stderr, if it is a program that we started."""
        transport = self._connection.transport if self._connection is not None else None
        return transport.stderr if isinstance(transport, ProcessTransport) else ""

    # Life.

    async def alive(self) -> Connection:
        """The connection, with the agent started (again) and introduced if need be.

        Raises:
            ConnectionClosed: it is gone and cannot be started again.
        """
        if self._connection is not None and self._usable and not self._connection.closed:
            return self._connection
        async with self._starting:
            if self._connection is None or not self._usable or self._connection.closed:
                await self._start()
            return self.connection

    def is_current(self, connection: Connection) -> bool:
        """Whether this is the connection that is in use."""
        return connection is self._connection and self._usable

    async def _start(self) -> None:
        self._check_open()
        if self._connection is not None:
            self._usable = False
            if self.lost is not None:
                await self.lost()
            await self._connection.close()
            self._check_open()  # it may have been closed meanwhile, here and below
            if not self._target.restartable:
                raise ConnectionClosed(f"the connection to {self.name} is lost and was not made here: connect anew")
            _log.info("starting %s again", self.name)
        connection = self._newborn = Connection(
            await self._target.open(), self._router, version=V1, observer=self._observer, timeout=self._timeout
        )
        try:
            self._check_open()
            connection.start()
            self._welcome = await self._introduce(connection)
            self._check_open()
        except BaseException:
            await connection.close()
            raise
        finally:
            self._newborn = None
        self._connection = connection
        self._usable = True

    def _check_open(self) -> None:
        if self.closed:
            raise ConnectionClosed("the connection to this agent was closed")

    async def _introduce(self, connection: Connection) -> v1.InitializeResult:
        try:
            welcome = await connection.request(m.INITIALIZE, self._hello)
        except RequestTimeout as error:
            raise RequestTimeout(error.method, error.timeout, _HOW_TO_START, self.name, _printed(connection)) from None
        except ProcessDied as error:
            if not connection.noise:
                raise
            raise RemoteProtocolError(
                f"{error.sentence}{_printed(connection)}",
                hint="this is not the Agent Client Protocol; many agents need an option to speak it",
            ) from error
        except RequestRefused as error:
            if error.meaning == "unsupported protocol version":
                wrong = f"{self.name} does not speak version {VERSION} of ACP: {error.sentence}"
                raise RemoteProtocolError(wrong, hint=error.hint) from error
            if error.wants_sign_in:
                raise AuthRequired(error.code, error.message, error.data) from error
            raise
        if welcome.protocol_version != VERSION:
            raise RemoteProtocolError(
                f"{self.name} answered with version {welcome.protocol_version} of ACP; we speak and asked for version {VERSION}",
                hint="use a version of the agent that speaks it",
            )
        return welcome

    async def end(self, connection: Connection) -> None:
        """End an agent that does not listen, with the ladder but its first wait. The next use starts it again."""
        if connection is self._connection:
            self._usable = False
        connection.transport.hasten()
        async with self._starting:
            await connection.close()

    async def close(self) -> None:
        """End it for good."""
        self.closed = True
        for connection in (self._newborn, self._connection):
            if connection is not None:
                await connection.close()
        async with self._starting:  # a start that was under way has noticed, and has ended what it started
            pass
        if self._chores:
            await asyncio.wait(tuple(self._chores))
        await self._target.close()

    def do(self, chore: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Work that outlives its caller and ends with the link."""
        task = asyncio.get_running_loop().create_task(chore, name=name)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

    # Asking.

    def tries(self) -> Tries:
        """The patience for one request."""
        before = self._sign_ins

        async def sign_in(refusal: RequestRefused, again: bool) -> None:
            if again or self._authenticate is None:
                raise self._auth_required(refusal) from refusal
            await self._ask_to_sign_in(self._authenticate, refusal, before)

        async def reconnect() -> None:
            if self._connection is not None:
                await self.end(self._connection)

        def can_reconnect() -> bool:
            return self._target.restartable and not self.closed

        return Tries(self.retry, can_reconnect=can_reconnect, sign_in=sign_in, reconnect=reconnect)

    async def attempt(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        ready: Callable[[], Awaitable[Connection]] | None = None,
        expire: Callable[[], None] | None = None,
    ) -> T:
        """Do something with the connection, again where that helps.

        Raises:
            AcpError: what the last try raised.
        """
        tries = self.tries()
        while True:
            try:
                return await work(await (ready or self.alive)())
            except AcpError as error:
                self._add_last_words(error)
                await tries.another(error, expire)

    async def ask(self, call: Call[P, R], params: P, timeout: Timeout = UNSET) -> R:
        """Send a request that is about no open session."""
        return await self.attempt(lambda connection: connection.request(call, params, timeout=timeout))

    # Signing in.

    async def sign_in(self, method_id: str, timeout: Timeout = UNSET) -> None:
        """Sign in one of the agent's ways."""
        await (await self.alive()).request(m.AUTHENTICATE, v1.Authenticate(method_id), timeout=timeout)
        self._sign_ins += 1

    def explained(self, error: AcpError) -> AcpError:
        """The error; if it is the lack of a sign-in, with the ways to sign in."""
        if isinstance(error, RequestRefused) and error.wants_sign_in:
            return self._auth_required(error)
        self._add_last_words(error)
        return error

    def _add_last_words(self, error: AcpError) -> None:
        """An agent that failed says why in its log, not in its answer."""
        if isinstance(error, RequestRefused) and error.code == Code.INTERNAL_ERROR and (said := self.stderr):
            last = "\n".join(said.splitlines()[-LAST_WORDS:])
            error.add_note(f"the last words of {self.name} on stderr:\n{last}")

    def _auth_required(self, refusal: RequestRefused) -> AuthRequired:
        return AuthRequired(refusal.code, refusal.message, refusal.data, self.welcome.auth_methods)

    async def _ask_to_sign_in(self, ask: SignInHandler, refusal: RequestRefused, before: int) -> None:
        async with self._signing_in:  # one at a time: the user is asked once, however many requests were refused
            if self._sign_ins != before:
                return
            method_id = await maybe_await(ask(self.welcome.auth_methods))
            if method_id is None:
                raise self._auth_required(refusal) from refusal
            try:
                await self.sign_in(method_id)
            except RequestRefused as error:
                raise self._auth_required(error) from refusal


def _printed(connection: Connection) -> str:
    """What came on stdout instead of the protocol."""
    lines = [bytes(line).decode("utf-8", "replace").strip()[:200] for line in connection.noise]
    return "; it printed:\n" + "\n".join(lines[:LAST_WORDS]) if lines else ""
