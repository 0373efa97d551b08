"""Changed files: the diffs of version 1, which have both texts, and the patches of version 2.

A patch that is made here has one hunk with all lines, so that both texts can be read from it again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from antiphon.protocol import v1, v2
from antiphon.protocol.base import Unknown

__all__ = ["MAX_COMPARED_DIFFS", "MAX_COMPARED_LINES", "MAX_COMPARED_PAIRS", "diff_to_v2", "diffs_to_v1"]

MAX_COMPARED_LINES: Final = 2_000
"""Lines up to which two texts are compared, without those that they begin and end with alike. Above that a patch removes all old lines
and adds all new ones: comparing takes seconds for texts of megabytes that have nothing in common."""

MAX_COMPARED_PAIRS: Final = 5_000
"""Pairs of equal lines in both texts up to which they are compared. A text of a thousand lines of which every second is the same has
250,000, and takes five seconds."""

MAX_COMPARED_DIFFS: Final = 10
"""Diffs of one tool call that are compared so: each may take a twentieth of a second, and all else waits."""

_NO_NEWLINE: Final = "\\ No newline at end of file"


class PatchedText(NamedTuple):
    """Texts of one place in a file, before and after."""

    path: str
    old: str | None
    new: str


# Version 1 → version 2.


def diff_to_v2(diff: v1.Diff, *, compared: bool = True) -> v2.Diff:
    """Return a diff of version 1 as a change with a patch. That a file was deleted cannot be seen in version 1.

    If its lines are not compared, the patch removes the old ones and adds the new ones.
    """
    change = (v2.AddChange if diff.old_text is None else v2.ModifyChange)(path=diff.path)
    patch = v2.DiffPatch(format=v2.DiffPatchFormat.GIT_PATCH, text=_patch(diff, compared))
    return v2.Diff(changes=[change], patch=patch, meta=diff.meta)


def _patch(diff: v1.Diff, compared: bool) -> str:
    old, new = _split(diff.old_text or ""), _split(diff.new_text)
    path = _quoted(diff.path)
    before = "/dev/null" if diff.old_text is None else path
    start = [f"diff --git {path} {path}", *(["new file mode 100644"] if diff.old_text is None else [])]
    head = f"@@ -{min(len(old), 1)},{len(old)} +{min(len(new), 1)},{len(new)} @@"
    return "\n".join([*start, f"--- {before}", f"+++ {path}", head, *_lines(old, new, compared), ""])


def _split(text: str) -> list[str]:
    """The lines of a text with their ends. Only a line feed ends a line, unlike in `splitlines`."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()
    return [*lines, last[:-1]] if last != "\n" else lines


def _lines(old: list[str], new: list[str], compared: bool) -> Iterator[str]:
    """The lines of a hunk. A last line without an end is another line than the same one with an end."""
    begin, end = 0, 0
    least = min(len(old), len(new))
    while begin < least and old[begin] == new[begin]:
        begin += 1
    while end < least - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    yield from _marked(" ", old[:begin])
    for kind, a, b, c, d in _opcodes(old[begin : len(old) - end], new[begin : len(new) - end], compared):
        if kind == "equal":
            yield from _marked(" ", old[begin + a : begin + b])
        else:
            yield from _marked("-", old[begin + a : begin + b])
            yield from _marked("+", new[begin + c : begin + d])
    yield from _marked(" ", old[len(old) - end :])


def _opcodes(old: list[str], new: list[str], compared: bool) -> Sequence[tuple[str, int, int, int, int]]:
    """Return how to make one list of lines of another; all at once if looking for what they have in common would take long."""
    counts = Counter(new)
    pairs = sum(count * counts[line] for line, count in Counter(old).items())
    if not compared or len(old) + len(new) > MAX_COMPARED_LINES or pairs > MAX_COMPARED_PAIRS:
        return [("replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _marked(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield sign + line[:-1]
        else:
            yield sign + line
            yield _NO_NEWLINE


def _quoted(path: str) -> str:
    """Quote a path as Git does: where it has quotes, backslashes, control characters or bytes beyond ASCII."""
    data = path.encode("utf-8", "surrogatepass")
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in data):
        return path
    named = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 92: "\\\\"}
    return '"' + "".join(named.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data) + '"'


# Version 2 → version 1.


def diffs_to_v1(diff: v2.Diff) -> tuple[list[v1.Diff], list[str]]:
    """Return the hunks of a patch as diffs of version 1, and a line for each change that has no lines to show."""
    shown = list(_changes(diff.patch.text)) if diff.patch is not None else []
    if diff.patch is not None and not diff.patch.format.known:
        shown = []
    found: list[v1.Diff] = []
    lines: list[str] = []
    hunks: dict[str, list[PatchedText]] = {}
    for one in shown:
        hunks.setdefault(one.path, []).append(one)
    for change in diff.changes:
        if isinstance(change, Unknown):
            lines.append(f"[{change.kind}]")
            continue
        of_file = hunks.pop(change.path, ())  # once, however often a file is named
        added = isinstance(change, v2.AddChange)
        found += [
            v1.Diff(path=one.path, old_text=None if added else one.old, new_text=one.new, meta=diff.meta)
            for one in of_file
        ]
        if isinstance(change, v2.MoveChange | v2.CopyChange):
            lines.append(f"{type(change).__struct_config__.tag} {change.old_path} → {change.path}")
        elif not of_file:
            lines.append(f"{type(change).__struct_config__.tag} {change.path}")
    return found, lines


class _Hunk:
    """The lines of a hunk that were read so far."""

    def __init__(self, old_count: int, new_count: int) -> None:
        self.old: list[str] = []
        self.new: list[str] = []
        self._left = old_count + new_count
        self._last = ""

    def takes(self, line: str) -> bool:
        """Take a line, if it belongs to the hunk. Some programs cut the blank at the end of an empty line."""
        if not line and self._left > 0:
            line = " "
        sign = line[:1]
        if sign == "\\":
            for other, lines in (("-", self.old), ("+", self.new)):
                if self._last in (" ", other) and lines:
                    lines[-1] = lines[-1].removesuffix("\n")
            return True
        if self._left <= 0 or sign not in (" ", "-", "+"):
            return False
        self._last = sign
        for other, lines in (("-", self.old), ("+", self.new)):
            if sign in (" ", other):
                lines.append(line[1:] + "\n")
                self._left -= 1
        return True


def _changes(patch: str) -> Iterator[PatchedText]:
    """The hunks of a patch, each with both texts. What is not a hunk of lines is passed over."""
    path = ""
    hunk: _Hunk | None = None
    for line in patch.removesuffix("\n").split("\n"):
        if hunk is not None and hunk.takes(line):
            continue
        if hunk is not None:
            yield PatchedText(path, "".join(hunk.old), "".join(hunk.new))
            hunk = None
        if line.startswith(("--- ", "+++ ")):
            named = _unquoted(line[4:])
            path = path if named == "/dev/null" else named
        elif line.startswith("@@ ") and (counts := _counts(line)) is not None:
            hunk = _Hunk(*counts)
    if hunk is not None:
        yield PatchedText(path, "".join(hunk.old), "".join(hunk.new))


def _counts(head: str) -> tuple[int, int] | None:
    """How many lines of each text a hunk has: `@@ -1,2 +1,3 @@`."""
    try:
        _, before, after, *_ = head.split(" ")
        return int(before.partition(",")[2] or 1), int(after.partition(",")[2] or 1)
    except ValueError:
        return None


def _unquoted(path: str) -> str:
    path = path.split("\t")[0]
    if not (path.startswith('"') and path.endswith('"') and len(path) > 1):
        return path
    data, place, inner = bytearray(), 0, path[1:-1]
    named = {"t": 9, "n": 10, "r": 13, '"': 34, "\\": 92, "a": 7, "b": 8, "f": 12, "v": 11}
    while place < len(inner):
        if inner[place] != "\\" or place + 1 >= len(inner):
            data += inner[place].encode("utf-8", "surrogatepass")
            place += 1
        elif inner[place + 1] in named:
            data.append(named[inner[place + 1]])
            place += 2
        elif inner[place + 1 : place + 4].isdigit():
            data.append(int(inner[place + 1 : place + 4], 8) & 255)
            place += 4
        else:
            place += 1
    return data.decode("utf-8", "replace")
