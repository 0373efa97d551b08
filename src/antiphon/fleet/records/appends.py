"""Store a message, and try again until it is known whether it is stored.

A broker that does not answer may have stored the message or not. The same message is then stored again under its name, of which the
broker keeps one. It remembers names for minutes only, so before each further try the last messages of the subject are looked at: one
that has the name is the message. Only what is known for certain is ever reported.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, BrokerAway, Fence, Unsure
from antiphon.fleet.records.formats import name_of

__all__ = ["SLOW", "CertainAppends"]

FIRST_DELAY: Final = 0.05
LONGEST_DELAY: Final = 2.0
"""Seconds before another try: doubled each time, up to the longest. A connection that is there again ends the wait at once."""

SLOW: Final = 2.0
"""Seconds after which an append that is under way is a problem for people to know of."""


class CertainAppends:
    """Stores messages of one connection for certain."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: set[asyncio.Future[None]] = set()
        self._count = 0
        self._since: dict[int, float] = {}
        """When each append began that is under way, the oldest first."""
        self._problems: dict[int, str] = {}
        """Why appends that are under way are not stored yet."""
        self.confirmed = float("-inf")
        """When the last try began that was stored, by the clock of the broker. Most servers of the broker were there then."""
        broker.on_reconnect(self._reconnected)

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        name: str,
        headers: Mapping[str, str],
        fence: Fence | None = None,
        expects: int | None = None,
        replaces: bool = False,
        after: int = 0,
        limit: float | None = None,
    ) -> int:
        """Store a message whose headers have its name, and return its sequence number. No other message of the stream has that name.

        `after` is the number of a message of the subject that was stored before it. `limit` is how many seconds it is tried; None: until
        it is known.

        Raises:
            Fenced: it is not stored, because another message came first; any other AcpError: the broker does not take it.
            Unsure: it was not known in time whether it is stored.
            BrokerAway: it could not be stored in time, and is not.
        """
        now = asyncio.get_running_loop().time()
        self._count = number = self._count + 1
        self._since[number] = now
        try:
            until = None if limit is None else now + limit
            return await self._append(number, subject, data, name, headers, fence, expects, replaces, after, until)
        finally:
            del self._since[number]
            self._problems.pop(number, None)

    @property
    def problem(self) -> str:
        """Why something is not stored that is to be, for people; empty if nothing waits for longer than usual."""
        if self._problems:
            return next(iter(self._problems.values()))
        waits = asyncio.get_running_loop().time() - next(iter(self._since.values())) if self._since else 0.0
        return f"the broker is slow: it has not stored a message for {waits:.0f} seconds" if waits >= SLOW else ""

    async def _append(
        self,
        number: int,
        subject: str,
        data: bytes,
        name: str,
        headers: Mapping[str, str],
        fence: Fence | None,
        expects: int | None,
        replaces: bool,
        after: int,
        until: float | None,
    ) -> int:
        is_in_doubt = False
        delay = FIRST_DELAY
        while True:
            try:
                if is_in_doubt and (found := await self._find(subject, name, after)):
                    return found
                began = self._broker.clock()
                stored = await self._broker.append(
                    subject,
                    data,
                    headers=headers,
                    name=name,
                    fence=fence,
                    expects=expects,
                    replaces=replaces,
                )
                if not is_in_doubt:  # else it may have been stored before, and only its name is known
                    self.confirmed = max(self.confirmed, began)
                return stored
            except Unsure as error:
                is_in_doubt, problem = True, BrokerAway(*error.args, hint=error.hint)
            except BrokerAway as error:
                problem = error
            except AcpError:
                # One of the tries before may have been stored: a condition may hold no longer because of it, or of what came behind it.
                if is_in_doubt and (found := await self._find_at_last(subject, name, after, until)):
                    return found
                raise
            self._problems[number] = f"{problem.sentence} ({problem.hint})" if problem.hint else problem.sentence
            if until is not None and asyncio.get_running_loop().time() + delay > until:
                raise Unsure(*problem.args, hint=problem.hint) if is_in_doubt else problem
            await self.pause(delay)
            delay = min(2 * delay, LONGEST_DELAY)

    async def pause(self, seconds: float) -> None:
        """Wait before another try: until the connection is there again, or this long."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(woken)
        try:
            async with asyncio.timeout(seconds):
                await woken
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(woken)

    def _reconnected(self) -> None:
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    async def _find(self, subject: str, name: str, after: int) -> int | None:
        """Return the number of the message with this name, if it is stored."""
        last = await self._broker.last(subject)
        if last is None or last.sequence <= after:
            return None
        if name_of(last) == name:
            return last.sequence
        # Others came behind it. A copy that is a moment old may not have it: it was fenced then, or is found by the next look.
        return next((each.sequence for each in await self._broker.read(subject, after) if name_of(each) == name), None)

    async def _find_at_last(self, subject: str, name: str, after: int, until: float | None) -> int | None:
        """Do as `_find`, and try again while the broker is away."""
        delay = FIRST_DELAY
        while True:
            try:
                return await self._find(subject, name, after)
            except BrokerAway:
                if until is not None and asyncio.get_running_loop().time() + delay > until:
                    raise Unsure(
                        "the broker was lost before it was known whether a message is stored",
                        hint="look at the broker",
                    ) from None
            await self.pause(delay)
            delay = min(2 * delay, LONGEST_DELAY)
