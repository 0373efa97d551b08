"""A client that follows a session: every event once, in order, without a gap, however slowly it reads.

An attachment has a cursor, the number of the last event that its client was given. While it is live it is given events when they are
stored. A client that does not read as fast is not live: nothing is kept for it in memory, and it is given the rest from the journal.
"""

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from antiphon.errors import ConnectionClosed
from antiphon.gateway.events import (
    ANSWER,
    END,
    PROMPT,
    REQUEST,
    UPDATE,
    HubEvent,
    event_notification,
    member,
    merged,
    notice,
    numbered,
    numbered_event,
    parse_event,
    with_id,
)
from antiphon.protocol.v1.opt_in import is_unwanted, may_be_opt_in
from antiphon.rpc.envelope import RequestId
from antiphon.store.errors import StoreError
from antiphon.transports.base import OUTPUT_HIGH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.clients.capabilities import ClientOffer
    from antiphon.gateway.session import HubSession

__all__ = ["EventRun", "SessionAttachment", "send_response"]

PAGE: Final = 256
"""Events read from the journal at once for a client that catches up."""

_log = logging.getLogger(__name__)


class EventRun:
    """Events that were stored together, with what all clients share of them."""

    __slots__ = ("_block", "_has_booleans", "_has_opt_in", "at", "events", "first", "last")

    def __init__(self, first: int, events: "Sequence[bytes]", at: float = 0.0) -> None:
        self.first = first
        self.at = at
        """Seconds since 1970 at their commit."""
        self.last = first + len(events) - 1
        self.events = events
        self._block: bytes | None = None
        self._has_booleans: bool | None = None
        self._has_opt_in: bool | None = None

    @property
    def has_booleans(self) -> bool:
        """Whether an option that is a switch may be among them."""
        if self._has_booleans is None:
            self._has_booleans = b'"boolean"' in self.block
        return self._has_booleans

    @property
    def has_opt_in(self) -> bool:
        """Whether an update that some clients did not ask for may be among them."""
        if self._has_opt_in is None:
            self._has_opt_in = may_be_opt_in(self.block)
        return self._has_opt_in

    def fits(self, offer: "ClientOffer") -> bool:
        """Whether a client gets all of them as they are."""
        return (offer.booleans or not self.has_booleans) and (not offer.unwanted or not self.has_opt_in)

    @property
    def block(self) -> bytes:
        """All of them as lines, if they are updates and nothing else; empty if not."""
        if self._block is None:
            only = not any(65 <= event[0] <= 90 for event in self.events)
            self._block = b"\n".join(self.events) + b"\n" if only else b""
        return self._block


def send_response(client: "RemoteClient", turn: str, frame: bytes, session_id: str) -> None:
    """Send the response of a turn to the prompt of a client that began it, unless it was sent."""
    asked = client.ended(turn, replayed=True)
    if asked is not None:
        id, written = asked
        client.put(with_id(frame, written), session_id, id)


class SessionAttachment:
    """One client on one session."""

    __slots__ = (
        "_catching_up",
        "_deferred",
        "_replay",
        "client",
        "cursor",
        "first",
        "is_live",
        "is_over",
        "merged",
        "session",
    )

    def __init__(
        self,
        client: "RemoteClient",
        session: "HubSession",
        cursor: int,
        *,
        replay: bool = False,
        before: "SessionAttachment | None" = None,
    ) -> None:
        """`before` is the attachment of the same client that ends now: its responses wait here for their events."""
        self.client = client
        self.session = session
        self.cursor = cursor
        """The number of the last event that the client was given, or that is not for it."""
        self.first: int = cursor if before is None else min(cursor, before.first)
        """The number of the event after which this client began to follow the session."""
        self.is_live = False
        self.is_over = False
        self.merged = client.offer.merged
        """Whether pieces of one message are sent as one while the client catches up."""
        self._replay = session.last if replay else 0
        """Up to this number the client gets its own messages too, and requests that wait come after the response."""
        self._deferred: deque[tuple[int, Callable[[], None]]] = deque() if before is None else before.hand_over()
        self._catching_up = False

    def start(self) -> None:
        """Give the client what comes after the cursor, from now on."""
        if self.is_over:
            return
        if not self._replay:
            self.show_pending()
        if self.cursor >= self.session.last:
            self._go_live()
        else:
            self._catch_up()

    def respond(self, frame: bytes, id: RequestId, after: int | None = None) -> None:
        """Send a response once the client has all events up to a number, those recorded until now if none is given."""
        number = self.session.recorded if after is None else after
        if self.is_over or (self.cursor >= number and not self._deferred):
            self.client.put(frame, self.session.id, id)
        else:
            self._deferred.append((number, lambda: self.client.put(frame, self.session.id, id)))

    def respond_to_turn(self, turn: str, frame: bytes) -> None:
        """Send the response of a turn whose end was stored last, unless it was sent with that event."""
        self._deferred.append((self.session.last, lambda: send_response(self.client, turn, frame, self.session.id)))
        self._send_deferred()

    def drop_after(self, number: int) -> None:
        """Let no response wait for events after this one: they were dropped."""
        self._deferred = deque((min(after, number), send) for after, send in self._deferred)
        self._send_deferred()

    def hand_over(self) -> "deque[tuple[int, Callable[[], None]]]":
        """End, and return the responses that wait for another attachment of the same client."""
        self.is_over = True
        waiting, self._deferred = self._deferred, deque()
        return waiting

    def end(self) -> None:
        """Follow the session no more. Responses that wait are sent: their events may never come."""
        self.is_over = True
        for _, send in self._deferred:
            send()
        self._deferred.clear()

    # What was stored.

    def tell(self, title: str, description: str) -> None:
        """Show a notice of the gateway, which is no event: it is not stored."""
        self.client.put(notice(self.session.id, title, description), self.session.id)

    def show(self, run: EventRun) -> None:
        """Give the client events that have just been stored, if it is live."""
        if not self.is_live:
            return
        if self.cursor >= run.first:  # some were read from the journal already
            self._give(run.events[self.cursor - run.first + 1 :], run.at)
        elif run.block and self.client.takes_blocks and run.fits(self.client.offer):
            self.client.put_block(run.block)
            self.cursor = run.last
        else:
            self._give(run.events, run.at)
        self._after()

    def _give(self, events: "Sequence[bytes]", at: float) -> None:
        for event in events:
            self.cursor += 1
            self._render(self.cursor, event, at)

    def _after(self) -> None:
        self._send_deferred()
        if self.client.transport.unsent > self.session.hub.limits.unsent:
            self.is_live = False
            self._catch_up()

    def _send_deferred(self) -> None:
        while self._deferred and self._deferred[0][0] <= self.cursor:
            self._deferred.popleft()[1]()

    # From the journal.

    def _catch_up(self) -> None:
        if not self._catching_up:
            self._catching_up = True
            self.session.hub.run(self._read_on())

    async def _read_on(self) -> None:
        try:
            while await self._has_room() and self.cursor < self.session.last:
                page = await self.session.hub.journal.read(self.session.key, self.cursor, PAGE)
                if not page and not self.is_over:
                    raise StoreError(f"session `{self.session.id}` has no events after {self.cursor}")
                for entry in merged(page) if self.merged else page:
                    if not await self._has_room():
                        break
                    self.cursor = entry.number
                    self._render(*entry)
                self._send_deferred()
        except ConnectionClosed:
            return
        except Exception as error:  # with any of them the client would wait for ever
            _log.error("the journal of session `%s` cannot be read: %s", self.session.id, error)
            self.client.close_soon("the history cannot be read")
            return
        finally:
            self._catching_up = False
        if not self.is_over:
            self._go_live()

    async def _has_room(self) -> bool:
        """Wait until the client has read enough. False: it follows the session no more."""
        if self.client.transport.unsent >= OUTPUT_HIGH:
            await self.client.transport.drain()
        return not self.is_over

    def _go_live(self) -> None:
        self.is_live = True
        self.client.caught_up(self.session.id)
        self._after()
        if self._replay and self.is_live:
            self._replay = 0
            self.show_pending()

    def show_pending(self) -> None:
        """Ask the client what waits for an answer and was not shown to this connection. It has seen the event: no number."""
        for pending in self.session.requests.waiting():
            if 0 < pending.number <= self.cursor:
                self.client.ask(pending, 0)

    # One event.

    def _render(self, number: int, data: bytes, at: float) -> None:
        """Give one event to the client, in the form that it understands."""
        event = parse_event(data)
        if event.kind == UPDATE and is_unwanted(data, self.client.offer.unwanted):
            return
        at = at or event.header.time
        if event.kind == UPDATE:
            frame = numbered_event(self.session.id, data, number, at) if self.client.offer.numbers else data
            self.client.put(frame, self.session.id, number=number)
        elif event.kind == PROMPT:
            own = event.header.connection == self.client.id and number > self._replay
            if self.client.offer.numbers or not own:
                frame = (
                    numbered_event(self.session.id, event.frame, number, at)
                    if self.client.offer.numbers
                    else event.frame
                )
                self.client.put(frame, self.session.id, number=number)
        elif event.kind == REQUEST:
            self._request(number, event, at)
        elif event.kind == END and self._end(number, event, at):
            pass
        else:
            if event.kind == ANSWER:
                self.client.cancel_request(event.header.request)
            if self.client.offer.numbers:
                self._notify(number, event, at)

    def _request(self, number: int, event: HubEvent, at: float) -> None:
        pending = self.session.requests.find(event.header.request)
        held = number <= self._replay and not self.client.offer.numbers
        again = pending is not None and self.client in pending.shown
        if pending is not None and not held and self.client.ask(pending, number, at) and not again:
            return
        if self.client.offer.numbers:
            self._notify(number, event, at)

    def _end(self, number: int, event: HubEvent, at: float) -> bool:
        """Send the response to the client whose prompt it was. False: it is not from this connection."""
        asked = self.client.ended(event.header.turn, replayed=number <= self._replay)
        if asked is None:
            return False
        id, written = asked
        frame = with_id(event.frame, written)
        if self.client.offer.numbers and (member(frame, "result") or b"").startswith(b"{"):
            frame = numbered(frame, number, ("result", "_meta", "antiphon", "number"), at=at)
        elif self.client.offer.numbers:
            self._notify(number, event, at)  # an error has no place for the number
        self.client.put(frame, self.session.id, id, number=number)
        return True

    def _notify(self, number: int, event: HubEvent, at: float) -> None:
        """Send an event that the protocol has no message for, to a client that asked for numbers."""
        frame = event_notification(self.session.id, number, event, at)
        if frame is not None:
            self.client.put(frame, self.session.id, number=number)
