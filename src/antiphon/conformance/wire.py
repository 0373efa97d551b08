"""One conversation from the checker's end: says exactly what it is told to say, hears everything, and believes nothing.

Knows JSON-RPC only as far as telling questions from answers, because what it hears may be anything.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from antiphon.errors import ConnectionClosed, ProcessDied
from antiphon.traffic.checker import Level, TrafficChecker, rules
from antiphon.traffic.entries import Direction, Entry, parse
from antiphon.transports.base import Transport

__all__ = ["Closed", "Wire"]

_log = logging.getLogger(__name__)

END_LIMIT: Final = 20.0
"""Seconds that the end of a peer may take; its own ladder is shorter."""

MOST_SILENCES: Final = 40
"""How many times as long as the silence should be one waits for it."""


MOST_HEARD: Final = 512 * 1024 * 1024
"""Bytes that are kept of what a peer says. Whoever says more floods us, and is ended: what it said until then is judged."""


def _matters(rule: str) -> bool:
    return rules()[rule].level is not Level.ADVICE


class Closed(Exception):
    """The peer is gone, so what was waited for will not come."""


class Wire:
    """What was said, in order, by both sides, in `trace`; judged as it comes."""

    def __init__(self, transport: Transport, says: Direction) -> None:
        self.transport = transport
        self.says = says
        self.trace: list[Entry] = []
        self.judge = TrafficChecker()
        self.closed = False
        """Whether the peer has said its last."""
        self.provocation: Entry | None = None
        """The first message of ours that broke a rule of the protocol. A peer that leaves after it has not left a correct client."""
        self.listener: Callable[[Entry], None] | None = None
        """Is told of everything the peer says, when it says it."""
        self._failure: Exception | None = None
        self._ids = 0
        self._begun = time.monotonic()
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read(), name="what the peer says")

    async def _read(self) -> None:
        heard = 0
        try:
            while heard < MOST_HEARD and (frame := await self.transport.receive()) is not None:
                raw = (
                    bytes(frame) if isinstance(frame, bytes | bytearray) else frame.head
                )  # over the limit: its beginning
                heard += len(raw)
                await self._note(self.says.other, raw.removesuffix(b"\r"))
        except Exception as error:  # of ours, as in a rule: the peer is not to blame for what we did not hear
            self._failure = error
            _log.exception("a rule of ours failed")
        finally:
            self.closed = True
            async with self._news:
                self._news.notify_all()

    async def _note(self, direction: Direction, raw: bytes) -> Entry:
        async with self._news:
            entry = parse(len(self.trace) + 1, time.monotonic() - self._begun, direction, raw)
            self.trace.append(entry)
            broken = self.judge.hear(entry)
            if direction is self.says and self.provocation is None and any(_matters(one.rule) for one in broken):
                self.provocation = entry
            self._news.notify_all()
        if self.listener is not None and direction is not self.says:
            self.listener(entry)
        return entry

    @property
    def heard(self) -> list[Entry]:
        """What the peer said."""
        return [entry for entry in self.trace if entry.dir is not self.says]

    @property
    def how_it_left(self) -> str:
        """What is known of the peer's end, to put behind a sentence."""
        lost = self.transport.lost
        return f": {lost}" if isinstance(lost, ProcessDied) else ""

    @property
    def waits(self) -> list[tuple[str, float]]:
        """What was asked and is not answered yet, with the seconds since."""
        now = time.monotonic() - self._begun
        asked = self.judge.ledger.pairs.open if not self.closed else []
        return [(one.method or "", now - one.t) for one in asked if one.dir is self.says]

    def new_id(self) -> int:
        """An id that we have not used."""
        self._ids += 1
        return self._ids

    async def say(self, message: Any) -> Entry:
        """Send a message, whatever it is."""
        return await self.say_bytes(msgspec.json.encode(message))

    async def say_bytes(self, line: bytes) -> Entry:
        """Send a line, whatever it is. What cannot be sent any more is in the trace all the same."""
        entry = await self._note(self.says, line)
        with suppress(ConnectionClosed):
            await self.transport.send(line)
        return entry

    async def say_in_pieces(self, message: Any, size: int, pause: float = 0) -> Entry:
        """Send a message in many small writes; with a pause where somebody in between would put them together again."""
        line = msgspec.json.encode(message) + b"\n"
        entry = await self._note(self.says, line[:-1])
        for start in range(0, len(line), size):
            self.transport.out += line[start : start + size]
            self.transport.flush()
            await asyncio.sleep(pause)
        return entry

    async def say_together(self, messages: Sequence[Any]) -> list[Entry]:
        """Send several messages in one write."""
        lines = [msgspec.json.encode(message) for message in messages]
        entries = [await self._note(self.says, line) for line in lines]
        self.transport.out += b"".join(line + b"\n" for line in lines)
        self.transport.flush()
        return entries

    async def hear(self, wanted: Callable[[Entry], bool], *, after: int = 0, limit: float) -> Entry:
        """The first line of the peer's, after line number `after`, that is wanted.

        Raises:
            TimeoutError: it did not come within the limit.
            Closed: the peer is gone.
            Exception: a rule of ours failed, and nothing is heard since.
        """
        seen = after
        async with asyncio.timeout(limit), self._news:
            while True:
                for entry in self.trace[seen:]:
                    if entry.dir is not self.says and wanted(entry):
                        return entry
                seen = max(seen, len(self.trace))
                if self._failure is not None:
                    raise self._failure
                if self.closed:
                    raise Closed
                await self._news.wait()

    async def silence(self, seconds: float) -> None:
        """Wait until nothing has been heard for that long. A peer that talks without end is not waited for without end."""
        with suppress(TimeoutError, Closed):
            async with asyncio.timeout(MOST_SILENCES * seconds):
                while True:
                    await self.hear(lambda entry: True, after=len(self.trace), limit=seconds)

    async def close(self) -> None:
        """End the peer, by all means there are."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_LIMIT):
                await self.transport.close()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader
        self.closed = True
