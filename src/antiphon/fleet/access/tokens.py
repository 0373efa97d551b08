"""Tokens, shares, browsers and launch codes that all gateways of a fleet share. The rules are those of `gateway.access.tokens`.

1. Each gateway has a copy of all records in memory, which answers every request. It follows changes, reads those that it may have missed
   every few seconds, and reads everything after a lost connection: what is not there any more was revoked.
2. A token that is revoked at one gateway ends at all. It ends here before anything is stored. If that cannot be stored, the one who asked
   gets an error, and it is tried again for as long as this process lives.
3. Without the broker a gateway goes on with what it knows, and its `problem` says so. No tokens are made then.
4. A launch code is used up by a message that only one gateway can store.
5. All times are those of the broker's clock: the clocks of the gateways may be hours apart.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

import msgspec

from antiphon.fleet.access.names import NameClaims
from antiphon.fleet.access.records import (
    ACCESS_RECORDS,
    CLOCK,
    CODES,
    TOKENS,
    CodeRecord,
    TokenRecord,
    code_subject,
    token_subject,
)
from antiphon.fleet.broker import Broker, BrokerAway, Fence, Fenced, StoredMessage, Subscription, Unsure
from antiphon.fleet.records.appends import CertainAppends
from antiphon.fleet.records.formats import NAME
from antiphon.gateway.access.tokens import NO_CODE, AccessToken, AccessTokens, LaunchCode, too_many_codes

__all__ = ["FleetTokens"]

STORE_LIMIT: Final = 5.0
"""Seconds for which a message is tried to be stored."""

LOOK_INTERVAL: Final = 5.0
"""Seconds between two looks at what was stored: a message to those that follow may be lost without a lost connection."""

STALE: Final = 3 * LOOK_INTERVAL
"""Seconds without a look after which people should know."""

BARRIER_LIMIT: Final = 5.0
BARRIER_DELAY: Final = 0.05
"""Seconds for a copy of the stream to have what its leader has, and between two looks at it."""

ECHO_LIMIT: Final = 1.0
"""Seconds that a new token is waited for as it comes to all gateways: its user may go to another one at once."""

KEPT: Final = 24 * 3600.0
"""Seconds for which the record of a revoked token, or of a browser that is not signed in any more, is kept."""

CLEAN_INTERVAL: Final = 3600.0
"""Seconds between two looks for records to remove, and between two looks at the clock of the broker."""

_TRY_AGAIN: Final = "try again when the broker is there: `antiphon fleet status`"
_log = logging.getLogger(__name__)


class _Copy(NamedTuple):
    """A record as this gateway has it."""

    sequence: int
    number: int
    time: float
    record: TokenRecord


class FleetTokens(AccessTokens):
    """The tokens of a fleet, as one of its gateways has them. The token file is that of this gateway alone."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        super().__init__(directory, self._broker_time)
        self._broker = broker
        self._appends = CertainAppends(broker)
        self._names = NameClaims(broker, self._appends, STORE_LIMIT)
        self._copies: dict[str, _Copy] = {}
        """All records by digest, those of revoked tokens included."""
        self._live: set[int] = set()
        """The numbers of the tokens in memory."""
        self._orphans: set[str] = set()
        """Records of browsers whose token is not known: it was revoked, or its message is late."""
        self._unstored: dict[int, AccessToken] = {}
        """Tokens that were revoked here, which is not stored yet."""
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._read_to = 0
        self._offset: float | None = None
        """What the clock of the broker is ahead of `broker.clock`."""
        self._looked_at: float | None = None
        self._is_behind = True
        self._woken = asyncio.Event()
        self._follow: Subscription | None = None
        self._watch: asyncio.Task[None] | None = None
        broker.on_reconnect(self._reconnected)

    @property
    def problem(self) -> str:
        """What people should know: that this gateway does not know what the others did, or they not what it did. Empty if all is well."""
        if self._unstored:
            names = ", ".join(f"`{token.name}`" for token in self._unstored.values())
            return f"the broker has not stored yet that {names} was revoked: other gateways may still let it in"
        silence = 0.0 if self._looked_at is None else self._broker.clock() - self._looked_at
        if silence <= STALE and self._broker.is_connected:
            return ""
        return f"tokens are as they were {silence:.0f} seconds ago: the broker is away, and what was revoked elsewhere is not known"

    async def close(self) -> None:
        """Follow the changes of others no more."""
        if self._follow is not None:
            self._follow.end()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    # The copy.

    async def _read(self) -> None:
        if self._follow is None:
            self._follow = self._broker.follow(TOKENS, self._apply)
        await self._catch_up()
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._keep_up())

    def _reconnected(self) -> None:
        self._is_behind = True
        self._woken.set()

    async def _keep_up(self) -> None:
        """Look at what was stored, from time to time and after each lost connection."""
        cleaned, is_reported = self._broker.clock(), False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_INTERVAL):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await (self._catch_up() if self._is_behind else self._read_on())
                for token in [*self._unstored.values()]:
                    if token.id in self._unstored:
                        await self._store_end(token)
                if self._broker.clock() - cleaned > CLEAN_INTERVAL:
                    cleaned = self._broker.clock()
                    await self._set_clock()
                    await self._clean()
                is_reported = False
            except BrokerAway as error:
                if not is_reported:
                    _log.warning("the tokens of the fleet cannot be compared with the broker: %s", error)
                is_reported = True
            except Exception:
                _log.exception("the tokens of the fleet cannot be compared with the broker")

    async def _catch_up(self) -> None:
        """Read everything: what is missing was revoked and removed while this gateway was away.

        Raises:
            BrokerAway: the broker does not answer, or its copies are too far behind.
        """
        self._is_behind = False
        try:
            known = [*self._copies]
            barrier = await self._set_clock()
            self._read_to = 0
            seen: set[str] = set()
            async with asyncio.timeout(BARRIER_LIMIT) as limit:
                while self._read_to < barrier:  # a copy that has this message has all before it
                    page = await self._broker.read(ACCESS_RECORDS, self._read_to)
                    seen |= {message.subject for message in page}
                    self._apply_all(page)
                    if page:
                        limit.reschedule(asyncio.get_running_loop().time() + BARRIER_LIMIT)
                    else:
                        await asyncio.sleep(BARRIER_DELAY)
        except BaseException as error:
            self._is_behind = True
            if isinstance(error, TimeoutError):
                raise BrokerAway("a copy of the stream is too far behind its leader", hint=_TRY_AGAIN) from error
            raise
        for id in known:
            if token_subject(id) not in seen and id in self._copies:
                self._forget(id)
        self._looked_at = self._broker.clock()

    async def _read_on(self) -> None:
        """Read what was stored since the last look.

        Raises:
            BrokerAway: the broker does not answer.
        """
        while page := await self._broker.read(ACCESS_RECORDS, self._read_to):
            self._apply_all(page)
        self._looked_at = self._broker.clock()

    def _apply_all(self, page: list[StoredMessage]) -> None:
        for message in page:
            self._read_to = message.sequence
            if message.subject.startswith(token_subject("")):
                self._apply(message)

    def _apply(self, message: StoredMessage) -> None:
        """Take a record into the copy. Messages may come in any order and more than once: of each token the last one counts."""
        id = message.subject.removeprefix(token_subject(""))
        known = self._copies.get(id)
        if known is not None and known.sequence >= message.sequence:
            return
        try:
            record = msgspec.json.decode(message.data, type=TokenRecord)
            token = record.token(id, record.number or message.sequence)
        except (msgspec.DecodeError, ValueError) as error:
            _log.error("a token cannot be read, and is not let in: %s", error)
            return
        self._copies[id] = _Copy(message.sequence, token.id, message.time, record)
        if record.revoked is not None:
            self._end(token)
        else:
            self._admit(id, token)
        if (awaited := self._awaited.get(id)) is not None and not awaited.done():
            awaited.set_result(None)

    def _admit(self, id: str, token: AccessToken) -> None:
        if token.parent is not None and token.parent not in self._live:
            self._orphans.add(id)
            return
        self._tokens[token.digest] = token
        self._live.add(token.id)
        for orphan in [each for each in self._orphans if self._copies[each].record.parent == token.id]:
            self._orphans.discard(orphan)
            copy = self._copies[orphan]
            self._admit(orphan, copy.record.token(orphan, copy.number))

    def _end(self, token: AccessToken) -> None:
        """End a token that another gateway has revoked."""
        self._unstored.pop(token.id, None)
        self._orphans.discard(token.digest.hex())
        if (known := self._tokens.get(token.digest)) is not None:
            self._drop(known)

    def _forget(self, id: str) -> None:
        copy = self._copies[id]
        self._end(copy.record.token(id, copy.number))
        del self._copies[id]

    def _drop(self, token: AccessToken) -> None:
        super()._drop(token)
        self._live = {each.id for each in self._tokens.values()}

    # Tokens.

    async def _add(self, token: AccessToken, *, is_numbered: bool) -> AccessToken:
        id = token.digest.hex()
        fence = None
        if token.parent is None and not is_numbered:
            with _explained("the token was not made"):
                fence = await self._names.claim(token.name, id)
            is_numbered = fence is None
        awaited = self._awaited[id] = asyncio.get_running_loop().create_future()
        try:
            sequence, record = await self._store(token, is_numbered, fence)
            with suppress(TimeoutError):
                async with asyncio.timeout(ECHO_LIMIT):
                    await awaited
        finally:
            del self._awaited[id]
        self._apply(StoredMessage(token_subject(id), sequence, msgspec.json.encode(record), {}, self._clock()))
        return record.token(id, sequence)

    async def _store(self, token: AccessToken, is_numbered: bool, fence: Fence | None) -> tuple[int, TokenRecord]:
        subject = token_subject(token.digest.hex())
        record = TokenRecord.of(token, is_numbered=is_numbered)
        try:
            with _explained("the token was not made"):
                return await self._append(subject, msgspec.json.encode(record), fence=fence), record
        except Fenced:  # another token gets the name
            record = msgspec.structs.replace(record, is_numbered=True)
            with _explained("the token was not made"):
                return await self._append(subject, msgspec.json.encode(record)), record

    async def revoke(self, id: int) -> AccessToken | None:
        """End a token for ever, at all gateways, with those of browsers that signed in with it.

        Raises:
            BrokerAway: it has ended here, and it is not known whether that is stored. It is tried again by itself.
        """
        if (token := self._unstored.get(id)) is not None:
            await self._store_end(token)
            return token
        return await super().revoke(id)

    async def _store_end(self, token: AccessToken) -> None:
        id = token.digest.hex()
        copy = self._copies.get(id)
        if copy is None or copy.record.revoked is not None:
            return  # another gateway has done it
        self._unstored[token.id] = token
        record = msgspec.structs.replace(copy.record, number=token.id, revoked=self._clock())
        with suppress(Fenced), _explained(f"`{token.name}` is good no longer here, but other gateways may let it in"):
            # Behind the message that made it there is none but one like this: of several gateways the first has done it.
            await self._append(
                token_subject(id),
                msgspec.json.encode(record),
                expects=copy.sequence,
                replaces=True,
                after=copy.sequence,
            )
        self._unstored.pop(token.id, None)

    async def _append(
        self,
        subject: str,
        data: bytes,
        *,
        fence: Fence | None = None,
        expects: int | None = None,
        replaces: bool = False,
        after: int = 0,
    ) -> int:
        own = token_hex(8)
        return await self._appends.append(
            subject, data, name=own, headers={NAME: own}, fence=fence, expects=expects, replaces=replaces,
            after=after, limit=STORE_LIMIT,
        )  # fmt: skip

    # Launch codes.

    async def _add_code(self, digest: bytes, code: LaunchCode) -> None:
        with _explained("no launch code was made"):
            stored = [(message, CodeRecord.read(message).code) for message in await self._broker.lasts(CODES)]
            old = [message.subject for message, each in stored if each.expires <= self._clock()]
            own = [message.subject for message, each in stored if each.parent == code.parent]
            for subject in {*old, *too_many_codes([each for each in own if each not in old])}:
                await self._broker.remove(subject)
            record = CodeRecord(code.expires, code.role, code.parent)
            await self._append(code_subject(digest), msgspec.json.encode(record), expects=0)

    async def _use_code(self, digest: bytes) -> LaunchCode:
        subject = code_subject(digest)
        with _explained("the launch code cannot be looked up"):
            message = await self._broker.last(subject)
            if message is None or CodeRecord.read(message).role is None:
                return NO_CODE
            used = msgspec.json.encode(CodeRecord())
            try:
                after = message.sequence
                await self._append(subject, used, expects=after, replaces=True, after=after)
            except Fenced:
                return NO_CODE
        with suppress(BrokerAway):  # it is used; what is left of it goes with the next code
            await self._broker.remove(subject)
        return CodeRecord.read(message).code

    # The clock, and what is removed.

    def _broker_time(self) -> float:
        return time.time() if self._offset is None else self._broker.clock() + self._offset

    async def _set_clock(self) -> int:
        """Learn the time of the broker, and return the number of a message that was stored just now.

        Raises:
            BrokerAway: the broker does not answer.
        """
        with _explained("the tokens of the fleet cannot be read"):
            began = self._broker.clock()
            sequence = await self._append(CLOCK, b"{}", replaces=True)
            message = await self._broker.last(CLOCK)
        if message is not None:  # ours, or one of another gateway behind it: both have a time between then and now
            self._offset = message.time - (began + self._broker.clock()) / 2
        return sequence

    async def _clean(self) -> None:
        """Remove the records of tokens that ended long ago."""
        before = self._clock() - KEPT
        for id, copy in [*self._copies.items()]:
            record = copy.record
            ended = record.revoked
            if ended is None and record.kind == "browser":
                is_orphan = record.parent is not None and record.parent not in self._live
                ended = copy.time if is_orphan else record.expires
            if ended is not None and ended < before and id in self._copies:
                await self._broker.remove(token_subject(id))
                self._forget(id)


@contextmanager
def _explained(sentence: str) -> Iterator[None]:
    """Say what an error of the broker means for the one who asked, and what to do."""
    try:
        yield
    except Unsure as error:
        why = f"{sentence}: {error.sentence}; whether it is stored is not known"
        raise Unsure(why, hint=error.hint or _TRY_AGAIN) from error
    except BrokerAway as error:
        raise BrokerAway(f"{sentence}: {error.sentence}", hint=error.hint or _TRY_AGAIN) from error
