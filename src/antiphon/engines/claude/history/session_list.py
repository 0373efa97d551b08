"""Lists of sessions, the last used first: title, directory and time from the start and the end of each file."""

import base64
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from os import stat_result
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.engines.bounded import trim
from antiphon.engines.claude.history.records import is_folder_of, projects, repaired, session_files
from antiphon.engines.claude.history.replay import Typed, read_text
from antiphon.engines.labels import sentence
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT
from antiphon.store.database import stamp

__all__ = ["SessionList", "Summary", "read_summary", "read_time"]

# The summary of a session, from the first and the last bytes of its file.

WINDOW: Final = 64 * 1024
"""Bytes read at each end of a file. Claude Code repeats titles at the end so that they are found there."""

SHORT: Final = 4 * 1024
"""Bytes at the end of a file that mostly have the time of the last line."""

_TIME: Final = re.compile(rb'"timestamp":"([0-9T:.+Z-]{19,35})"')
_CUT_PROMPT: Final = re.compile(
    rb'"type":"user","message":\{"role":"user","content":(?:\[\{"type":"text","text":)?"((?:[^"\\]|\\.){1,4096})'
)
"""The text of a prompt whose line is longer than the window: the typed text comes first, pictures follow."""


class Summary(msgspec.Struct, frozen=True, gc=False):
    """A session in a list."""

    id: str
    cwd: str
    title: str
    branch: str | None = None


class _Line(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    cwd: str | None = None
    git_branch: str | None = None
    message: Raw = Raw()


class _Message(msgspec.Struct, gc=False):
    content: object = None


class _Named(msgspec.Struct, rename="camel", gc=False):
    custom_title: str | None = None
    ai_title: str | None = None
    summary: str | None = None
    last_prompt: str | None = None
    relocated_cwd: str | None = None


_TYPE: Final = b'{"type":"'
_NAMING: Final = {
    b"custom-title": "custom_title",
    b"ai-title": "ai_title",
    b"summary": "summary",
    b"last-prompt": "last_prompt",
    b"relocated": "relocated_cwd",
}
"""The sorts of lines that name something, and the field that has it."""

_line: Final = msgspec.json.Decoder(_Line)
_message: Final = msgspec.json.Decoder(_Message)
_named: Final = msgspec.json.Decoder(_Named)


def read_summary(path: Path, status: stat_result) -> Summary | None:
    """The row of a session in a list; `None` if the file has no message, or only those of a sub-agent."""
    head, tail = _ends(path, status.st_size)
    first = _FirstLines(head)
    if first.is_sidechain:
        return None
    named = _names(head) if tail is head else {**_names(head), **_names(tail)}
    prompt = first.prompt or named.get("last-prompt") or first.command
    cwd = _cwd(path, tail, named.get("relocated"), first)
    if not prompt or cwd is None:  # a session that was only opened and named has no prompt yet
        return None
    title = named.get("custom-title") or _beside(path) or named.get("ai-title") or named.get("summary")
    branch = _last_string(tail, b'"gitBranch":"')
    return Summary(
        id=path.stem,
        cwd=cwd,
        title=sentence(title or prompt) or sentence(prompt),
        branch=branch if branch != "HEAD" else None,
    )


def read_time(path: str, status: stat_result) -> str:
    """When a session was last used: the time of its last line that has one, else that of its file."""
    with open(path, "rb", buffering=0) as file:
        for window in (SHORT, WINDOW):
            file.seek(max(0, status.st_size - window))
            found = _time(file.read(window))
            if found is not None:
                return found
            if window >= status.st_size:
                break
    return stamp(datetime.fromtimestamp(status.st_mtime, UTC))


class _FirstLines:
    """What the first lines of a file have: the directory, the first prompt, and whether they are a sub-agent's."""

    def __init__(self, head: bytes) -> None:
        self.is_sidechain = False
        self.cwd: str | None = None
        self.prompt: str | None = None
        self.command: str | None = None
        start = 0
        while (end := head.find(b"\n", start)) >= 0:
            if self._read(head[start:end]):
                return
            start = end + 1
        if (cut := _CUT_PROMPT.search(head, start)) is not None:
            self._take(_unquoted(cut[1]))

    def _read(self, line: bytes) -> bool:
        """Read a line; return whether no more is needed."""
        try:
            found = _line.decode(line)
        except BAD_INPUT:
            return bool(whole := repaired(line)) and whole != line and self._read(whole)
        self.is_sidechain = self.is_sidechain or bool(found.is_sidechain)
        self.cwd = self.cwd or found.cwd
        if found.type == "user" and not (found.is_meta or found.is_compact_summary):
            self._prompt(found.message)
        return self.is_sidechain or bool(self.cwd and self.prompt)

    def _prompt(self, message: Raw) -> None:
        try:
            content = _message.decode(message).content
        except BAD_INPUT:
            return
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part
            if isinstance(text, str):
                self._take(text)

    def _take(self, text: str) -> None:
        if self.prompt is not None:
            return
        typed = read_text(text)
        if isinstance(typed, Typed) and typed.text.startswith("/"):
            self.command = self.command or typed.text
        elif isinstance(typed, Typed) and typed.text.strip():
            self.prompt = typed.text


def _ends(path: Path, size: int) -> tuple[bytes, bytes]:
    with path.open("rb", buffering=0) as file:
        head = file.read(2 * WINDOW if size <= 2 * WINDOW else WINDOW)
        if size <= 2 * WINDOW:
            return head, head
        file.seek(size - WINDOW)
        return head, file.read(WINDOW)


def _beside(path: Path) -> str | None:
    """Return the name of a session that is stored in a file of its own."""
    try:
        return _named.decode((path.with_suffix("") / "custom-title.json").read_bytes()).custom_title
    except (OSError, *BAD_INPUT):
        return None


def _cwd(path: Path, tail: bytes, moved: str | None, first: _FirstLines) -> str | None:
    """The directory of the session: where it was begun or moved to, not where a command went in between."""
    last = _last_string(tail, b'"cwd":"')
    known = [cwd for cwd in (moved, first.cwd, last) if cwd]
    fitting = (cwd for cwd in known if is_folder_of(path.parent.name, cwd))
    return next(fitting, known[0] if known else None)


def _names(data: bytes) -> dict[str, str]:
    """What the lines that stand alone name, the last of each sort. They all begin with their type."""
    last = {}
    for line in data.split(b"\n"):
        if line.startswith(_TYPE):
            kind = line[len(_TYPE) : line.find(b'"', len(_TYPE))]
            if kind in _NAMING:
                last[kind] = line
    return {kind.decode(): name for kind, line in last.items() if (name := _name(line, _NAMING[kind])) is not None}


def _name(line: bytes, field: str) -> str | None:
    try:
        name: str | None = getattr(_named.decode(line), field)
    except BAD_INPUT:
        return None
    return name


def _last_string(data: bytes, mark: bytes) -> str | None:
    start = data.rfind(mark) + len(mark)
    if start < len(mark):
        return None
    end = data.find(b'"', start)
    while end > 0 and data[end - 1 : end] == b"\\":
        end = data.find(b'"', end + 1)
    return _unquoted(data[start:end]) or None if end > 0 else None


def _unquoted(text: bytes) -> str:
    try:
        return msgspec.json.decode(b'"%b"' % text, type=str)
    except BAD_INPUT:
        return text.decode(errors="replace")


def _time(data: bytes) -> str | None:
    start = data.rfind(b'"timestamp":"')
    found = _TIME.match(data, start) if start >= 0 else None
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found[1].decode())
    except ValueError:
        return None
    return stamp(moment) if moment.tzinfo is not None else None


PAGE: Final = 50
"""Sessions in one answer to `session/list`."""

MOST_KNOWN: Final = 10_000
"""Files that are remembered. Those of more sessions are read again each time."""


class _File:
    """What is known of a session's file. It is opened for the time, and once more for the rest when a page needs it."""

    __slots__ = ("_status", "_summary", "id", "path", "size", "time", "updated")

    def __init__(self, path: str, status: os.stat_result) -> None:
        self.path = Path(path)
        self.id = self.path.stem
        self.size, self.time = status.st_size, status.st_mtime_ns
        self.updated = read_time(path, status)
        self._status = status
        self._summary: Summary | None | UnsetType = UNSET

    @property
    def order(self) -> tuple[str, str]:
        return self.updated, self.id

    def summary(self) -> Summary | None:
        if self._summary is UNSET:
            try:
                self._summary = read_summary(self.path, self._status)
            except OSError:
                return None
        return self._summary or None


class SessionList:
    """The sessions below Claude Code's directory. A file is opened once, and again when it has changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, _File] = {}

    def page(self, query: v1.ListSessions) -> v1.ListSessionsResult:
        """A page of sessions.

        Raises:
            RequestError: the cursor is not one of ours.
        """
        before = None if query.cursor is None else _unpack(query.cursor)
        if query.archived == v1.ArchiveFilter.ONLY:
            return v1.ListSessionsResult(sessions=[])
        found = [*islice(self._sessions(query.cwd, before), PAGE + 1)]
        page = found[:PAGE]
        cursor = _pack(page[-1][0]) if len(found) > PAGE else None
        return v1.ListSessionsResult(sessions=[_info(*one) for one in page], next_cursor=cursor)

    def summary(self, path: Path) -> Summary | None:
        """What is known of the session in a file."""
        try:
            return self._file(str(path), path.stat()).summary()
        except OSError:
            return None

    def _sessions(self, cwd: str | None, before: tuple[str, str] | None) -> Iterator[tuple[_File, Summary]]:
        """Return the sessions after a cursor, the last used first. Files that no page needs are not read."""
        wanted = _DirectoryFilter(cwd)
        seen: set[str] = set()
        for file in sorted(self._files(wanted), key=lambda file: file.order, reverse=True):
            if file.id in seen:  # one that was moved or copied may be there twice
                continue
            if before is not None and file.order >= before:
                seen.add(file.id)
                continue
            summary = file.summary()
            if summary is not None and wanted.has(summary.cwd):
                seen.add(file.id)
                yield file, summary

    def _files(self, wanted: "_DirectoryFilter") -> Iterator[_File]:
        for folder in projects(self._root):
            if wanted.may_be(folder.name):
                for path, status in session_files(folder):
                    try:
                        yield self._file(path, status)
                    except OSError:
                        continue

    def _file(self, path: str, status: os.stat_result) -> _File:
        known = self._known.get(path)
        if known is None or (known.size, known.time) != (status.st_size, status.st_mtime_ns):
            known = self._known[path] = _File(path, status)
            trim(self._known, MOST_KNOWN)
        return known


class _DirectoryFilter:
    """The directory whose sessions are listed; without one, all are."""

    def __init__(self, cwd: str | None) -> None:
        self._real = None if cwd is None else os.path.realpath(cwd)
        self._names = {cwd, self._real}
        self._checked: dict[str, bool] = {}

    def may_be(self, folder: str) -> bool:
        return self._real is None or any(is_folder_of(folder, name) for name in self._names if name)

    def has(self, cwd: str) -> bool:
        if self._real is None or cwd in self._names:
            return True
        if cwd not in self._checked:
            self._checked[cwd] = os.path.realpath(cwd) == self._real
        return self._checked[cwd]


def _info(file: _File, summary: Summary) -> v1.SessionInfo:
    return v1.SessionInfo(
        session_id=v1.SessionId(summary.id),
        cwd=summary.cwd,
        title=summary.title,
        updated_at=file.updated,
        meta={"claudeCode": {"gitBranch": summary.branch}} if summary.branch else None,
    )


def _pack(last: _File) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(last.order)).decode()


def _unpack(cursor: str) -> tuple[str, str]:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor.encode()), type=tuple[str, str])
    except (ValueError, msgspec.DecodeError) as error:
        reason, hint = "this cursor is not one of ours", "list again without a cursor"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", reason, hint=hint) from error
