"""What a list shows of a session, read off the beginning and the end of its file: title, directory, time."""

import re
from datetime import UTC, datetime
from os import stat_result
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from antiphon.engines.claude.history.places import is_folder_of
from antiphon.engines.claude.history.records import mended
from antiphon.engines.claude.history.typed import Typed, read_text
from antiphon.engines.wording import sentence
from antiphon.protocol.base import BAD_INPUT
from antiphon.store.times import stamp

__all__ = ["Summary", "read_summary", "read_time"]

WINDOW: Final = 64 * 1024
"""Bytes read at each end of a file. Claude Code repeats titles at the end so that they are found there."""

SHORT: Final = 4 * 1024
"""Bytes at the end of a file that mostly have the time of the last line."""

_TIME: Final = re.compile(rb'"timestamp":"([0-9T:.+Z-]{19,35})"')
_CUT_PROMPT: Final = re.compile(
    rb'"type":"user","message":\{"role":"user","content":(?:\[\{"type":"text","text":)?"((?:[^"\\]|\\.){1,4096})'
)
"""The text of a prompt whose line is longer than the window: it begins with what was typed, and pictures follow."""


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
    content: Any = None


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
    """What a list shows of a session; `None` when there is nothing of a conversation in the file, or only a sub-agent."""
    head, tail = _ends(path, status.st_size)
    opening = _Opening(head)
    if opening.is_sidechain:
        return None
    named = _names(head) if tail is head else {**_names(head), **_names(tail)}
    asked = opening.prompt or named.get("last-prompt") or opening.command
    cwd = _cwd(path, tail, named.get("relocated"), opening)
    if not asked or cwd is None:  # who only opened a session and gave it a name has said nothing yet
        return None
    title = named.get("custom-title") or _beside(path) or named.get("ai-title") or named.get("summary")
    branch = _last_string(tail, b'"gitBranch":"')
    return Summary(
        id=path.stem,
        cwd=cwd,
        title=sentence(title or asked) or sentence(asked),
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


class _Opening:
    """What the first lines say: whose they are, where it was, and what was asked."""

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
        """Take what a line says; whether no more is needed."""
        try:
            found = _line.decode(line)
        except BAD_INPUT:
            return bool(whole := mended(line)) and whole != line and self._read(whole)
        self.is_sidechain = self.is_sidechain or bool(found.is_sidechain)
        self.cwd = self.cwd or found.cwd
        if found.type == "user" and not (found.is_meta or found.is_compact_summary):
            self._asked(found.message)
        return self.is_sidechain or bool(self.cwd and self.prompt)

    def _asked(self, message: Raw) -> None:
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
        said = read_text(text)
        if isinstance(said, Typed) and said.text.startswith("/"):
            self.command = self.command or said.text
        elif isinstance(said, Typed) and said.text.strip():
            self.prompt = said.text


def _ends(path: Path, size: int) -> tuple[bytes, bytes]:
    with path.open("rb", buffering=0) as file:
        head = file.read(2 * WINDOW if size <= 2 * WINDOW else WINDOW)
        if size <= 2 * WINDOW:
            return head, head
        file.seek(size - WINDOW)
        return head, file.read(WINDOW)


def _beside(path: Path) -> str | None:
    """The name that was given, where it is kept in a file of its own."""
    try:
        return _named.decode((path.with_suffix("") / "custom-title.json").read_bytes()).custom_title
    except (OSError, *BAD_INPUT):
        return None


def _cwd(path: Path, tail: bytes, moved: str | None, opening: _Opening) -> str | None:
    """Where the session belongs: where it was begun or moved to, not where a command went in between."""
    last = _last_string(tail, b'"cwd":"')
    known = [cwd for cwd in (moved, opening.cwd, last) if cwd]
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
