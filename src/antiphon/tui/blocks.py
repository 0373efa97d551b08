"""Tool calls and diffs as lines, and streamed Markdown split into finished blocks and an open one. Pure.

Rule 1: nothing is lost and nothing is repeated: the blocks, one after the other, are the text.
Rule 2: a block is finished when no later text can change how it looks: at a blank line, a closing fence, the next item of a list.
Rule 3: no block grows without end. One that is too long is cut, a fence is closed and opened again, so that drawing the open one is cheap.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.protocol import v1
from antiphon.transcript.entries import CallEntry
from antiphon.transcript.presentation import shown_path
from antiphon.tui.painter import clean, exact, one_line, output_lines
from antiphon.tui.terminals import TerminalTail

__all__ = [
    "LONGEST",
    "MARKS",
    "Block",
    "DiffLines",
    "Splitter",
    "TailOf",
    "WordOf",
    "bounded",
    "call_texts",
    "change_of",
    "command_of",
    "content_word",
    "diff_texts",
]

# --- diffs -----------------------------------------------------------------------------------------------------------

LARGEST: Final = 4_000
"""Lines of a file beyond which its parts are not matched up: comparing takes time that grows with the square."""

CONTEXT: Final = 2
"""Unchanged lines shown around a change."""


@dataclass(frozen=True, slots=True)
class DiffLines:
    """The lines of a diff, and how many were added and removed."""

    lines: tuple[str, ...]
    """Each with ` `, `+`, `-` in front; `@` begins a part."""
    added: int
    removed: int


def change_of(old: str | None, new: str) -> DiffLines:
    """Compare two versions; no old one means that the file is new."""
    before, after = exact(old or "").splitlines(), exact(new).splitlines()
    lines = tuple(_compared(before, after))
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    if not added and not removed and (old or "") != new:
        lines = ("@ only the end of the last line differs, or the kind of line ends",)
    return DiffLines(lines, added, removed)


def _compared(before: list[str], after: list[str]) -> Iterator[str]:
    if max(len(before), len(after)) > LARGEST:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number or group[0][3]:  # nothing is left out before the first line of a file
            yield f"@ line {group[0][3] + 1}"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[i1:i2])
                continue
            yield from (f"-{line}" for line in before[i1:i2])
            yield from (f"+{line}" for line in after[j1:j2])


_STYLES: Final = {"+": "green", "-": "red", "@": "dim cyan", " ": "dim"}


def diff_texts(change: DiffLines, most: int | None = None) -> list[Text]:
    """Return a diff in colour, at most `most` lines of it."""
    shown = [
        Text(f"{line[0]} {line[1:]}" if line[0] != "@" else f"  {line[2:]}", _STYLES[line[0]]) for line in change.lines
    ]
    return bounded(shown, most)


def bounded(texts: Sequence[Text], most: int | None, *, tail: bool = False) -> list[Text]:
    """Return the first lines (or the last ones), and a line with the number of the others."""
    if most is None or len(texts) <= most:
        return list(texts)
    kept, left = max(most - 1, 1), len(texts) - max(most - 1, 1)
    more = Text(f"… {left} more {'line' if left == 1 else 'lines'}", "dim")
    return [more, *texts[-kept:]] if tail else [*texts[:kept], more]


# --- tool calls ------------------------------------------------------------------------------------------------------

DIFF_LINES: Final = 24
"""Lines of a diff in the chat. `/diff` shows more."""

OUTPUT_LINES: Final = 10
"""The last lines of a command's output."""

TEXT_LINES: Final = 6
"""Lines of what else a call shows."""

MARKS: Final = {
    v1.ToolStatus.PENDING: ("○", "dim"),
    v1.ToolStatus.IN_PROGRESS: ("◐", "yellow"),
    v1.ToolStatus.COMPLETED: ("✓", "green"),
    v1.ToolStatus.FAILED: ("✗", "red"),
}


TailOf: TypeAlias = Callable[[str], TerminalTail | None]
"""Output by terminal id."""

WordOf: TypeAlias = Callable[[str], str]
"""What became of a call that failed, by its id."""


def call_texts(
    call: CallEntry, cwd: str, tail_of: TailOf, spinner: str | None = None, failed: str = "failed"
) -> list[RenderableType]:
    """Return the lines of a call: its title, and what it shows. `failed` is the word for a failed call."""
    mark, style = MARKS[call.status.meaning]
    if spinner is not None and call.status.meaning == v1.ToolStatus.IN_PROGRESS:
        mark = spinner
    title = one_line(call.label)
    head = Text.assemble((mark, style), " ", (title, "bold"), no_wrap=True, overflow="ellipsis")
    if call.status.meaning == v1.ToolStatus.FAILED:
        head.append(f"  {'denied' if call.denied else failed}", "red")
    below: list[Text] = []
    command = command_of(call.raw_input)
    if command is not None and one_line(command) not in title:
        below += bounded([Text(f"$ {line}", "cyan") for line in exact(command).splitlines()], TEXT_LINES)
    for item in call.content:
        below += _item_texts(item, call, cwd, tail_of)
    return [head, *(Padding(text, (0, 0, 0, 2), expand=False) for text in below)]


def _item_texts(item: v1.ToolContent, call: CallEntry, cwd: str, tail_of: TailOf) -> list[Text]:
    match item:
        case v1.Diff(path=path, new_text=new, old_text=old):
            change = change_of(old, new)
            counts = f"+{change.added} -{change.removed}" + ("" if old is not None else "  new")
            head = Text.assemble(exact(shown_path(path, cwd)), ("  " + counts, "dim"))
            return [head, *diff_texts(change, DIFF_LINES)]
        case v1.TerminalItem(terminal_id=id):
            return _terminal_texts(tail_of(id) or _tail_of_output(call.raw_output))
        case v1.ContentItem(content=v1.TextBlock(text=text)):
            lines = [Text(clean(line), "dim") for line in unfenced(text).strip("\n").splitlines()]
            if call.kind.meaning == v1.ToolKind.EXECUTE:
                return bounded(lines, OUTPUT_LINES, tail=True)
            return bounded(lines, TEXT_LINES)
        case v1.ContentItem(content=block):
            return [Text(content_word(block), "dim")]
        case _:
            return [Text(f"[{item.kind}]", "dim")]


_FENCED: Final = re.compile(r"\s*(`{3,})[^\n`]*\n(.*?)\n?\1\s*", re.DOTALL)


def unfenced(text: str) -> str:
    """Return the content of a fence, if the text is one fence and nothing else."""
    whole = _FENCED.fullmatch(text)
    return whole[2] if whole is not None and whole[1] not in whole[2] else text


def _terminal_texts(tail: TerminalTail | None) -> list[Text]:
    if tail is None:
        return []
    texts = bounded([Text(line, "dim") for line in output_lines(tail.text)], OUTPUT_LINES, tail=True)
    return [*texts, Text(tail.ended, "dim italic")] if tail.ended else texts


def _tail_of_output(raw: object) -> TerminalTail | None:
    """Return the output of a terminal of an earlier run, if the agent has stored it."""
    text = raw.get("output") if isinstance(raw, Mapping) else None
    return TerminalTail(text) if isinstance(text, str) else None


def command_of(raw: object) -> str | None:
    """Return the command line in the input of a call, under the names that agents use."""
    if not isinstance(raw, Mapping):
        return None
    for name in ("command", "cmd", "script"):
        match raw.get(name):
            case str(line) if line.strip():
                return line
            case list(words) if words and all(isinstance(word, str) for word in words):
                import shlex

                return shlex.join(words)
            case _:
                pass
    return None


def content_word(block: v1.ContentBlock) -> str:
    """Describe content that is not text, in brackets."""
    match block:
        case v1.TextBlock(text=text):
            return clean(text)
        case v1.ImageBlock(mime_type=mime, data=data):
            return f"[image: {one_line(mime)}, {_size(data)}]"
        case v1.AudioBlock(mime_type=mime, data=data):
            return f"[audio: {one_line(mime)}, {_size(data)}]"
        case v1.ResourceLink(name=name, uri=uri):
            return f"[link: {one_line(name)}, {exact(uri)}]"
        case v1.EmbeddedResource(resource=resource):
            return f"[resource: {exact(resource.uri)}]"
        case _:
            return f"[{block.kind}]"


def _size(data: str) -> str:
    count = len(data) * 3 // 4
    return f"{count} bytes" if count < 10_000 else f"{count // 1024} KiB"


LONGEST: Final = 8_000
"""Characters of a block before it is cut: some screens of text, and a few milliseconds to draw."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_INNER_FENCE: Final = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(\s|$)")
_RULE: Final = re.compile(r" {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
_ITEM: Final = re.compile(r" {0,1}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_INTERRUPTING_ITEM: Final = re.compile(r" {0,1}(?:[-*+]|1[.)])\s+\S")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of Markdown. `gap`: whether an empty line belongs before it."""

    text: str
    gap: bool = True


class Splitter:
    """Splits streamed Markdown into finished blocks and an open one."""

    def __init__(self) -> None:
        self._partial = ""
        self._lines: list[str] = []
        self._size = 0
        self._kind: Literal["", "text", "list", "fence"] = ""
        self._fence = ""  # what closes the fence that is open, also inside of an item
        self._gap = True
        self._done: list[Block] = []

    def feed(self, text: str) -> list[Block]:
        """Add a piece of text, and return the blocks that it finishes."""
        *whole, self._partial = (self._partial + text).split("\n")
        for line in whole:
            self._line(line)
        while len(self._partial) > LONGEST:
            self._cut_partial()
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Block]:
        """Return the last blocks, at the end of the text."""
        if self._partial:
            self._line(self._partial)
        self._partial = ""
        self._emit()
        done, self._done, self._gap = self._done, [], True
        return done

    @property
    def open(self) -> Block | None:
        """The block that may still change."""
        lines = [*self._lines, self._partial] if self._partial else self._lines
        text = "\n".join(lines)
        return Block(text, self._gap) if text.strip() else None

    # One line.

    def _line(self, line: str) -> None:
        if self._fence:
            self._add(line)
            if _closes(line, self._fence):
                self._fence = ""
                if self._kind == "fence":
                    self._emit()
            return
        if not line.strip():
            self._blank()
        elif not (self._kind == "list" and self._goes_on_list(line)) and not (
            self._kind == "text" and self._goes_on_text(line)
        ):
            self._begin(line)

    def _blank(self) -> None:
        if self._kind == "list":
            self._add("")  # the next line shows whether it goes on
        else:
            self._emit()
            self._gap = True

    def _goes_on_list(self, line: str) -> bool:
        after_blank = not self._lines[-1]
        if line.startswith(("  ", "\t")):
            self._add(line)
            if (fence := _INNER_FENCE.match(line)) is not None:
                self._fence = fence[1]
            return True
        if not after_blank and not any(pattern.match(line) for pattern in (_ITEM, _FENCE, _HEADING, _RULE)):
            self._add(line)  # written lazily, without its indentation
            return True
        self._emit()
        self._gap = after_blank or _ITEM.match(line) is None
        return False

    def _goes_on_text(self, line: str) -> bool:
        if not any(pattern.match(line) for pattern in (_FENCE, _HEADING, _INTERRUPTING_ITEM)):
            self._add(line)
            return True
        self._emit()
        self._gap = _INTERRUPTING_ITEM.match(line) is None
        return False

    def _begin(self, line: str) -> None:
        self._add(line)
        if (fence := _FENCE.match(line)) is not None:
            self._kind, self._fence = "fence", fence[1]
        elif _HEADING.match(line) or _RULE.match(line):
            self._emit()
        else:
            self._kind = "list" if _ITEM.match(line) else "text"

    # The open block.

    def _add(self, line: str) -> None:
        if self._lines and self._size + len(line) > LONGEST:
            self._cut()
        self._lines.append(line)
        self._size += len(line) + 1

    def _emit(self) -> None:
        if text := "\n".join(self._lines).rstrip("\n"):
            self._done.append(Block(text, self._gap))
            self._gap = False  # until a blank line, or a kind of line, changes it
            if self._kind in ("fence", ""):
                self._gap = True
        self._lines, self._size, self._kind, self._fence = [], 0, "", ""

    def _cut(self) -> None:
        kind, fence, first = self._kind, self._fence, self._lines[0]
        if kind == "fence":
            self._lines.append(fence)
        self._emit()
        self._kind, self._fence, self._gap = kind, fence, False
        if kind == "fence":
            self._lines, self._size = [first], len(first)

    def _cut_partial(self) -> None:
        """Cut an unfinished line between two words."""
        at = self._partial.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
        head, self._partial = self._partial[:at], self._partial[at:]
        if self._kind == "":
            self._kind = "text"
        self._add(head)
        self._cut()


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and not mark.strip(fence[0])
