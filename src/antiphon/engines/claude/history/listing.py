"""Pages of sessions, the last used first."""

import base64
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.engines.claude.history.places import is_folder_of, projects, session_files
from antiphon.engines.claude.history.summaries import Summary, read_summary, read_time
from antiphon.engines.recent import trim
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

__all__ = ["Listing"]

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


class Listing:
    """The sessions below Claude Code's directory. A file is opened once, and again when it has changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, _File] = {}

    def page(self, query: v1.ListSessions) -> v1.ListSessionsResult:
        """A page of sessions.

        Raises:
            RequestError: the cursor is none of ours.
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
        """The sessions after a cursor, the last used first. What is not asked for is not read."""
        here = _Place(cwd)
        seen: set[str] = set()
        for file in sorted(self._files(here), key=lambda file: file.order, reverse=True):
            if file.id in seen:  # one that was moved or copied may be there twice
                continue
            if before is not None and file.order >= before:
                seen.add(file.id)
                continue
            summary = file.summary()
            if summary is not None and here.has(summary.cwd):
                seen.add(file.id)
                yield file, summary

    def _files(self, here: "_Place") -> Iterator[_File]:
        for folder in projects(self._root):
            if here.may_be(folder.name):
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


class _Place:
    """A directory that sessions are asked for; or none, and then all fit."""

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
