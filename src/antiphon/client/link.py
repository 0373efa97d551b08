"""The link of a client to one agent, over as many connections as that takes.

A link starts the agent, sends `initialize`, starts the agent again when it is lost, kills it when it hangs, signs in, and repeats
requests where that helps. It knows nothing of sessions: a session compares its connection with the current one.
"""

import asyncio
import logging
import os
import random
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from msgspec import UNSET

from antiphon.aio import ignore_result, maybe_await
from antiphon.client.capabilities import DEFAULT_VERSIONS, Abilities, check_version, versioned
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
from antiphon.life import Life
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import JITTER, Transport
from antiphon.transports.memory import memory_pair
from antiphon.transports.process import ProcessTransport, spawn

if TYPE_CHECKING:
    from antiphon.transports.remote import RemoteAddress

__all__ = [
    "LINK_LIFE", "Link", "LinkEvent", "LinkState", "ProgramTarget", "Retry", "Target", "TransportTarget", "Tries", "Words", "target_of",
]  # fmt: skip

# Targets of a connection: a program that we start (by its command or by the agent's name), an agent of this program, or a transport
# that exists already. A target opens a transport, and has whether it can do so again. It sends nothing.

Words: TypeAlias = Sequence[str | os.PathLike[str]]
Target: TypeAlias = "str | Words | Transport | Servable | RemoteAddress"
"""An agent's name (such as `"demo"`) or address, the words of a command, an `Agent` of this program, or a transport."""

# -P: or the directory it is started in would come first on the path, and with it whatever is called `msgspec.py` there.
DEMO: Final = ("-P", "-m", "antiphon", "agent", "--engine", "demo")


class ProgramTarget:
    """A program that is started by its command, as often as needed."""

    restartable = True

    def __init__(
        self, words: Words, name: str, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
    ) -> None:
        self.words = words
        self.name = name
        self._cwd = cwd
        self._env = env

    async def open(self) -> Transport:
        """Start the program.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
        """
        return await spawn(self.words, cwd=self._cwd, env=self._env)

    async def close(self) -> None:
        """Do nothing: the connection has ended the program."""


class TransportTarget:
    """A transport that the caller has opened. It cannot be opened again."""

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
    """An agent of this program, served over memory, as often as needed."""

    restartable = True
    name = "the agent"

    def __init__(self, agent: Servable) -> None:
        self._agent = agent
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self) -> Transport:
        """Serve the agent to us over a new pair of transports."""
        ours, theirs = memory_pair()
        serving = asyncio.get_running_loop().create_task(self._agent.serve(theirs), name="serve an agent")
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        serving.add_done_callback(ignore_result)
        return ours

    async def close(self) -> None:
        """Wait until the agent is served no more. Its own limits bound the wait."""
        if self._serving:
            await asyncio.wait(tuple(self._serving))


def target_of(
    target: object, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
) -> "ProgramTarget | TransportTarget | AgentTarget | RemoteAddress":
    """Return the target for what `connect` was given.

    Raises:
        AcpError: it is an agent that is not known or not installed.
        LocalProtocolError: it is neither a name, nor an address, nor a list of words, nor a transport.
    """
    if isinstance(target, Transport):
        if cwd is not None or env is not None:
            raise LocalProtocolError(
                "a transport has been made already: `cwd` and `env` are for programs that we start"
            )
        return TransportTarget(target)
    if hasattr(target, "restartable"):
        return cast("RemoteAddress", target)
    if isinstance(target, Servable):
        if env is not None:
            raise LocalProtocolError(
                "an agent of this program has its environment: `env` is for programs that we start"
            )
        return AgentTarget(target)
    if isinstance(target, str):
        if "://" in target:
            from antiphon.transports.remote import RemoteAddress  # brings TLS along

            return RemoteAddress(target)
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
    from antiphon.catalogue.agents import AgentMissing, UnknownAgent, start_of  # late: most targets are commands

    try:
        found = start_of(name)
    except (AgentMissing, UnknownAgent) as error:
        raise type(error)(error.sentence, hint=f"{error.hint}, or give a list of the words of its command") from None
    env = found.environment() if env is None else {**env, **found.env}
    return ProgramTarget(found.command, name, found.cwd if cwd is None else cwd, env)


# When a request is sent again. Nothing here sends it.
# - The connection was lost, and the agent can be started or reached again. A server that refuses to let us in is not asked again.
# - The agent took too long (-32001).
# - The session had expired (-32003): once it is open again.
# - The agent itself has lost a connection (-32000 with such a message). The second time the agent is started again, if it can be.
# - The user had to sign in (-32000): once, after the sign-in.
# An agent that refuses for another reason would refuse again.


@dataclass(frozen=True, slots=True)
class Retry:
    """When to send a failed request again: the seconds before each further try. `Retry(())` sends it once."""

    delays: Sequence[float] = (1, 2, 4, 8)
    start_over: bool = True
    """Whether a new session may take the place of one that the agent has forgotten. The user gets a notice; the history is lost."""


class Tries:
    """The tries of one request: how many are left, and whether the user has signed in for it."""

    def __init__(
        self,
        retry: Retry,
        *,
        can_reconnect: Callable[[], bool],
        sign_in: Callable[[RequestRefused, bool], Awaitable[None]],
        reconnect: Callable[[], Awaitable[None]],
        jitter: float = 0.0,
    ) -> None:
        self._delays = iter(retry.delays)
        self._jitter = jitter
        self._can_reconnect = can_reconnect
        self._sign_in = sign_in
        self._signed_in = False
        self._reconnect = reconnect
        self._closed = 0

    async def another(self, error: AcpError, expire: Callable[[], None] | None = None) -> None:
        """Return when it is time to send the request again. `expire` marks the session of the request as no longer open.

        Raises:
            AcpError: the error itself, if another try would not help or there were enough.
            AuthRequired: the user has to sign in, and did not.
        """
        if isinstance(error, RequestRefused) and error.wants_sign_in:
            await self._sign_in(error, self._signed_in)
            self._signed_in = True
            return
        delay = next(self._delays, None) if self._helps(error, expire) else None
        if delay is None:
            raise error
        wanted = error.retry_after if isinstance(error, ConnectionClosed) else 0.0
        delay = max(delay, wanted) * (1 + random.random() * self._jitter)  # noqa: S311 - no secret
        _log.warning("trying again in %g s: %s", delay, error)
        await asyncio.sleep(delay)
        if isinstance(error, RequestRefused) and error.reports_closed:
            self._closed += 1
            if self._closed > 1 and self._can_reconnect():
                await self._reconnect()

    def _helps(self, error: AcpError, expire: Callable[[], None] | None) -> bool:
        if isinstance(error, ConnectionClosed):
            return error.recoverable is True and self._can_reconnect()
        if not isinstance(error, RequestRefused):
            return False
        if error.code == Code.SESSION_EXPIRED and expire is not None:
            expire()
            return True
        if error.reports_closed:
            return True
        # By its meaning: some agents send this code for "unsupported protocol version".
        return error.code == Code.REQUEST_TIMEOUT and error.meaning == "request timeout"


P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

SHOWN_LINES: Final = 5
"""Lines of what an agent printed that an error shows."""

_HOW_TO_START: Final = "check that its command starts an agent with the Agent Client Protocol on stdin and stdout; many agents need an option for it"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """The options of a link: how to sign in, when to try again, where reports go, and how long to wait."""

    authenticate: SignInHandler | None
    retry: Retry
    observer: Observer | None
    cancel_grace: float
    timeout: Timeout = UNSET
    versions: tuple[int, ...] = DEFAULT_VERSIONS
    extended: bool = True
    """Whether what only version 2 has is taken as `protocol.extension` describes it."""


class LinkState(Enum):
    """How far a link is."""

    NEW = "new"
    STARTING = "starting"
    """The agent is being started, or has not answered `initialize` yet."""
    OPEN = "open"
    LOST = "lost"
    """The agent is gone, or hung, or could not be started. The next use starts it again if it can be."""
    CLOSED = "closed"


class LinkEvent(Enum):
    """What can happen to a link."""

    START = "start"
    INITIALIZE = "be initialized"
    FAIL = "fail to start"
    LOSE = "lose its agent"
    CLOSE = "close"


_S, _E = LinkState, LinkEvent
LINK_LIFE: Final = Life(
    "link of a client",
    _S.NEW,
    {
        _S.NEW: {_E.START: _S.STARTING, _E.CLOSE: _S.CLOSED},
        _S.STARTING: {_E.INITIALIZE: _S.OPEN, _E.FAIL: _S.LOST, _E.CLOSE: _S.CLOSED},
        _S.OPEN: {_E.LOSE: _S.LOST, _E.CLOSE: _S.CLOSED},
        _S.LOST: {_E.LOSE: _S.LOST, _E.START: _S.STARTING, _E.CLOSE: _S.CLOSED},
        _S.CLOSED: {_E.FAIL: _S.CLOSED, _E.LOSE: _S.CLOSED, _E.CLOSE: _S.CLOSED},
    },
    "A link that is open notices at its next use that its agent is gone. One that is closed while it starts ends what it started.",
)


class Link:
    """The link to one agent, over as many connections as that takes."""

    def __init__(
        self,
        target: "ProgramTarget | TransportTarget | AgentTarget | RemoteAddress",
        router: Router,
        initialize: v1.Initialize,
        options: "LinkOptions",
    ) -> None:
        self._options = options
        self.cancel_grace = options.cancel_grace
        self.on_lost: Callable[[], Awaitable[None]] | None = None
        """Called before a lost agent is started again, to release what belonged to it."""
        self._target = target
        self._router = router
        self._initialize = initialize
        self.retry = options.retry
        self._state = LINK_LIFE.start
        self._connection: Connection | None = None
        self._starting_connection: Connection | None = None
        self._initialized: v1.InitializeResult | None = None
        self._starting = asyncio.Lock()
        self._signing_in = asyncio.Lock()
        self._sign_ins = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # The agent at the other end.

    @property
    def connection(self) -> Connection:
        """The current connection, or the last one."""
        if self._connection is None:
            raise LocalProtocolError("not connected yet: use `async with connect(…)`")
        return self._connection

    @property
    def initialized(self) -> v1.InitializeResult:
        """The agent's answer to `initialize`."""
        if self._initialized is None:
            raise LocalProtocolError("not connected yet: use `async with connect(…)`")
        return self._initialized

    @property
    def name(self) -> str:
        """The name of the agent: its own, or that of its program."""
        info = self._initialized.agent_info if self._initialized is not None else None
        return (info.title or info.name) if info is not None else self._target.name

    @property
    def abilities(self) -> Abilities:
        """What the agent has advertised."""
        return Abilities(f"`{self.name}`", self.initialized.agent_capabilities)

    @property
    def stderr(self) -> str:
        """The last lines that the agent wrote to stderr, if it is a program that we started."""
        transport = self._connection.transport if self._connection is not None else None
        return transport.stderr if isinstance(transport, ProcessTransport) else ""

    # Its life.

    @property
    def state(self) -> LinkState:
        """How far its life is."""
        return self._state

    def _enter(self, event: LinkEvent) -> None:
        self._state = LINK_LIFE.next(self._state, event)

    async def connected(self) -> Connection:
        """Return the connection; the agent is started (again) and initialized first if need be.

        Raises:
            ConnectionClosed: the agent is gone and cannot be started again.
        """
        if (connection := self._usable) is not None:
            return connection
        async with self._starting:
            if self._usable is None:
                await self._start()
            return self.connection

    @property
    def _usable(self) -> Connection | None:
        connection = self._connection
        return connection if self._state is _S.OPEN and connection is not None and not connection.closed else None

    def is_current(self, connection: Connection) -> bool:
        """Whether this is the connection that is in use."""
        return connection is self._connection and self._state is _S.OPEN

    async def _start(self) -> None:
        self._check_open()
        if self._connection is not None:
            self._enter(_E.LOSE)
            if self.on_lost is not None:
                await self.on_lost()
            await self._connection.close()
            self._check_open()  # it may have been closed meanwhile, here and below
            if not self._target.restartable:
                raise ConnectionClosed(f"the connection to {self.name} is lost and was not made here: connect anew")
            _log.info("starting %s again", self.name)
        self._enter(_E.START)
        try:
            self._connection = await self._connect()
        except BaseException:
            self._enter(_E.FAIL)
            raise
        self._enter(_E.INITIALIZE)

    async def _connect(self) -> Connection:
        options, again = self._options, self._target.open if self._target.restartable else None
        opened = await self._target.open()
        transport = versioned(opened, options.versions, options.observer, again, extended=options.extended)
        connection = self._starting_connection = Connection(
            transport, self._router, version=V1, observer=options.observer, timeout=options.timeout
        )
        try:
            self._check_open()
            connection.start()
            self._initialized = await self._introduce(connection)
            check_version(connection, options.versions, self.name)
            self._check_open()
        except BaseException:
            await connection.close()
            raise
        finally:
            self._starting_connection = None
        return connection

    def _check_open(self) -> None:
        if self._state is _S.CLOSED:
            raise ConnectionClosed("the connection to this agent was closed")

    async def _introduce(self, connection: Connection) -> v1.InitializeResult:
        try:
            result = await connection.request(m.INITIALIZE, self._initialize)
        except RequestTimeout as error:
            raise RequestTimeout(error.method, error.timeout, _HOW_TO_START, self.name, _printed(connection)) from None
        except ProcessDied as error:
            if not connection.noise:
                raise
            raise RemoteProtocolError(
                f"{error.sentence}{_printed(connection)}",
                hint="this is not the Agent Client Protocol; many agents need an option for it",
            ) from error
        except RequestRefused as error:
            if error.meaning == "unsupported protocol version":
                wrong = f"{self.name} does not support version {V1.number} of ACP: {error.sentence}"
                raise RemoteProtocolError(wrong, hint=error.hint) from error
            if error.wants_sign_in:
                raise AuthRequired(error.code, error.message, error.data) from error
            raise
        # Newer versions are drafts, and some agents answer with any version that they are asked for.
        if result.protocol_version != V1.number:
            raise RemoteProtocolError(
                f"{self.name} answered with version {result.protocol_version} of ACP; this client asked for version {V1.number}",
                hint="use a version of the agent that supports it",
            )
        return result

    async def kill(self, connection: Connection) -> None:
        """Kill an agent that does not respond: close its connection without the first wait. The next use starts it again."""
        if self.is_current(connection):
            self._enter(_E.LOSE)
        connection.transport.skip_grace()
        async with self._starting:
            await connection.close()

    async def close(self) -> None:
        """Close the link for good, and end the agent if we started it."""
        self._enter(_E.CLOSE)
        for connection in (self._starting_connection, self._connection):
            if connection is not None:
                await connection.close()
        async with self._starting:  # a start that was under way has noticed, and has ended what it started
            pass
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await self._target.close()

    def run(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Run work that outlives its caller and ends with the link."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Requests.

    def tries(self) -> Tries:
        """Return the tries of one request."""
        before = self._sign_ins

        async def sign_in(refusal: RequestRefused, again: bool) -> None:
            if again or self._options.authenticate is None:
                raise self._auth_required(refusal) from refusal
            await self._ask_to_sign_in(self._options.authenticate, refusal, before)

        async def reconnect() -> None:
            if self._connection is not None:
                await self.kill(self._connection)

        def can_reconnect() -> bool:
            return self._target.restartable and self._state is not _S.CLOSED

        jitter = JITTER if getattr(self._target, "shared", False) else 0.0
        return Tries(self.retry, can_reconnect=can_reconnect, sign_in=sign_in, reconnect=reconnect, jitter=jitter)

    async def attempt(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        ready: Callable[[], Awaitable[Connection]] | None = None,
        expire: Callable[[], None] | None = None,
    ) -> T:
        """Do work with the connection, again where that helps.

        Raises:
            AcpError: what the last try raised.
        """
        tries = self.tries()
        while True:
            try:
                return await work(await (ready or self.connected)())
            except AcpError as error:
                self._add_stderr(error)
                await tries.another(error, expire)

    async def request(self, call: Call[P, R], params: P, timeout: Timeout = UNSET) -> R:
        """Send a request that is about no open session, again where that helps."""
        return await self.attempt(lambda connection: connection.request(call, params, timeout=timeout))

    # Signing in.

    async def sign_in(self, method_id: str, timeout: Timeout = UNSET) -> None:
        """Sign in by one of the agent's methods."""
        await (await self.connected()).request(m.AUTHENTICATE, v1.Authenticate(method_id), timeout=timeout)
        self._sign_ins += 1

    def explained(self, error: AcpError) -> AcpError:
        """Return the error with what helps: the methods to sign in, or the last lines on stderr."""
        if isinstance(error, RequestRefused) and error.wants_sign_in:
            return self._auth_required(error)
        self._add_stderr(error)
        return error

    def _add_stderr(self, error: AcpError) -> None:
        """Add the last lines on stderr to an internal error: agents give the reason there, not in the response."""
        if isinstance(error, RequestRefused) and error.code == Code.INTERNAL_ERROR and (stderr := self.stderr):
            last = "\n".join(stderr.splitlines()[-SHOWN_LINES:])
            error.add_note(f"the last lines of {self.name} on stderr:\n{last}")

    def _auth_required(self, refusal: RequestRefused) -> AuthRequired:
        return AuthRequired(refusal.code, refusal.message, refusal.data, self.initialized.auth_methods)

    async def _ask_to_sign_in(self, ask: SignInHandler, refusal: RequestRefused, before: int) -> None:
        async with self._signing_in:  # one at a time: the user is asked once, however many requests were refused
            if self._sign_ins != before:
                return
            method_id = await maybe_await(ask(self.initialized.auth_methods))
            if method_id is None:
                raise self._auth_required(refusal) from refusal
            try:
                await self.sign_in(method_id)
            except RequestRefused as error:
                raise self._auth_required(error) from refusal


def _printed(connection: Connection) -> str:
    """What the agent wrote to stdout instead of the protocol, for an error."""
    lines = [bytes(line).decode("utf-8", "replace").strip()[:200] for line in connection.noise]
    return "; it printed:\n" + "\n".join(lines[:SHOWN_LINES]) if lines else ""
