"""Cuts streaming Markdown into blocks that are finished and one that is still open. Pure; knows lines, not how they look.

Rule 1: nothing is lost and nothing is said twice: the blocks, one after the other, are the text.
Rule 2: a block is finished when no later text can change how it looks: at a blank line, a closing fence, the next item of a list.
Rule 3: no block grows without end. One that is too long is cut, a fence is closed and opened again, so that drawing the open one is cheap.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["LONGEST", "Block", "Splitter"]

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
    """Some Markdown that stands by itself. `gap`: whether an empty line belongs before it."""

    text: str
    gap: bool = True


class Splitter:
    """Fed pieces of text, returns the blocks that they finish."""

    def __init__(self) -> None:
        self._partial = ""
        self._lines: list[str] = []
        self._size = 0
        self._kind: Literal["", "text", "list", "fence"] = ""
        self._fence = ""  # what closes the fence that is open, also inside of an item
        self._gap = True
        self._done: list[Block] = []

    def feed(self, text: str) -> list[Block]:
        """Take a piece of any length; returns what is finished by it."""
        *whole, self._partial = (self._partial + text).split("\n")
        for line in whole:
            self._line(line)
        while len(self._partial) > LONGEST:
            self._cut_partial()
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Block]:
        """There is no more: everything is finished."""
        if self._partial:
            self._line(self._partial)
        self._partial = ""
        self._emit()
        done, self._done, self._gap = self._done, [], True
        return done

    @property
    def open(self) -> Block | None:
        """The block that may still change, as far as it is known."""
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
            self._add("")  # the next line says whether it goes on
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
            self._gap = False  # until a blank line, or a kind of line, says otherwise
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
        """A line without an end: cut it between two words, if there are words."""
        at = self._partial.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
        head, self._partial = self._partial[:at], self._partial[at:]
        if self._kind == "":
            self._kind = "text"
        self._add(head)
        self._cut()


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and not mark.strip(fence[0])
