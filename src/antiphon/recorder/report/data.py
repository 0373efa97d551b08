"""The messages of a recording as JSON for the script of the report, in a form that no content can break out of."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from antiphon.recorder.analysis import Analysis, RecordedMessage
from antiphon.recorder.report.markup import Markup
from antiphon.recorder.report.timeline import Axis
from antiphon.text import EXACT, TAGS, exact

__all__ = ["data_block"]

LONGEST_TEXT: Final = 64 * 1024
"""Characters of one message. A picture in base64 is no more readable in full, and the whole is in the recording."""
ALL_TEXTS: Final = 48 * 1024 * 1024
"""Characters of all messages together; a browser opens a page of this size in a second or two. Later messages have no text."""


def _escape(code: int) -> str:
    """A character as JSON can write it without showing it: one number, or a pair of them beyond the first plane."""
    return json.dumps(chr(code))[1:-1] if code != 0x7F else "\\u007f"


_AS_JSON: Final = {code: _escape(code) for code in (*EXACT, *TAGS) if code >= 0x7F}
"""What would be invisible, as the escape that means the same inside JSON: what is shown is still the message, and can be copied."""


def data_block(analysis: Analysis, entries: Sequence[tuple[RecordedMessage, bytes]], axis: Axis) -> Markup:
    """The content of the element that carries the data."""
    names, sessions = _Numbered(), _Numbered()
    rows: list[list[object]] = []
    texts: list[str | None] = []
    left = ALL_TEXTS
    for shown, raw in entries:
        rows.append(_row(shown, names, sessions))
        text = _text(shown, raw) if left > 0 else None
        left -= len(text or "")
        texts.append(text)
    data = {
        "names": names.all,
        "sessions": sessions.all,
        "entries": rows,
        "texts": texts,
        "turns": [
            [
                turn.number,
                exact(turn.prompt),
                turn.message,
                turn.duration,
                exact(turn.error or turn.stop_reason or "no end"),
                turn.calls,
            ]
            for turn in analysis.turns
        ],
        "pairs": [[one.message, one.answer, one.duration] for one in analysis.requests if one.answer is not None],
        "unanswered": analysis.unanswered,
        "deviations": [
            [one.message, one.rule, exact(one.text), one.level, one.link]
            for one in (*analysis.deviations, *analysis.advice)
        ],
        "axis": axis.points,
        "restarts": axis.restarts,
    }
    return Markup(_inert(msgspec.json.encode(data).decode()))


class _Numbered:
    """Words that come again and again, text once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def of(self, words: str) -> int:
        place = self._places.setdefault(words, len(self.all))
        if place == len(self.all):
            self.all.append(exact(words))
        return place


def _row(shown: RecordedMessage, names: _Numbered, sessions: _Numbered) -> list[object]:
    """One message as a row, in the order that `model.js` reads."""
    return [
        shown.message,
        shown.line,
        round(shown.t, 6),
        int(shown.dir == "a2c"),
        names.of(shown.kind),
        names.of(shown.name),
        exact(shown.label),
        shown.size,
        None if shown.id is None else exact(shown.id),
        None if shown.session is None else sessions.of(shown.session),
        shown.turn,
        int(shown.error),
    ]


def _text(shown: RecordedMessage, raw: bytes) -> str:
    """The message as it was, as far as it is not too long."""
    text = raw.decode("utf-8", "replace")[:LONGEST_TEXT]
    return exact(text) if shown.kind == "noise" else text.translate(_AS_JSON)


def _inert(written: str) -> str:
    """JSON that means the same and holds nothing that ends an element or begins one."""
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return written
