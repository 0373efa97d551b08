"""A change to a file as a few lines that people read: a unified diff, bounded. Colours are put on elsewhere."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from antiphon.protocol import v1

__all__ = ["DIFF_LINES", "diff_lines", "diffs_in"]

DIFF_LINES: Final = 60
"""Lines of one change that are shown: a screen or two. The file has all of it."""

MAX_COMPARED: Final = 20_000
"""Lines that are compared. Finding the differences of longer files takes longer than anybody looks at them."""


def diffs_in(content: "Sequence[v1.ToolContent] | object") -> "list[v1.Diff]":
    """The changes among what a call shows."""
    from antiphon.protocol import v1

    return [item for item in content if isinstance(item, v1.Diff)] if isinstance(content, Sequence) else []


def diff_lines(diff: "v1.Diff", shown_path: str, limit: int = DIFF_LINES) -> Iterator[str]:
    """The lines to show: a head, then `+`, `-` and ` ` lines, then how many more there are."""
    old, new = (diff.old_text or "").splitlines(), diff.new_text.splitlines()
    if len(old) + len(new) > MAX_COMPARED:
        yield f"{shown_path}: {len(old)} → {len(new)} lines"
        return
    lines = list(_unified(old, new))
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    yield f"{shown_path}{' (new)' if diff.old_text is None else ''}  +{added} -{removed}"
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"… {len(lines) - limit} more lines"


def _unified(old: list[str], new: list[str]) -> Iterator[str]:
    import difflib

    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=2)):
        if number >= 2:  # the first two name files that have no names here
            yield line
