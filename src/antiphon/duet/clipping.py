"""Text for a model, made to fit. What is left out is said where it is missing. Pure."""

import re
from typing import Final

__all__ = ["clipped_diff", "clipped_middle"]

LEAST: Final = 400
"""Characters of a file's diff below which it is not worth beginning."""

NAMED: Final = 20
"""Files that are named among those left out."""

_FILE: Final = re.compile(r"^diff --git ", re.MULTILINE)


def clipped_middle(text: str, limit: int) -> str:
    """The beginning and the end of a text, at most `limit` characters with the words that say how much is missing."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit} characters left out …]\n"
    room = limit - len(note) - 8  # the number may grow by the length of the note
    if room < 2:
        return text[: max(limit, 0)]
    kept = room - room // 2
    note = f"\n[… {len(text) - room} characters left out …]\n"
    return text[:kept] + note + (text[-(room // 2) :] if room // 2 else "")


def clipped_diff(diff: str, limit: int) -> str:
    """A diff of at most `limit` characters. Small files are whole; large ones share what is left; then files are only named."""
    if len(diff) <= limit:
        return diff
    starts = [match.start() for match in _FILE.finditer(diff)] or [0]
    parts = [diff[start:end] for start, end in zip(starts, [*starts[1:], len(diff)], strict=True)]
    shares = _shares([len(part) for part in parts], limit - NAMED * 100)
    shown = [_cut(part, share) for part, share in zip(parts, shares, strict=True)]
    missing = [
        part.partition("\n")[0].removeprefix("diff --git ")[:90]
        for part, kept in zip(parts, shown, strict=True)
        if not kept
    ]
    text = "".join(shown)
    if missing:
        names = "".join(f"  {name}\n" for name in missing[: NAMED - 2])
        more = f"  and {len(missing) - NAMED + 2} more\n" if len(missing) > NAMED - 2 else ""
        text += f"[… left out: {len(missing)} files …]\n{names}{more}"
    return text[: max(limit, 0)]


def _shares(sizes: list[int], room: int) -> list[int]:
    """How much each gets: the small ones all they need, the others the same. If that is next to nothing, the first get it."""
    shares = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for done, number in enumerate(order):
        share = min(sizes[number], max(room, 0) // (len(order) - done))
        shares[number] = share if share == sizes[number] or share >= LEAST else 0
        room -= shares[number]
    if any(shares) or room < LEAST:
        return shares
    for number in range(min(len(sizes), room // LEAST)):
        shares[number] = LEAST
    return shares


def _cut(part: str, share: int) -> str:
    """Whole lines of one file's diff, and how many are missing."""
    if len(part) <= share:
        return part
    lines = part[: max(share - 60, 0)].splitlines(keepends=True)[:-1]
    if len(lines) < 2:
        return ""
    return "".join(lines) + f"[… {part.count(chr(10)) - len(lines)} more lines of this file left out …]\n"
