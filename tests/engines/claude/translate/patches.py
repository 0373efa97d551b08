"""Patches as the CLI makes them, for tests: tabs at the beginning of lines flattened first, three lines around each change."""

import re
from difflib import SequenceMatcher
from typing import Any

__all__ = ["flattened", "structured_patch"]

_NO_NEWLINE = "\\ No newline at end of file"


def flattened(text: str) -> str:
    """Two spaces for each tab at the beginning of a line."""
    return re.sub("(?:\\A|(?<=[\n\r\u2028\u2029]))\t+", lambda tabs: "  " * len(tabs[0]), text)


def structured_patch(old: str, new: str) -> list[dict[str, Any]]:
    """The `structuredPatch` of a result."""
    before, after = _lines(flattened(old)), _lines(flattened(new))
    hunks = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += _signed(" ", before[i1:i2])
            else:
                lines += _signed("-", before[i1:i2]) + _signed("+", after[j1:j2])
        first, last = group[0], group[-1]
        hunks.append({
            "oldStart": first[1] + 1, "oldLines": last[2] - first[1],
            "newStart": first[3] + 1, "newLines": last[4] - first[3], "lines": lines,
        })  # fmt: skip
    return hunks


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _signed(sign: str, lines: list[str]) -> list[str]:
    signed = []
    for line in lines:
        signed.append(sign + line.removesuffix("\n"))
        if not line.endswith("\n"):
            signed.append(_NO_NEWLINE)
    return signed
