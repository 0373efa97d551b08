"""One scenario with one client: a client that is made to do something, and a stand-in for its agent.

A scenario writes into `script` what the agent is like, starts the client, takes over its turn with `prompted`, and calls `holds` for
each requirement that it shows. What it does not take over the stand-in does correctly, on every connection that the client opens.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from antiphon.conformance.client_process import CLIENT_PURPOSES, ClientSource, RunningClient
from antiphon.conformance.requirements import Blocked, NoResponse, NotOffered, NotSeen
from antiphon.conformance.shim_socket import AgentStart
from antiphon.conformance.standin_agent import AgentScript, StandinAgent
from antiphon.conformance.wire import PeerResponse, PeerWire, Requester
from antiphon.traffic.entries import Direction, Entry, JsonObject

__all__ = [
    "FENCE",
    "OPTIONS",
    "ClientCheckOptions",
    "ClientConnection",
    "ClientRun",
    "ClientTraits",
    "HeldRequest",
    "NotAsked",
    "TurnRequester",
]

# --- a turn of the client in which the scenario acts for the agent

PERMISSION: Final = "session/request_permission"
OPTIONS: Final = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
"""What a user may answer to a permission request."""

FENCE: Final = "_antiphon/fence"
"""A request that no client knows: its response shows that all before it has been read."""


@dataclass(frozen=True, slots=True)
class ClientCheckOptions:
    """How long to wait: for a response or an end, and for what may still come."""

    limit: float = 20.0
    silence: float = 0.25


@dataclass(slots=True)
class ClientTraits:
    """What is known of a client in all scenarios: whether it answers methods that it does not know, and permission requests.

    A client that leaves unknown methods without a response is wrong, and that is reported once, by its own scenario. Whether it reads
    lines and survives updates has to be checked with a request that it answers.
    """

    fences: bool = True
    permissions: bool = True
    known: bool = False


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """One connection that the client has opened."""

    agent_start: AgentStart
    wire: PeerWire
    agent: StandinAgent


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A request of the client that the scenario answers; mostly a prompt."""

    connection: ClientConnection
    entry: Entry

    @property
    def session(self) -> str:
        return str(self.entry.params.get("sessionId"))

    @property
    def is_answered(self) -> bool:
        later = self.connection.wire.trace[self.entry.number :]
        return any(
            one.dir is Direction.A2C and one.is_response and one.msg.get("id") == self.entry.msg["id"] for one in later
        )

    async def end(self, reason: str = "end_turn", **more: object) -> Entry:
        """Send the response to a prompt."""
        return await self.connection.agent.respond(self.entry, {"stopReason": reason, **more})


class TurnRequester(Requester):
    """A scenario that acts for the agent in a turn. `turn` is the one that it has taken over."""

    def __init__(self, options: ClientCheckOptions) -> None:
        super().__init__()
        self.options = options
        self.traits = ClientTraits()
        self._turn: HeldRequest | None = None

    async def take_over(self, turn: HeldRequest) -> None:
        """Play this turn from now on."""
        self._turn = turn
        if not self.traits.known:
            await self._learn_traits()

    async def _learn_traits(self) -> None:
        self.traits.known = True
        self.traits.fences = await self._is_answered(FENCE, {})
        if not self.traits.fences:
            self.traits.permissions = await self._is_answered(PERMISSION, self._permission())

    async def _is_answered(self, method: str, params: object) -> bool:
        try:
            await self.request(method, params)
        except NoResponse as missing:
            return missing.left  # the scenario finds that out by itself
        return True

    def _permission(self, text: str = "") -> JsonObject:
        """The params of a permission request, with a text in it."""
        call = {"toolCallId": "antiphon-check", "title": text or "Look at the time", "kind": "other"}
        return {"sessionId": self.session, "toolCall": call, "options": OPTIONS}

    def question(self, id: object, text: str = "") -> JsonObject:
        """A request that the client answers, with a text in it: one that it cannot know, or one for permission.

        Raises:
            Blocked: it answers neither.
        """
        if self.traits.fences:
            return {"jsonrpc": "2.0", "id": id, "method": FENCE, "params": {"text": text}}
        if not self.traits.permissions:
            raise Blocked("the client answers no request here, so it cannot be checked what it has read")
        return {"jsonrpc": "2.0", "id": id, "method": PERMISSION, "params": self._permission(text)}

    @property
    def turn(self) -> HeldRequest:
        if self._turn is None:
            raise Blocked("there is no turn")
        return self._turn

    @property
    def wire(self) -> PeerWire:
        """The connection of the turn."""
        return self.turn.connection.wire

    @property
    def session(self) -> str:
        return self.turn.session

    def offers(self, *path: str) -> bool:
        """Whether the client advertises a capability: `terminal`, or `fs`, `readTextFile`."""
        return self.wire.checker.state.offers("agent", ".".join(path))

    def need(self, *path: str) -> None:
        """Go on only if the client advertises a capability.

        Raises:
            NotOffered: it does not.
        """
        if not self.offers(*path):
            raise NotOffered(f"the client does not offer `{'.'.join(path)}`")

    def line(self) -> tuple[PeerWire, float]:
        return self.wire, self.options.limit

    async def update(self, update: JsonObject, session: str | None = None) -> Entry:
        """Send an update of the session of the turn, or of another one."""
        return await self.turn.connection.agent.update(session or self.session, update)

    def text_update(self, text: str) -> JsonObject:
        """The update that is a piece of the agent's message."""
        return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}

    async def send_text(self, text: str) -> Entry:
        """A piece of the agent's message."""
        return await self.update(self.text_update(text))

    async def here(self, method: str, **params: object) -> PeerResponse:
        """Ask the client something about the session of the turn."""
        return await self.request(method, {"sessionId": self.session, **params})

    # Whether it is well.

    async def _fence(self) -> str:
        """Wait until all that was sent has been read; what is wrong with the client, if anything is."""
        if self.traits.fences:
            try:
                await self._fenced()
            except NoResponse as problem:
                return "the client left" if self.wire.closed else f"the client answered nothing more: {problem.reason}"
        await self.wire.silence(self.options.silence)
        if self.wire.closed:
            return "the client left"
        cancelled = any(one.method == "session/cancel" for one in self.wire.received)
        return "the client cancelled the turn" if cancelled else ""

    async def _fenced(self) -> None:
        """Wait for a late response: it has the same time again, because late differs from never."""
        pending = await self.send_request(FENCE, {})
        with suppress(NoResponse):
            await pending.response()
            return
        await pending.response()

    async def survives(self, requirement: str, what: str, *evidence: Entry | PeerResponse | None) -> None:
        """The requirement is that the client goes on after `what` was sent.

        Raises:
            Blocked: it did not, so nothing more can be shown.
        """
        problem = await self._fence()
        if not self.holds(requirement, not problem, f"after {what} {problem}", *evidence):
            raise Blocked(f"after {what} {problem}")

    async def settle(self) -> None:
        """Until all that was on its way has come.

        Raises:
            Blocked: the client is gone.
        """
        if problem := await self._fence():
            raise Blocked(problem)


LAST_OUTPUT: Final = 300
"""Characters of what a client printed that are reported where it ended too early."""


class NotAsked(Blocked):
    """The client did not ask for what the scenario is about."""


class ClientRun(TurnRequester):
    """One scenario with one client."""

    agent_type: ClassVar[type[StandinAgent]] = StandinAgent
    """What plays the agent."""
    purposes: ClassVar[Mapping[str, str]] = CLIENT_PURPOSES
    """What clients can be made to do."""

    def __init__(self, place: ClientSource, cwd: Path, options: ClientCheckOptions) -> None:
        super().__init__(options)
        self.place = place
        self.cwd = cwd
        self.script = AgentScript(self.agent_type.introduction())
        self.connections: list[ClientConnection] = []
        self._running: RunningClient | None = None
        self._asked: dict[str, asyncio.Queue[HeldRequest]] = {}
        self._held: list[HeldRequest] = []

    # The client.

    async def start(self, purpose: str = "prompt") -> None:
        """Start the client.

        Raises:
            NotSeen: there is no command that makes it do this.
        """
        if not self.place.has(purpose):
            wanted = self.purposes[purpose]
            raise NotSeen(f"there is no command for `{purpose}`; one in `--commands FILE` has to {wanted}")
        self._running = await self.place.start(purpose, self.cwd, self._connect)

    def _connect(self, agent_start: AgentStart) -> None:
        wire = PeerWire(agent_start.transport, Direction.A2C)
        self.connections.append(ClientConnection(agent_start, wire, self.agent_type(wire, self.script, self._hold)))

    def _hold(self, agent: StandinAgent, entry: Entry) -> None:
        connection = next(one for one in self.connections if one.agent is agent)
        turn = self.hold(connection, entry)
        self._held.append(turn)
        self._queue(entry.method or "").put_nowait(turn)

    def hold(self, connection: ClientConnection, entry: Entry) -> HeldRequest:
        """A request of the client, for the scenario to answer."""
        return HeldRequest(connection, entry)

    def _queue(self, method: str) -> "asyncio.Queue[HeldRequest]":
        return self._asked.setdefault(method, asyncio.Queue())

    @property
    def running(self) -> RunningClient:
        """The client that was started."""
        if self._running is None:
            raise Blocked("the client was not started")
        return self._running

    async def next_request(self, method: str) -> HeldRequest:
        """The next request of this kind, on whichever connection, to be answered here; `script.held` has to name it.

        Raises:
            NotAsked: the client ended without one, or it did not come in time.
        """
        come = asyncio.ensure_future(self._queue(method).get())
        over = asyncio.ensure_future(self.running.ended.wait())
        try:
            await asyncio.wait((come, over), timeout=self.options.limit, return_when=asyncio.FIRST_COMPLETED)
            for connection in self.connections:  # it may have ended, and what it sent may still be on its way
                if not come.done():
                    await connection.wire.silence(self.options.silence)
            if come.done():
                return come.result()
        finally:
            come.cancel()
            over.cancel()
        raise NotAsked(f"the client did not send `{method}`{self._last_words()}")

    def _last_words(self) -> str:
        if not self.running.ended.is_set():
            return f" within {self.options.limit:g} s"
        output = self.running.output[-LAST_OUTPUT:]
        return f" and ended with status {self.running.status}" + (f"; it printed: {output}" if output else "")

    async def prompted(self) -> HeldRequest:
        """The next prompt, whose turn the scenario then takes over."""
        turn = await self.next_request("session/prompt")
        await self.take_over(turn)
        return turn

    async def finish(self, turn: HeldRequest) -> None:
        """Do all that a prompt needs which is not what the scenario is about."""
        await turn.end()

    async def ended(self) -> int | None:
        """The status with which the client ends, when its user has no more prompts; None if it does not end in time."""
        self.running.end_input()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.running.ended.wait(), self.options.limit)
        return self.running.status

    async def release(self) -> None:
        """The scenario is over: what it held back is answered as usual, so that the client can end by itself."""
        self.script.held.clear()
        for turn in self._held:
            if not turn.is_answered:
                turn.connection.agent.receive(turn.entry)
