"""Changes to files, as diffs with the whole text before and after wherever that is known.

An item has only hunks. The text before is read when the change is announced, and the text after is what the hunks make of it. If
Codex was faster, what is read is already the text after, and the hunks lead back.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from antiphon.engines.codex.translate.calls import CallDescription, CallOutcome, CodexCall, CodexCalls
from antiphon.engines.codex.translate.events import CodexEvent
from antiphon.engines.codex.wire import FileChange, FileUpdate
from antiphon.engines.labels import DENIED, absolute_path, line_number, shown_path, shown_text, title
from antiphon.policy.rules import KIND_OF
from antiphon.protocol import v1
from antiphon.text import fenced

__all__ = ["BadPatch", "DiffHunk", "FileChangeCalls", "Reader", "applied", "hunks_of", "reverted", "show_changes"]

# Unified hunks, read and applied. Exact: a hunk that does not match at its line is not applied anywhere else.

_HEADER: Final = re.compile(r"@@ -(\d{1,10})(?:,(\d{1,10}))? \+(\d{1,10})(?:,(\d{1,10}))? @@")
_MOVED: Final = re.compile(r"\n\nMoved to: [^\n]*\n?\Z")


class BadPatch(ValueError):
    """The text is not a patch, or not one of this file."""


class DiffHunk(msgspec.Struct, frozen=True):
    """Some lines of a file, before and after, from line `old_start` and `new_start` on (from 1). Lines have their ends."""

    old_start: int
    new_start: int
    old: Sequence[str]
    new: Sequence[str]
    first_change: int = 0
    """How many of the new lines stand before the first one that is changed."""

    @property
    def line(self) -> int:
        """The first changed line of the file as it is afterwards."""
        return max(self.new_start, 1) + self.first_change


def hunks_of(diff: str) -> list[DiffHunk]:
    """The hunks of a diff of one file, with or without its header. Codex writes below the hunks where the file is moved to.

    Raises:
        BadPatch: it is something else.
    """
    text = _MOVED.sub("\n", diff)
    lines = _lines(text)
    found: list[DiffHunk] = []
    at = 0
    while at < len(lines):
        header = _HEADER.match(lines[at])
        if header is None:
            if found and lines[at].strip():
                raise BadPatch(f"not a line of a patch: {lines[at][:40]!r}")
            at += 1
            continue
        hunk, at = _hunk(header, lines, at + 1)
        found.append(hunk)
    if not found and text.strip():
        raise BadPatch("no hunks")
    return found


def applied(text: str, hunks: Sequence[DiffHunk]) -> str:
    """The text after the change.

    Raises:
        BadPatch: these are not the lines that the hunks change.
    """
    return _put(text, [(_index(hunk.old_start, hunk.old), hunk.old, hunk.new) for hunk in hunks])


def reverted(text: str, hunks: Sequence[DiffHunk]) -> str:
    """The text before the change.

    Raises:
        BadPatch: these are not the lines that the hunks made.
    """
    return _put(text, [(_index(hunk.new_start, hunk.new), hunk.new, hunk.old) for hunk in hunks])


def _lines(text: str) -> list[str]:
    """Split a text into lines. Only a line feed ends a line: other separators are part of the content."""
    lines = text.split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *lines[-1:]] if lines[-1] else [f"{line}\n" for line in lines[:-1]]


def _index(start: int, lines: Sequence[str]) -> int:
    """The index of the first line of a hunk. A hunk without lines names the line after which the others go."""
    return start - 1 if lines else start


def _put(text: str, changes: Sequence[tuple[int, Sequence[str], Sequence[str]]]) -> str:
    lines = _lines(text)
    result: list[str] = []
    done = 0
    for at, before, after in changes:
        end = at + len(before)
        if at < done or end > len(lines) or lines[at:end] != list(before):
            raise BadPatch(f"line {at + 1} is not as the patch has it")
        result += lines[done:at]
        result += after
        done = end
    result += lines[done:]
    # A line without an end in the middle means that the patch is of another file.
    if any(not line.endswith("\n") for line in result[:-1]):
        raise BadPatch("it would join two lines")
    return "".join(result)


def _hunk(header: "re.Match[str]", lines: Sequence[str], at: int) -> tuple[DiffHunk, int]:
    old_left, new_left = int(header[2] or 1), int(header[4] or 1)
    old: list[str] = []
    new: list[str] = []
    first: int | None = None
    sign = ""
    while at < len(lines) and (old_left > 0 or new_left > 0 or lines[at].startswith("\\")):
        line = lines[at]
        at += 1
        if line.startswith("\\"):
            _without_end(old, new, sign)
            continue
        sign = line[0]
        body = line[1:]
        if sign == "\n":  # an empty line without its leading space
            sign, body = " ", "\n"
        if sign not in " +-":
            raise BadPatch(f"not a line of a hunk: {line[:40]!r}")
        if sign != " " and first is None:
            first = len(new)
        if sign != "+":
            old.append(body if body.endswith("\n") else f"{body}\n")
            old_left -= 1
        if sign != "-":
            new.append(body if body.endswith("\n") else f"{body}\n")
            new_left -= 1
    if old_left or new_left:
        raise BadPatch("the hunk does not have the length in its header")
    return DiffHunk(int(header[1]), int(header[3]), tuple(old), tuple(new), first or 0), at


def _without_end(old: list[str], new: list[str], sign: str) -> None:
    """The line before has no end in the file."""
    if sign in (" ", "-") and old:
        old[-1] = old[-1].removesuffix("\n")
    if sign in (" ", "+") and new:
        new[-1] = new[-1].removesuffix("\n")


Reader: TypeAlias = Callable[[str], str | None]
"""Reads a file; None if there is no file, or it is not readable text."""


class FileChangeCalls:
    """The file changes of one thread."""

    def __init__(self, calls: CodexCalls, cwd: str, read: Reader | None) -> None:
        self._calls = calls
        self._cwd = cwd
        self._read = read
        self._before: dict[str, dict[str, str | None]] = {}
        """The text of each file before the change, by call and path."""

    def started(self, item: FileChange) -> Iterator[CodexEvent]:
        """Report a change that is made, or that the user is asked about, next."""
        yield from self._calls.begin(self._call(item.id, item.changes, read=True))

    def updated(self, id: str, changes: Sequence[FileUpdate]) -> Iterator[CodexEvent]:
        """Report the new content of a change."""
        if changes:
            yield from self._calls.begin(self._call(id, changes, read=True))

    def completed(self, item: FileChange) -> Iterator[CodexEvent]:
        """Report a change that was made, was declined, or failed. For one that was not announced, the current files show nothing."""
        call = self._call(item.id, item.changes, read=False)
        self._before.pop(item.id, None)
        made = item.status == "completed"
        content = call.description.content if made else [*_why_not(item.status), *call.description.content]
        meta = DENIED if item.status == "declined" else None
        outcome = CallOutcome(failed=not made, content=content, raw_output={"status": item.status}, meta=meta)
        yield from self._calls.finish(call, outcome)

    def forget(self) -> None:
        """Drop the texts of changes that never ended."""
        self._before = {id: texts for id, texts in self._before.items() if self._calls.get(id) is not None}

    def _call(self, id: str, changes: Sequence[FileUpdate], *, read: bool) -> CodexCall:
        before = self._before.setdefault(id, {})

        def text_before(path: str) -> str | None:
            if path not in before and read and self._read is not None:
                before[path] = self._read(path)
            return before.get(path)

        return CodexCall(id, show_changes(changes, self._cwd, text_before))


def show_changes(changes: Sequence[FileUpdate], cwd: str, before: Reader) -> CallDescription:
    """Return how changes are shown, whether they are made or only requested."""
    names = {_tool(change) for change in changes}
    name = names.pop() if len(names) == 1 else "Edit"
    paths = [absolute_path(change.path, cwd) for change in changes]
    content: list[v1.ToolContent] = []
    places: list[v1.ToolLocation] = []
    for change, path in zip(changes, paths, strict=True):
        diffs, locations = _diffs(change, path, cwd, before)
        content += diffs
        places += locations
    moved = [absolute_path(change.kind.move_path, cwd) for change in changes if change.kind.move_path]
    every = list(dict.fromkeys([*paths, *moved]))
    return CallDescription(
        title=_title(name, changes, cwd),
        kind=v1.ToolKind(KIND_OF[name]),
        name=name,
        raw_input={"path": every[0]} if len(every) == 1 else {"paths": every},
        locations=places,
        content=content,
    )


def _tool(change: FileUpdate) -> str:
    if change.kind.type == "add":
        return "Write"
    if change.kind.type == "delete":
        return "Delete"
    return "Move" if change.kind.move_path and not _hunks(change) else "Edit"


def _title(name: str, changes: Sequence[FileUpdate], cwd: str) -> str:
    if not changes:
        return "Change files"
    first = shown_path(changes[0].path, cwd)
    if len(changes) == 1:
        target = changes[0].kind.move_path
        return title(name, first, f"→ {shown_path(target, cwd)}" if target else "")
    more = len(changes) - 1
    return title(name, first, f"and {more} more file{'s' if more > 1 else ''}")


def _diffs(
    change: FileUpdate, path: str, cwd: str, before: Reader
) -> tuple[list[v1.ToolContent], list[v1.ToolLocation]]:
    if change.kind.type == "add":
        old = before(path)
        overwritten = old if old != change.diff else None  # it was written before we looked
        return [v1.Diff(path=path, new_text=change.diff, old_text=overwritten)], [v1.ToolLocation(path=path)]
    if change.kind.type == "delete":
        return [v1.Diff(path=path, new_text="", old_text=change.diff)], [v1.ToolLocation(path=path)]
    target = absolute_path(change.kind.move_path, cwd) if change.kind.move_path else path
    moved: list[v1.ToolContent] = (
        [shown_text(f"Moved from {shown_path(path, cwd)} to {shown_path(target, cwd)}.")] if target != path else []
    )
    try:
        hunks = hunks_of(change.diff)
    except BadPatch:
        return [*moved, shown_text(fenced(change.diff, "diff"))], [v1.ToolLocation(path=target)]
    places = [v1.ToolLocation(path=target, line=line_number(hunk.line)) for hunk in hunks] or [
        v1.ToolLocation(path=target)
    ]
    return [*moved, *_texts(target, hunks, before(path))], places


def _texts(path: str, hunks: Sequence[DiffHunk], text: str | None) -> list[v1.ToolContent]:
    """The diffs of a change: one of the whole file, or one for each hunk."""
    if not hunks:
        return []
    if text is not None:
        try:
            return [v1.Diff(path=path, old_text=text, new_text=applied(text, hunks))]
        except BadPatch:
            pass
        try:
            return [v1.Diff(path=path, old_text=reverted(text, hunks), new_text=text)]
        except BadPatch:
            pass
    return [v1.Diff(path=path, old_text="".join(hunk.old), new_text="".join(hunk.new)) for hunk in hunks]


def _hunks(change: FileUpdate) -> bool:
    try:
        return bool(hunks_of(change.diff))
    except BadPatch:
        return True


def _why_not(status: str) -> list[v1.ToolContent]:
    if status == "declined":
        return [shown_text("Not changed, because it was declined.")]
    return [shown_text("The change could not be made." if status == "failed" else "The change was not made.")]
