"""Session updates, read in whole blocks of lines and typed in one step, and sent from templates.

A block with anything unusual in it (an answer, another method, a dialect, a broken line) is refused by the decoder before any of it
is delivered, and then goes line by line. So nothing is handled twice and nothing out of order.
"""

from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET, Raw, UnsetType, defstruct

from antiphon.connection.inbox import Inbox
from antiphon.connection.outbox import Outbox
from antiphon.connection.reports import Unhandled
from antiphon.connection.router import Router
from antiphon.protocol.base import BAD_INPUT, Kind, decoder, encode
from antiphon.protocol.version import SessionUpdates, Template, Version
from antiphon.rpc.envelope import Frame, Line, Notification, Overlong, head_of_notification
from antiphon.transports.framing import lines_of

if TYPE_CHECKING:
    from msgspec.json import Decoder

__all__ = ["SessionSender", "Updates"]

_MARK_WITHIN: Final = 64
"""The method stands this near to the start of a frame in every peer we know that sends many."""

_ID_FIRST: Final = b'"2.0","id"'
"""How a frame with an id begins in every peer we know that writes compact JSON. Elsewhere it costs time, not correctness."""


LONG_RUN: Final = 64
"""Updates of one session in a row that are given to their reader at once: later they would have left the processor's cache."""


@cache
def _frame_decoder(version: Version) -> "Decoder[Kind]":
    """The decoder of whole frames, made on first use: an agent only sends updates, and start-up counts."""
    frame = defstruct(
        "UpdateFrame",
        [
            ("method", Literal[version.update.name]),
            ("params", version.update.params),
            ("jsonrpc", Literal["2.0"] | UnsetType, UNSET),
            ("id", UnsetType, UNSET),  # no legal value: with an id it would be a request
        ],
        gc=False,
    )
    return decoder(frame)


class Updates:
    """Delivers session updates: to the stream of the session if there is one, else to the router's handler."""

    def __init__(
        self,
        version: Version,
        router: Router,
        inbox: Inbox,
        outbox: Outbox,
        other: Callable[[Frame], None],
    ) -> None:
        self._version = version
        self._name = version.update.name
        self._mark = b'"%b"' % self._name.encode()
        self._decoder: Decoder[Kind] | None = None
        self._router = router
        self._inbox = inbox
        self._outbox = outbox
        self._other = other
        self.held: list[Kind] = []
        """What `_hold` keeps."""
        self._held_size = 0
        inbox.before_change = self.deliver_held
        self._mixed = False  # the last block held more than updates: the next one probably does too

    @property
    def wanted(self) -> bool:
        """Whether anything here reads updates. If not they are notifications like any other, with their bytes as they came."""
        return self._name in self._router.notices or bool(self._inbox.streams)

    def expect(self) -> None:
        """Make the decoder now rather than with the first update: it takes some milliseconds."""
        if self._decoder is None and self.wanted:
            self._decoder = _frame_decoder(self._version)

    def _made(self) -> "Decoder[Kind]":
        self._decoder = _frame_decoder(self._version)
        return self._decoder

    def block_received(self, block: Frame) -> None:
        """Take lines from the transport. Updates are read in blocks where that is possible; everything else line by line.

        Lines that are not well-formed updates go to the connection, all in the order of the wire.
        """
        if (
            type(block) is bytes
            and block.find(b"\n") + 1 == len(block)
            and block.find(self._mark, 0, _MARK_WITHIN) >= 0
            and (streams := self._inbox.streams)
            and not self._outbox.taps
        ):
            # One update, as `_line` takes it, with few calls: see `Backlog`.
            if self.held:
                self.deliver_held()
            try:
                update: SessionUpdates = (self._decoder or self._made()).decode(block).params
            except BAD_INPUT:
                self._other(block)
                return
            if backlogs := streams.get(update.session_id):
                backlogs[0].push_alone(update, len(block))
            else:
                self.one(update, len(block))
        elif isinstance(block, Overlong):
            self.deliver_held()
            if self._outbox.taps:
                self._outbox.show("in", block.head)
            self._other(block)
        else:
            self._lines(block)

    def _lines(self, block: Line) -> None:
        if self._outbox.taps:
            self.deliver_held()
            for line in lines_of(block):
                self._outbox.show("in", line)
                if not self._line(line):
                    self._other(line)
        elif block.find(b"\n") + 1 < len(block):
            self._block(block)
        else:  # one line, not copied: it may be a file of 50 MiB
            self.deliver_held()
            if not self._line(block):
                self._other(block)

    def _block(self, block: Line) -> None:
        if not self.wanted:
            for line in lines_of(block):
                self._other(line)
            return
        if not self._mixed and self._run(block):
            return
        self._mixed = False
        for piece in _pieces(block):
            if not self._run(piece):
                self._mixed = True
                self.deliver_held()
                for line in lines_of(piece):
                    if not self._line(line):
                        self._other(line)

    def _run(self, lines: Line) -> bool:
        try:
            frames = (self._decoder or self._made()).decode_lines(lines)
        except BAD_INPUT:
            return False
        self._deliver(frames, len(lines))
        return True

    def _line(self, line: Line) -> bool:
        """Take one line if it is a well-formed update. False: it was not taken."""
        if line.find(self._mark, 0, _MARK_WITHIN) < 0 or not self.wanted:
            return False
        try:
            update: SessionUpdates = (self._decoder or self._made()).decode(line).params
        except BAD_INPUT:
            return False
        self.one(update, len(line))
        return True

    def _deliver(self, frames: list[Kind], size: int) -> None:
        found = self._router.notices.get(self._name)
        if found is None or self._inbox.streams:
            if len(frames) > 1 and frames[0].params.session_id != frames[1].params.session_id:
                self._hold(frames, size)
            else:
                self.deliver_held()
                self._distribute(frames, size // (len(frames) or 1))
            return
        handle = found[1]
        rest = iter(frames)
        while True:  # a handler that raises costs its own update only
            try:
                for frame in rest:
                    handle(frame.params)
            except Exception as error:
                self._outbox.handler_failed(self._name, error)
            else:
                return

    def _hold(self, frames: list[Kind], size: int) -> None:
        """Keep a block of many sessions until the next step of the loop: there are few updates for each, and more to be read now."""
        if not self.held:
            self._outbox.transport.loop.call_soon(self.deliver_held)
        self.held += frames
        self._held_size += size

    def deliver_held(self) -> None:
        """Deliver what was kept: before what came later, and before the streams change."""
        if self.held:
            frames, size = self.held, self._held_size
            self.held, self._held_size = [], 0
            self._distribute(frames, size // len(frames), at_once=True)

    def _distribute(self, frames: list[Kind], size: int, *, at_once: bool = False) -> None:
        """Deliver updates of which some have a stream: those of one stream together, which costs half as much as one by one."""
        streams = self._inbox.streams
        runs: dict[str, list[SessionUpdates]] = {}
        last, run = "", list[SessionUpdates]()
        for frame in frames:
            update = frame.params
            session_id = update.session_id
            if session_id == last:  # cheaper than to look it up
                run.append(update)
            elif (found := runs.get(session_id)) is not None:
                last, run = session_id, found
                run.append(update)
            elif session_id in streams:
                last, run = session_id, [update]
                runs[session_id] = run
            else:
                self.one(update, size)
        for session_id, run in runs.items():
            if backlogs := streams.get(session_id):
                backlogs[0].push(run, size * len(run), at_once=at_once or len(run) >= LONG_RUN)
            else:  # a handler of another session has just ended it
                for update in run:
                    self.one(update, size)

    def one(self, update: SessionUpdates, size: int) -> None:
        """Deliver one update that counts for `size` bytes while it waits."""
        streams = self._inbox.streams.get(update.session_id)
        if streams:
            streams[0].push((update,), size)
        elif (found := self._router.notices.get(self._name)) is not None:
            try:
                found[1](update)
            except Exception as error:
                self._outbox.handler_failed(self._name, error)
        else:
            self._outbox.report(Unhandled(Notification(self._name, Raw(encode(update))), "no handler"))


def _pieces(block: Line) -> Iterator[Line]:
    """A block cut at the lines that are probably questions or answers, so that the runs of updates between them stay whole."""
    start = 0
    while (found := block.find(_ID_FIRST, start)) >= 0:
        begin = block.rfind(b"\n", start, found) + 1 or start
        end = block.find(b"\n", found) + 1 or len(block)
        if begin > start:
            yield block[start:begin]
        yield block[begin:end]
        start = end
    if start < len(block):
        yield block[start:]


# The updates that we send in one session, with everything encoded beforehand that does not change from one to the next.


class SessionSender:
    """Sends the updates of one session. Await each; like `Connection.notify`, they wait while the client is slow.

    A streaming agent does little else, so the methods are partial applications of one function and build no message objects.
    """

    update: Callable[[object], Awaitable[None]]
    """Send any update."""
    say: Callable[[str], Awaitable[None]]
    """Send a piece of the agent's message, as text."""
    think: Callable[[str], Awaitable[None]]
    """Send a piece of the agent's thoughts, as text."""

    def __init__(self, version: Version, outbox: Outbox, session_id: str) -> None:
        head, id = head_of_notification(version.update.name), encode(session_id)

        def sender(params: Template) -> Callable[[object], Awaitable[None]]:
            return outbox.sender(head + params.before % id, params.after + b"}\n", session_id)

        self.update = sender(version.params_update)
        self.say = sender(version.params_say)
        self.think = sender(version.params_think)
