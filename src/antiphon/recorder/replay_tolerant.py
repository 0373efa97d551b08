"""The agent's part for demos and for clients that differ: each question is answered as the recording answers such a question.

There is no fixed order. A question of the live client is matched with a recorded one of the same method, and what belonged to that
one is played: updates, questions to the client, the answer, with their pauses. What was recorded for questions that nobody asks is
never sent.
"""

from typing import Any

from antiphon.recorder.matching import Difference, differences, label
from antiphon.recorder.replay import INTERNAL, UNKNOWN_METHOD, Player
from antiphon.recorder.rewriting import Names, written_id
from antiphon.recorder.script import CANCEL, Exchange, Script, session_of
from antiphon.traffic.entries import Entry

__all__ = ["TolerantPlayer"]

CANCELLED = b'{"jsonrpc":"2.0","id":%b,"result":{"stopReason":"cancelled"}}\n'


class _Playing:
    """An exchange that is being played."""

    def __init__(self, exchange: Exchange, id: bytes, session: str | None, now: float) -> None:
        self.exchange = exchange
        self.id = id
        self.session = session
        """The session that the live question named."""
        self.lines = exchange.lines
        self.place = 0
        self.since = now
        self.before = exchange.question
        self.waiting: dict[bytes, Entry] = {}
        """Questions of ours that are open, by the id they were sent with."""
        self.answered = exchange.question is None

    @property
    def next(self) -> Entry | None:
        return self.lines[self.place] if self.place < len(self.lines) else None

    def pass_by(self, line: Entry, when: float) -> None:
        """This line was sent, or has come."""
        self.place += 1
        self.since = when
        self.before = line


class TolerantPlayer(Player):
    """Plays exchanges as they are asked for, several at once if need be."""

    def __init__(self, script: Script, names: Names, *, speed: float = 1.0) -> None:
        super().__init__(script, names, speed=speed)
        first, *self._exchanges = script.exchanges()
        self._unused = list(self._exchanges)
        self._playing = [_Playing(first, b"", None, 0.0)]
        self._fresh = 0

    def _start(self, now: float) -> None:
        self._playing[0].since = now

    def wait(self, now: float) -> float | None:
        if self.over:
            return None
        dues = [self._due(one) for one in self._playing]
        return min((max(0.0, due - now) for due in dues if due is not None), default=None)

    def _due(self, playing: _Playing) -> float | None:
        line = playing.next
        if line is None:
            return playing.since
        if self.script.is_ours(line):
            return playing.since + self._pause(line, playing.before)
        return None if self._waits_for(playing, line) else playing.since

    def _waits_for(self, playing: _Playing, line: Entry) -> bool:
        """Whether a line of theirs has to come first. The answer to a question that we did not ask, or withdrew, has not."""
        question = self.script.question_of(line)
        return line.method == CANCEL or (
            question is not None and any(question is one for one in playing.waiting.values())
        )

    def _advance(self, now: float) -> None:
        for playing in list(self._playing):
            while (due := self._due(playing)) is not None and due <= now:
                line = playing.next
                if line is None:
                    self._finish(playing)
                    break
                if self.script.is_ours(line):
                    self._say(playing, line)
                    playing.pass_by(line, due)
                else:
                    playing.pass_by(line, playing.since)

    def _say(self, playing: _Playing, line: Entry) -> None:
        if line is playing.exchange.answer:
            self._send(line, playing.id)
            playing.answered = True
        elif line.is_request:
            id = written_id(line.raw)
            if any(id in one.waiting for one in self._playing):  # played again before the first was answered
                self._fresh += 1
                id = b'"replay-%d"' % self._fresh
            playing.waiting[id] = line
            self._send(line, id)
        else:
            self._send(line)

    def _finish(self, playing: _Playing) -> None:
        self._playing.remove(playing)
        if not playing.answered and playing.exchange.question is not None:
            method = label(playing.exchange.question)
            self._refuse(playing.id, INTERNAL, f"replay: the recording ends without an answer to {method}")

    # What the client says.

    def _hear(self, entry: Entry, now: float) -> None:
        if entry.is_request:
            self._begin(entry, now)
        elif entry.is_answer:
            self._hear_answer(entry, now)
        elif entry.method == CANCEL:
            for playing in [one for one in self._playing if one.session == session_of(entry)]:
                self._cancel(playing, now)
        else:
            self._note(f"ignored: {label(entry)}")

    def _begin(self, entry: Entry, now: float) -> None:
        exchange = self._choose(entry)
        if exchange is None or exchange.question is None:
            self._refuse_unknown(entry)
            return
        if exchange in self._unused:
            self._unused.remove(exchange)
        else:
            self._note(f"played again: {label(entry)} (message {exchange.question.number})")
        self.names.learn(exchange.question.params, entry.params)
        for path, recorded, got in differences(self.names.value(exchange.question.params), entry.params, "params"):
            self._note(str(Difference(exchange.question.number, label(entry), path, recorded, got)))
        self.names.requests[written_id(exchange.question.raw)] = written_id(entry.raw)
        self._playing.append(_Playing(exchange, written_id(entry.raw), session_of(entry), now))

    def _choose(self, entry: Entry) -> Exchange | None:
        """The next unused one that asks the very same, or is of the same session, or of the same method; else the last one used."""
        unused = [one for one in self._unused if _method(one) == entry.method]
        used = [one for one in self._exchanges[::-1] if _method(one) == entry.method]
        for some in (unused, used):
            same = (one for one in some if self._is_same(one, entry.params))
            near = (one for one in some if self.names.value(one.session, "sessionId") == session_of(entry))
            found = next(same, None) or next(near, None) or next(iter(some), None)
            if found is not None:
                return found
        return None

    def _is_same(self, exchange: Exchange, params: dict[str, Any]) -> bool:
        return exchange.question is not None and self.names.value(exchange.question.params) == params

    def _refuse_unknown(self, entry: Entry) -> None:
        from antiphon.traffic.schema import methods  # here, because it reads the whole schema

        self._note(f"the recording has no {label(entry)}")
        if (entry.method, True) in methods():
            self._refuse(written_id(entry.raw), INTERNAL, f"replay: the recording has no answer to {label(entry)}")
        else:
            self._refuse(written_id(entry.raw), UNKNOWN_METHOD, "Method not found")

    def _hear_answer(self, entry: Entry, now: float) -> None:
        id = written_id(entry.raw)
        for playing in self._playing:
            if (question := playing.waiting.pop(id, None)) is not None:
                answer = self.script.answer_to(question)
                if answer is not None:
                    self.names.learn(answer.msg, entry.msg)
                    if answer is playing.next:  # the next line waited for this: its pause counts from now
                        playing.since = now
                return
        self._note("ignored: an answer to a question that is not open")

    def _cancel(self, playing: _Playing, now: float) -> None:
        """As recorded, if the recording has it too; else the turn is over at once."""
        if _method(playing.exchange) != "session/prompt":
            return
        playing.waiting.clear()  # whether the client answers them or not
        recorded = next(
            (n for n, line in enumerate(playing.lines) if n >= playing.place and line.method == CANCEL), None
        )
        if recorded is not None:
            playing.place = recorded
            playing.pass_by(playing.lines[recorded], now)
            return
        if not playing.answered:
            self._out.append(CANCELLED % playing.id)
            playing.answered = True
        # In the second version of the protocol not the answer ends a turn but a state: that one is told, at once.
        playing.lines = [line for line in playing.lines[playing.place :] if _is_state(line)]
        playing.place, playing.since, playing.before = 0, now, None


def _method(exchange: Exchange) -> str | None:
    return exchange.question.method if exchange.question is not None else None


def _is_state(line: Entry) -> bool:
    update = line.params.get("update")
    return isinstance(update, dict) and update.get("sessionUpdate") == "state_update"
