"""Session files: where they are, an index of their lines, and which lines are the current branch of the session.

Files grow to hundreds of megabytes, and a line may have 20 of them. The index has where a line is and how it is connected
with the others; the line itself is read again when it is replayed.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from antiphon.protocol.base import BAD_INPUT

__all__ = [
    "AGENTS",
    "SUFFIX",
    "VARIABLE",
    "Index",
    "RecordRow",
    "config_dir",
    "current_branch",
    "folder_name",
    "is_folder_of",
    "is_id",
    "projects",
    "read_index",
    "read_lines",
    "repaired",
    "session_files",
]

# Where the sessions are: names of directories and files. Nothing is opened here.

VARIABLE: Final = "CLAUDE_CONFIG_DIR"
SUFFIX: Final = ".jsonl"
AGENTS: Final = "subagents"
"""The folder with the sub-agents of a session, inside the folder that is named after the session."""

LONGEST_NAME: Final = 200
"""Characters of a folder's name before Claude Code cuts it and adds a hash."""

_ODD: Final = re.compile(r"[^A-Za-z0-9]")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def config_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Claude Code's own directory. It may not exist. One that is named without a root lies where we were started."""
    chosen = environment.get(VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".claude"


def is_id(text: str) -> bool:
    """Whether a text can be a session's id, and so be put into a path: no dots, no separators."""
    return _ID.fullmatch(text) is not None


def folder_name(cwd: str) -> str:
    """The name of the folder with the sessions of a directory: everything odd becomes a dash, and a long name is cut and hashed."""
    name = _ODD.sub(_dashes, cwd)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{_hash(cwd)}"


def is_folder_of(name: str, cwd: str) -> bool:
    """Whether a folder of this name may have the sessions of a directory. The names of two directories may be the same."""
    own = folder_name(cwd)
    # The hash is not the same in every build of Claude Code; what comes before it is.
    return name == own or (len(own) > LONGEST_NAME and name[: LONGEST_NAME + 1] == own[: LONGEST_NAME + 1])


def projects(root: Path) -> list[Path]:
    """The folders with sessions, one for each directory that Claude Code was started in."""
    try:
        with os.scandir(root / "projects") as found:
            return [Path(entry.path) for entry in found if entry.is_dir()]
    except OSError:
        return []


def session_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The paths of the sessions in a folder, with their file status."""
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.name.endswith(SUFFIX) and is_id(entry.name[: -len(SUFFIX)]) and entry.is_file():
                    yield entry.path, entry.stat()
    except OSError:
        return


def _dashes(odd: re.Match[str]) -> str:
    return "-" * len(_units(odd[0]))


def _units(text: str) -> memoryview:
    """The text as JavaScript counts it: what is beyond U+FFFF has two units."""
    return memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")


def _hash(text: str) -> str:
    value = 0
    for unit in _units(text):
        value = (value * 31 + unit) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >> 31 else value)
    digits = ""
    while value:
        value, rest = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"


class RecordRow(msgspec.Struct, frozen=True, gc=False):
    """The position of a line, and its links to other lines."""

    offset: int
    length: int
    type: str
    subtype: str
    uuid: str
    parent: str | None = None
    """The line before it; where the session was compacted, the one that was last before that."""
    message_id: str | None = None
    calls: tuple[str, ...] = ()
    """Tools that it calls."""
    results: tuple[str, ...] = ()
    """Calls that it has the results of."""
    agent: str | None = None
    """The sub-agent whose result it has."""
    broken: bool = False
    """Whether it has half a character, and must be mended to be read."""


class Index(msgspec.Struct, gc=False):
    """A file's lines that have an id, each once, in their order."""

    rows: list[RecordRow]
    rewound: bool = False
    """Whether the user went back, and no message followed."""
    leaf: str | None = None
    """The line that a branch was rewound to; None: the very beginning."""


class _Head(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    message: Raw = Raw()
    tool_use_result: Raw = Raw()
    leaf_uuid: str | None = None
    explicit: bool | None = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    content: Raw = Raw()


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    tool_use_id: str | None = None


class _Agent(msgspec.Struct, gc=False):
    agentId: str | None = None


_head: Final = msgspec.json.Decoder(_Head)
_message: Final = msgspec.json.Decoder(_Message)
_blocks: Final = msgspec.json.Decoder(list[_Block])
_agent: Final = msgspec.json.Decoder(_Agent)

T = TypeVar("T")

CHAINED: Final = frozenset({"user", "assistant", "system", "attachment", "progress"})
"""The sorts of lines that follow one another. All others stand alone."""


def read_index(path: Path, *, sidechain: bool = False) -> Index:
    """Read a file through once. What cannot be read is left out: the last line may be written at this moment.

    Old versions have the lines of sub-agents in the session's own file; `sidechain` decides whether they are read.
    """
    index = Index([])
    seen: set[str] = set()
    offset = 0
    with path.open("rb") as file:
        for line in file:
            length = len(line)
            head = _read(_head, line)
            is_broken = head is None and (line := repaired(line)) != b""
            head = _read(_head, line) if is_broken else head
            if head is not None and bool(head.is_sidechain) is sidechain:
                _take(
                    index,
                    seen,
                    head,
                    RecordRow(offset, length, head.type, head.subtype or "", head.uuid or "", broken=is_broken),
                )
            offset += length
    return index


def read_lines(path: Path, rows: list[RecordRow]) -> Iterator[tuple[RecordRow, bytes]]:
    """Open the lines again, one at a time."""
    with path.open("rb") as file:
        for row in rows:
            file.seek(row.offset)
            line = file.read(row.length)
            yield row, repaired(line) if row.broken else line


def repaired(line: bytes) -> bytes:
    """A line with whole characters: programs cut text by its length, and JavaScript writes the halves. Nothing when it is not JSON."""
    try:
        text = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
    except (ValueError, RecursionError):
        return b""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _take(index: Index, seen: set[str], head: _Head, row: RecordRow) -> None:
    if head.type == "last-prompt":
        if head.explicit:
            index.rewound, index.leaf = True, head.leaf_uuid
        return
    # After compacting, old versions write lines a second time. The first one has the right position.
    if head.type not in CHAINED or not row.uuid or row.uuid in seen:
        return
    seen.add(row.uuid)
    index.rewound = False
    index.rows.append(_filled(head, msgspec.structs.replace(row, parent=head.parent_uuid or head.logical_parent_uuid)))


def _filled(head: _Head, row: RecordRow) -> RecordRow:
    if head.type not in ("user", "assistant"):
        return row
    message = _read(_message, head.message) or _Message()
    blocks = _read(_blocks, message.content) or []
    agent = _read(_agent, head.tool_use_result)
    return msgspec.structs.replace(
        row,
        message_id=message.id,
        calls=tuple(block.id for block in blocks if block.type == "tool_use" and block.id),
        results=tuple(block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id),
        agent=agent.agentId if agent else None,
    )


def _read(decoder: "msgspec.json.Decoder[T]", data: bytes | Raw) -> T | None:
    try:
        return decoder.decode(data)
    except BAD_INPUT:
        return None


# Which lines of a file are the current branch: those that the last one follows from, and what belongs to them.
# The user may go back and send another prompt; the earlier lines stay in the file and are not replayed.


def current_branch(index: Index) -> list[RecordRow]:
    """The lines of the current branch, in the order in which they were written."""
    rows = index.rows
    places = {row.uuid: place for place, row in enumerate(rows)}
    chain = _chain(rows, places, _leaf(index, places))
    chosen = chain | _beside(rows, chain)
    return [row for place, row in enumerate(rows) if place in chosen]


def _leaf(index: Index, places: dict[str, int]) -> int | None:
    if index.rewound and (index.leaf is None or index.leaf in places):
        return None if index.leaf is None else places[index.leaf]
    # A remark that follows nothing, such as a note of the program itself, does not end a branch.
    ends = (
        place for place, row in reversed([*enumerate(index.rows)]) if row.parent or row.type in ("user", "assistant")
    )
    return next(ends, None)


def _chain(rows: list[RecordRow], places: dict[str, int], leaf: int | None) -> set[int]:
    chain: set[int] = set()
    place = leaf
    while place is not None and place not in chain:
        chain.add(place)
        parent = rows[place].parent
        if parent is None:
            break
        # A lost line must not hide all lines before it: continue with the line above.
        place = places.get(parent, place - 1 if place else None)
    return chain


def _beside(rows: list[RecordRow], chain: set[int]) -> set[int]:
    """Lines beside the chain that belong to it.

    Of calls made at once, each result follows its own call, and the chain goes on from one of them only. The other blocks of a
    message, and a mark that the session was compacted, may hang beside it too.
    """
    messages = {rows[place].message_id for place in chain if rows[place].type == "assistant"} - {None}
    chosen = {place for place, row in enumerate(rows) if row.type == "assistant" and row.message_id in messages}
    calls = {call for place in chosen | chain for call in rows[place].calls}
    answered = {call for place in chain for call in rows[place].results}
    uuids = {rows[place].uuid for place in chain}
    marks: set[str] = set()
    for place, row in enumerate(rows):
        if row.results:
            missing = calls.intersection(row.results) - answered
            answered |= missing
            if missing:
                chosen.add(place)
        elif row.subtype == "compact_boundary" and row.parent in uuids:
            chosen.add(place)
            marks.add(row.uuid)
        elif row.parent in marks:  # the summary
            chosen.add(place)
    return chosen
