"""A change of a file as lines: with line numbers, highlighted code and marked words.

One painter for every place that shows a change: the transcript, the permission question, `/diff` and the pager.
Colour adds no information: each line begins with its number and `+`, `-` or a blank. Some agents send whole files and some
only the words or lines that they replace: their place is looked up in the file, which gives them line numbers and the lines around
them. Without a place they are shown as they came.
"""

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.syntax import Syntax
from rich.text import Text

from antiphon.transcript.presentation import shown_path
from antiphon.tui.output.links import file_link
from antiphon.tui.painter import exact

__all__ = [
    "LONGEST_SHOWN",
    "DiffLines",
    "DiffRow",
    "HangingText",
    "bounded",
    "change_of",
    "diff_texts",
    "file_texts",
    "indented",
    "placed",
]

LARGEST: Final = 4_000
"""Lines of a file beyond which its parts are not matched up: comparing takes time that grows with the square."""

CONTEXT: Final = 2
"""Unchanged lines shown around a change."""

REMEMBERED: Final = 16
"""Changes whose comparison is kept: those in sight are drawn many times in a second while an agent writes."""

SIMILAR: Final = 0.4
"""How much of two lines has to be the same for single words to be marked. In lines that differ more, most words would be."""

COLOURED: Final = 5_000
"""Lines that are highlighted at once: about half a second. More are shown as they are."""

CODE_THEME: Final = "ansi_dark"
"""The theme of highlighted code: the terminal's own colours."""

MOST_READ: Final = 1 << 20
"""Bytes of a file that is read for the number of a line."""

LONGEST: Final = 500
"""Characters of a line in which words are compared."""

LONGEST_SHOWN: Final = 240
"""Characters of a line where only a part of all lines is shown: three rows of an ordinary terminal. A file may be one line of a megabyte."""


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff. `mark` is ` `, `+`, `-`, or `@` for a line of our own between the parts."""

    mark: str
    text: str
    number: int = 0
    """Its number in the file: the old one of a removed line, else the new one."""
    words: tuple[tuple[int, int], ...] = ()
    """Where the words stand that differ from the line that it replaces, or that replaces it."""


@dataclass(frozen=True, slots=True)
class DiffLines:
    """The lines of a diff, and how many were added and removed."""

    rows: tuple[DiffRow, ...]
    added: int
    removed: int
    is_new: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines with their marks in front."""
        return tuple(f"@ {row.text}" if row.mark == "@" else f"{row.mark}{row.text}" for row in self.rows)

    @property
    def counts(self) -> str:
        """How many lines were added and removed, in short."""
        return f"+{self.added} -{self.removed}" + ("  new" if self.is_new else "")


@lru_cache(maxsize=REMEMBERED)
def change_of(old: str | None, new: str) -> DiffLines:
    """Compare two versions; no old one means that the file is new."""
    before, after = exact(old or "").splitlines(), exact(new).splitlines()
    rows = tuple(_compared(before, after))
    added, removed = (sum(row.mark == mark for row in rows) for mark in "+-")
    if not added and not removed and (old or "") != new:
        rows = (DiffRow("@", "only the end of the last line differs, or the kind of line ends"),)
    return DiffLines(rows, added, removed, old is None)


def _compared(before: list[str], after: list[str]) -> Iterator[DiffRow]:
    if max(len(before), len(after)) > LARGEST:
        yield from _replaced(before, after, 1, 1)
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number:
            yield DiffRow("@", "⋯")
        for tag, i1, i2, j1, j2 in _without_blank_ends(group, before):
            if tag == "equal":
                yield from (DiffRow(" ", line, j1 + place + 1) for place, line in enumerate(before[i1:i2]))
            else:
                yield from _replaced(before[i1:i2], after[j1:j2], i1 + 1, j1 + 1)


_Opcode: TypeAlias = tuple[str, int, int, int, int]


def _without_blank_ends(group: Sequence[_Opcode], before: Sequence[str]) -> list[_Opcode]:
    """Return a part without the blank lines at its beginning and end that did not change: they show nothing."""
    found = list(group)
    if found and found[0][0] == "equal":
        tag, i1, i2, j1, j2 = found[0]
        blank = next((place for place, line in enumerate(before[i1:i2]) if line.strip()), i2 - i1)
        found[0] = (tag, i1 + blank, i2, j1 + blank, j2)
    if found and found[-1][0] == "equal":
        tag, i1, i2, j1, j2 = found[-1]
        blank = next((place for place, line in enumerate(reversed(before[i1:i2])) if line.strip()), i2 - i1)
        found[-1] = (tag, i1, i2 - blank, j1, j2 - blank)
    return found


def _replaced(before: Sequence[str], after: Sequence[str], first_old: int, first_new: int) -> Iterator[DiffRow]:
    marked = _marked_words(before, after)
    for place, line in enumerate(before):
        yield DiffRow("-", line, first_old + place, marked[place][0] if place < len(marked) else ())
    for place, line in enumerate(after):
        yield DiffRow("+", line, first_new + place, marked[place][1] if place < len(marked) else ())


_Spans: TypeAlias = tuple[tuple[int, int], ...]
_WORDS: Final = re.compile(r"\w+|\s+|.")


def _marked_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[_Spans, _Spans]]:
    """Return for each pair of lines where they differ. Lines are paired if there are as many before as after."""
    return [_different(old, new) for old, new in zip(before, after, strict=True)] if len(before) == len(after) else []


def _different(old: str, new: str) -> tuple[_Spans, _Spans]:
    if max(len(old), len(new)) > LONGEST:
        return (), ()
    ours, theirs = _WORDS.findall(old), _WORDS.findall(new)
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    if matcher.ratio() < SIMILAR:
        return (), ()
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _spans(ours, [(code[1], code[2]) for code in changed]),
        _spans(theirs, [(code[3], code[4]) for code in changed]),
    )


def _spans(words: Sequence[str], ranges: Sequence[tuple[int, int]]) -> _Spans:
    places = [0]
    for word in words:
        places.append(places[-1] + len(word))
    return tuple((places[first], places[last]) for first, last in ranges if first < last)


# --- as text ---------------------------------------------------------------------------------------------------------

_STYLES: Final = {"+": "diff.added", "-": "diff.removed", "@": "diff.part", " ": "diff.same"}
_WORD_STYLES: Final = {"+": "diff.added.word", "-": "diff.removed.word"}


class HangingText:
    """Text with something in front: where it is too long for a line, the next one begins below the text."""

    def __init__(self, front: Text, text: Text) -> None:
        self.front = front
        self.text = text

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return self.front.plain + self.text.plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = self.front.cell_len
        lines = self.text.wrap(console, max(options.max_width - indent, 10), overflow="fold") or [Text()]
        for number, line in enumerate(lines):
            yield Text.assemble(self.front if number == 0 else " " * indent, line, no_wrap=True, overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = min(max(map(cell_len, self.plain.split("\n"))), options.max_width)
        return Measurement(width, width)


def indented(text: HangingText | Text) -> HangingText:
    """Return a text two columns further to the right."""
    if isinstance(text, HangingText):
        return HangingText(Text.assemble("  ", text.front), text.text)
    return HangingText(Text("  "), text)


def diff_texts(
    change: DiffLines, most: int | None = None, *, path: str = "", first: int | None = None, hint: str = ""
) -> list[HangingText | Text]:
    """Return a diff in colour, at most `most` lines of it.

    With `path` it has the colours of that language. With `first`, the number of the first line in the file, lines have numbers.
    """
    return bounded(_painted(change, path, first), most, hint=hint)


def file_texts(
    path: str, old: str | None, new: str, cwd: str, most: int | None = None, style: str = "", hint: str = ""
) -> list[HangingText | Text]:
    """Return the change of one file: its path, which can be clicked, how much was changed, and the diff."""
    old, new, first = _in_file(os.path.join(cwd, path), old, new)
    change = change_of(old, new)
    head = Text.assemble((exact(shown_path(path, cwd)), file_link(path, cwd, style)), (f"  {change.counts}", "dim"))
    return [head, *diff_texts(change, most, path=path, first=first, hint=hint)]


_Placed: TypeAlias = tuple[str | None, str, int | None]


def placed(old: str, new: str, file: str) -> _Placed:
    """Return a change of a part of a file as a change of whole lines, with those around it, and the number of the first one.

    The file may be as it was before the change, or after it. If that or the place is not certain, there is no number.
    """
    before, after = _only_place(old, file), _only_place(new, file)
    if before is not None and after is not None and new not in old:
        # What was put in holds what was there, so it is in; else one of the two stands there by chance.
        before, after = (None, after) if old in new else (None, None)
    part, at = (old, before) if before is not None else (new, after)
    if at is None:
        return old, new, None
    start, end = file.rfind("\n", 0, at) + 1, at + len(part)
    if not part.endswith("\n"):
        end = file.find("\n", end) + 1 or len(file)
    for _ in range(CONTEXT):
        start = file.rfind("\n", 0, start - 1) + 1 if start else 0
        end = file.find("\n", end) + 1 or len(file)
    head, tail = file[start:at], file[at + len(part) : end]
    return head + old + tail, head + new + tail, file.count("\n", 0, start) + 1


def _only_place(text: str, file: str) -> int | None:
    """Return where a text stands in a file; None if it does not, or more than once."""
    at = file.find(text) if text else -1
    return None if at < 0 or file.find(text, at + 1) >= 0 else at


@lru_cache(maxsize=4 * REMEMBERED)
def _in_file(path: str, old: str | None, new: str) -> _Placed:
    """Return a change at its place in the file as it is at this moment."""
    if old is None:
        return old, new, 1
    try:
        if os.path.getsize(path) > MOST_READ:
            return old, new, None
        with open(path, encoding="utf-8", newline="") as file:
            now = file.read()
    except (OSError, ValueError):
        return old, new, None
    return (old, new, 1) if now in (old, new) else placed(old, new, now)


def bounded(
    texts: "Sequence[HangingText | Text] | Sequence[Text]",
    most: int | None,
    *,
    tail: bool = False,
    hint: str = "",
    beyond: int = 0,
    is_cut: bool = False,
) -> list[HangingText | Text]:
    """Return the first lines (or the last ones), and a line with the number of the others.

    `beyond` lines are not in `texts` at all. Of a long line the beginning is shown; `is_cut`: one of them was cut before.
    """
    if most is None:
        return list(texts)
    left = len(texts) + beyond - max(most - 1, 1) if len(texts) + beyond > most else 0
    kept = texts if not left else texts[-max(most - 1, 1) :] if tail else texts[: max(most - 1, 1)]
    shown = [_shortened(text) for text in kept]
    if left:
        words = f"… {left} more {'line' if left == 1 else 'lines'}"
    elif is_cut or any(short is not text for short, text in zip(shown, kept, strict=True)):
        words = "… long lines are cut"
    else:
        return shown
    more = Text(f"{words}{hint}", "dim")
    return [more, *shown] if tail else [*shown, more]


def _shortened(text: HangingText | Text) -> HangingText | Text:
    """Return the beginning of a long line, else the line itself."""
    if isinstance(text, HangingText):
        return text if len(text.text) <= LONGEST_SHOWN else HangingText(text.front, _beginning(text.text))
    return text if len(text) <= LONGEST_SHOWN else _beginning(text)


def _beginning(text: Text) -> Text:
    return text[: LONGEST_SHOWN - 1].append("…")


@lru_cache(maxsize=REMEMBERED)
def _painted(change: DiffLines, path: str, first: int | None) -> tuple[HangingText, ...]:
    width = max((len(str(row.number + (first or 1) - 1)) for row in change.rows), default=1)
    if first is None:
        width = -1
    codes = _codes(change.rows, path)
    found = []
    for row, code in zip(change.rows, codes, strict=True):
        style = _STYLES[row.mark]
        if row.mark == "@":
            found.append(HangingText(Text(" " * (width + 1)), Text(row.text, style)))
            continue
        text = code.copy()
        for start, end in row.words:
            text.stylize(_WORD_STYLES[row.mark], start, end)
        number = f"{row.number + first - 1:>{width}} " if first is not None else ""
        front = Text.assemble((number, "diff.number"), (f"{row.mark} ", style))
        found.append(HangingText(front, text))
    return tuple(found)


def _codes(rows: Sequence[DiffRow], path: str) -> list[Text]:
    """Return the code of each line. Removed lines are in one colour, the others are highlighted as the new file."""
    kept = [row for row in rows if row.mark in "+ "]
    lines = iter(_highlighted([row.text for row in kept], path))
    found = []
    for row in rows:
        if row.mark in "+ ":
            line = next(lines)
            line.style = _STYLES[row.mark]
            found.append(line)
        else:
            found.append(Text(row.text, _STYLES[row.mark]))
    return found


def _highlighted(lines: Sequence[str], path: str) -> list[Text]:
    """Return lines of code in colour; as they are if the language of the file is not known."""
    lexer = Syntax.guess_lexer(path) if path and len(lines) <= COLOURED else "default"
    if lexer in ("default", "text"):
        return [Text(line) for line in lines]
    code = Syntax("", lexer, theme=CODE_THEME, background_color="default").highlight("\n".join(lines))
    shown = list(code.split("\n", allow_blank=True))[: len(lines)]
    for text in shown:
        text.no_wrap, text.justify = None, None
    # A lexer drops empty lines at the beginning: then the colours would be on wrong lines.
    return shown if [text.plain for text in shown] == list(lines) else [Text(line) for line in lines]
