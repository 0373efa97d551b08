"""The connection to one running process of an agent: raw frames, ids of the gateway's own, and blocks of updates passed on as they are.

Most of what an agent sends are updates that begin with the same bytes. A block of them is looked at as a whole: if no line can hold an id
or name a second session, each goes to its session by its first bytes, and nothing is decoded.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import UnsetType

from antiphon.errors import AcpError, Code, ConnectionClosed, RequestRefused
from antiphon.gateway.access.messages import has_too_many_parts
from antiphon.gateway.events import for_session
from antiphon.protocol.v1 import methods as m
from antiphon.rpc.envelope import (
    BAD_INPUT,
    ErrorObject,
    Frame,
    Malformed,
    Notification,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
    head_of_notification,
    head_of_request,
)
from antiphon.rpc.peer import CANCEL_REQUEST, FIRST_ID, id_key
from antiphon.rpc.spans import may_hold_id, session_in
from antiphon.transports.base import Transport
from antiphon.transports.process import ProcessTransport

if TYPE_CHECKING:
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.requests import AgentQuestions, WaitingRequests
    from antiphon.gateway.session import HubSession

__all__ = ["UPDATE_HEAD", "AgentLink", "Then", "cancel_frame", "end_process"]

UPDATE_HEAD: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'
"""How an update begins in nearly every implementation; the rest is found by decoding."""

MAX_OPEN: Final = 10_000
"""Requests that may wait for the agent."""

MAX_EARLY: Final = 1000
"""Frames kept for sessions that are being opened: their id is not known before the response."""

EARLY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of these frames: a frame may have 64 MiB."""

ASKED_BYTES: Final = 128 * 1024 * 1024
"""Bytes of the requests of the agent that have no response yet. It may send two of the largest, or any number of small ones."""

OURS: Final = "_antiphon/"
"""How the methods begin that are between the gateway and its clients. An agent that uses one would speak as the gateway."""

Then: TypeAlias = Callable[[Response, bytes], None]
"""Takes a response and its bytes. After the end of the process it is an error, and there are no bytes."""

_log = logging.getLogger(__name__)


def cancel_frame(written: bytes) -> bytes:
    """Return the notification that cancels the request with this id."""
    return b'%b{"requestId":%b}}' % (head_of_notification(CANCEL_REQUEST), written)


class AgentLink:
    """The sink of the transport to one process. The supervisor makes a new one for each start."""

    def __init__(self, process: "AgentProcess", transport: Transport) -> None:
        self.transport = transport
        self.lost: ConnectionClosed | None = None
        self.end_reason = "its agent ended"
        """Why a turn is interrupted when the process ends, as a part of a sentence."""
        self.is_blamed = True
        """Whether the end of the process is a fault of the agent, after which it is started again later and later."""
        self.opening = 0
        """Requests on their way whose response names a session."""
        self.reopening: dict[str, asyncio.Future[Response]] = {}
        """Sessions of an earlier process that are being opened in this one, each with the response that says so."""
        self.replays: set[str] = set()
        """Those of them whose updates are a replay until then: the journal has it already."""
        self.renamed: dict[bytes, str] = {}
        """The sessions that the agent knows by another id than clients do: that id, and theirs."""
        self._process = process
        self._open: dict[int, Then] = {}
        self._last_id = FIRST_ID - 1
        self._early: list[tuple[str, bytes]] = []
        self._asking: dict[object, tuple[WaitingRequests | AgentQuestions, int]] = {}
        """What handles each request of the agent that has no response yet, and how many bytes the request has."""
        self._held = False

    @property
    def process(self) -> ProcessTransport | None:
        """The process of the agent; None if it is reached in another way."""
        found = self.transport.origin
        return found if isinstance(found, ProcessTransport) else None

    # What leaves.

    def send(self, frame: bytes) -> None:
        """Send one frame."""
        if self.lost is None:
            self.transport.out += frame
            self.transport.out += b"\n"
            self.transport.flush_soon()

    def forward(self, frame_of: Callable[[bytes], bytes], then: Then) -> bytes:
        """Send a request under an id of ours, and return that id. `frame_of` puts it into the frame."""
        self._last_id += 1
        written = b"%d" % self._last_id
        if self.lost is not None or len(self._open) >= MAX_OPEN:
            why = "the agent has ended" if self.lost is not None else f"{MAX_OPEN} requests wait for the agent"
            then(Response(self._last_id, error=_passing(why)), b"")
            return written
        self._open[self._last_id] = then
        self.send(frame_of(written))
        return written

    def send_request(self, method: str, params: Mapping[str, object], then: Then) -> None:
        """Send a request of the gateway's own."""
        encoded = msgspec.json.encode(params)
        self.forward(lambda id: b"%b%b}" % (head_of_request(int(id), method), encoded), then)

    async def call(self, method: str, params: bytes, timeout: float) -> bytes:
        """Send a request of the gateway's own and return the result.

        Raises:
            RequestRefused: the agent refuses it, or has ended.
            TimeoutError: it did not respond in time.
        """
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def then(response: Response, line: bytes) -> None:
            if not answer.done():
                answer.set_result(response)

        self.forward(lambda id: b"%b%b}" % (head_of_request(int(id), method), params), then)
        async with asyncio.timeout(timeout):
            response = await answer
        if response.error is not None:
            raise RequestRefused(response.error.code, response.error.message, response.error.data)
        return bytes(response.result or b"null")

    def respond(self, id: RequestId, frame: bytes) -> None:
        """Send the response to a request of the agent, unless it has one."""
        if self._asking.pop(id_key(id), None) is not None:
            self.send(frame)

    # What arrives.

    def block_received(self, block: Frame) -> None:
        """Take whole lines."""
        if self.lost is not None:
            return
        if isinstance(block, Overlong):
            self._message(decode(block), b"")
        else:
            lines = bytes(block).split(b"\n")
            if not lines[-1]:
                lines.pop()
            if not _only_updates(block, len(lines)) or not self._updates(lines):
                for line in lines:
                    if line and not line.isspace():
                        self._message(decode(line), line.rstrip(b"\r"))
        if self._process.uncommitted > self._process.hub.limits.uncommitted and not self._held:
            self._held = True
            self.transport.pause()

    def _updates(self, lines: list[bytes]) -> bool:
        """Give updates to their sessions in runs. False, and nothing is done: one of them is not for a session that is open."""
        sessions = self._process.sessions
        runs: list[tuple[HubSession, list[bytes]]] = []
        head = b"\n"
        for line in lines:
            if line.startswith(head):
                runs[-1][1].append(line)
                continue
            id = line[len(UPDATE_HEAD) : line.find(b'"', len(UPDATE_HEAD))]
            session = sessions.get(id) if line.startswith(UPDATE_HEAD) else None
            if session is None or id in self.renamed:
                return False
            head = session.head
            runs.append((session, [line]))
        for session, run in runs:
            session.receive(run)
        return True

    def room(self) -> None:
        """Read on, if what waited for the disk has been stored."""
        if self._held and self._process.uncommitted < self._process.hub.limits.uncommitted // 2:
            self._held = False
            self.transport.resume()

    def _message(self, message: object, line: bytes) -> None:
        try:
            self._handle(message, line)
        except Exception:  # the messages behind it are not lost with it
            _log.exception("a message of agent `%s` could not be handled", self._process.name)

    def _handle(self, message: object, line: bytes) -> None:
        if self.renamed and isinstance(message, Request | Notification):
            ours = self.renamed.get((session_in(message.params) or "").encode())
            if ours is not None:
                line = for_session(line, ours)
                message = decode(line)
        match message:
            case Response():
                then = self._open.pop(message.id, None) if type(message.id) is int else None
                if then is None:
                    _log.info("agent `%s` answered a request that is not open", self._process.name)
                else:
                    then(message, line)
            case Request():
                self._request(message, line)
            case Notification():
                self._notification(message, line)
            case Malformed():
                self._malformed(message)
            case _:
                pass  # a line of a log

    def _request(self, request: Request, line: bytes) -> None:
        key = id_key(request.id)
        if key in self._asking:
            return  # an error under this id would end the first one
        if why := self._refused(request, line):
            self.send(error_frame(request.id, ErrorObject(Code.INVALID_REQUEST, why)))
            return
        name = session_in(request.params)
        session = self._process.session_of(name)
        if session is None and name is None and request.method == m.CREATE_ELICITATION.name:
            self._asking[key] = self._process.questions, len(line)
            self._process.questions.receive(self, request, line)
            return
        if session is None:
            error = ErrorObject(Code.METHOD_NOT_FOUND, "Method not found", "the gateway knows no such session")
            self.send(error_frame(request.id, error))
            return
        self._asking[key] = session.requests, len(line)
        session.requests.receive(self, request, line)

    def _refused(self, request: Request, line: bytes) -> str:
        """Return why a request of the agent is not handled; empty if it is."""
        if is_ours(request.method):
            return f"`{request.method}` is a method of the gateway"
        if has_too_many_parts(line):
            return "the request has too many parts"
        waiting = sum(size for _, size in self._asking.values())
        return "too much waits for its response" if waiting + len(line) > ASKED_BYTES else ""

    def _notification(self, notification: Notification, line: bytes) -> None:
        if notification.method == CANCEL_REQUEST:
            try:
                params = msgspec.json.decode(notification.params, type=dict[str, int | float | str | None])
            except BAD_INPUT:
                return
            id = params.get("requestId")
            if (asked := self._asking.get(id_key(id))) is not None:
                asked[0].cancel(self, id)
            return
        if is_ours(notification.method):
            _log.warning("agent `%s` sent `%.100s`, which is the gateway's", self._process.name, notification.method)
            return
        name = session_in(notification.params)
        if name is None:
            self._process.broadcast(line)
        elif (session := self._process.session_of(name)) is not None:
            session.receive([line])
        elif self.opening and has_room(self._early, line):
            self._early.append((name, line))
        else:
            _log.info("agent `%s` sent `%s` for a session that is not open", self._process.name, notification.method)

    def _malformed(self, message: Malformed) -> None:
        _log.warning("agent `%s` sent something that cannot be read: %s", self._process.name, message.error.data)
        if isinstance(message.id, UnsetType):
            return
        if message.asks:
            if message.answerable:
                self.send(error_frame(message.id, message.error))
        elif type(message.id) is int and (then := self._open.pop(message.id, None)) is not None:
            then(Response(message.id, error=message.error), b"")

    def take_early(self, session_id: str) -> list[bytes]:
        """Return what arrived for a session before its id was known."""
        found = [line for name, line in self._early if name == session_id]
        self._early = [each for each in self._early if each[0] != session_id]
        return found

    def opened(self) -> None:
        """Count one response less that names a session."""
        self.opening -= 1
        if not self.opening:
            self._early.clear()

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Fail every open request: the process has ended."""
        if self.lost is not None:
            return
        self.lost = error
        waiting, self._open = self._open, {}
        self._asking.clear()
        gone = _passing(f"the agent has ended: {_first_line(error)}")
        self._process.link_lost(self, error)
        for id, then in waiting.items():
            try:
                then(Response(id, error=gone), b"")
            except Exception:
                _log.exception("the end of agent `%s` could not be reported", self._process.name)


async def end_process(name: str, link: AgentLink, why: str, *, at_once: bool = False) -> None:
    """End the process of an agent: turns that run in it are interrupted because of `why`. It counts as a crash, unless it is ended at once.

    `at_once`: neither it nor anything that it started does anything more first. That is not for what the agent did, but for where its
    sessions are, so it is started again when it is needed.
    """
    if link.lost is not None:
        return
    _log.error("agent `%s` is ended: %s", name, why)
    link.end_reason = f"its agent was ended because {why}"
    link.is_blamed = not at_once
    if at_once and link.process is not None:
        await link.process.kill()
    link.transport.skip_grace()
    await link.transport.close()


def is_ours(method: str) -> bool:
    """Whether a method is one between the gateway and its clients."""
    return method.startswith(OURS)


def has_room(early: Sequence[tuple[str, bytes]], line: bytes) -> bool:
    """Whether another frame is kept for a session that is being opened."""
    return len(early) < MAX_EARLY and sum(len(each) for _, each in early) + len(line) <= EARLY_BYTES


def _only_updates(block: bytes | bytearray, lines: int) -> bool:
    """Whether every line is an update that names its session and its method once: no line can hold an id, as it is or escaped."""
    if may_hold_id(block) or block.find(b"\r") >= 0 or block.count(b'"sessionId"') != lines:
        return False
    if block.count(b'"method"') != lines:  # a second one would count for the clients
        return False
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return False
    return True


def _first_line(error: AcpError) -> str:
    return error.sentence.partition("\n")[0]


def _passing(why: str) -> ErrorObject:
    """An error that passes: the agent is started again."""
    return ErrorObject(
        Code.INTERNAL_ERROR, "Internal error", {"details": why, "recoverable": True, "action": "try again later"}
    )
