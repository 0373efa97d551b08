"""One scenario with one agent: a client that sends what the scenario wants, a workspace, and the verdicts.

A scenario sends requests, waits for messages, and calls `holds` for each requirement that it shows. It may stop early by raising
`NotOffered`, `NotSeen` or `Blocked`; what it has not shown by then gets that for a verdict.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from antiphon.conformance.prompts import Prompts
from antiphon.conformance.requirements import Blocked, NoResponse, NotOffered, NotSeen, TooLong
from antiphon.conformance.standin_client import EVERYTHING, StandinClient
from antiphon.conformance.wire import PeerClosed, PeerResponse, PeerWire, PendingRequest, Requester
from antiphon.traffic.entries import Entry

__all__ = ["FENCE", "AgentRun", "AgentTraits", "CheckOptions"]

LIMIT: Final = 30.0
"""Seconds that a response may take, by default: a model may think."""

START: Final = 60.0
"""Seconds that the first response may take: some agents load for long, and several of them start at once here."""

SILENCE: Final = 0.25
"""Seconds of silence after which nothing more is taken to come."""

AUTH_REQUIRED: Final = -32000

FENCE: Final = "_antiphon/fence"
"""A request that no agent knows, and that is harmless for that reason: when it is refused, all before it has been read."""

KNOWN_TO_ALL: Final = ("initialize", "session/new", "session/prompt")
"""Methods that every agent has."""

SILENT_LIMIT: Final = 1.0
"""Seconds that an agent which does not answer methods it does not know is given for all others than these."""

PROBE_LIMIT: Final = 10.0
"""Seconds after which a refusal of something unknown, which takes no thought, will not come any more."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of a check: the prompts for the agent, how to sign in, how long to wait."""

    prompts: Prompts = field(default_factory=Prompts)
    auth: str | None = None
    limit: float = LIMIT
    silence: float = SILENCE
    start: float = START
    named: bool = False
    """Whether the user named the way to sign in, and has to learn if there is no such way."""
    directory: Path | None = None
    """Where agents work, if not in temporary directories of this machine."""
    shared: bool = True
    """Whether agents see the directories of this machine; if not, they all work in `directory`, which is one of theirs."""
    remote: bool = False
    """Whether agents are reached by a network: they read and run nothing on this machine but what the check itself names."""


@dataclass(slots=True)
class AgentTraits:
    """What is known of an agent in all scenarios."""

    known: bool = False
    """Whether it has been asked something that it cannot know."""
    silent: bool = False
    """Whether the agent does not answer unknown methods. That is wrong, and reported once; other scenarios do not depend on it."""


class AgentRequester(Requester):
    """Requests and notifications to an agent, and the silence after them."""

    def __init__(self, wire: PeerWire, options: CheckOptions, cwd: Path) -> None:
        super().__init__()
        self.wire = wire
        self.options = options
        self.cwd = cwd
        self.traits = AgentTraits()

    def limit_for(self, asked: Entry) -> float:
        doubtful = self.traits.silent and asked.method not in KNOWN_TO_ALL
        return min(self.options.limit, SILENT_LIMIT) if doubtful else self.options.limit

    async def send_request(
        self, method: str, params: object = None, *, id: object = None, **more: object
    ) -> PendingRequest:
        if method == FENCE and self.traits.silent:
            raise Blocked("the agent does not answer methods that it does not know, so it cannot be checked")
        return await super().send_request(method, params, id=id, **more)

    async def fence(self) -> None:
        """A harmless request whose response shows that all before it has been read.

        Raises:
            NoResponse: it has not, or the agent left.
        """
        if self.traits.silent:
            await self.request("session/new", {"cwd": str(self.cwd), "mcpServers": []})
        else:
            await self.request(FENCE, {})

    def line(self) -> tuple[PeerWire, float]:
        return self.wire, self.options.limit

    async def settle(self) -> None:
        """Wait until all that was on its way has come: a response to a harmless request, and then silence."""
        await self.fence()
        await self.wire.silence(self.options.silence)

    async def cancel(self, session: str) -> Entry:
        """Send `session/cancel`."""
        return await self.notify("session/cancel", {"sessionId": session})

    async def overdue(self, pending: PendingRequest) -> None:
        """A turn may take as long as it likes while the agent answers other requests, and ends when it is cancelled.

        Raises:
            TooLong: that is how it is.
            NoResponse: it is not.
        """
        session = pending.request.params.get("sessionId")
        if pending.request.method != "session/prompt" or not isinstance(session, str) or self._is_cancelled(pending):
            return
        await self.fence()
        await self.cancel(session)
        await pending.response(self.options.limit)
        raise TooLong(f"a turn took over {self.options.limit:g} s, which it may: `--timeout` gives it longer")

    def _is_cancelled(self, pending: PendingRequest) -> bool:
        return any(
            one.method in ("session/cancel", "session/close")
            and one.params.get("sessionId") == pending.request.params.get("sessionId")
            for one in self.wire.trace[pending.request.number :]
            if one.dir is self.wire.own_direction
        )


class AgentRun(AgentRequester):
    """One scenario with one agent. The wire may be shared with scenarios before and after it; the verdicts are its own."""

    version: ClassVar[int] = 1
    """The version of the protocol that it speaks."""
    closes: ClassVar[tuple[str, ...]] = ("agentCapabilities", "sessionCapabilities", "close")
    """Where the answer to `initialize` says that sessions can be closed."""

    def __init__(self, wire: PeerWire, client: StandinClient, cwd: Path, options: CheckOptions) -> None:
        super().__init__(wire, options, cwd)
        self.client = client
        self.initialized: PeerResponse | None = None
        """The response to `initialize`."""
        self.another: Callable[[], Awaitable[AgentRun]] | None = None
        """Starts one more agent beside this one; only a scenario that has an agent of its own may."""
        self.renewed: Callable[[], Awaitable[AgentRun]] | None = None
        """Starts an agent that replaces this one, which has exited."""
        self.left: list[Entry] = []
        """What agents of this scenario were sent before they left."""
        self._first = len(wire.trace)
        self.odd = False
        """Whether something was sent that is not a correct message: no rule covers how an agent reacts to that."""

    @property
    def inherited(self) -> bool:
        """Whether the agent was provoked before this scenario began, so that it may leave because of that."""
        return self.wire.provocation is not None and self.wire.provocation.number <= self._first

    async def renew(self) -> None:
        """Go on with another agent, after this one has exited.

        Raises:
            Blocked: no other agent can be started.
        """
        if self.renewed is None:
            raise Blocked("the agent had left")
        if self.wire.provocation is not None:
            self.left.append(self.wire.provocation)
        await self.wire.close()
        fresh = await self.renewed()
        self.wire, self.client, self.initialized, self.cwd = fresh.wire, fresh.client, fresh.initialized, fresh.cwd
        self._first = 0

    async def provoke(self, method: str, params: object = None) -> PeerResponse:
        """Send a request that no correct client sends. An agent may exit after its response: then another one gets it.

        Raises:
            NoResponse: an agent to which nothing wrong was sent before gave no response.
        """
        try:
            return await self.request(method, params)
        except NoResponse as missing:
            before = self.wire.provocation
            if not missing.left or before is None or before is missing.request:
                raise
        await self.renew()
        return await self.request(method, params)

    async def wait_longer(self, missing: NoResponse) -> None:
        """Give a response that did not come in time the same time again: late is something else than never."""

        def is_it(entry: Entry) -> bool:
            return entry.is_response and entry.msg.get("id") == missing.request.msg.get("id")

        with suppress(TimeoutError, PeerClosed):
            await self.wire.wait_for(is_it, after=missing.request.number, limit=self.options.limit)

    # Opening.

    async def initialize(self, version: int = 1, capabilities: Mapping[str, object] | None = None) -> PeerResponse:
        """Send `initialize`."""
        params = {
            "protocolVersion": version,
            "clientCapabilities": EVERYTHING if capabilities is None else capabilities,
            "clientInfo": {"name": "antiphon-check", "title": "Antiphon check", "version": "1"},
        }
        self.initialized = await self.request("initialize", params, limit=self.options.start)
        return self.initialized

    async def new_session(self, **params: object) -> PeerResponse:
        """`session/new`, signing in first if that is asked for and known how. Every scenario that opens a session does it here.

        Raises:
            Blocked: a user has to sign in.
        """
        asked = {"cwd": str(self.cwd), "mcpServers": [], **params}
        response = await self.request("session/new", asked)
        if response.code == AUTH_REQUIRED and self.options.auth is not None:
            await self.request("authenticate", {"methodId": self.options.auth})
            response = await self.request("session/new", asked)
        if response.code == AUTH_REQUIRED:
            raise Blocked("`session/new` requires a login: `--auth METHOD` names one of the agent's methods")
        return response

    async def opened(self, **params: object) -> tuple[str, PeerResponse]:
        """The id of a new session, and the whole response.

        Raises:
            Blocked: no session can be opened.
        """
        response = await self.new_session(**params)
        found = response.get("sessionId")
        if not isinstance(found, str):
            raise Blocked("`session/new` gave no session")
        return found, response

    async def session(self, **params: object) -> str:
        """The id of a new session.

        Raises:
            Blocked: no session can be opened.
        """
        return (await self.opened(**params))[0]

    def offers(self, *path: str) -> bool:
        """Whether the agent advertises a capability: `loadSession`, or `sessionCapabilities`, `list`."""
        return self.wire.checker.state.offers("client", ".".join(path))

    def need(self, *path: str) -> None:
        """Go on only if the agent advertises a capability.

        Raises:
            NotOffered: it does not.
        """
        if not self.offers(*path):
            raise NotOffered(f"the agent does not offer `{'.'.join(path)}`")

    # Turns.

    def words(self, purpose: str, **places: object) -> str:
        """The prompt for a purpose.

        Raises:
            NotSeen: there is no prompt for it.
        """
        text = self.options.prompts.text(purpose, cwd=self.cwd, **places)
        if not text:
            raise NotSeen(f"there is no prompt for `{purpose}`: a prompt file can name one")
        return text

    async def prompt(self, session: str, text: str, *blocks: Mapping[str, object]) -> PendingRequest:
        """Start a turn."""
        sent = [{"type": "text", "text": text}, *blocks]
        return await self.send_request("session/prompt", {"sessionId": session, "prompt": sent})

    async def turn(self, session: str, purpose: str = "say", **places: object) -> PeerResponse:
        """A whole turn."""
        return await (await self.prompt(session, self.words(purpose, **places))).response()

    def updates(self, session: str, *, after: int = 0, before: int | None = None) -> list[Entry]:
        """The updates of a session between two lines of the trace."""
        return [
            entry
            for entry in self.wire.received
            if entry.method == "session/update"
            and entry.params.get("sessionId") == session
            and after < entry.number
            and (before is None or entry.number < before)
        ]

    async def sign(self, session: str, pending: PendingRequest) -> Entry | None:
        """The first update or request of a turn, or its end; None where it is silent for as long as we wait.

        Raises:
            NoResponse: the agent left.
        """

        def is_sign(entry: Entry) -> bool:
            return entry.params.get("sessionId") == session or _ends(entry, pending)

        return await self._await_entry(is_sign, pending)

    async def first_sign(self, session: str, pending: PendingRequest) -> Entry:
        """The first update or request of a turn, which shows that it runs.

        Raises:
            NotSeen: it ended without one.
            TooLong: none came, although the agent answers.
        """
        found = await self.sign(session, pending)
        if found is None:
            await self.overdue(pending)
            raise NoResponse(pending.request, "no sign of it came")
        if found.is_response:
            raise NotSeen("the turn ended before it sent anything, so there was nothing to interrupt")
        return found

    async def next_from_agent(self, method: str, pending: PendingRequest, *others: str) -> Entry:
        """The agent's request of that kind during a turn, in its session or one of the others; hold the method back first.

        Raises:
            NotSeen: the turn ended without one, or goes on and on.
            TooLong: neither came, although the agent answers.
        """
        session = pending.request.params["sessionId"]

        def is_it(entry: Entry) -> bool:
            asks = entry.is_request and entry.method == method
            return (asks and entry.params.get("sessionId") in (session, *others)) or _ends(entry, pending)

        found = await self._await_entry(is_it, pending)
        if found is None and self.updates(session, after=pending.request.number):
            raise NotSeen(f"the agent works on without `{method}`: a prompt file can name words that make it")
        if found is None:
            await self.overdue(pending)
            raise NoResponse(pending.request, f"neither `{method}` nor an answer came")
        if found.is_response:
            raise NotSeen(f"the agent did not use `{method}`: a prompt file can name words that make it")
        return found

    async def _await_entry(self, wanted: Callable[[Entry], bool], pending: PendingRequest) -> Entry | None:
        try:
            return await self.wire.wait_for(wanted, after=pending.request.number, limit=self.options.limit)
        except TimeoutError:
            return None
        except PeerClosed:
            raise pending.lost() from None


def _ends(entry: Entry, pending: PendingRequest) -> bool:
    return entry.is_response and entry.msg.get("id") == pending.request.msg["id"]
