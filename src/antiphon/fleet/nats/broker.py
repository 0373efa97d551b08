"""The broker of a fleet on NATS with JetStream.

What the server does not do by itself, found by trying (nats-server 2.15.1):

- A stream on several servers refuses a condition on a subject while another message with a condition on it is under way. So messages
  with a condition on one subject are sent one after the other, and a refusal of that kind is tried again.
- A stream on one server checks the condition before it knows the name of a message: one that was stored, and is stored again under its
  name because no answer came, is refused. So the message is looked for before `Fenced` is raised.
- A read of last messages gives at most 1024 of them, so more are read by their subjects. It also ends before it has more bytes than the
  server may have under way to a client (`max_pending`, 64 MB), and says how many are left. A client that cannot take as many at once is
  cut off, so reads have a limit of their own.
- A leader that was frozen sends late what it had stored, when others follow a new one: messages come twice, or out of their order.
- A server that ends between storing a message and sending it to those that follow leaves them without it, and without a sign of that.
  So what must not be missed is read again now and then.
"""

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from antiphon.fleet.broker import (
    READ_LIMIT,
    BrokerAway,
    CoreMessage,
    Fence,
    Fenced,
    NoResponder,
    StoredMessage,
    Take,
    TakeCore,
    Unsure,
)
from antiphon.fleet.errors import MessageTooLarge
from antiphon.fleet.nats.answers import ANSWER_LIMIT, BrokerAnswers
from antiphon.fleet.nats.login import ANSWERS, Login, read_addresses, read_login
from antiphon.fleet.nats.server_link import LinkSubscription, ServerLink
from antiphon.fleet.nats.streams import NOT_NOW, ApiError, api_error, make_streams
from antiphon.fleet.nats.wire import WireHeaders, WireMessage, encode_publish, read_headers
from antiphon.fleet.streams import ACCESS, STREAMS, StoredSize, StoredStream, check_condition, stream_of

__all__ = ["NatsBroker", "connect_broker"]

START_LIMIT: Final = 1.0
"""Seconds for one answer while streams are made: servers that have no leader yet do not answer at all, and are asked again."""

HEADER_ROOM: Final = 2048
"""Bytes that are left for headers of our own in the largest message."""

READ_TRIES: Final = 4
READ_LIMIT_EACH: Final = ANSWER_LIMIT / READ_TRIES
"""Any server that has the stream may be the one that answers a read, also one that is frozen: then another is asked, by chance."""

READ_BYTES: Final = 8 << 20
LASTS_BYTES: Final = 32 << 20
"""Bytes of one answer, unless its first message has more. All that is stored last of one session is in one: it is of one state."""

LASTS_AT_ONCE: Final = 1000
"""Subjects whose last messages are read at once; servers refuse more than 1024."""

SILENT: Final = 3.0
"""Seconds without a sign of a server that has a copy of a stream: it sends one each second."""

FOLLOWED_SUBJECTS: Final = 50_000
"""Subjects whose last number one who follows remembers."""

DOUBT_LIMIT: Final = 300.0
"""Seconds for which it is remembered that a message may be stored: as long as the broker remembers its name."""

FIRST_WAIT: Final = 0.002
LONGEST_WAIT: Final = 0.05
"""Seconds before a message is sent again that was refused because another one was under way, doubled each time."""

WRONG_SEQUENCE: Final = 10071
CONDITION_UNDER_WAY: Final = 10164
NAME_UNDER_WAY: Final = 10158
NO_MESSAGE: Final = 10037

_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_EXPECTED_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
_NAME: Final = "Nats-Msg-Id"

_log = logging.getLogger(__name__)


class _Stored(msgspec.Struct):
    """What the server answers to a message that it was to store."""

    seq: int = 0
    error: dict[str, Any] | None = None


class _Doubt(NamedTuple):
    """A message that may be stored: since when that is so, and a number of its stream that was there before."""

    since: float
    after: int


class _Turn:
    """The order of messages with a condition on one subject."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class _Followed:
    """Messages of one who follows: each subject in the order of its numbers, and none twice."""

    def __init__(self, link: ServerLink, stream: StoredStream, take: Take) -> None:
        self._link, self._stream, self._take = link, stream, take
        self._since: float | None = None
        self._numbers: dict[str, int] = {}

    def take(self, message: WireMessage) -> None:
        """Give a message on, unless a later one of its subject came before it."""
        fields = read_headers(message.head).fields
        if _is_diverted(message) or "Nats-Subject" not in fields:
            return
        stored = _read_stored_message(message, fields)
        if message.subject != self._stream.live + stored.subject.removeprefix(self._stream.prefix):
            return  # an answer to a read, which was made to go here: nothing was stored
        if self._link.since != self._since:
            self._since = self._link.since
            self._numbers.clear()
        before = self._numbers.pop(stored.subject, 0)
        self._numbers[stored.subject] = max(before, stored.sequence)
        if len(self._numbers) > FOLLOWED_SUBJECTS:
            del self._numbers[next(iter(self._numbers))]
        if stored.sequence > before:
            self._take(stored)


_read_stored = msgspec.json.Decoder(_Stored).decode


class NatsBroker:
    """One connection to a NATS server or cluster. `connect_broker` makes it."""

    def __init__(self, link: ServerLink, answers: BrokerAnswers, retention: float | None) -> None:
        self._link, self._answers = link, answers
        self._loop = asyncio.get_running_loop()
        self._ttl = f"{max(1, round(retention))}s" if retention else ""
        self._calls: list[Callable[[], None]] = []
        self._turns: dict[str, _Turn] = {}
        self._doubts: dict[str, _Doubt] = {}
        self._seen: dict[str, int] = {}
        self.max_payload = 0
        self._read_limits()
        link.on_up = self._call_all

    # The connection.

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._link.since is not None

    @property
    def connected_since(self) -> float | None:
        """The time of `clock` at which the connection was made; None without one."""
        return self._link.since

    @property
    def unsent(self) -> int:
        """Bytes that were published and have not left this process."""
        return self._link.unsent

    @property
    def problems(self) -> list[str]:
        """What is wrong, for people: why there is no connection, and what the broker does not permit."""
        problem = self._link.problem
        return [*([str(problem)] if problem is not None else []), *sorted(self._answers.refused)]

    def clock(self) -> float:
        """Seconds of the event loop's clock."""
        return self._loop.time()

    def on_reconnect(self, call: Callable[[], None]) -> None:
        """Call a function whenever a lost connection is there again: messages may have been missed."""
        self._calls.append(call)

    async def close(self) -> None:
        """End the connection."""
        await self._link.close()
        self._answers.close()

    def _read_limits(self) -> None:
        self.max_payload = max(0, int(self._link.info.get("max_payload", 1 << 20)) - HEADER_ROOM)

    def _call_all(self) -> None:
        self._read_limits()
        for call in list(self._calls):
            try:
                call()
            except Exception as error:
                self._loop.call_exception_handler({"message": "a call after a reconnect failed", "exception": error})

    async def _start(self, streams: Sequence[StoredStream], replicas: int | None) -> None:
        self._seen = await make_streams(streams, partial(self._api, limit=START_LIMIT), self._link.info, replicas)

    # Storing.

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        name: str = "",
        fence: Fence | None = None,
        expects: int | None = None,
        replaces: bool = False,
    ) -> int:
        """Store a message and return its sequence number, as `Broker.append` does. It has a fence or expects a number, not both."""
        stream = stream_of(subject)
        head = dict(headers or {})
        if name:
            head[_NAME] = name
        if replaces:
            head["Nats-Rollup"] = "sub"
        elif self._ttl and subject.endswith(".ev"):
            head["Nats-TTL"] = self._ttl
        condition = check_condition(subject, fence, expects)
        if condition is not None:
            head[_EXPECTED] = str(condition.sequence)
            head[_EXPECTED_SUBJECT] = condition.subject
        self._check_size(data)
        if condition is None:
            return await self._store(stream, subject, data, head, name, self._loop.time() + ANSWER_LIMIT)
        return await self._store_in_turn(condition.subject, stream, subject, data, head, name)

    async def _store_in_turn(
        self, of: str, stream: StoredStream, subject: str, data: bytes, head: Mapping[str, str], name: str
    ) -> int:
        """Store a message when no other one with a condition on the subject `of` is under way."""
        turn = self._turns.get(of)
        if turn is None:
            turn = self._turns[of] = _Turn()
        turn.users += 1
        deadline = self._loop.time() + ANSWER_LIMIT
        try:
            if turn.users == 1:
                await turn.lock.acquire()  # it is free: a timer would cost a quarter of the append
            else:
                await self._wait_for(turn, of, deadline)
            try:
                return await self._store(stream, subject, data, head, name, deadline)
            finally:
                turn.lock.release()
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[of]

    async def _wait_for(self, turn: _Turn, subject: str, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await turn.lock.acquire()
        except TimeoutError:
            raise BrokerAway(f"messages before this one for {subject} are still under way") from None

    async def _store(
        self, stream: StoredStream, subject: str, data: bytes, head: Mapping[str, str], name: str, deadline: float
    ) -> int:
        before, wait = self._seen[stream.name], FIRST_WAIT
        while True:
            try:
                answer = await self._answers.ask(subject, data, headers=head, unanswered=Unsure)
                stored = _read_stored(answer.data)
            except NoResponder:
                raise BrokerAway("no server of the broker takes messages now: it chooses a leader") from None
            except msgspec.DecodeError as error:
                self._doubt(name, before)
                raise Unsure(f"the broker's answer cannot be read: {error}") from None
            except (Unsure, asyncio.CancelledError):
                self._doubt(name, before)
                raise
            if stored.error is None:
                if stored.seq > self._seen[stream.name]:
                    self._seen[stream.name] = stored.seq
                self._doubts.pop(name, None)
                return stored.seq
            code = int(stored.error.get("err_code", 0))
            if code == WRONG_SEQUENCE:
                return await self._find_refused(stream, subject, name, str(stored.error.get("description", "")))
            if code not in (CONDITION_UNDER_WAY, NAME_UNDER_WAY):
                raise api_error(stored.error)
            if self._loop.time() + wait > deadline:
                raise Unsure("another message with this name, or for this subject, is under way for too long")
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def _doubt(self, name: str, after: int) -> None:
        """Remember that a message may be stored."""
        now = self._loop.time()
        if name and name not in self._doubts:
            self._doubts[name] = _Doubt(now, after)
        while self._doubts and now - next(iter(self._doubts.values())).since > DOUBT_LIMIT:
            del self._doubts[next(iter(self._doubts))]

    async def _find_refused(self, stream: StoredStream, subject: str, name: str, reason: str) -> int:
        """Return the number of a message that was refused now and had been stored by an earlier try.

        Raises:
            Fenced: it is not stored.
            Unsure: the broker does not answer.
        """
        doubt = self._doubts.get(name)
        if doubt is not None:
            try:
                async for sequence, head in self._at_leader(stream, subject, doubt.after):
                    if head.get(_NAME) == name:
                        del self._doubts[name]
                        return sequence
            except BrokerAway as error:
                raise Unsure(error.sentence, hint=error.hint) from None
            self._doubts.pop(name, None)
        raise Fenced(f"another message came first: {reason}")

    async def _at_leader(
        self, stream: StoredStream, subject: str, after: int
    ) -> AsyncIterator[tuple[int, Mapping[str, str]]]:
        """Give numbers and headers of the messages of a subject, as the leader has them."""
        while True:
            message = await self._get(stream, {"next_by_subj": subject, "seq": after + 1})
            if message is None:
                return
            after = message["seq"]
            yield after, read_headers(base64.b64decode(message.get("hdrs", ""))).fields

    async def remove(self, pattern: str) -> None:
        """Remove all messages whose subject fits."""
        await self._api(f"STREAM.PURGE.{stream_of(pattern).name}", {"filter": pattern})

    # Reading.

    async def last(self, subject: str) -> StoredMessage | None:
        """Return the last message of a subject, as the leader has it."""
        message = await self._get(stream_of(subject), {"last_by_subj": subject})
        if message is None:
            return None
        fields = read_headers(base64.b64decode(message.get("hdrs", ""))).fields
        data = base64.b64decode(message.get("data", ""))
        return StoredMessage(
            message["subject"], int(message["seq"]), data, _own(fields), _read_time(message.get("time", ""))
        )

    async def read(self, pattern: str, after: int = 0, limit: int = READ_LIMIT) -> list[StoredMessage]:
        """Return messages whose subject fits and whose number is greater."""
        question = {"next_by_subj": pattern, "seq": after + 1, "batch": limit, "max_bytes": READ_BYTES}
        found, _ = await self._read_direct(stream_of(pattern), question)
        return found

    async def lasts(self, pattern: str) -> list[StoredMessage]:
        """Return the last message of each subject that fits."""
        stream = stream_of(pattern)
        found, is_whole = await self._read_lasts(stream, [pattern])
        if not is_whole:
            subjects = await self._subjects(stream, pattern)
            for begin in range(0, len(subjects), LASTS_AT_ONCE):
                found |= (await self._read_lasts(stream, subjects[begin : begin + LASTS_AT_ONCE]))[0]
        return sorted(found.values(), key=lambda message: message.sequence)

    async def _read_lasts(self, stream: StoredStream, patterns: Sequence[str]) -> tuple[dict[str, StoredMessage], bool]:
        """Return the last messages of subjects; False with them where there are too many subjects for one read."""
        found: dict[str, StoredMessage] = {}
        after = 0
        while True:
            question = {"multi_last": patterns, "seq": after + 1, "max_bytes": LASTS_BYTES}
            part, end = await self._read_direct(stream, question)
            found |= {message.subject: message for message in part}
            if end.status == 413 or not part or not int(end.fields.get("Nats-Num-Pending", 0)):
                return found, end.status != 413
            after = part[-1].sequence

    async def _read_direct(
        self, stream: StoredStream, question: Mapping[str, object]
    ) -> tuple[list[StoredMessage], WireHeaders]:
        """Read from any server that has the stream; return the messages, and the headers at their end."""
        messages, end = await self._ask_any(f"$JS.API.DIRECT.GET.{stream.name}", msgspec.json.encode(question))
        found, before = [], 0
        for message in messages:
            fields = read_headers(message.head).fields
            if int(fields.get("Nats-Last-Sequence", before)) != before:
                raise BrokerAway("a message was lost on its way from the broker", hint="reading again may help")
            stored = _read_stored_message(message, fields)
            before = stored.sequence
            found.append(stored)
        if end.status not in (204, 404, 413):
            raise BrokerAway(f"the broker refused to read (status {end.status})")
        return found, end

    async def _ask_any(self, request: str, data: bytes) -> tuple[list[WireMessage], WireHeaders]:
        """Ask for messages until a server answers."""
        tries = READ_TRIES
        while True:
            try:
                return await self._answers.ask_all(request, data, READ_LIMIT_EACH)
            except NoResponder:
                raise BrokerAway("no server of the broker reads messages now") from None
            except BrokerAway:
                tries -= 1
                if not tries or not self.is_connected:
                    raise

    async def _subjects(self, stream: StoredStream, pattern: str) -> list[str]:
        """Return all subjects that fit and have messages."""
        found: dict[str, int] = {}
        while True:
            question = {"subjects_filter": pattern, "offset": len(found)}
            answer = await self._api(f"STREAM.INFO.{stream.name}", question)
            page = answer["state"].get("subjects") or {}
            known = len(found)
            found |= page
            if len(found) >= int(answer.get("total", 0)) or len(found) == known:
                return sorted(found)

    async def stored_size(self, stream: StoredStream) -> StoredSize:
        """Return how much a stream holds, and how far its servers are behind each other.

        Raises:
            BrokerAway: the broker does not answer.
        """
        answer = await self._api(f"STREAM.INFO.{stream.name}", {})
        state, others = answer["state"], (answer.get("cluster") or {}).get("replicas") or []
        return StoredSize(
            int(state["messages"]),
            int(state["bytes"]),
            1 + len(others),
            sum(_is_away(each) for each in others),
            max((int(each.get("lag", 0)) for each in others), default=0),
        )

    async def _get(self, stream: StoredStream, question: Mapping[str, object]) -> dict[str, Any] | None:
        tries = READ_TRIES
        while True:
            try:
                answer = await self._api(f"STREAM.MSG.GET.{stream.name}", question, limit=READ_LIMIT_EACH)
            except BrokerAway as error:
                code = error.number if isinstance(error, ApiError) else None
                if code == NO_MESSAGE:
                    return None
                # A stream that was made just now has no leader yet: servers that do not lead are silent, those that start say so.
                tries -= 1
                if not tries or not self.is_connected or not (code is None or code in NOT_NOW):
                    raise
                if code is not None:
                    await asyncio.sleep(READ_LIMIT_EACH)
            else:
                message: dict[str, Any] = answer["message"]
                return message

    async def _api(
        self, request: str, question: Mapping[str, object], *, limit: float = ANSWER_LIMIT
    ) -> dict[str, Any]:
        """Send a request of JetStream's API."""
        try:
            message = await self._answers.ask(f"$JS.API.{request}", msgspec.json.encode(question), limit)
            answer: dict[str, Any] = msgspec.json.decode(message.data)
        except NoResponder:
            raise BrokerAway(
                "no server of the broker answers now", hint="is JetStream on in its configuration?"
            ) from None
        except msgspec.DecodeError as error:
            raise BrokerAway(f"the broker's answer cannot be read: {error}") from None
        if "error" in answer:
            raise api_error(answer["error"])
        return answer

    # Messages as they come.

    def follow(self, pattern: str, take: Take) -> LinkSubscription:
        """Call `take` with messages whose subject fits, when they are stored from now on."""
        stream = stream_of(pattern)
        followed = _Followed(self._link, stream, take)
        return self._link.subscribe(stream.live + pattern[len(stream.prefix) :], followed.take)

    def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message to all that subscribe to its subject now. Without a connection it is lost."""
        self._check_size(data)
        if self.is_connected:
            self._link.send(encode_publish(subject, data, reply))

    def subscribe(self, pattern: str, take: TakeCore, queue: str = "") -> LinkSubscription:
        """Call `take` with messages whose subject fits. Of the subscribers with the same `queue` one gets each message."""

        def convert(message: WireMessage) -> None:
            if message.head or _is_diverted(message):  # no process of the fleet sends headers
                return
            # Any other subject would be answered with our rights, which may be more than those of the one who asks.
            reply = message.reply if message.reply.startswith(ANSWERS) else ""
            take(CoreMessage(message.subject, message.data, reply))

        return self._link.subscribe(pattern, convert, queue)

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Send a message and return the answer."""
        self._check_size(data)
        return (await self._answers.ask(subject, data, timeout)).data

    def _check_size(self, data: bytes) -> None:
        if len(data) > self.max_payload:
            raise MessageTooLarge(len(data), self.max_payload)


async def connect_broker(
    servers: str | Sequence[str],
    *,
    name: str,
    credentials: str | Path | None = None,
    streams: Sequence[StoredStream] = STREAMS,
    tls: ssl.SSLContext | None = None,
    replicas: int | None = None,
    retention: float | None = None,
) -> NatsBroker:
    """Connect to a NATS server, make or check the streams of the fleet, and return the connection.

    `servers` are addresses such as `nats://host:4222`, of which any is enough; the others of a cluster are found. `credentials` is a file
    with a key. `streams` are those that are used: with keys, that of the tokens is in an account which only gateways are in, and needs a
    connection of its own. `retention` is how many seconds events are kept; for ever if it is not given.

    Raises:
        BrokerAway: no server answers, or it has no leader.
        BrokerRefused: a server does not let us in.
        BrokerUnfit: a server is too old, or stores nothing.
        AcpError: an address or the file with the key cannot be read.
    """
    login = read_login(credentials, access=ACCESS in streams) if credentials is not None else Login()
    link = ServerLink(read_addresses(servers), login, name, tls)
    answers = BrokerAnswers(link, login.inbox)
    broker = NatsBroker(link, answers, retention)
    try:
        await link.open()
        broker._read_limits()
        await broker._start(streams, replicas)
    except BaseException:
        await broker.close()
        raise
    return broker


def _is_away(server: Mapping[str, Any]) -> bool:
    """Whether a server of a stream does not follow its leader: it is gone, frozen, or has stopped to store because its disk was full."""
    is_silent = not server.get("current") and int(server.get("active", 0)) > SILENT * 1e9
    return bool(server.get("offline")) or is_silent


def _is_diverted(message: WireMessage) -> bool:
    """Whether the broker was made to send something stored here, by a key that may not send it: consumers of a stream do so."""
    return message.reply.startswith("$JS.ACK.")


def _own(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that were given with a message, without those of the broker."""
    return {name: value for name, value in fields.items() if not name.startswith("Nats-")}


def _read_stored_message(message: WireMessage, fields: Mapping[str, str]) -> StoredMessage:
    return StoredMessage(
        fields["Nats-Subject"],
        int(fields["Nats-Sequence"]),
        message.data,
        _own(fields),
        _read_time(fields.get("Nats-Time-Stamp", "")),
    )


def _read_time(text: str) -> float:
    """Return a time such as `2026-11-18T02:17:42.545203522Z` in seconds since 1970."""
    whole, _, rest = text.rstrip("Z").partition(".")
    try:
        return datetime.fromisoformat(f"{whole}+00:00").timestamp() + (float(f"0.{rest}") if rest else 0.0)
    except ValueError:
        return 0.0
