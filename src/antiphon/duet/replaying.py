"""A history told again: the events as the updates that a client gets. Pieces of one message come as one piece.

Most events are pieces of text, so they are looked at as little as possible: an update that is not merged leaves as the bytes that it was kept
as. Merged is only what is nothing but text: of a piece with anything that we do not know, or that belongs to its content, all of it leaves.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec
from msgspec import Raw

from antiphon.duet.events import Event, PromptEvent, UpdateEvent
from antiphon.protocol import v1

__all__ = ["replayed"]


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Piece(msgspec.Struct, forbid_unknown_fields=True):
    """An update that is a piece of text, and nothing else."""

    kind: str = msgspec.field(name="sessionUpdate")
    content: _Content
    message_id: str | None = msgspec.field(name="messageId", default=None)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class _Kept(NamedTuple):
    piece: _Piece
    update: Raw
    """As it was kept."""


_MERGED: Final[dict[str, type[v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk]]] = {
    "agent_message_chunk": v1.AgentMessageChunk,
    "agent_thought_chunk": v1.AgentThoughtChunk,
    "user_message_chunk": v1.UserMessageChunk,
}
_decode: Final = msgspec.json.Decoder(_Piece).decode


def replayed(events: Iterable[Event]) -> Iterator[v1.Update]:
    """The updates of a history, in order."""
    run: list[_Kept] = []
    for event in events:
        match event:
            case UpdateEvent():
                piece = _text_of(event.update)
                if piece is not None and (not run or _same(run[0].piece, piece)):
                    run.append(_Kept(piece, event.update))
                    continue
                yield from _message(run)
                run = [] if piece is None else [_Kept(piece, event.update)]
                if piece is None:
                    yield cast("v1.Update", event.update)  # bytes leave as they are
            case PromptEvent():
                yield from _message(run)
                run = []
                for block in event.prompt:
                    yield v1.UserMessageChunk(block, event.message_id)
            case _:
                continue
    yield from _message(run)


def _text_of(update: Raw) -> _Piece | None:
    """A piece of plain text; None for anything else."""
    if b"_chunk" not in bytes(memoryview(update)[:60]):
        return None
    try:
        piece = _decode(update)
    except msgspec.DecodeError:
        return None
    return piece if piece.kind in _MERGED else None


def _same(first: _Piece, next: _Piece) -> bool:
    return first.kind == next.kind and first.message_id == next.message_id and first.meta == next.meta


def _message(run: list[_Kept]) -> Iterator[v1.Update]:
    if len(run) == 1:
        yield cast("v1.Update", run[0].update)
    elif run:
        first = run[0].piece
        text = "".join(kept.piece.content.text for kept in run)
        yield _MERGED[first.kind](v1.TextBlock(text), first.message_id, meta=first.meta)
