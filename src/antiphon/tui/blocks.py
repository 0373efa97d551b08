"""Tool calls and diffs as lines, and streamed Markdown split into finished blocks and an open one. Pure.

Rule 1: nothing is lost and nothing is repeated: the blocks, one after the other, are the text.
Rule 2: a block is finished when no later text can change how it looks: at a blank line, a closing fence, the next item of a list.
Rule 3: no block grows without end. One that is too long is cut, a fence is closed and opened again, so that drawing the open one is cheap.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from antiphon.protocol import v1
from antiphon.transcript.entries import CallEntry
from antiphon.transcript.presentation import antiphon_meta, shown_path
from antiphon.tui.output.diff import LONGEST_SHOWN, HangingText, bounded, file_texts, indented
from antiphon.tui.output.links import file_link
from antiphon.tui.painter import clean, exact, one_line, output_lines
from antiphon.tui.terminals import TerminalTail

__all__ = [
    "LONGEST",
    "MARKS",
    "UNFOLD",
    "Block",
    "Splitter",
    "TailOf",
    "WordOf",
    "call_texts",
    "command_of",
    "content_word",
]

# --- tool calls ------------------------------------------------------------------------------------------------------

DIFF_LINES: Final = 24
"""Lines of a diff in the chat. `/diff` shows more."""

OUTPUT_LINES: Final = 10
"""The last lines of a command's output."""

TEXT_LINES: Final = 6
"""Lines of what else a call shows."""

LOOKED_AT: Final = 16_000
"""Characters of an output that are looked at for the lines in sight: it is drawn many times while it grows."""

LINKED: Final = 8
"""Paths of a call that can be clicked in its title."""

UNFOLD: Final = " · Ctrl-O"
"""Names the key that shows the lines which are left out."""

MARKS: Final = {
    v1.ToolStatus.PENDING: ("○", "dim"),
    v1.ToolStatus.IN_PROGRESS: ("◐", "warning"),
    v1.ToolStatus.COMPLETED: ("✓", "done"),
    v1.ToolStatus.FAILED: ("✗", "error"),
}


TailOf: TypeAlias = Callable[[str], TerminalTail | None]
"""Output by terminal id."""

WordOf: TypeAlias = Callable[[str], str]
"""What became of a call that failed, by its id."""


def call_texts(
    call: CallEntry,
    cwd: str,
    tail_of: TailOf,
    spinner: str | None = None,
    failed: str = "failed",
    *,
    whole: bool = False,
) -> list[RenderableType]:
    """Return the lines of a call: its title, and what it shows, folded or `whole`. `failed` is the word for a failed call."""
    status = call.status.meaning
    # An agent may report only later, or never, that a call was denied.
    denied = status != v1.ToolStatus.COMPLETED and (call.denied or failed == "denied")
    mark, style = MARKS[v1.ToolStatus.FAILED if denied else status]
    if spinner is not None and status == v1.ToolStatus.IN_PROGRESS and not denied:
        mark = spinner
    title = Text.assemble((mark, style), " ", no_wrap=True, overflow="ellipsis").append_text(_title(call, cwd))
    head: Text | EndedLine = title
    if denied or status == v1.ToolStatus.FAILED:
        head = EndedLine(title, Text(f"  {'denied' if denied else failed}", "error"))
    if denied:  # nothing happened, and the rest is for the model
        why = [Text(one_line(call.denied_because), "dim")] if call.denied_because else []
        return [head, *map(indented, why)]
    below: list[HangingText | Text] = []
    command = command_of(call.raw_input)
    if command is not None and one_line(command) not in one_line(call.label):
        lines = [Text(f"$ {line}", "markdown.code") for line in exact(command).splitlines()]
        below += bounded(lines, None if whole else TEXT_LINES, hint=UNFOLD)
    for item in call.content:
        below += _item_texts(item, call, cwd, tail_of, whole=whole)
    return [head, *map(indented, below)]


class EndedLine:
    """A line whose end is shown however long its beginning is."""

    def __init__(self, beginning: Text, end: Text) -> None:
        self._beginning = beginning
        self._end = end

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return self._beginning.plain + self._end.plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        beginning = self._beginning.copy()
        beginning.truncate(max(options.max_width - self._end.cell_len, 1), overflow="ellipsis")
        yield Text.assemble(beginning, self._end, no_wrap=True, overflow="ellipsis")


def _title(call: CallEntry, cwd: str) -> Text:
    """Return the title of a call. A path in it can be clicked."""
    title = Text(one_line(call.label), "tool")
    for place in call.locations[:LINKED]:
        for name in dict.fromkeys((exact(shown_path(place.path, cwd)), exact(place.path))):
            if name and (at := title.plain.find(name)) >= 0:
                title.stylize(file_link(place.path, cwd), at, at + len(name))
                break
    return title


def _item_texts(
    item: v1.ToolContent, call: CallEntry, cwd: str, tail_of: TailOf, *, whole: bool
) -> list[HangingText | Text]:
    match item:
        case v1.Diff(path=path, new_text=new, old_text=old):
            return file_texts(path, old, new, cwd, None if whole else DIFF_LINES, hint=UNFOLD)
        case v1.TerminalItem(terminal_id=id):
            return _terminal_texts(tail_of(id) or _tail_of_output(call.raw_output), whole=whole)
        case v1.ContentItem(meta=meta) if "question" in antiphon_meta(meta):
            return []  # it was part of the question
        case v1.ContentItem(content=v1.TextBlock(text=text)):
            runs = call.kind.meaning == v1.ToolKind.EXECUTE
            text = unfenced(text).strip("\n")
            return _folded(text, OUTPUT_LINES if runs else TEXT_LINES, tail=runs, whole=whole, lines_of=_plain_lines)
        case v1.ContentItem(content=block):
            return [Text(content_word(block), "dim")]
        case _:
            return [Text(f"[{item.kind}]", "dim")]


def _plain_lines(text: str) -> list[str]:
    return [clean(line) for line in text.splitlines()]


def _folded(
    text: str, most: int, *, tail: bool, whole: bool, lines_of: Callable[[str], list[str]]
) -> list[HangingText | Text]:
    """Return a text as lines, all or the first or last ones. Of a long one only what may be in sight is looked at."""
    if whole:
        return [Text(line, "dim") for line in lines_of(text)]
    beyond, is_cut = 0, len(text) > LOOKED_AT
    if is_cut:
        begin, end = (len(text) - LOOKED_AT, len(text)) if tail else (0, LOOKED_AT)
        beyond = text.count("\n", 0, begin) if tail else text.count("\n", end)
        is_cut = text[begin - 1] != "\n" if tail else text[end] != "\n"
        text = text[begin:end]
    lines = lines_of(text)
    if is_cut and lines and tail:
        lines[0] = f"…{lines[0][1 - LONGEST_SHOWN :]}"
    return bounded([Text(line, "dim") for line in lines], most, tail=tail, hint=UNFOLD, beyond=beyond, is_cut=is_cut)


def unfenced(text: str) -> str:
    """Return the content of a fence, if the text is one fence and nothing else."""
    trimmed = text.strip()
    fence = trimmed[: len(trimmed) - len(trimmed.lstrip("`"))]
    first, _, rest = trimmed.partition("\n")
    if len(fence) < 3 or "`" in first[len(fence) :] or not rest.endswith(fence):
        return text
    inner = rest[: -len(fence)]
    return text if fence in inner or (inner and not inner.endswith("\n")) else inner.removesuffix("\n")


def _terminal_texts(tail: TerminalTail | None, *, whole: bool) -> list[HangingText | Text]:
    if tail is None:
        return []
    texts = _folded(tail.text, OUTPUT_LINES, tail=True, whole=whole, lines_of=output_lines)
    if whole and tail.is_cut:
        texts.insert(0, Text("… what came before is not kept", "dim"))
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
