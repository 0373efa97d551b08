"""The road of a session's words: into the store, then to the client. Nothing is shown that is not on the disk.

Whoever speaks does not wait for the disk: what has gathered while one write was under way is written together, and shown in the order in
which it came. `settled` waits until all of it has been; a question to the client and the answer of a turn come after it.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, cast

from antiphon.aio import NO_WAIT
from antiphon.duet.history.events import ClearEvent, Event, now, pack, update_event
from antiphon.duet.history.summary import SessionSummary
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.protocol import v1
from antiphon.store.errors import UNSAVED, NoSuchSession

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.store.sessions import SessionStore

__all__ = ["OURS", "HistoryWriter", "failure_of", "notice_update", "told"]

_log = logging.getLogger(__name__)

OURS: Final = "antiphon"
"""What our sessions are kept under in the store; engines that keep their own there have their names."""

ROOM: Final = 4 * 1024 * 1024
"""Bytes that may wait for the disk before those who speak have to wait, too."""

LATE_ROOM: Final = 64 * 1024 * 1024
"""Bytes that are kept in memory while they cannot be stored, as on a full disk. Beyond it the history has a gap, which says so."""

RETRY: Final = 2.0
"""Seconds between two tries to store what could not be stored."""


class _Item:
    """Something on its way: what is kept of it, what is shown, and who waits for that."""

    __slots__ = ("done", "kept", "update")

    def __init__(
        self, kept: bytes | None, update: "v1.Update | None", done: "asyncio.Future[None] | None" = None
    ) -> None:
        self.kept = kept
        self.update = update
        self.done = done


class HistoryWriter:
    """Of one session. Its row in the store is made with the first event."""

    def __init__(self, store: "SessionStore", session: "AgentSession", minutes: SessionSummary) -> None:
        self._store = store
        self._session = session
        self.minutes = minutes
        self.empty = True
        """Whether nothing was kept yet: a session in which nobody said anything leaves no trace."""
        self._waiting: list[_Item] = []
        self._size = 0
        self._writer: asyncio.Task[None] | None = None
        self.silent = False
        """Whether what is told is only kept: the client does not want to hear it."""
        self._late: list[bytes] = []
        """Events that were shown and could not be stored yet, in order."""
        self._late_size = 0
        self._left_out = 0
        """Events after those for which there was no room in memory."""
        self._reason: Exception | None = None
        """Why the last try to store them failed."""
        self.failed = False
        """Whether something could not be stored when it was to be. It may have been stored since."""
        self._retry: asyncio.TimerHandle | None = None
        self._closing = False
        self._is_due = False
        self._told_unsaved = False
        """Whether the user was told in this turn that something is not stored."""

    def tell(self, update: "v1.Update", engine: str = "") -> Awaitable[None]:
        """Show an update, once it is on the disk. Await it: it waits while the disk or the client is slow."""
        if isinstance(update, v1.SettingsUpdate):
            return self.pass_on(update)
        event = update_event(update, engine)
        self.minutes.hear(event)
        # The client gets the bytes that were kept: encoded once, and the same for ever.
        return self._put(_Item(pack(event), None if self.silent else cast("v1.Update", event.update)))

    def pass_on(self, update: "v1.Update") -> Awaitable[None]:
        """Show an update that nobody wants to see again, in its place among the others."""
        return self._put(_Item(None, update))

    def restart(self) -> None:
        """What was said is no part of this session any more."""
        self.minutes.hear(ClearEvent(now()))
        self.empty = True

    def note(self, event: Event) -> None:
        """Keep an event of which there is nothing to show."""
        self.minutes.hear(event)
        _ = self._put(_Item(pack(event), None))

    def show(self, event: Event, update: "v1.Update") -> Awaitable[None]:
        """Keep an event, and show the update that it will be told as."""
        self.minutes.hear(event)
        return self._put(_Item(pack(event), update))

    def _put(self, item: _Item) -> Awaitable[None]:
        self._waiting.append(item)
        self._size += len(item.kept or b"")
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write(), name="journal")
        return NO_WAIT if self._size < ROOM else self.settled()

    def settled(self) -> Awaitable[None]:
        """Wait until everything said so far is on the disk and shown. What is said meanwhile is not waited for."""
        if self._writer is None:
            return NO_WAIT
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Item(None, None, done))
        return done

    def turn_begins(self) -> None:
        """From now on the user is told again if something cannot be stored."""
        self._told_unsaved = False
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

    def _try_again(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._retry, self._is_due = None, True
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write(), name="journal")

    async def _write(self) -> None:
        batch: list[_Item] = []
        try:
            while self._waiting or self._is_due:
                batch, self._waiting = self._waiting, []
                self._size = 0
                await self._keep([item.kept for item in batch if item.kept is not None])
                await self._show(batch)
        finally:
            self._writer = None
            for item in (*batch, *self._waiting):  # whatever happened here, nobody waits for ever
                if item.done is not None and not item.done.done():
                    item.done.set_result(None)

    async def _show(self, batch: list[_Item]) -> None:
        for item in batch:
            if item.done is not None and not item.done.done():
                item.done.set_result(None)
            if item.update is None or self._session.closed:
                continue
            try:
                await self._session.update(item.update)
            except AcpError as error:  # the client is gone; what follows is stored all the same
                _log.debug("an update was not shown: %s", error)
            except Exception:  # one that has no JSON form: the next ones must not suffer
                _log.exception("an update could not be shown")

    async def _keep(self, kept: list[bytes]) -> None:
        """Store events. What cannot be stored is shown all the same, kept in memory, and tried again soon."""
        due, self._is_due = self._is_due, False
        behind = bool(self._late)
        if not kept and not (behind and due):
            return
        if not behind or due:
            try:
                await self._append([*self._late, *self._gap(), *kept])
            except Exception as error:
                self._reason = error
                self.failed = True
                if self._retry is None and not self._closing:
                    self._retry = asyncio.get_running_loop().call_later(RETRY, self._try_again)
            else:
                missing, self._reason = self._left_out, None
                self._late, self._late_size, self._left_out = [], 0, 0
                if behind:
                    _log.info("session %s is stored again", self._session.id)
                    lost = f"{missing} updates are missing in it" if missing else "Nothing of it is missing"
                    await self._notice("This session is saved again", f"{lost}.")
                return
        self._keep_late(kept)
        if self._reason is not None:
            await self.unsaved(self._reason)

    def _keep_late(self, kept: list[bytes]) -> None:
        for event in kept:
            if self._left_out or self._late_size + len(event) > LATE_ROOM:
                self._left_out += 1
            else:
                self._late.append(event)
                self._late_size += len(event)

    def _gap(self) -> list[bytes]:
        """What the history says where events are missing."""
        if not self._left_out:
            return []
        text = f"*{self._left_out} updates are missing here*: they could not be stored.\n\n"
        return [pack(update_event(v1.AgentMessageChunk(v1.TextBlock(text), _new_id())))]

    async def _append(self, kept: list[bytes]) -> None:
        session = self._session
        if self.empty and await self._store.get(session.id) is None:
            await self._create()
        try:
            await self._store.append(session.id, kept)
        except (
            NoSuchSession
        ):  # somebody deleted it while it was open: what was said so far is gone, and this begins it anew
            _log.warning("session %s was deleted while it was open", session.id)
            await self._create()
            await self._store.append(session.id, kept)
        self.empty = False

    async def _create(self) -> None:
        session = self._session
        await self._store.create(session.id, OURS, session.cwd, session.directories, client=session.client.name)

    async def unsaved(self, error: Exception) -> None:
        """Something of the session cannot be stored: the user is told, once in each turn, what is the matter and what becomes of it."""
        self.failed = True
        if self._told_unsaved:
            return
        self._told_unsaved = True
        _log.error("session %s cannot be stored: %s", self._session.id, error)
        sentence, hint = sentence_and_hint(error)
        rest = "What is said meanwhile is kept in memory while the agent runs, and stored as soon as that works"
        if self._left_out:
            rest = f"{self._left_out} updates are lost, because there is no more room for them in memory"
        await self._notice("This session is not being saved", f"{sentence}. {rest}{f': {hint}' if hint else ''}.")

    async def _notice(self, title: str, description: str) -> None:
        """Show something at once: it is no part of the history."""
        session = self._session
        severity = v1.NoticeSeverity.WARNING if self._reason is not None else v1.NoticeSeverity.INFO
        if session.closed:
            return
        try:
            await session.update(notice_update(session, title, description, severity, _new_id(), UNSAVED))
        except Exception:  # a client that is gone
            _log.debug("a notice could not be shown: %s", title)


def _new_id() -> str:
    return f"antiphon-{os.urandom(6).hex()}"


def notice_update(
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


def failure_of(who: str, error: AcpError) -> tuple[str, str | None]:
    """Return the sentence that reports the error of an engine, with its name, and the hint if there is one."""
    sentence, hint = told(error)
    return sentence if sentence.startswith(who) else f"{who} failed: {sentence}", hint or None


def told(error: AcpError) -> tuple[str, str]:
    """An error in a sentence for people, and what to do about it, if that is known."""
    sentence, hint = sentence_and_hint(error)
    return sentence, hint or ""
