"""The agent's part for tests: the client has to say exactly what was recorded, in the recorded order, or hears what differed.

Order is that of cause and effect: what the client said between two answers or questions of the agent may come in any order, and
an answer may come as soon as it was asked for.
"""

from collections.abc import Iterator
from itertools import islice

from antiphon.recorder.matching import ABSENT, Difference, Ignored, content, differences, label, signature
from antiphon.recorder.replay import WRONG, Player
from antiphon.recorder.rewriting import Names, written_id
from antiphon.recorder.script import Script
from antiphon.traffic.entries import Entry

__all__ = ["StrictPlayer"]


class StrictPlayer(Player):
    """Goes through the recording line by line. The first thing that differs ends it."""

    def __init__(self, script: Script, names: Names, *, speed: float = 1.0, ignored: Ignored | None = None) -> None:
        super().__init__(script, names, speed=speed)
        self._ignored = ignored or Ignored()
        self._place = 0  # the first line that was neither sent nor heard
        self._since = 0.0  # when the line before it was
        self._heard: dict[int, float] = {}  # number of a recorded line of theirs → when it came
        self._ids: dict[int, bytes] = {}  # number of a recorded question of theirs → the id it has now
        self._asked: dict[bytes, Entry] = {}

    @property
    def matched(self) -> int:
        """How many lines of the peer were the recorded ones."""
        return len(self._heard)

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
                self._say(line)
                self._since = due
            elif line.number in self._heard:
                self._since = max(self._since, self._heard[line.number])
            else:
                return
            self._place += 1

    def _say(self, line: Entry) -> None:
        question = self.script.question_of(line)
        self._send(line, self._ids.get(question.number) if question is not None else None)
        if line.is_request:
            self._asked[written_id(line.raw)] = line

    def _hear(self, entry: Entry, now: float) -> None:
        question = self._asked.pop(written_id(entry.raw), None) if entry.is_answer else None
        expected = self._expected(entry) if question is None else self.script.answer_to(question)
        if question is not None and expected is None:  # the recording went on, or ended, without this answer
            return
        what = f"answer to {label(question)}" if question is not None else ""
        found = [self._unexpected(entry)] if expected is None else self._compare(expected, entry, what)
        if expected is None or found:
            self._refuse_all(entry, [str(one) for one in found])
            return
        if entry.is_request:
            self._ids[expected.number] = self.names.requests[written_id(expected.raw)] = written_id(entry.raw)
        self._heard[expected.number] = now

    def _expected(self, entry: Entry) -> Entry | None:
        """The recorded line that this has to be: the same if there is one, else the first of its kind."""
        alike = [line for line in self._window() if signature(line) == signature(entry)]
        if len(alike) > 1:
            new = content(entry)
            same = (line for line in alike if not list(differences(self.names.content(line), new)))
            return next(same, alike[0])
        return alike[0] if alike else None

    def _window(self) -> Iterator[Entry]:
        """What the peer may say now: all up to the next answer or question of ours."""
        for line in islice(self.script.lines, self._place, None):
            if not self.script.is_ours(line):
                if line.number not in self._heard and self.script.question_of(line) is None:
                    yield line
            elif line.is_request or line.is_answer:
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
        speaker = self.script.ours.other.speaker
        for line in self.script.lines[self._place :]:
            if not self.script.is_ours(line) and line.number not in self._heard:
                question = self.script.question_of(line)
                what = f"the answer to {label(question)}" if question is not None else label(line)
                self.problems.append(f"the {speaker} never sent: {what} (message {line.number})")
