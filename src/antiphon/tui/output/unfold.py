"""Shows the whole of what the transcript shows in part: outputs, changes, long prompts, summaries. Now or later.

What fits on the screen is written below, the rest goes to the pager. Nothing is stored for it: the transcript has it all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from rich.console import RenderableType
from rich.text import Text

from antiphon.transcript.entries import CallEntry, CompactionEntry, Entry, Message
from antiphon.tui.painter import Painter, clean, one_line

__all__ = ["FoldedOutput", "OutputViewer", "ViewedScreen"]


class ViewedScreen(Protocol):
    """What a viewer needs of the screen."""

    painter: Painter

    @property
    def shown_entries(self) -> Sequence[Entry]:
        """What is shown, in order."""

    def call_texts(self, call: CallEntry, *, whole: bool) -> list[RenderableType]:
        """Return a call, as it is shown or whole."""

    def is_folded(self, entry: Message | CompactionEntry) -> bool:
        """Whether less than all of a text is shown."""

    def note(self, things: Sequence[RenderableType], kind: str) -> None:
        """Write below what is shown."""


@dataclass(frozen=True, slots=True)
class FoldedOutput:
    """Something of which only a part is shown."""

    key: int
    title: str
    whole: Callable[[], list[RenderableType]]


def _plain(things: Sequence[RenderableType]) -> list[str]:
    """Return texts without their styles."""
    return [str(getattr(thing, "plain", "")) for thing in things]


def _whole_text(text: str) -> list[RenderableType]:
    return [Text(clean(line)) for line in text.strip("\n").split("\n")]


class OutputViewer:
    """Finds what is folded, the newest first, and shows it whole."""

    def __init__(
        self,
        screen: ViewedScreen,
        rows: Callable[[], int],
        page: "Callable[[list[str]], object]",
        refresh: Callable[[], None],
    ) -> None:
        self._screen = screen
        self._rows = rows
        self._page = page
        self._refresh = refresh
        self._newest: int | None = None
        self._shown: int | None = None

    def folded(self) -> Iterator[FoldedOutput]:
        """Yield everything that is shown in part, the newest first."""
        for entry in reversed(self._screen.shown_entries):
            if isinstance(entry, CallEntry):
                yield from self._folded_call(entry)
            elif isinstance(entry, Message | CompactionEntry) and self._screen.is_folded(entry):
                title = "your prompt" if isinstance(entry, Message) else "the summary of a compaction"
                yield FoldedOutput(entry.key, title, partial(_whole_text, entry.text))

    def _folded_call(self, call: CallEntry) -> Iterator[FoldedOutput]:
        shown, whole = (self._screen.call_texts(call, whole=each) for each in (False, True))
        if _plain(whole) != _plain(shown):
            yield FoldedOutput(call.key, one_line(call.label), lambda: self._screen.call_texts(call, whole=True))

    def next(self) -> FoldedOutput | None:
        """Return the newest output, or the one before the last that was returned if nothing is newer."""
        first: FoldedOutput | None = None
        for output in self.folded():
            first = first or output
            if first.key != self._newest or self._shown is None or output.key < self._shown:
                self._newest, self._shown = first.key, output.key
                return output
        self._shown = None if first is None else first.key
        return first

    def show_next(self) -> None:
        """Show the newest folded output; again, the one before it."""
        if (output := self.next()) is None:
            self.show([Text("Nothing is folded: all of it is shown.", "dim")])
        else:
            self.show(output.whole())

    def show(self, things: Sequence[RenderableType]) -> None:
        """Write something below what is shown if it fits on the screen, else open it in the pager."""
        painter, most = self._screen.painter, max(self._rows() - ROWS_BELOW, 1)
        if len(things) <= most and sum(len(painter.paint(thing)) for thing in things) <= most:
            self._screen.note(things, "view")
            self._refresh()
        else:
            self._page(painter.unwrapped(things))


ROWS_BELOW: Final = 5
"""Rows that the prompt, the status line and the space between them take."""
