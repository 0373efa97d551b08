"""A link of a client to one session: what it gives to the client, and what a client whose stream over HTTP was cut is given again."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import AcpError, ConnectionClosed, RequestRefused
from antiphon.fleet.gateway.address import RouteAddress
from antiphon.remote.held_messages import HeldMessage
from antiphon.remote.link import WAIT_TIMEOUT, RemoteLink
from antiphon.remote.paths import PathMap
from antiphon.remote.sessions import (
    ATTACH,
    DETACH,
    Attached,
    EditorRequest,
    FollowedSession,
    MessageMark,
    lost_member,
    mark_of,
    refusal_of,
    request_frame,
)
from antiphon.rpc.envelope import Frame, RequestId
from antiphon.transports.remote import MessageHead, head_of

__all__ = ["FAST_DELAYS", "LinkedClient", "RoutedLink"]

FAST_DELAYS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
"""Seconds before each try to connect again: a session has another owner within the length of a lease."""

RESPONSES_KEPT: Final = 1000
"""Prompts of one link over HTTP whose responses are given again to a client that has missed them."""

READING: Final = frozenset(
    {
        "initialize",
        "session/list",
        "session/load",
        "session/resume",
        "session/close",
        "session/delete",
        ATTACH,
        DETACH,
        "_antiphon/session/read",
        "_antiphon/session/changes",
        "_antiphon/session/export",
    }
)
"""Requests that need no worker: all else waits for one."""

_RECONNECT: Final = "reconnect"
"""The action of an error of a process that is about to end."""

_TURN_ENDED: Final = "_antiphon/session/turn_ended"
_REQUESTED: Final = "_antiphon/session/requested"
_log = logging.getLogger(__name__)


class LinkedClient(Protocol):
    """The client of a link."""

    def give(
        self,
        link: "RoutedLink",
        frame: bytes,
        session_id: str | None,
        answers: RequestId | UnsetType,
        number: int,
    ) -> None:
        """Take a frame: about a session, as the response to a request, as the event of a number."""

    def caught_up(self, session_id: str) -> None:
        """Handle that all events of a session were given that there were when it was attached again."""

    def link_lost(self, link: "RoutedLink") -> None:
        """Handle that a link has ended for good."""


class RoutedLink(RemoteLink):
    """One of the links of a client. What it gives has its session, the request that it answers, and the number of its event."""

    def __init__(
        self,
        client: LinkedClient,
        address: RouteAddress,
        *,
        hello: bytes | None,
        ids: Iterator[int],
        keeps_responses: bool = False,
        delays: Sequence[float] = FAST_DELAYS,
        wait_timeout: float = WAIT_TIMEOUT,
    ) -> None:
        """`keeps_responses`: the client is over HTTP, and may come back for what it has missed."""
        super().__init__(
            address,
            PathMap(),
            delays=delays,
            wait_timeout=wait_timeout,
            offers_files=True,  # the worker decides whether its agents use them
            hello=hello,
            ids=ids,
        )
        self.address = address
        self._client = client
        self._keeps_responses = keeps_responses
        self._kept: dict[str, EditorRequest] = {}
        """The prompts that were answered last, by their names."""
        self._targets: dict[str, int] = {}
        """Sessions whose client has gone back, with the event up to which it is given all again."""

    def start(self) -> None:
        """Connect, from now on."""
        self.attach(_LinkEnd(self, self._client))

    # How it is.

    @property
    def is_live(self) -> bool:
        """Whether there is a connection."""
        return self._is_live

    @property
    def held(self) -> int:
        """Bytes that wait for a connection."""
        return self._held.size

    @property
    def is_idle(self) -> bool:
        """Whether the client follows no session over it, and nothing waits."""
        return not (self._open or self._sessions or self._held or self._requests or self._calls)

    def has_asked(self, id: RequestId) -> bool:
        """Whether it has given the client a request of the agent with this id."""
        return type(id) is int and id in self._requests

    def first_of(self, session_id: str) -> int | None:
        """Return the number of the event after which the client began to follow a session; None if it does not."""
        session = self._sessions.get(session_id)
        return None if session is None else session.first

    # What differs from a link of an editor.

    def _give(
        self, frame: bytes, session_id: str | None = None, answers: RequestId | UnsetType = UNSET, number: int = 0
    ) -> None:
        self._client.give(self, frame, session_id, answers, number)

    def overlong_received(self, block: Frame) -> None:
        _log.error("a message of a worker is too large, and was dropped")

    def _is_taken(self, message: HeldMessage) -> bool:
        return self.address.waits is None or (message.request is not None and message.request.method in READING)

    def _is_final(self, error: AcpError) -> bool:
        # A greeting that is refused, as by an agent that does not start, is the answer where nothing is to be gone on with; and so is
        # that no worker can take a new session.
        is_answer = isinstance(error, RequestRefused) and not self._sessions and error.action != _RECONNECT
        return super()._is_final(error) or is_answer or error is self.address.refusal

    def _initialized(self, head: MessageHead) -> None:
        asked = [each for each in self._open.values() if each.method == "initialize"]
        refusal = refusal_of(head.error) if isinstance(head.result, UnsetType) else None
        if asked and refusal is not None and refusal.action == _RECONNECT and self._connection is not None:
            for request in asked:  # the worker is about to end: another one answers
                self._held.hold_request(request, again=True)
            self._is_live = False
            self._connection.end(refusal)
        else:
            super()._initialized(head)

    def end(self, why: AcpError) -> None:
        """Answer what is open with an error, and give nothing more."""
        self._fail(why)

    def _lost_error(self, what: str) -> bytes:
        return lost_member(self._address.name, self.address.waits or self._why, what)

    def _caught_up(self, session: FollowedSession) -> None:
        self._client.caught_up(session.id)

    # A client that goes back.

    def rewind(self, session_id: str, after: int) -> bool:
        """Give the client the events after an earlier one again. False: it has not come so far."""
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = FollowedSession(session_id)
            session.first = session.last = after
            session.is_open = True
        elif after > session.last:
            return False
        session.again, session.last = max(session.again, session.last), after
        if self._is_live:
            session.rewinds += 1
            frame = request_frame(ATTACH, {"sessionId": session_id, "after": after})
            self._call(frame, lambda head: self._rewound(session, head))
        return True

    def _rewound(self, session: FollowedSession, head: MessageHead) -> None:
        session.rewinds -= 1
        found = Attached.read(head.result)
        if found is None:
            self._sessions.pop(session.id, None)
        elif not session.rewinds:
            self._targets[session.id] = found.number
            self._check_target(session)

    def _check_target(self, session: FollowedSession) -> None:
        if session.last >= self._targets[session.id]:
            del self._targets[session.id]
            self._client.caught_up(session.id)

    def line_received(self, line: bytes) -> None:
        if any(session.rewinds for session in self._sessions.values()) and self._comes_again(line):
            return
        super().line_received(line)
        for session_id in (*self._targets,):
            if (session := self._sessions.get(session_id)) is None:
                del self._targets[session_id]
            else:
                self._check_target(session)

    def _comes_again(self, line: bytes) -> bool:
        """Whether a message is an event of a session that is about to begin again after an earlier one."""
        head = head_of(line)
        if head is None or not head.name:
            return False
        mark = mark_of(head.params)
        session, number = self._sessions.get(mark.session_id), mark.number_of(head.name)
        if session is None or not session.rewinds or not number:
            return False
        session.again = max(session.again, number)
        request = self._prompt_named(mark.prompt)
        if head.key:
            self._requests.receive(line, head, mark, mark.waiting)  # the event comes again, the request does not
        elif request is not None and head.name == _TURN_ENDED:
            request.generation = -1  # its response comes with the event
        return True

    def _event(
        self, line: bytes, head: MessageHead, mark: MessageMark, session: FollowedSession | None, number: int
    ) -> None:
        if session is not None and 0 < number <= session.again:
            if mark.own_prompt in self._kept and not self.wants_numbers and not session.loads:
                return  # the client has shown its own message
            frame = self._requests.shown(mark.request) if head.name == _REQUESTED else None
            if frame is not None:
                self._give_line(frame, session.id, number=number)
                return
            kept = self._kept.get(mark.prompt) if head.name == _TURN_ENDED else None
            if kept is not None and mark.outcome:
                frame = b'{"jsonrpc":"2.0","id":%b,%b}' % (kept.key, mark.outcome)
                self._give(frame, session.id, kept.id, number)
        super()._event(line, head, mark, session, number)

    def _answered(self, line: bytes, request: EditorRequest, mark: MessageMark) -> None:
        session = self._sessions.get(request.session_id or "")
        if request.name and session is not None and session.rewinds and mark.event:
            session.again = max(session.again, mark.event)
            request.generation = -1
            return
        super()._answered(line, request, mark)
        self._remember(request, mark.event)

    def _refused(self, line: bytes, request: EditorRequest, error: Raw | UnsetType) -> None:
        if request.generation < 0:
            return
        super()._refused(line, request, error)
        self._remember(request, request.number)

    def _finish(self, request: EditorRequest, outcome: bytes, number: int = 0) -> None:
        super()._finish(request, outcome, number)
        self._remember(request, number)

    def _remember(self, request: EditorRequest, number: int) -> None:
        """Remember a prompt that was answered with an event, without its text."""
        if self._keeps_responses and request.name and number:
            request.frame = b""
            self._kept[request.name] = request
            while len(self._kept) > RESPONSES_KEPT:
                del self._kept[next(iter(self._kept))]


class _LinkEnd:
    """The sink of a link: its frames are given one by one, so nothing but its end arrives here."""

    def __init__(self, link: RoutedLink, client: LinkedClient) -> None:
        self._link = link
        self._client = client

    def block_received(self, block: Frame) -> None:
        """Take nothing."""

    def connection_lost(self, error: ConnectionClosed) -> None:
        self._client.link_lost(self._link)
