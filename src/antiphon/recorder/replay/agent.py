"""The agent's side of a recording: a strict player for tests, a tolerant one for demos, and serving either on stdio.

A player is pure. It receives a line and the time, and returns what is to be sent by now and how long to wait for the next.
"""

import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import msgspec

from antiphon.recorder.replay.comparison import (
    ABSENT,
    Difference,
    Ignored,
    content,
    differences,
    label,
    received_entry,
    signature,
)
from antiphon.recorder.replay.script import CANCEL, Exchange, ReplayNames, Script, session_of, with_id, written_id
from antiphon.traffic.entries import Entry, JsonObject
from antiphon.transports.framing import LineFramer

__all__ = ["INTERNAL", "UNKNOWN_METHOD", "WRONG", "Player", "StrictPlayer", "TolerantPlayer", "error_line", "serve"]

UNKNOWN_METHOD: Final = -32601
WRONG: Final = -32602
INTERNAL: Final = -32603
REQUEST_CANCELLED: Final = -32800


class Player(ABC):
    """Plays one side of a recording. Times are seconds of any clock that only goes forward."""

    def __init__(self, script: Script, names: ReplayNames, *, speed: float = 1.0) -> None:
        """`speed`: how much faster than recorded; 0 is at once."""
        self.script = script
        self.names = names
        self.problems: list[str] = []
        """Why this is not what was recorded; it fails where there is one."""
        self.notes: list[str] = []
        """What was different and did not matter. The caller that prints them empties the list."""
        self.over = False
        """Nothing more is to be sent or received."""
        self._noted: set[str] = set()
        self._pace = 1.0 / speed if speed else 0.0
        self._out: list[bytes] = []
        self._lines = 0
        self._started = False

    def receive(self, raw: bytes, now: float) -> None:
        """A line of the peer has come."""
        self._lines += 1
        if not self.over:
            self._receive(received_entry(self._lines, self.script.ours.other, raw), now)

    def ready(self, now: float) -> list[bytes]:
        """What is to be sent by now, each with its line end."""
        if not self._started:
            self._started = True
            self._start(now)
        if not self.over:
            self._advance(now)
        out, self._out = self._out, []
        return out

    @abstractmethod
    def wait(self, now: float) -> float | None:
        """Seconds until there is something to send; None: not before the peer sends something."""

    def end(self, now: float) -> list[bytes]:
        """The peer has closed its end: return the last lines to send and the last differences."""
        self._pace = 0.0  # pauses are over
        out = self.ready(now)
        if not self.over:
            self._miss()
        self.over = True
        return out

    @abstractmethod
    def _start(self, now: float) -> None:
        """Count the first pause from now."""

    @abstractmethod
    def _receive(self, entry: Entry, now: float) -> None: ...

    @abstractmethod
    def _advance(self, now: float) -> None: ...

    def _miss(self) -> None:  # noqa: B027 - a player that takes anything misses nothing
        """Complain about what never came."""

    def _pause(self, line: Entry, before: Entry | None) -> float:
        return max(0.0, line.t - before.t) * self._pace if before is not None else 0.0

    def _send(self, line: Entry, id: bytes | None = None) -> None:
        raw = line.raw if line.is_noise else self.names.line(line.raw)
        if id is not None:
            raw = with_id(raw, id)
        self._out.append(raw + self.script.ending(line))

    def _refuse(self, id: bytes, code: int, message: str) -> None:
        self._out.append(error_line(id, code, message))

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.notes.append(text)


def error_line(id: bytes, code: int, message: str) -> bytes:
    """A response that is an error."""
    error: JsonObject = {"code": code, "message": message}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id or b"null", msgspec.json.encode(error))


# --- strict: the client has to send exactly what was recorded, in the recorded order
# Order is that of cause and effect: what the client sent between two responses or requests of the agent may come in any order, and
# a response may come as soon as it was asked for.


class StrictPlayer(Player):
    """Goes through the recording line by line. The first thing that differs ends it."""

    def __init__(
        self, script: Script, names: ReplayNames, *, speed: float = 1.0, ignored: Ignored | None = None
    ) -> None:
        super().__init__(script, names, speed=speed)
        self._ignored = ignored or Ignored()
        self._place = 0  # the first line that was neither sent nor received
        self._since = 0.0  # when the line before it was
        self._received: dict[int, float] = {}  # number of a recorded line of theirs → when it came
        self._ids: dict[int, bytes] = {}  # number of a recorded request of theirs → the id it has now
        self._open_requests: dict[bytes, Entry] = {}

    @property
    def matched(self) -> int:
        """How many lines of the peer were the recorded ones."""
        return len(self._received)

    def wait(self, now: float) -> float | None:
        line = self._next
        if self.over or line is None or not self.script.is_ours(line):
            return None
        return max(0.0, self._since + self._pause(line, self._before) - now)

    @property
    def _next(self) -> Entry | None:
        return self.script.lines[self._place] if self._place < len(self.script.lines) else None

    @property
    def _before(self) -> Entry | None:
        return self.script.lines[self._place - 1] if self._place else None

    def _start(self, now: float) -> None:
        self._since = now

    def _advance(self, now: float) -> None:
        while (line := self._next) is not None:
            if self.script.is_ours(line):
                due = self._since + self._pause(line, self._before)
                if due > now:
                    return
                self._send_line(line)
                self._since = due
            elif line.number in self._received:
                self._since = max(self._since, self._received[line.number])
            else:
                return
            self._place += 1

    def _send_line(self, line: Entry) -> None:
        request = self.script.request_of(line)
        self._send(line, self._ids.get(request.number) if request is not None else None)
        if line.is_request:
            self._open_requests[written_id(line.raw)] = line

    def _receive(self, entry: Entry, now: float) -> None:
        request = self._open_requests.pop(written_id(entry.raw), None) if entry.is_response else None
        expected = self._expected(entry) if request is None else self.script.response_to(request)
        if request is not None and expected is None:  # the recording went on, or ended, without this response
            return
        what = f"answer to {label(request)}" if request is not None else ""
        found = [self._unexpected(entry)] if expected is None else self._compare(expected, entry, what)
        if expected is None or found:
            self._refuse_all(entry, [str(one) for one in found])
            return
        if entry.is_request:
            self._ids[expected.number] = self.names.requests[written_id(expected.raw)] = written_id(entry.raw)
        self._received[expected.number] = now

    def _expected(self, entry: Entry) -> Entry | None:
        """The recorded line that this has to be: the same if there is one, else the first of its kind."""
        alike = [line for line in self._window() if signature(line) == signature(entry)]
        if len(alike) > 1:
            new = content(entry)
            same = (line for line in alike if not list(differences(self.names.content(line), new)))
            return next(same, alike[0])
        return alike[0] if alike else None

    def _window(self) -> Iterator[Entry]:
        """What the peer may send now: all up to the next response or request of ours."""
        for line in islice(self.script.lines, self._place, None):
            if not self.script.is_ours(line):
                if line.number not in self._received and self.script.request_of(line) is None:
                    yield line
            elif line.is_request or line.is_response:
                return

    def _compare(self, expected: Entry, entry: Entry, what: str = "") -> list[Difference]:
        new = content(entry)
        self.names.learn(content(expected), new)
        return [
            Difference(expected.number, what or label(expected), path, recorded, got)
            for path, recorded, got in differences(self.names.content(expected), new)
            if not self._ignored(path)
        ]

    def _unexpected(self, entry: Entry) -> Difference:
        first = next(self._window(), None)
        if first is not None:
            return Difference(first.number, label(first), "", label(first), label(entry))
        ahead = next((line for line in self.script.lines[self._place :] if self.script.is_ours(line)), None)
        before = "" if ahead is None else f" before message {ahead.number} was sent"
        return Difference(None, f"{label(entry)}{before}", "", ABSENT, content(entry))

    def _refuse_all(self, entry: Entry, sentences: list[str]) -> None:
        self.problems += sentences
        if entry.is_request:
            self._refuse(written_id(entry.raw), WRONG, f"replay: {'; '.join(sentences)}")
        self.over = True

    def _miss(self) -> None:
        speaker = self.script.ours.other.sender
        for line in self.script.lines[self._place :]:
            if not self.script.is_ours(line) and line.number not in self._received:
                request = self.script.request_of(line)
                what = f"the answer to {label(request)}" if request is not None else label(line)
                self.problems.append(f"the {speaker} never sent: {what} (message {line.number})")


# --- tolerant: each request gets the response that the recording has for such a request
# There is no fixed order. A request of the live client is matched with a recorded one of the same method, and what belonged to that
# one is played: updates, requests to the client, the response, with their pauses. What was recorded for requests that do not come is
# never sent.

CANCELLED = b'{"jsonrpc":"2.0","id":%b,"result":{"stopReason":"cancelled"}}\n'


class _Playback:
    """An exchange that is being played."""

    def __init__(self, exchange: Exchange, id: bytes, session: str | None, now: float) -> None:
        self.exchange = exchange
        self.id = id
        self.session = session
        """The session that the live request named."""
        self.lines = exchange.lines
        self.place = 0
        self.since = now
        self.before = exchange.request
        self.waiting: dict[bytes, Entry] = {}
        """Our requests that are open, by the id they were sent with."""
        self.answered = exchange.request is None

    @property
    def next(self) -> Entry | None:
        return self.lines[self.place] if self.place < len(self.lines) else None

    def pass_by(self, line: Entry, when: float) -> None:
        """Mark a line as sent or received."""
        self.place += 1
        self.since = when
        self.before = line


class TolerantPlayer(Player):
    """Plays exchanges as they are asked for, several at once if need be."""

    def __init__(self, script: Script, names: ReplayNames, *, speed: float = 1.0) -> None:
        super().__init__(script, names, speed=speed)
        first, *self._exchanges = script.exchanges()
        self._unused = list(self._exchanges)
        self._playbacks = [_Playback(first, b"", None, 0.0)]
        self._fresh = 0

    def _start(self, now: float) -> None:
        self._playbacks[0].since = now

    def wait(self, now: float) -> float | None:
        if self.over:
            return None
        dues = [self._due(one) for one in self._playbacks]
        return min((max(0.0, due - now) for due in dues if due is not None), default=None)

    def _due(self, playback: _Playback) -> float | None:
        line = playback.next
        if line is None:
            return playback.since
        if self.script.is_ours(line):
            return playback.since + self._pause(line, playback.before)
        return None if self._waits_for(playback, line) else playback.since

    def _waits_for(self, playback: _Playback, line: Entry) -> bool:
        """Whether a line of theirs has to come first. The response to a request that we did not send, or cancelled, has not."""
        request = self.script.request_of(line)
        return line.method == CANCEL or (
            request is not None and any(request is one for one in playback.waiting.values())
        )

    def _advance(self, now: float) -> None:
        for playback in list(self._playbacks):
            while (due := self._due(playback)) is not None and due <= now:
                line = playback.next
                if line is None:
                    self._finish(playback)
                    break
                if self.script.is_ours(line):
                    self._send_line(playback, line)
                    playback.pass_by(line, due)
                else:
                    playback.pass_by(line, playback.since)

    def _send_line(self, playback: _Playback, line: Entry) -> None:
        if line is playback.exchange.response:
            self._send(line, playback.id)
            playback.answered = True
        elif line.is_request:
            id = written_id(line.raw)
            if any(id in one.waiting for one in self._playbacks):  # played again before the first was answered
                self._fresh += 1
                id = b'"replay-%d"' % self._fresh
            playback.waiting[id] = line
            self._send(line, id)
        else:
            self._send(line)

    def _finish(self, playback: _Playback) -> None:
        self._playbacks.remove(playback)
        if not playback.answered and playback.exchange.request is not None:
            method = label(playback.exchange.request)
            self._refuse(playback.id, INTERNAL, f"replay: the recording ends without an answer to {method}")

    # Messages of the client.

    def _receive(self, entry: Entry, now: float) -> None:
        if entry.is_request:
            self._begin(entry, now)
        elif entry.is_response:
            self._receive_response(entry, now)
        elif entry.method == CANCEL:
            for playback in [one for one in self._playbacks if one.session == session_of(entry)]:
                self._cancel(playback, now)
        else:
            self._note(f"ignored: {label(entry)}")

    def _begin(self, entry: Entry, now: float) -> None:
        exchange = self._choose(entry)
        if exchange is None or exchange.request is None:
            self._refuse_unknown(entry)
            return
        if exchange in self._unused:
            self._unused.remove(exchange)
        else:
            self._note(f"played again: {label(entry)} (message {exchange.request.number})")
        self.names.learn(exchange.request.params, entry.params)
        for path, recorded, got in differences(self.names.value(exchange.request.params), entry.params, "params"):
            self._note(str(Difference(exchange.request.number, label(entry), path, recorded, got)))
        self.names.requests[written_id(exchange.request.raw)] = written_id(entry.raw)
        self._playbacks.append(_Playback(exchange, written_id(entry.raw), session_of(entry), now))

    def _choose(self, entry: Entry) -> Exchange | None:
        """The next unused one with the same params, or of the same session, or of the same method; else the last one used."""
        unused = [one for one in self._unused if _method(one) == entry.method]
        used = [one for one in self._exchanges[::-1] if _method(one) == entry.method]
        for some in (unused, used):
            same = (one for one in some if self._is_same(one, entry.params))
            near = (one for one in some if self.names.value(one.session, "sessionId") == session_of(entry))
            found = next(same, None) or next(near, None) or next(iter(some), None)
            if found is not None:
                return found
        return None

    def _is_same(self, exchange: Exchange, params: JsonObject) -> bool:
        return exchange.request is not None and self.names.value(exchange.request.params) == params

    def _refuse_unknown(self, entry: Entry) -> None:
        from antiphon.traffic.schema import FACTS, methods  # here, because it reads the whole schema

        self._note(f"the recording has no {label(entry)}")
        version = self.script.version
        if (entry.method, True) in methods(version if version in FACTS else 1):
            self._refuse(written_id(entry.raw), INTERNAL, f"replay: the recording has no answer to {label(entry)}")
        else:
            self._refuse(written_id(entry.raw), UNKNOWN_METHOD, "Method not found")

    def _receive_response(self, entry: Entry, now: float) -> None:
        id = written_id(entry.raw)
        for playback in self._playbacks:
            if (request := playback.waiting.pop(id, None)) is not None:
                answer = self.script.response_to(request)
                if answer is not None:
                    self.names.learn(answer.msg, entry.msg)
                    if answer is playback.next:  # the next line waited for this: its pause counts from now
                        playback.since = now
                return
        self._note("ignored: an answer to a question that is not open")

    def _cancel(self, playback: _Playback, now: float) -> None:
        """Cancel as recorded, if the recording has it; else the turn is over at once."""
        if _method(playback.exchange) != "session/prompt":
            return
        playback.waiting.clear()  # whether the client answers them or not
        recorded = next(
            (n for n, line in enumerate(playback.lines) if n >= playback.place and line.method == CANCEL), None
        )
        if recorded is not None:
            playback.place = recorded
            playback.pass_by(playback.lines[recorded], now)
            return
        if any(_is_state(line) for line in playback.lines[playback.place :]) and playback.answered:
            # In version 2 not the response ends a turn but a state.
            update = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}
            params = {"sessionId": playback.session, "update": update}
            ended = {"jsonrpc": "2.0", "method": "session/update", "params": params}
            self._out.append(msgspec.json.encode(ended) + b"\n")
        elif not playback.answered and self.script.version == 1:
            self._out.append(CANCELLED % playback.id)
        elif not playback.answered:  # it was never inserted
            self._refuse(playback.id, REQUEST_CANCELLED, "replay: cancelled")
        playback.answered = True
        playback.lines, playback.place, playback.since, playback.before = [], 0, now, None


def _method(exchange: Exchange) -> str | None:
    return exchange.request.method if exchange.request is not None else None


def _is_state(line: Entry) -> bool:
    update = line.params.get("update")
    return isinstance(update, dict) and update.get("sessionUpdate") == "state_update"


# --- serving on stdin and stdout: a plain loop over two descriptors, because the editor waits for the first response

CHUNK: Final = 256 * 1024
"""Bytes read at once."""

PENDING: Final = 16 * 1024 * 1024
"""Bytes that may wait for a client that does not read, before we stop to listen to it."""


def serve(player: Player, after_message: Callable[[Player], None], source: int = 0, target: int = 1) -> None:
    """Play until the client closes its end or the player is over. `after_message` is called after each message."""
    framer = LineFramer()
    out = bytearray()
    listening = True
    while listening or out:
        now = time.monotonic()
        out += b"".join(player.ready(now))
        after_message(player)
        if player.over:
            listening = False
            if not out:
                return
        readable, writable = _wait(
            source if listening and len(out) < PENDING else None, target if out else None, player.wait(now)
        )
        if writable and not _write(target, out):
            return
        if readable:
            chunk = _read(source)
            for frame in framer.feed(chunk) if chunk else framer.end():
                now = time.monotonic()
                player.receive(bytes(frame) if isinstance(frame, bytes | bytearray) else frame.head, now)
                out += b"".join(player.ready(now))  # before the next line is read: the order matters
            if not chunk:
                out += b"".join(player.end(time.monotonic()))
                after_message(player)
                listening = False


def _wait(source: int | None, target: int | None, seconds: float | None) -> tuple[bool, bool]:
    """Whether there is something to read, and room to write."""
    poll = select.poll()
    if source is not None:
        poll.register(source, select.POLLIN)
    if target is not None:
        poll.register(target, select.POLLOUT)
    ready = {fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)}
    return source in ready, target in ready


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:  # a terminal that is gone, or nothing there from the start
        return b""


def _write(target: int, out: bytearray) -> bool:
    """Send what fits without waiting: a client that writes to us before it reads must not find us stuck. False: it is gone."""
    try:
        sent = os.write(target, out[: select.PIPE_BUF])
    except OSError:
        return False
    del out[:sent]
    return True
