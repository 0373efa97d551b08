"""A conversation with one engine, cut into turns: from our events, or from what the engine tells of its own history. Pure.

A turn begins with what the user said and holds what came of it, folded. News about something that began in an earlier turn (a call
that ran on, a message that a steering word cut in two) belongs to the turn where it began, as on a screen.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from antiphon.duet.events import ClearEvent, EndEvent, Event, GivenEvent, PromptEvent, UpdateEvent
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT, decoder
from antiphon.transcript.entries import CallEntry, CompactionEntry, Entry, Message, Notice, Thought
from antiphon.transcript.transcript import Transcript

__all__ = ["HistoryTurn", "Key", "TurnPiece", "key_of", "squeezed", "turns_of_events", "turns_of_updates", "updates_of"]

Key: TypeAlias = tuple[type, str]
"""What a thing is and the id that it has."""

_decoder: Final = decoder(v1.Update)  # type: ignore[arg-type, var-annotated]  # a union is a type to msgspec


class TurnPiece(NamedTuple):
    """An update, and the turn in which the thing began that it is news of."""

    update: v1.Update
    home: "HistoryTurn"


class HistoryTurn:
    """What the user said and what came of it."""

    def __init__(self, number: int, said: str | None) -> None:
        self.number = number
        self.said = said
        """Without its white space, which engines keep as they like; None: nothing was said before this."""
        self.pieces: list[TurnPiece] = []
        self.transcript = Transcript()
        self.ended = False
        """Whether it came to its end before our eyes, so that nothing of it is missing."""
        self.joins = False
        """Whether it was said while the turn before ran."""

    @cached_property
    def text(self) -> str:
        """All that the engine said, squeezed. Asked for when the turn is whole."""
        return squeezed("".join(each.text for each in _answers(self.transcript.entries)))

    @cached_property
    def keys(self) -> frozenset[Key]:
        """The things in it that have ids."""
        return frozenset(key for each in self.transcript.entries if (key := key_of(each)) is not None)

    @property
    def empty(self) -> bool:
        """Whether nothing came of it that is worth a look."""
        return all(isinstance(each, Notice) for each in self.transcript.entries)


def key_of(entry: Entry) -> Key | None:
    """By what an entry is found again. What the user said has other ids in every telling."""
    match entry:
        case Message(speaker="user") | Notice():
            return None
        case Message() | Thought():
            return None if entry.message_id is None else (type(entry), entry.message_id)
        case CallEntry() | CompactionEntry():
            return type(entry), entry.id


def squeezed(text: str) -> str:
    """Without white space."""
    return "".join(text.split())


def updates_of(events: Iterable[Event], engine: str | None = None) -> Iterator[v1.Update]:
    """The updates of one engine, or of all, our own among them. One that cannot be read is left out."""
    for event in events:
        if isinstance(event, UpdateEvent) and (engine is None or event.engine == engine):
            try:
                yield _decoder.decode(event.update)
            except BAD_INPUT:
                continue


def turns_of_events(events: Sequence[Event], engine: str) -> list[HistoryTurn]:
    """What we know of the conversation, from where it was last begun afresh."""
    book = _Book()
    steering = False
    for event in events:
        match event:
            case ClearEvent():
                book = _Book()
            case PromptEvent():
                steering = event.steering
            case GivenEvent() if event.engine == engine:
                book.given(event.text, steering)
            case EndEvent() if event.engine == engine:
                book.ended(whole=bool(event.stop_reason))
            case UpdateEvent() if event.engine == engine:
                for update in updates_of([event]):
                    book.take(update)
            case _:
                pass
    return book.turns


def turns_of_updates(updates: Iterable[v1.Update]) -> list[HistoryTurn]:
    """What the engine knows of it."""
    book = _Book()
    for update in updates:
        book.take(update)
    return book.turns


class _Book:
    def __init__(self) -> None:
        self.turns = [HistoryTurn(0, None)]
        self._homes: dict[Key, HistoryTurn] = {}
        self._saying: list[str] | None = None  # while the user's words come in pieces
        self._saying_id: str | None = None
        self._given = ""  # what an engine may repeat before it answers

    def given(self, text: str, steering: bool) -> None:
        self._begin(squeezed(text))
        self.turns[-1].joins = steering
        self._saying, self._given = None, squeezed(text)

    def ended(self, whole: bool) -> None:
        self._given = ""
        for turn in reversed(self.turns):
            turn.ended = whole
            if not turn.joins:
                break

    def take(self, update: v1.Update) -> None:
        if isinstance(update, v1.UserMessageChunk):
            self._said(update)
            return
        if not isinstance(update, v1.StateUpdate):
            self._saying = None
        home = self._home(update)
        home.transcript.apply(update)
        self.turns[-1].pieces.append(TurnPiece(update, home))

    def _said(self, chunk: v1.UserMessageChunk) -> None:
        words = squeezed(chunk.content.text) if isinstance(chunk.content, v1.TextBlock) else ""
        turn = self.turns[-1]
        if self._saying is None and words and self._given.startswith(words) and turn.empty:
            self._given = self._given[len(words) :]  # the engine repeats what it was given
            return
        if self._saying is None or (chunk.message_id is not None and chunk.message_id != self._saying_id):
            self._begin("")
            self._saying, self._saying_id = [], chunk.message_id
            turn = self.turns[-1]
        self._saying.append(words)
        turn.said = "".join(self._saying)
        turn.pieces.append(TurnPiece(chunk, turn))

    def _begin(self, said: str) -> None:
        self.turns.append(HistoryTurn(len(self.turns), said))

    def _home(self, update: v1.Update) -> HistoryTurn:
        now = self.turns[-1]
        match update:
            case v1.AgentMessageChunk(message_id=str() as id):
                return self._homes.setdefault((Message, id), now)
            case v1.AgentThoughtChunk(message_id=str() as id):
                return self._homes.setdefault((Thought, id), now)
            case v1.CompactionUpdate(compaction_id=id) | v1.CompactionSummaryChunk(compaction_id=id):
                return self._homes.setdefault((CompactionEntry, id), now)
            case v1.ToolCallUpdate(tool_call_id=id):
                return self._homes.setdefault((CallEntry, id), now)
            case v1.ToolCall(tool_call_id=id):
                before = self._homes.setdefault((CallEntry, id), now).transcript.call(id)
                if before is not None and before.announced and before.finished:
                    self._homes[CallEntry, id] = now  # the id is used again
                return self._homes[CallEntry, id]
            case _:
                return now


def _answers(entries: Sequence[Entry]) -> Iterator[Message]:
    return (each for each in entries if isinstance(each, Message) and each.speaker == "agent")
