"""Catch-up: what an engine's own history has beyond ours. The user went on in a terminal, or we were killed in a turn. Pure.

Both are cut into turns, and the turns are paired (`turns.py`). The last turn of theirs that has a partner is the frontier.

1. Turns after the frontier are missed whole. If no turn has a partner, all of it is missed.
2. In the frontier's turn these are missed: the rest of a message whose beginning we have, messages and calls that we do not have,
   the ends of calls that we left open. Things are found by their ids, and without an id by their words, in their order.
   A word that was added to a running turn makes no turn of its own: what it was added to is looked at together with it.
   A turn that we saw end can only miss what the engine did later by itself. That has ids, so only entries with ids count as missed.
3. In turns before the frontier only calls and compactions that we left open are brought to their end. What we never had of them is left
   out, because it would stand in the wrong place.
4. Settings, commands, titles and the use of tokens are not history: the engine sends them anew when it is opened.
5. What only we have stays ours. If the engine was killed as well, its calls that never ended are closed by `left_open`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from antiphon.duet.history.events import HistoryView
from antiphon.duet.history.turns import (
    HistoryTurn,
    Key,
    key_of,
    paired_turns,
    shared_ids,
    turns_of_updates,
    turns_of_view,
)
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, Unknown, encode
from antiphon.transcript.entries import CallEntry, CompactionEntry, Entry, Message, Thought
from antiphon.transcript.transcript import Transcript, fold

__all__ = ["ComparedPiece", "WrittenText", "ends_of_open_calls", "missed_updates"]


class ComparedPiece(NamedTuple):
    """How much of a piece of text was found in what we have."""

    known: bool
    """Some of it, or all."""
    rest: v1.ContentBlock | None
    """What was not found; None: nothing is left."""
    strange: bool = False
    """Whether something else stands where it should be."""


class WrittenText:
    """What is left of some messages after the pieces that were found in them."""

    def __init__(self, entries: Sequence[Message | Thought]) -> None:
        self._left = deque((block, entry.message_id) for entry in entries for block in entry.blocks)
        self.id: str | None = None
        """The message in which the last piece was found."""

    def take(self, piece: v1.ContentBlock) -> ComparedPiece:
        """Compare the next piece. What is found is taken away; what is not leaves everything as it was."""
        self._skip_blanks()
        if isinstance(piece, v1.TextBlock):
            return self._take_text(piece)
        if not self._left:
            return ComparedPiece(False, piece)
        for number, (block, id) in enumerate(self._left):
            if block == piece:
                self.id = id
                for _ in range(number + 1):
                    self._left.popleft()
                return ComparedPiece(True, None)
        return ComparedPiece(False, piece, strange=True)

    def _take_text(self, piece: v1.TextBlock) -> ComparedPiece:
        text, known = piece.text, False
        while text:
            self._skip_blanks()
            if not self._left:
                break
            block, id = self._left[0]
            ends = _common(block.text, text) if isinstance(block, v1.TextBlock) else None
            if ends is None:
                found = not known and text.strip() != "" and self._skip_to(text)
                return ComparedPiece(known or found, None if found else v1.TextBlock(text=text), strange=not found)
            mine, other = ends
            known, self.id = known or other > 0, id
            assert isinstance(block, v1.TextBlock)  # noqa: S101 - `ends` ensures it
            self._left.popleft()
            if mine < len(block.text):
                self._left.appendleft((v1.TextBlock(text=block.text[mine:]), id))
            text = text[other:]
        return ComparedPiece(known or not piece.text, v1.TextBlock(text=text) if text else None)

    def _skip_to(self, text: str) -> bool:
        """Whether the text stands further down. What stands before it is in our history alone."""
        for number, (block, id) in enumerate(self._left):
            if isinstance(block, v1.TextBlock) and (place := block.text.find(text)) >= 0:
                for _ in range(number + 1):
                    self._left.popleft()
                self._left.appendleft((v1.TextBlock(text=block.text[place + len(text) :]), id))
                self.id = id
                return True
        return False

    def _skip_blanks(self) -> None:
        while self._left and isinstance(block := self._left[0][0], v1.TextBlock) and not block.text:
            self._left.popleft()


def _common(mine: str, other: str) -> tuple[int, int] | None:
    """The position in the longer text at which the shorter one ends, if both are equal so far except for white space; else None."""
    if mine.startswith(other):
        return len(other), len(other)
    if other.startswith(mine):
        return len(mine), len(mine)
    here = there = 0
    while True:
        here, there = _past_blanks(mine, here), _past_blanks(other, there)
        if here == len(mine) or there == len(other):
            return here, there
        if mine[here] != other[there]:
            return None
        here, there = here + 1, there + 1


def _past_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


Place: TypeAlias = tuple[int, int]
"""The number of a turn, and the key of an entry in it."""


def missed_updates(ours: HistoryView, theirs: Sequence[v1.Update], engine: str) -> list[v1.Update]:
    """The updates to show after our own, so that nothing is missing and nothing is there twice.

    They are stored as events of the engine. If its last turn was cut off, an `EndEvent` goes before them: they come after that turn.
    """
    mine, others = turns_of_view(ours, engine), turns_of_updates(theirs)
    shared = shared_ids(mine, others)
    pairs = paired_turns(mine, others, shared)
    frontier = max(
        (number for number in pairs if not others[number].empty or others[number].prompt is not None), default=-1
    )
    chain = _chain(mine, pairs[frontier]) if frontier >= 0 else []
    rest = [turn for turn in others[: frontier + 1] if pairs.get(turn.number) in chain]
    missed: list[v1.Update] = []
    for turn in others[:frontier]:
        if turn not in rest:
            missed += _ends(turn, pairs.get(turn.number), shared)
    if rest:
        missed += _Rest(chain, rest, shared).missed()
    for turn in others[frontier + 1 :]:
        if turn.prompt is not None or not turn.empty:
            missed += _whole(turn, max(frontier, 0))
    return missed


def ends_of_open_calls(ours: HistoryView, engine: str | None = None) -> list[v1.Update]:
    """The ends of the calls that never got one, of one engine or of all. For a history in which nothing runs any more."""
    calls = [each for each in fold(ours.updates(engine)).entries if isinstance(each, CallEntry) and not each.finished]
    return [v1.ToolCallUpdate(tool_call_id=call.id, status=v1.ToolStatus.FAILED) for call in calls]


def _chain(mine: Sequence[HistoryTurn], last: HistoryTurn) -> list[HistoryTurn]:
    """A turn, and those that it was added to while they ran: engines store additions in different positions."""
    first = last.number
    while mine[first].joins:
        first -= 1
    return list(mine[first : last.number + 1])


def _whole(turn: HistoryTurn, first: int) -> Iterator[v1.Update]:
    """All updates of a turn except settings and updates about things of earlier turns."""
    for update, home in turn.pieces:
        if home.number >= first and not isinstance(update, v1.StateUpdate):
            yield update


def _ends(turn: HistoryTurn, mine: HistoryTurn | None, shared: dict[Key, HistoryTurn]) -> Iterator[v1.Update]:
    partners = _partners([turn], [] if mine is None else [mine], shared)
    for entry in turn.transcript.entries:
        partner = partners.get((turn.number, entry.key))
        if (
            isinstance(entry, CallEntry)
            and isinstance(partner, CallEntry)
            and (updates := _difference(partner, entry)) is not None
        ):
            yield updates
        elif isinstance(entry, CompactionEntry) and isinstance(partner, CompactionEntry) and _goes_on(partner):
            yield v1.CompactionUpdate(compaction_id=partner.id, status=entry.status, error=entry.error or UNSET)


def _partners(
    turns: Sequence[HistoryTurn], mine: Sequence[HistoryTurn], shared: dict[Key, HistoryTurn]
) -> dict[Place, Entry]:
    """Our entries for those of some turns of theirs. An id that comes again means the next entry of that id.

    A compaction may have another id when it is replayed; they are few, so the next one is meant.
    """
    ours: dict[Key, list[Entry]] = {}
    for entry in (each for turn in mine for each in turn.transcript.entries):
        if (key := key_of(entry)) is not None:
            ours.setdefault(key, []).append(entry)
    found: dict[Place, Entry] = {}
    left: list[Place] = []
    for number, entry in [(turn.number, each) for turn in turns for each in turn.transcript.entries]:
        place, key = (number, entry.key), key_of(entry)
        if key is not None and ours.get(key):
            found[place] = ours[key].pop(0)
        elif key is not None and (home := shared.get(key)) is not None and home not in mine:
            found[place] = next(each for each in home.transcript.entries if key_of(each) == key)
        elif isinstance(entry, CompactionEntry):
            left.append(place)
    others = (each for entries in ours.values() for each in entries if isinstance(each, CompactionEntry))
    return found | dict(zip(left, others, strict=False))


def _goes_on(compaction: CompactionEntry) -> bool:
    return compaction.status == v1.CompactionStatus.IN_PROGRESS


def _difference(ours: CallEntry, theirs: CallEntry) -> v1.ToolCallUpdate | None:
    """The update that brings our call to the state of theirs; None: ours has ended, or nothing is new."""
    begins = ours.status == v1.ToolStatus.PENDING != theirs.status
    if ours.finished or not (theirs.finished or begins):
        return None
    updates: dict[str, Any] = {}
    for name in ("kind", "name", "content", "locations", "raw_input", "raw_output"):
        value = getattr(theirs, name)
        if value is not UNSET and value != getattr(ours, name) and (value or name.startswith("raw_")):
            updates[name] = value
    if theirs.title and not ours.title.endswith(theirs.title):  # ours may have the engine's name before it
        updates["title"] = theirs.title
    return v1.ToolCallUpdate(tool_call_id=theirs.id, status=theirs.status, **updates)


class _Found(NamedTuple):
    """What an update of theirs means for us."""

    updates: list[v1.Update]
    known: bool
    """Whether we have the thing that it is about."""
    aside: bool = False
    """Whether it is neither a message nor work, and is missed only where nothing we know of comes after it."""


class _Rest:
    """Compares some turns of theirs with their partners, update by update."""

    def __init__(
        self, mine: Sequence[HistoryTurn], turns: Sequence[HistoryTurn], shared: dict[Key, HistoryTurn]
    ) -> None:
        self._ended = mine[-1].ended
        self._partners = _partners(turns, mine, shared)
        paired = {id(each) for each in self._partners.values()}
        loose = [each for turn in mine for each in turn.transcript.entries if id(each) not in paired]
        self._streams: dict[type, WrittenText] = {
            Message: WrittenText([each for each in loose if isinstance(each, Message) and each.speaker == "agent"]),
            Thought: WrittenText([each for each in loose if isinstance(each, Thought)]),
        }
        self._written: dict[Place, WrittenText] = {}
        self._ids: dict[Place, str | None] = {}
        self._had = {_plain(each.update) for turn in mine for each in turn.pieces}
        self._theirs = [piece for turn in turns for piece in _own_updates(turn)]
        self._last = {place: number for number, (place, _, _) in enumerate(self._theirs)}

    def missed(self) -> list[v1.Update]:
        found = [self._found(number, *each) for number, each in enumerate(self._theirs)]
        last = max((number for number, each in enumerate(found) if each.known), default=-1)
        missed: list[v1.Update] = []
        for number, each in enumerate(found):
            if each.known:
                missed += each.updates
            elif each.aside:
                missed += each.updates if number > last and not self._ended else []
            elif not self._ended or (number > last and self._partners and _has_id(each.updates)):
                missed += each.updates
        return missed

    def _found(self, number: int, place: Place, entry: Entry | None, update: v1.Update) -> _Found:
        match entry:
            case Message() | Thought() if isinstance(update, v1.AgentMessageChunk | v1.AgentThoughtChunk):
                return self._add_text(place, entry, update)
            case CallEntry():
                return self._call(place, entry, update, is_last=self._last[place] == number)
            case CompactionEntry():
                return self._compaction(place, update)
            case _ if isinstance(update, v1.StateUpdate):
                return _Found([], known=False)
            case _:
                had = _plain(update) in self._had
                return _Found([] if had else [update], known=had, aside=True)

    def _add_text(
        self, place: Place, entry: Message | Thought, update: v1.AgentMessageChunk | v1.AgentThoughtChunk
    ) -> _Found:
        partner = self._partners.get(place)
        if isinstance(partner, Message | Thought):
            written = self._written.setdefault(place, WrittenText([partner]))
        else:
            written = self._streams[type(entry)]
        compared = written.take(update.content)
        if compared.known and partner is None:
            self._ids[place] = written.id  # the rest goes where the beginning stands
        if compared.rest is None:
            return _Found([], known=True)
        if (compared.known or partner is not None) and (compared.strange or self._ended):
            return _Found([], known=True)  # worded otherwise, but it is the same
        id = self._ids.get(place, update.message_id)
        return _Found(
            [msgspec.structs.replace(update, content=compared.rest, message_id=id)],
            known=compared.known or partner is not None,
        )

    def _call(self, place: Place, entry: CallEntry, update: v1.Update, *, is_last: bool) -> _Found:
        partner = self._partners.get(place)
        if not isinstance(partner, CallEntry):
            return _Found([update], known=False)
        updates = _difference(partner, entry) if is_last else None
        return _Found([] if updates is None else [updates], known=True)

    def _compaction(self, place: Place, update: v1.Update) -> _Found:
        partner = self._partners.get(place)
        if not isinstance(partner, CompactionEntry):
            return _Found([update], known=False)
        if not _goes_on(partner) or not isinstance(update, v1.CompactionUpdate | v1.CompactionSummaryChunk):
            return _Found([], known=True)
        return _Found([msgspec.structs.replace(update, compaction_id=partner.id)], known=True)


def _own_updates(turn: HistoryTurn) -> Iterator[tuple[Place, Entry | None, v1.Update]]:
    """The turn's own updates, each with the entry that it is about; the user's prompt is known, since the turn is."""
    again = Transcript()
    for update, home in turn.pieces:
        if home is turn and not isinstance(update, v1.UserMessageChunk):
            entry = again.apply(update)
            yield (turn.number, -1 if entry is None else entry.key), entry, update


def _has_id(updates: Sequence[v1.Update]) -> bool:
    return all(not isinstance(each, v1.MessageChunk) or each.message_id is not None for each in updates)


def _plain(update: v1.Update) -> bytes:
    """An update without its `_meta`, to compare updates of different sources."""
    return encode(update if isinstance(update, Unknown) else msgspec.structs.replace(update, meta=None))
