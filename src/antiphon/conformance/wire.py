"""Our end of a connection to a peer under check: sends exactly what a scenario wants, records everything, trusts nothing.

It knows JSON-RPC only as far as distinguishing requests from responses, because a peer may send anything.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from antiphon.conformance.requirements import NoResponse, RequirementStatus, RequirementVerdict
from antiphon.errors import Code, ConnectionClosed, ProcessDied
from antiphon.traffic.checker import Deviation, Level, TrafficChecker, rules
from antiphon.traffic.entries import Direction, Entry, JsonObject, parse
from antiphon.transports.base import Transport
from antiphon.transports.remote import ConnectionRefused

__all__ = [
    "PeerClosed",
    "PeerRefusal",
    "PeerResponse",
    "PeerWire",
    "PendingRequest",
    "Requester",
    "Responder",
    "VerdictRecorder",
]

_log = logging.getLogger(__name__)

END_LIMIT: Final = 20.0
"""Seconds that the end of a peer may take; its own ladder is shorter."""

MOST_SILENCES: Final = 40
"""How many times as long as the silence should be one waits for it."""


MOST_RECEIVED: Final = 512 * 1024 * 1024
"""Bytes that are kept of what a peer sends. A peer that sends more floods us, and is ended: what it sent until then is checked."""


def _matters(broken: Deviation) -> bool:
    return rules(broken.version)[broken.rule].level is not Level.ADVICE


class PeerClosed(Exception):
    """The peer is gone, so what was waited for will not come."""


class PeerWire:
    """Records all messages of both sides, in order, in `trace`, and checks each as it comes."""

    def __init__(self, transport: Transport, own_direction: Direction) -> None:
        self.transport = transport
        self.own_direction = own_direction
        self.trace: list[Entry] = []
        self.checker = TrafficChecker()
        self.closed = False
        """Whether the peer has closed its end."""
        self.provocation: Entry | None = None
        """The first message of ours that broke a rule of the protocol. A peer that leaves after it has not left a correct client."""
        self.listener: Callable[[Entry], None] | None = None
        """Called with every message of the peer."""
        self._failure: Exception | None = None
        self._ids = 0
        self._begun = time.monotonic()
        self._changed = asyncio.Condition()
        self._reader = asyncio.create_task(self._read(), name="messages of the peer")

    async def _read(self) -> None:
        received_bytes = 0
        try:
            while received_bytes < MOST_RECEIVED and (frame := await self.transport.receive()) is not None:
                raw = (
                    bytes(frame) if isinstance(frame, bytes | bytearray) else frame.head
                )  # over the limit: its beginning
                received_bytes += len(raw)
                await self._note(self.own_direction.other, raw.removesuffix(b"\r"))
        except Exception as error:  # a bug of ours, as in a rule: the peer is not to blame
            self._failure = error
            _log.exception("a rule of ours failed")
        finally:
            self.closed = True
            async with self._changed:
                self._changed.notify_all()

    async def _note(self, direction: Direction, raw: bytes) -> Entry:
        async with self._changed:
            entry = parse(len(self.trace) + 1, time.monotonic() - self._begun, direction, raw)
            self.trace.append(entry)
            broken = self.checker.check(entry)
            if direction is self.own_direction and self.provocation is None and any(_matters(one) for one in broken):
                self.provocation = entry
            self._changed.notify_all()
        if self.listener is not None and direction is not self.own_direction:
            self.listener(entry)
        return entry

    @property
    def received(self) -> list[Entry]:
        """The messages of the peer."""
        return [entry for entry in self.trace if entry.dir is not self.own_direction]

    @property
    def how_it_left(self) -> str:
        """What is known of the peer's end, to put behind a sentence."""
        lost = self.transport.lost
        return f": {lost}" if isinstance(lost, ProcessDied | ConnectionRefused) else ""

    @property
    def waits(self) -> list[tuple[str, float]]:
        """The methods of our open requests, with the seconds since each was sent."""
        now = time.monotonic() - self._begun
        asked = self.checker.state.pairs.open if not self.closed else []
        return [(one.method or "", now - one.t) for one in asked if one.dir is self.own_direction]

    def new_id(self) -> int:
        """An id that we have not used."""
        self._ids += 1
        return self._ids

    async def send(self, message: object) -> Entry:
        """Send a message, whatever it is."""
        return await self.send_line(msgspec.json.encode(message))

    async def send_line(self, line: bytes) -> Entry:
        """Send a line, whatever it is. What cannot be sent any more is in the trace all the same."""
        entry = await self._note(self.own_direction, line)
        with suppress(ConnectionClosed):
            await self.transport.send(line)
        return entry

    async def send_in_pieces(self, message: object, size: int, pause: float = 0) -> Entry:
        """Send a message in many small writes; with a pause where a program in between would put them together again."""
        line = msgspec.json.encode(message) + b"\n"
        entry = await self._note(self.own_direction, line[:-1])
        for start in range(0, len(line), size):
            self.transport.out += line[start : start + size]
            self.transport.flush()
            await asyncio.sleep(pause)
        return entry

    async def send_together(self, messages: Sequence[object]) -> list[Entry]:
        """Send several messages in one write."""
        lines = [msgspec.json.encode(message) for message in messages]
        entries = [await self._note(self.own_direction, line) for line in lines]
        self.transport.out += b"".join(line + b"\n" for line in lines)
        self.transport.flush()
        return entries

    async def wait_for(self, wanted: Callable[[Entry], bool], *, after: int = 0, limit: float) -> Entry:
        """The first line of the peer's, after line number `after`, that is wanted.

        Raises:
            TimeoutError: it did not come within the limit.
            Closed: the peer is gone.
            Exception: a rule of ours failed, and nothing is read since.
        """
        seen = after
        async with asyncio.timeout(limit), self._changed:
            while True:
                for entry in self.trace[seen:]:
                    if entry.dir is not self.own_direction and wanted(entry):
                        return entry
                seen = max(seen, len(self.trace))
                if self._failure is not None:
                    raise self._failure
                if self.closed:
                    raise PeerClosed
                await self._changed.wait()

    async def silence(self, seconds: float) -> None:
        """Wait until nothing has come for that long. A peer that sends without end is not waited for without end."""
        with suppress(TimeoutError, PeerClosed):
            async with asyncio.timeout(MOST_SILENCES * seconds):
                while True:
                    await self.wait_for(lambda entry: True, after=len(self.trace), limit=seconds)

    async def close(self) -> None:
        """End the peer, by all means there are."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_LIMIT):
                await self.transport.close()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader
        self.closed = True


# --- our requests to the peer, its responses, and the verdicts


@dataclass(frozen=True, slots=True)
class PeerResponse:
    """A response with its request."""

    request: Entry
    entry: Entry

    @property
    def result(self) -> object:
        """The result; None where it is an error."""
        return self.entry.msg.get("result")

    @property
    def error(self) -> JsonObject | None:
        found = self.entry.msg.get("error")
        return found if isinstance(found, dict) else None

    @property
    def code(self) -> object:
        return self.error.get("code") if self.error else None

    def get(self, *path: str) -> object:
        """Something inside the result, None where it is not there."""
        found = self.result
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class PendingRequest:
    """A request whose response is not waited for yet."""

    def __init__(self, run: "Requester", asked: Entry) -> None:
        self._run = run
        self._wire = run.line()[0]
        self._limit = run.limit_for(asked)
        self.request = asked

    def _is_response(self, entry: Entry) -> bool:
        return entry.is_response and entry.msg.get("id") == self.request.msg["id"]

    def peek(self) -> PeerResponse | None:
        """The response, if it has come."""
        found = next(
            (one for one in self._wire.received if one.number > self.request.number and self._is_response(one)), None
        )
        return None if found is None else PeerResponse(self.request, found)

    async def response(self, limit: float | None = None) -> PeerResponse:
        """Wait for its response; for as long as a response may take, unless a limit is named.

        Raises:
            NoResponse: it did not come in time, or the peer left.
        """
        seconds = self._limit if limit is None else limit
        try:
            entry = await self._wire.wait_for(self._is_response, after=self.request.number, limit=seconds)
        except TimeoutError:
            if limit is None:
                await self._run.overdue(self)
            raise NoResponse(self.request, f"nothing came within {seconds:g} s") from None
        except PeerClosed:
            raise self.lost() from None
        return PeerResponse(self.request, entry)

    def lost(self) -> NoResponse:
        """The error for a peer that left before its response."""
        return NoResponse(self.request, f"the peer had left{self._wire.how_it_left}", left=True)


class VerdictRecorder:
    """Collects verdicts on requirements."""

    def __init__(self) -> None:
        self.verdicts: dict[str, RequirementVerdict] = {}

    def holds(
        self,
        requirement: str,
        held: bool,
        otherwise: str,
        *evidence: Entry | PeerResponse | None,
        awaited: Entry | None = None,
    ) -> bool:
        """Record whether a requirement held; `otherwise` is what was wrong. A failure is not taken back by a later success, but by the
        response to the request that was `awaited`, if it comes after all."""
        entries = tuple(
            entry
            for one in evidence
            if one is not None
            for entry in ((one.request, one.entry) if isinstance(one, PeerResponse) else (one,))
        )
        before = self.verdicts.get(requirement)
        if before is None or before.status is not RequirementStatus.FAILED:
            status = RequirementStatus.PASSED if held else RequirementStatus.FAILED
            text, late = ("", None) if held else (otherwise, awaited)
            self.verdicts[requirement] = RequirementVerdict(status, text, entries, late)
        return held


class Requester(VerdictRecorder, ABC):
    """Sends requests to a peer to find out what it does."""

    @abstractmethod
    def line(self) -> tuple[PeerWire, float]:
        """The wire to send on, and the seconds that a response may take."""

    def limit_for(self, asked: Entry) -> float:
        """Seconds that the response to a request may take."""
        return self.line()[1]

    async def send_request(
        self, method: str, params: object = None, *, id: object = None, **more: object
    ) -> PendingRequest:
        """Ask, and do not wait. `more` goes into the message beside its params."""
        wire, _ = self.line()
        message = {"jsonrpc": "2.0", "id": wire.new_id() if id is None else id, "method": method, **more}
        if params is not None:
            message["params"] = params
        return PendingRequest(self, await wire.send(message))

    async def request(
        self, method: str, params: object = None, *, id: object = None, limit: float | None = None
    ) -> PeerResponse:
        """Send a request, and wait for the response."""
        return await (await self.send_request(method, params, id=id)).response(limit)

    async def notify(self, method: str, params: object) -> Entry:
        """Send a notification."""
        return await self.line()[0].send({"jsonrpc": "2.0", "method": method, "params": params})

    async def overdue(self, pending: PendingRequest) -> None:  # most requests are simply not answered
        """Raise the reason why a request may go without a response for so long."""


# --- requests of the peer: a task handles each, but for those that a scenario holds back


class PeerRefusal(Exception):
    """The request is refused: an error with a code, and data where there are any."""

    def __init__(self, code: int, message: str, **data: object) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Responder(ABC):
    """Handles the requests that come on a wire."""

    def __init__(self, wire: PeerWire) -> None:
        self.wire = wire
        self.held: set[str] = set()
        self.waiting: list[Entry] = []
        """Requests of the peer that a scenario held back and has not answered."""
        self._tasks: set[asyncio.Task[None]] = set()
        wire.listener = self.receive

    def receive(self, entry: Entry) -> None:
        """Answer a request, or keep it for the scenario."""
        if not entry.is_request:
            return
        if entry.method in self.held:
            self.waiting.append(entry)
            return
        task = asyncio.create_task(self.handle(entry), name=f"answer to {entry.method}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def handle(self, entry: Entry) -> None:
        """Answer a request as a correct peer does."""
        try:
            result = await self.result_for(entry.method or "", entry.params)
        except PeerRefusal as refusal:
            await self.refuse(entry, refusal.code, str(refusal), **refusal.data)
        except (KeyError, TypeError, ValueError) as error:  # params that the schema forbids: the judge has noted it
            await self.refuse(entry, Code.INVALID_PARAMS, f"invalid params: {error!r}")
        except Exception as error:  # without a response, the check would blame the peer for waiting
            await self.refuse(entry, Code.INTERNAL_ERROR, f"it could not be done: {error!r}")
        else:
            await self.respond(entry, result)

    async def respond(self, entry: Entry, result: object) -> Entry:
        """Answer a request with a result."""
        return await self.wire.send({"jsonrpc": "2.0", "id": entry.msg.get("id"), "result": result})

    async def refuse(self, entry: Entry, code: int, message: str, **data: object) -> Entry:
        """Answer a request with an error."""
        error = {"code": code, "message": message, **({"data": data} if data else {})}
        return await self.wire.send({"jsonrpc": "2.0", "id": entry.msg.get("id"), "error": error})

    @abstractmethod
    async def result_for(self, method: str, params: JsonObject) -> object:
        """The result for a request.

        Raises:
            Refused: no response will come.
        """

    async def close(self) -> None:
        """Cancel what is not answered yet."""
        for task in tuple(self._tasks):
            task.cancel()
