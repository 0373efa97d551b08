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
from antiphon.store.errors import NoSuchSession, StoreError

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
    """Something on its way: what is kept of it, and what is shown."""

    __slots__ = ("kept", "update")

    def __init__(self, kept: bytes | None, update: "v1.Update | None") -> None:
        self.kept = kept
        self.update = update


class Journal:
    """Of one session. `begin` makes its row, with the first event."""

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

    async def settled(self) -> None:
        """Wait until everything said so far is on the disk and shown."""
        while self._writer is not None:
            await asyncio.wait([self._writer])

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self._size = 0
                await self._keep([item.kept for item in batch if item.kept is not None])
                await self._show(batch)
        finally:
            self._writer = None

    async def _show(self, batch: list[_Item]) -> None:
        for item in batch:
            if item.update is None or self._session.closed:
                continue
            try:
                await self._session.update(item.update)
            except Exception:  # one that has no JSON form, or a client that is gone: the next ones must not suffer
                _log.exception("an update could not be shown")

    async def _keep(self, kept: list[bytes]) -> None:
        if not kept:
            return
        session = self._session
        try:
            if self.empty:
                if await self._store.get(session.id) is None:
                    await self._store.create(session.id, OURS, session.cwd, session.directories)
                self.empty = False
            await self._store.append(session.id, kept)
        except (
            NoSuchSession
        ):  # somebody deleted it while it was open: what was said so far is gone, and this begins it anew
            self.empty = True
            _log.warning("session %s was deleted while it was open", session.id)
            await self._keep(kept)
        except StoreError as error:
            _log.error("what is said in session %s cannot be kept: %s", session.id, error)
            if not self._unsaved:
                self._unsaved = True
                sentence = str(error).partition("\n")[0]
                await session.notice("This session is not being saved", sentence, v1.NoticeSeverity.WARNING)
