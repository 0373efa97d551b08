"""The path of every event of a joint session: into the journal, then to the client. Nothing is shown that is not stored.

A caller does not wait for the disk: what has gathered while one write was under way is written together, and shown in the order in
which it came. `settled` waits until all of it has been; a request to the client and the response of a turn come after it.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from msgspec import Raw

from antiphon.aio import NO_WAIT
from antiphon.duet.history.events import (
    ClearEvent,
    Event,
    HistoryView,
    PromptEvent,
    UpdateEvent,
    now,
    pack,
    unpack,
    update_event,
)
from antiphon.duet.history.summary import SessionSummary
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from antiphon.store.errors import UNSAVED, NoSuchSession, StoreError

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.journal.base import Journal, Lease
    from antiphon.store.sessions import SessionStore

__all__ = ["OURS", "JointHistory", "explained", "failure_of"]

_log = logging.getLogger(__name__)

OURS: Final = "antiphon"
"""The engine under which our sessions are stored; engines that store their own there have their names."""

WRITE_BUFFER: Final = 4 * 1024 * 1024
"""Bytes that may wait for the disk before callers have to wait, too."""

UNSTORED_BUFFER: Final = 64 * 1024 * 1024
"""Bytes that are kept in memory while they cannot be stored, as on a full disk. Beyond it the history has a gap, which is marked."""

RETRY: Final = 2.0
"""Seconds between two tries to store what could not be stored."""


class _PendingEvent(NamedTuple):
    """Something on its way: the event to be stored, the update to be shown, and a future for a caller that waits."""

    event: bytes | None
    update: v1.Update | None
    done: asyncio.Future[None] | None = None


class JointHistory:
    """The events of one joint session. Its row in the store is made with the first event.

    `read` gives all of it, `summary` a compact form for engines that missed some of it.
    """

    def __init__(
        self,
        store: "SessionStore",
        journal: "Journal",
        lease: "Lease",
        session: "AgentSession",
        summary: SessionSummary,
    ) -> None:
        self._store = store
        self._journal = journal
        self._lease = lease
        self._session = session
        self.summary = summary
        self.empty = True
        """Whether nothing is stored yet: an empty session leaves no trace."""
        self.silent = False
        """Whether updates are only stored, because the client does not want to see them."""
        self.title: str | None = None
        """The title of the session; None: it has none yet."""
        self.failed = False
        """Whether something could not be stored when it was to be. It may have been stored since."""
        self._view: HistoryView | None = None
        self._stored_title: str | None = None
        self._numbers = itertools.count(1)
        self._series = os.urandom(3).hex()
        self._waiting: list[_PendingEvent] = []
        self._size = 0
        self._writer: asyncio.Task[None] | None = None
        self._late: list[bytes] = []
        """Events that were shown and could not be stored yet, in order."""
        self._late_size = 0
        self._left_out = 0
        """Events after those for which there was no space in memory."""
        self._reason: Exception | None = None
        """Why the last try to store them failed."""
        self._retry: asyncio.TimerHandle | None = None
        self._closing = False
        self._is_due = False
        self._reported_unsaved = False
        """Whether the user was shown in this turn that something is not stored."""

    # Reading.

    async def read(self) -> HistoryView:
        """All events since the user last began afresh: the view that is shared while a session is opened, or a new one."""
        if self._view is not None:
            return self._view
        await self.settled()
        if self.empty:
            return HistoryView()
        stored: list[bytes] = []
        number = 0
        while page := await self._journal.read(self._session.id, number):
            stored += [entry.data for entry in page]
            number = page[-1].number
        return HistoryView(unpack(stored))

    async def begin_sharing(self) -> HistoryView:
        """Read the history once: until `end_sharing` everything that reads it gets this view, to which new events are added."""
        view = self._view = await self.read()
        for step in view:
            self.summary.add(*step)
        return view

    def end_sharing(self) -> None:
        """Let go of the shared view: it has the whole history in memory."""
        self._view = None

    # Updates and events.

    def send(self, update: "v1.Update", engine: str = "") -> Awaitable[None]:
        """Show an update, once it is stored. Await it: it waits while the disk or the client is slow."""
        if isinstance(update, v1.SettingsUpdate):
            return self.send_unstored(update)
        raw = Raw(encode(update))
        event = UpdateEvent(now(), raw, engine)
        if engine:
            self.summary.add_update(engine, update)
        if self._view is not None:
            self._view.add(event, update)
        # The client gets the bytes that are stored: encoded once, and the same for ever.
        return self._put(pack(event), None if self.silent else cast("v1.Update", raw))

    def send_unstored(self, update: "v1.Update") -> Awaitable[None]:
        """Show an update that is not stored, in its position among the others."""
        return self._put(None, update)

    def note(self, event: Event) -> None:
        """Store an event of which there is nothing to show."""
        self.summary.add(event)
        if self._view is not None:
            self._view.add(event)
        _ = self._put(pack(event), None)

    def restart(self) -> None:
        """Begin afresh: earlier events are no longer part of this session."""
        self.summary.add(ClearEvent(now()))
        self.empty = True
        self.title = self._stored_title = None

    def settled(self) -> Awaitable[None]:
        """Wait until everything sent so far is stored and shown. What is sent meanwhile is not waited for."""
        if self._writer is None:
            return NO_WAIT
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_PendingEvent(None, None, done))
        return done

    # Messages of our own.

    def new_id(self) -> str:
        """The id of a message that no other has."""
        return f"antiphon-{self._series}-{next(self._numbers)}"

    async def message(self, text: str) -> None:
        """Show a message of our own."""
        await self.send(v1.AgentMessageChunk(v1.TextBlock(text), self.new_id()))

    async def notice(
        self,
        title: str,
        description: str | None = None,
        severity: v1.NoticeSeverity = v1.NoticeSeverity.INFO,
        *,
        stored: bool = True,
    ) -> None:
        """Show the user something. A client without notices gets it as a message. What only matters now is not stored."""
        update = _notice_update(self._session, title, description, severity, self.new_id())
        await (self.send(update) if stored else self.send_unstored(update))

    async def report(self, engine_title: str, error: AcpError, *, stored: bool = True) -> None:
        """Show that an engine failed."""
        await self.notice(*failure_of(engine_title, error), v1.NoticeSeverity.ERROR, stored=stored)

    def note_failure(self, engine_title: str, error: AcpError) -> None:
        """Store that an engine failed, for readers of the history: the client gets it as the response."""
        update = v1.NoticeUpdate(v1.NoticeSeverity.ERROR, *failure_of(engine_title, error))
        self.note(UpdateEvent(now(), Raw(encode(update))))

    async def as_user(self, text: str, by: str) -> None:
        """Show a prompt that we give to the engines for the user."""
        event = PromptEvent(now(), [v1.TextBlock(text)], self.new_id(), by)
        self.note(event)
        await self.send_unstored(v1.UserMessageChunk(v1.TextBlock(text), event.message_id))

    async def entitle(self, title: str, *, stored: bool = True) -> None:
        """Give the session a title, and store it unless it is the stored one."""
        if title == self.title:
            return
        self.title = title
        await self.send(v1.SessionInfoUpdate(title=title))
        if stored:
            await self.store_title()
        else:
            self._stored_title = title

    async def store_title(self) -> None:
        """Store the title, once there is something that it could be the title of."""
        if self.title is None or self.title == self._stored_title:
            return
        await self.settled()
        if self.empty:
            return
        try:
            await self._store.rename(self._session.id, self.title)
            self._stored_title = self.title
        except StoreError as error:
            await self.unsaved(error)

    # Writing.

    def turn_begins(self) -> None:
        """A turn begins: if something cannot be stored, the user is shown that again."""
        self._reported_unsaved = False
        if self._late:
            self._try_again()

    async def close(self) -> None:
        """Wait for everything, and try a last time to store what could not be stored."""
        self._closing = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._late:
            self._try_again()
        await self.settled()
        if self._late:
            _log.error("session %s: %d events were not stored: %s", self._session.id, len(self._late), self._reason)

    def _put(self, event: bytes | None, update: "v1.Update | None") -> Awaitable[None]:
        self._waiting.append(_PendingEvent(event, update))
        if event is not None:
            self._size += len(event)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write(), name="history")
        return NO_WAIT if self._size < WRITE_BUFFER else self.settled()

    def _try_again(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._retry, self._is_due = None, True
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write(), name="history")

    async def _write(self) -> None:
        batch: list[_PendingEvent] = []
        try:
            while self._waiting or self._is_due:
                batch, self._waiting = self._waiting, []
                self._size = 0
                events = [item.event for item in batch if item.event is not None]
                if events or self._is_due:
                    await self._store_events(events)
                await self._show(batch)
        finally:
            self._writer = None
            for item in (*batch, *self._waiting):  # whatever happened here, no caller waits for ever
                if item.done is not None and not item.done.done():
                    item.done.set_result(None)

    async def _show(self, batch: list[_PendingEvent]) -> None:
        session = self._session
        for _, update, done in batch:
            if done is not None and not done.done():
                done.set_result(None)
            if update is None:
                continue
            try:
                if (wait := session.update(update)) is not NO_WAIT:
                    await wait
            except AcpError as error:  # the client is gone or the session closed; what follows is stored all the same
                _log.debug("an update was not shown: %s", error)
            except Exception:  # one that has no JSON form: the next ones must not suffer
                _log.exception("an update could not be shown")

    async def _store_events(self, events: list[bytes]) -> None:
        """Store events. What cannot be stored is shown all the same, kept in memory, and tried again soon."""
        due, self._is_due = self._is_due, False
        behind = bool(self._late)
        if not events and not behind:
            return
        if not behind or due:
            stored = [*self._late, *self._gap(), *events] if behind else events
            try:
                try:
                    await self._journal.append(self._lease, stored)
                except NoSuchSession:
                    await self._create(stored)
            except Exception as error:
                self._reason = error
                self.failed = True
                if self._retry is None and not self._closing:
                    self._retry = asyncio.get_running_loop().call_later(RETRY, self._try_again)
            else:
                self.empty = False
                if behind:
                    await self._caught_up()
                return
        self._keep_late(events)
        if self._reason is not None:
            await self.unsaved(self._reason)

    async def _caught_up(self) -> None:
        """Everything that could not be stored is stored."""
        missing, self._reason = self._left_out, None
        self._late, self._late_size, self._left_out = [], 0, 0
        _log.info("session %s is stored again", self._session.id)
        lost = f"{missing} updates are missing in it" if missing else "Nothing of it is missing"
        await self._notice_now("This session is saved again", f"{lost}.")

    def _keep_late(self, events: list[bytes]) -> None:
        for event in events:
            if self._left_out or self._late_size + len(event) > UNSTORED_BUFFER:
                self._left_out += 1
            else:
                self._late.append(event)
                self._late_size += len(event)

    def _gap(self) -> list[bytes]:
        """The text that marks missing events in the history."""
        if not self._left_out:
            return []
        text = f"*{self._left_out} updates are missing here*: they could not be stored.\n\n"
        return [pack(update_event(v1.AgentMessageChunk(v1.TextBlock(text), _new_id())))]

    async def _create(self, events: list[bytes]) -> None:
        """Create the session with its first events."""
        session = self._session
        if not self.empty:  # the earlier history is gone, and this begins a new one
            _log.warning("session %s was deleted while it was open", session.id)
        await self._store.create(session.id, OURS, session.cwd, session.directories, client=session.client.name)
        await self._journal.append(self._lease, events)

    async def unsaved(self, error: Exception) -> None:
        """Show the user, once in each turn, that something cannot be stored, why, and what becomes of it."""
        self.failed = True
        if self._reported_unsaved:
            return
        self._reported_unsaved = True
        _log.error("session %s cannot be stored: %s", self._session.id, error)
        sentence, hint = sentence_and_hint(error)
        rest = "New events are kept in memory while the agent runs, and stored as soon as that works"
        if self._left_out:
            rest = f"{self._left_out} updates are lost, because there is no more space for them in memory"
        await self._notice_now("This session is not being saved", f"{sentence}. {rest}{f': {hint}' if hint else ''}.")

    async def _notice_now(self, title: str, description: str) -> None:
        """Show something at once: it is not part of the history."""
        session = self._session
        severity = v1.NoticeSeverity.WARNING if self._reason is not None else v1.NoticeSeverity.INFO
        if session.closed:
            return
        try:
            await session.update(_notice_update(session, title, description, severity, _new_id(), UNSAVED))
        except Exception:  # a client that is gone
            _log.debug("a notice could not be shown: %s", title)


def _new_id() -> str:
    return f"antiphon-{os.urandom(6).hex()}"


def _notice_update(
    outer: "AgentSession",
    title: str,
    description: str | None,
    severity: v1.NoticeSeverity,
    id: str,
    meta: dict[str, dict[str, bool]] | None = None,
) -> v1.Update:
    """A notice as the client can show it: one without notices gets a message with this id."""
    if outer.client.shows_notices:
        return v1.NoticeUpdate(severity, title, description, meta=meta)
    text = f"*{title}*: {description}\n\n" if description else f"*{title}*\n\n"
    return v1.AgentMessageChunk(v1.TextBlock(text), id)


def failure_of(engine_title: str, error: AcpError) -> tuple[str, str | None]:
    """Return the sentence that reports the error of an engine, with its name, and the hint if there is one."""
    sentence, hint = explained(error)
    return sentence if sentence.startswith(engine_title) else f"{engine_title} failed: {sentence}", hint or None


def explained(error: AcpError) -> tuple[str, str]:
    """The sentence of an error, and its hint; empty: it has none."""
    sentence, hint = sentence_and_hint(error)
    return sentence, hint or ""
