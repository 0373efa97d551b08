"""The road of a session's words: into the store, then to the client. Nothing is shown that is not on the disk.

Whoever speaks does not wait for the disk: what has gathered while one write was under way is written together, and shown in the order in
which it came. `settled` waits until all of it has been; a question to the client and the answer of a turn come after it.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, cast

from antiphon.connection.wire import NO_WAIT
from antiphon.duet.events import Cleared, Event, now, pack, shown
from antiphon.duet.minutes import Minutes
from antiphon.protocol import v1
from antiphon.store.errors import NoSuchSession

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.store.sessions import SessionStore

__all__ = ["OURS", "Journal"]

_log = logging.getLogger(__name__)

OURS: Final = "antiphon"
"""What our sessions are kept under in the store; engines that keep their own there have their names."""

ROOM: Final = 4 * 1024 * 1024
"""Bytes that may wait for the disk before those who speak have to wait, too."""

_PASSING: Final = (
    v1.AvailableCommandsUpdate,
    v1.ConfigOptionUpdate,
    v1.CurrentModeUpdate,
    v1.CurrentModelUpdate,
    v1.SessionInfoUpdate,
)
"""How things stand now: told, and not kept, because they are told anew whenever the session is opened."""


class _Item:
    """Something on its way: what is kept of it, what is shown, and who waits for that."""

    __slots__ = ("done", "kept", "update")

    def __init__(
        self, kept: bytes | None, update: "v1.Update | None", done: "asyncio.Future[None] | None" = None
    ) -> None:
        self.kept = kept
        self.update = update
        self.done = done


class Journal:
    """Of one session. Its row in the store is made with the first event."""

    def __init__(self, store: "SessionStore", session: "Session", minutes: Minutes) -> None:
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
        self._late: list[bytes] = []  # what could not be written when it was said
        self._unsaved = False

    def tell(self, update: "v1.Update", engine: str = "") -> Awaitable[None]:
        """Show an update, once it is on the disk. Await it: it waits while the disk or the client is slow."""
        if isinstance(update, _PASSING):
            return self.pass_on(update)
        event = shown(update, engine)
        self.minutes.hear(event)
        # The client gets the bytes that were kept: encoded once, and the same for ever.
        return self._put(_Item(pack(event), None if self.silent else cast("v1.Update", event.update)))

    def pass_on(self, update: "v1.Update") -> Awaitable[None]:
        """Show an update that nobody wants to see again, in its place among the others."""
        return self._put(_Item(None, update))

    def restart(self) -> None:
        """What was said is no part of this session any more."""
        self.minutes.hear(Cleared(now()))
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

    async def _write(self) -> None:
        batch: list[_Item] = []
        try:
            while self._waiting:
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
            except Exception:  # one that has no JSON form, or a client that is gone: the next ones must not suffer
                _log.exception("an update could not be shown")

    async def _keep(self, kept: list[bytes]) -> None:
        """Write it down. What cannot be written is shown all the same, and tried again with what comes next."""
        kept = [*self._late, *kept]
        if not kept:
            return
        try:
            await self._append(kept)
            self._late = []
        except Exception as error:
            self._late = kept if sum(map(len, kept)) < ROOM else []
            await self.unsaved(error)

    async def _append(self, kept: list[bytes]) -> None:
        session = self._session
        if self.empty and await self._store.get(session.id) is None:
            await self._store.create(session.id, OURS, session.cwd, session.directories)
        try:
            await self._store.append(session.id, kept)
        except (
            NoSuchSession
        ):  # somebody deleted it while it was open: what was said so far is gone, and this begins it anew
            _log.warning("session %s was deleted while it was open", session.id)
            await self._store.create(session.id, OURS, session.cwd, session.directories)
            await self._store.append(session.id, kept)
        self.empty = False

    async def unsaved(self, error: Exception) -> None:
        """Something of the session cannot be kept: the user is told, once."""
        _log.error("session %s cannot be kept: %s", self._session.id, error)
        if not self._unsaved:
            self._unsaved = True
            sentence, _, hint = str(error).partition("\nhint: ")
            await self._session.notice("This session is not being saved", hint or sentence, v1.NoticeSeverity.WARNING)
