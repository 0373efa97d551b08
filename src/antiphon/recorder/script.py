"""A recording as a script for one side: who says what in which order, what answers what, and what belongs to which question.

Pure, and fed with the entries of a recording. It interprets no more than JSON-RPC and a few names of the protocol, so it serves
every version of it.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from antiphon.errors import AcpError, Advice
from antiphon.recorder.rewriting import written_id
from antiphon.recorder.wording import counted
from antiphon.traffic.entries import Direction, Entry

__all__ = ["CANCEL", "BadRecording", "Exchange", "Script", "conversations", "is_none", "session_of"]

CANCEL: Final = "session/cancel"


class BadRecording(AcpError):
    """Nothing can be played from this; the text says why and what to do."""


def is_none(name: str, lines: int) -> Advice:
    """What there is to say of a file that is no recording."""
    said = f"no message in {counted(lines, 'line')}" if lines else "it is empty"
    return Advice(
        f"`{name}` is not a recording: {said}",
        'a line is {"t": seconds, "dir": "c2a" or "a2c", "msg": …}, as `antiphon record` writes it',
    )


def conversations(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The lines of each conversation: a client that says `initialize` once more is a new one.

    Raises:
        BadRecording: there is no line, or none of a client.
    """
    found: list[list[Entry]] = [[]]
    begun = False
    for entry in entries:
        if entry.dir is Direction.C2A and entry.is_request and entry.method == "initialize":
            if begun:
                found.append([])
            begun = True
        found[-1].append(entry)
    if not found[0]:
        raise BadRecording(
            "the recording is empty",
            hint='it takes lines such as {"t": 0.1, "dir": "c2a", "msg": {…}}; `antiphon record` makes them.',
        )
    if not any(entry.dir is Direction.C2A for entry in found[0]):
        raise BadRecording(
            "the recording has no line of a client, so nothing in it is an answer",
            hint="record both directions: client to agent is `c2a`, agent to client `a2c`.",
        )
    return found


class Exchange:
    """A question of the other side, and in their order the lines that belong to it: ours, and what ours had to wait for."""

    def __init__(self, question: Entry | None, answer: Entry | None) -> None:
        self.question = question
        self.answer = answer
        self.session = session_of(question) or session_of(answer)
        self.lines: list[Entry] = []
        self.is_open = question is not None
        """While it is being put together: whether its answer has not come yet."""

    def add(self, line: Entry) -> None:
        """The next line that belongs to it."""
        self.lines.append(line)
        self.is_open = self.is_open and line is not self.answer


class Script:
    """One conversation, for the side that speaks in the direction `ours`."""

    def __init__(self, lines: list[Entry], ours: Direction) -> None:
        self.lines = lines
        self.ours = ours
        self._answers: dict[int, Entry] = {}
        self._questions: dict[int, Entry] = {}
        self._pair()
        mine = [line for line in lines if line.dir is ours]
        self._cut = mine[-1] if mine and _is_cut(mine[-1]) else None

    def _pair(self) -> None:
        # By the id as it was written: a number too big for a float is still an id of its own.
        open: dict[tuple[Direction, bytes], Entry] = {}
        for line in self.lines:
            if line.is_request:
                open[line.dir, written_id(line.raw)] = line
            elif line.is_answer and (question := open.pop((line.dir.other, written_id(line.raw)), None)) is not None:
                self._answers[question.number] = line
                self._questions[line.number] = question

    def answer_to(self, question: Entry) -> Entry | None:
        """The recorded answer to a recorded question."""
        return self._answers.get(question.number)

    def question_of(self, answer: Entry) -> Entry | None:
        """The recorded question that a recorded answer is for."""
        return self._questions.get(answer.number)

    def is_ours(self, line: Entry) -> bool:
        """Whether it is for us to say."""
        return line.dir is self.ours

    def ending(self, line: Entry) -> bytes:
        """The line end to send. A message that was cut off at the very end had none: whoever sent it died over it."""
        return b"" if line is self._cut else b"\n"

    def exchanges(self) -> list[Exchange]:
        """The conversation by question. The first has none: it is what we say before anybody asks."""
        found = [Exchange(None, None)]
        homes: dict[int, Exchange] = {}  # of a question of ours: where its answer belongs
        for line in self.lines:
            if not self.is_ours(line):
                self._hear(line, found, homes)
                continue
            question = self.question_of(line)
            home = homes[question.number] if question is not None else _owner(session_of(line), found)
            home.add(line)
            homes[line.number] = home
        return found

    def _hear(self, line: Entry, found: list[Exchange], homes: dict[int, Exchange]) -> None:
        if line.is_request:
            found.append(Exchange(line, self.answer_to(line)))
            homes[line.number] = found[-1]
        elif line.is_answer:
            question = self.question_of(line)
            if question is not None:
                homes[question.number].add(line)
        elif line.method == CANCEL:
            for one in found:
                if one.is_open and one.session == session_of(line):
                    one.add(line)


def _is_cut(line: Entry) -> bool:
    text = line.raw.strip()
    return line.is_noise and text.startswith(b"{") and not text.endswith(b"}")


def session_of(line: Entry | None) -> str | None:
    """The session that a line is about, or that it opens."""
    if line is None or not isinstance(line.msg, dict):
        return None
    about: Any = line.msg.get("params", line.msg.get("result"))
    session = about.get("sessionId") if isinstance(about, dict) else None
    return session if isinstance(session, str) else None


def _owner(session: str | None, found: list[Exchange]) -> Exchange:
    """To which exchange a line of ours belongs that answers nothing: an open one of its session, before all."""
    latest = found[::-1]
    looks: tuple[Callable[[Exchange], bool], ...] = (
        lambda one: one.is_open and one.session == session,
        lambda one: one.is_open and (one.session is None or session is None),
        lambda one: session is not None and one.session == session,
        lambda one: one.is_open,
    )
    return next((one for fits in looks for one in latest if fits(one)), latest[0])
