"""Long pasted text on the input line: a short label stands for it, `[300 lines]`, until the line is sent or edited elsewhere."""

import os
import re
from typing import Final

from antiphon.client.attachments import SUFFIXES

__all__ = ["Pastes", "pasted_image"]

MOST_LINES: Final = 8
"""Lines of a paste that are shown as they are: as many as the input line has rows."""

MOST_CHARACTERS: Final = 2_000
"""Characters of a paste that are shown as they are."""

REMEMBERED: Final = 100
"""Pastes that can be recalled."""


class Pastes:
    """The pasted texts that labels stand for."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """Return what the line shows of a pasted text: itself, or a label."""
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= MOST_LINES and len(text) <= MOST_CHARACTERS:
            return text
        return self.label(f"{lines} lines" if lines > 1 else f"{len(text):,} characters", text)

    def label(self, words: str, text: str) -> str:
        """Return a label for a text. The same words for another text get a number."""
        label, number = f"[{words}]", 1
        while self._texts.get(label, text) != text:
            number += 1
            label = f"[{words}, {number}]"
        self._texts[label] = text
        while len(self._texts) > REMEMBERED:
            del self._texts[next(iter(self._texts))]
        return label

    def unfold(self, line: str) -> str:
        """Return a line with the texts that its labels stand for."""
        if not self._texts:
            return line
        labels = re.compile("|".join(map(re.escape, self._texts)))
        return labels.sub(lambda found: self._texts[found[0]], line)

    def label_before(self, text: str) -> str:
        """Return the label at the end of a text; empty if there is none."""
        return next((label for label in self._texts if text.endswith(label)), "")


def pasted_image(text: str, cwd: str) -> str | None:
    """Return the mention of an image whose path was pasted, as terminals do when a file is dropped on them."""
    path = text.strip().strip("'\"").removeprefix("file://").replace("\\ ", " ")
    if not path or "\n" in path or not SUFFIXES.get(os.path.splitext(path)[1].lower(), "").startswith("image/"):
        return None
    whole = os.path.join(cwd, os.path.expanduser(path))
    return f'@"{path}"' if os.path.isabs(os.path.expanduser(path)) and os.path.isfile(whole) else None
