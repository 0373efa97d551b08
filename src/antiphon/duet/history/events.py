"""The events of a joint session as they are stored, a view of them that is read once, and their replay as updates. Pure.

An update stands in its event as it was sent, and is never re-encoded: what we do not know survives.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Raw

from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT, decoder, encode
from antiphon.protocol.salvage import salvage

__all__ = [
    "COMMAND",
    "UNSIGNED",
    "ClearEvent",
    "EndEvent",
    "Event",
    "GivenEvent",
    "HistoryStep",
    "HistoryView",
    "PromptEvent",
    "UpdateEvent",
    "now",
    "pack",
    "replayed",
    "unpack",
    "update_event",
]

COMMAND: Final = "command"
"""The role of a prompt that is a command of the engine's own."""


class _Event(msgspec.Struct, frozen=True, tag_field="event", omit_defaults=True):
    at: float
    """Seconds since 1970."""


class PromptEvent(_Event, frozen=True, tag="prompted"):
    """A prompt to the engines."""

    prompt: list[v1.ContentBlock]
    message_id: str
    by: str = ""
    """Empty: the user gave it. Else what gave it for them, such as `nudge`."""
    steering: bool = False
    """Whether it was added to a turn that ran."""


class UpdateEvent(_Event, frozen=True, tag="shown"):
    """An update that was shown to the client."""

    update: Raw
    engine: str = ""
    """The engine whose update it is; empty: our own."""


class GivenEvent(_Event, frozen=True, tag="given"):
    """The text that an engine was given as its prompt, by which it is found again in the engine's own history."""

    engine: str
    text: str
    role: str = ""
    """Empty: to answer. Else `review`, `fix`, or `command` for a command of the engine's own, which has to stand alone."""


class EndEvent(_Event, frozen=True, tag="ended"):
    """The end of an engine's turn."""

    engine: str
    stop_reason: str = ""
    """Empty: it failed, and `error` has the reason."""
    error: str = ""


UNSIGNED: Final = "it is not signed in"
"""The error of a turn that an engine did not begin for the lack of a sign-in: nothing that other engines need to know."""


class ClearEvent(_Event, frozen=True, tag="cleared"):
    """The user began afresh: what came before is not replayed."""


Event: TypeAlias = PromptEvent | UpdateEvent | GivenEvent | EndEvent | ClearEvent

_decoder: msgspec.json.Decoder[Event] = decoder(Event)  # type: ignore[arg-type]  # a union is a type to msgspec

_update_decoder: msgspec.json.Decoder[v1.Update] = decoder(v1.Update)  # type: ignore[arg-type]  # so is this one


def now() -> float:
    """The time of an event that happens now."""
    return round(time.time(), 3)


def update_event(update: v1.Update, engine: str = "") -> UpdateEvent:
    """The event of an update that is about to be shown."""
    return UpdateEvent(now(), Raw(encode(update)), engine)


pack: "Callable[[Event], bytes]" = encode
"""An event as it is stored."""


def unpack(stored: Iterable[bytes]) -> Iterator[Event]:
    """Decode stored events. One that cannot be read, because a newer Antiphon wrote it, is left out."""
    for each in stored:
        try:
            yield _decoder.decode(each)
        except msgspec.DecodeError:
            continue


class HistoryStep(NamedTuple):
    """An event of a view."""

    event: Event
    update: v1.Update | None
    """The update of an `UpdateEvent`; None: it is another event, or an update that cannot be read."""


class HistoryView:
    """The events of a session since the user last began afresh, read once and each update decoded once.

    Everything that needs the history while a session is opened shares one view: replay, catch-up, summary, calls that never ended. What
    is added to the session meanwhile is added here too.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._steps: list[HistoryStep] = []
        for event in events:
            self.add(event)

    def add(self, event: Event, update: v1.Update | None = None) -> None:
        """Add the next event; `update` is its update where that is known."""
        if isinstance(event, ClearEvent):
            self._steps.clear()
            return
        if update is None and isinstance(event, UpdateEvent):
            update = _decoded(event)
        self._steps.append(HistoryStep(event, update))

    def __iter__(self) -> Iterator[HistoryStep]:
        return iter(self._steps)

    @property
    def has_prompt(self) -> bool:
        """Whether the user sent anything to an engine."""
        return any(isinstance(step.event, PromptEvent) and not step.event.by for step in self._steps)

    def updates(self, engine: str | None = None) -> Iterator[v1.Update]:
        """The updates of one engine, or of all, our own among them. One that cannot be read is left out."""
        for event, update in self._steps:
            if update is not None and (engine is None or (isinstance(event, UpdateEvent) and event.engine == engine)):
                yield update

    def replayed(self) -> Iterator[v1.Update]:
        """The updates as the client gets them when the session is loaded."""
        return replayed(step.event for step in self._steps)

    def is_cut_off(self, engine: str) -> bool:
        """Whether the last turn of an engine never ended, as far as we know."""
        for event, _ in reversed(self._steps):
            if isinstance(event, GivenEvent | EndEvent) and event.engine == engine:
                return isinstance(event, GivenEvent)
        return False


def _decoded(event: UpdateEvent) -> v1.Update | None:
    """The update of an event. What a client of today cannot read as a whole is read as far as that goes."""
    try:
        return _update_decoder.decode(event.update)
    except BAD_INPUT:
        pass
    try:
        return salvage(event.update, v1.Update)  # type: ignore[arg-type]  # a union is a type to it
    except BAD_INPUT:
        return None


# The replay: the events as the updates that a client gets, with the pieces of one message as one piece. Most events are pieces of text,
# so they are decoded as little as possible: an update that is not merged leaves as the bytes that are stored. Only plain text is merged:
# a piece with a field that we do not know, or one that belongs to its content, leaves as it is.


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Piece(msgspec.Struct, forbid_unknown_fields=True):
    """An update that is a piece of text, and nothing else."""

    kind: str = msgspec.field(name="sessionUpdate")
    content: _Content
    message_id: str | None = msgspec.field(name="messageId", default=None)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class _StoredPiece(NamedTuple):
    piece: _Piece
    update: Raw
    """The update as it is stored."""


_MERGED: Final[dict[str, type[v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk]]] = {
    "agent_message_chunk": v1.AgentMessageChunk,
    "agent_thought_chunk": v1.AgentThoughtChunk,
    "user_message_chunk": v1.UserMessageChunk,
}
_decode: Final = msgspec.json.Decoder(_Piece).decode


def replayed(events: Iterable[Event]) -> Iterator[v1.Update]:
    """The updates of a history, in order."""
    run: list[_StoredPiece] = []
    for event in events:
        match event:
            case UpdateEvent():
                piece = _text_of(event.update)
                if piece is not None and (not run or _same(run[0].piece, piece)):
                    run.append(_StoredPiece(piece, event.update))
                    continue
                yield from _message(run)
                run = [] if piece is None else [_StoredPiece(piece, event.update)]
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


def _message(run: list[_StoredPiece]) -> Iterator[v1.Update]:
    if len(run) == 1:
        yield cast("v1.Update", run[0].update)
    elif run:
        first = run[0].piece
        text = "".join(kept.piece.content.text for kept in run)
        yield _MERGED[first.kind](v1.TextBlock(text), first.message_id, meta=first.meta)
