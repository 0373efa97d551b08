"""The lines of a session's file: an index of them all, so that only the few that are told need be opened.

Files grow to hundreds of megabytes, and a line may have 20 of them. The index remembers where a line is and how it hangs
together with the others; the line itself is read again when its turn has come.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from antiphon.protocol.base import BAD_INPUT

__all__ = ["Index", "Row", "mended", "read_index", "read_lines"]


class Row(msgspec.Struct, frozen=True, gc=False):
    """Where a line is, and how it hangs together with others."""

    offset: int
    length: int
    type: str
    subtype: str
    uuid: str
    parent: str | None = None
    """The line before it; where the conversation was compacted, the one that was last before that."""
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

    rows: list[Row]
    rewound: bool = False
    """Whether the user went back, and nothing was said since."""
    leaf: str | None = None
    """Where to: to this line, or to the very beginning."""


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

    Old versions have the lines of sub-agents in the session's own file; `sidechain` says whether those are wanted.
    """
    index = Index([])
    seen: set[str] = set()
    offset = 0
    with path.open("rb") as file:
        for line in file:
            length = len(line)
            head = _read(_head, line)
            mend = head is None and (line := mended(line)) != b""
            head = _read(_head, line) if mend else head
            if head is not None and bool(head.is_sidechain) is sidechain:
                _take(
                    index, seen, head, Row(offset, length, head.type, head.subtype or "", head.uuid or "", broken=mend)
                )
            offset += length
    return index


def read_lines(path: Path, rows: list[Row]) -> Iterator[tuple[Row, bytes]]:
    """Open the lines again, one at a time."""
    with path.open("rb") as file:
        for row in rows:
            file.seek(row.offset)
            line = file.read(row.length)
            yield row, mended(line) if row.broken else line


def mended(line: bytes) -> bytes:
    """A line with whole characters: programs cut text by its length, and JavaScript writes the halves. Nothing when it is no JSON."""
    try:
        text = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
    except (ValueError, RecursionError):
        return b""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _take(index: Index, seen: set[str], head: _Head, row: Row) -> None:
    if head.type == "last-prompt":
        if head.explicit:
            index.rewound, index.leaf = True, head.leaf_uuid
        return
    # After compacting, old versions write lines a second time. The first stands where it was said.
    if head.type not in CHAINED or not row.uuid or row.uuid in seen:
        return
    seen.add(row.uuid)
    index.rewound = False
    index.rows.append(_filled(head, msgspec.structs.replace(row, parent=head.parent_uuid or head.logical_parent_uuid)))


def _filled(head: _Head, row: Row) -> Row:
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
