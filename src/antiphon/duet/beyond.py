"""What an engine's own history holds beyond our events: the user went on in a terminal, or we were killed in the middle of a turn. Pure.

Both are cut into turns (`told`), and the turns are paired (`aligning`). The last turn of theirs that has a partner is the frontier.

1. Turns after the frontier are told whole, as the engine tells them. Nothing has a partner: all of it is told.
2. In the frontier's turn what we lack is told: the rest of a message whose beginning we have, messages and calls that we do not have,
   the ends of calls that we left open. Things are found by their ids, and without an id by their words, in their order.
   Of a turn that ended before our eyes nothing can be missing but what the engine did later by itself, which has ids: only such is told.
3. In turns before the frontier only calls and compactions that we left open are brought to their end. What we never had of them is not
   told, because it would stand in the wrong place.
4. Settings, commands, titles and the use of tokens are not history: the engine tells how they stand when it is opened.
5. What only we have stays ours. If the engine was killed as well, its calls that never ended are closed by `left_open`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from antiphon.client.transcript import Transcript, fold
from antiphon.client.transcript_entries import CallEntry, CompactionEntry, Entry, Message, Thought
from antiphon.duet.aligning import aligned, shared_ids
from antiphon.duet.events import Cleared, Event
from antiphon.duet.told import STATE, Key, Turn, key_of, shown_by, turns_of_events, turns_of_updates
from antiphon.duet.written import Written
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, Unknown, encode

__all__ = ["beyond", "left_open"]


def beyond(ours: Sequence[Event], theirs: Sequence[v1.Update], engine: str) -> list[v1.Update]:
    """The updates to tell after our own, so that nothing is missing and nothing is there twice.

    Who keeps them as events of the engine puts the `Ended` of a turn that was cut off before them: what follows is told later.
    """
    mine, others = turns_of_events(ours, engine), turns_of_updates(theirs)
    shared = shared_ids(mine, others)
    pairs = aligned(mine, others, shared)
    frontier = max(
        (number for number in pairs if not others[number].empty or others[number].said is not None), default=-1
    )
    told: list[v1.Update] = []
    for turn in others[:frontier]:
        told += _ends(turn, pairs.get(turn.number), shared)
    if frontier >= 0:
        told += _Rest(pairs[frontier], others[frontier], shared).told()
    for turn in others[frontier + 1 :]:
        if turn.said is not None or not turn.empty:
            told += _whole(turn, max(frontier, 0))
    return told


def left_open(ours: Sequence[Event], engine: str | None = None) -> list[v1.Update]:
    """The ends of the calls that never got one, of one engine or of all. For a history in which nothing runs any more."""
    begun = max((number for number, event in enumerate(ours) if isinstance(event, Cleared)), default=-1) + 1
    entries = fold(shown_by(ours[begun:], engine)).entries
    calls = [each for each in entries if isinstance(each, CallEntry) and not each.finished]
    return [v1.ToolCallUpdate(tool_call_id=call.id, status=v1.ToolStatus.FAILED) for call in calls]


def _whole(turn: Turn, first: int) -> Iterator[v1.Update]:
    """All of it but settings, and but news of things from turns that are not told."""
    for update, home in turn.pieces:
        if home.number >= first and not isinstance(update, STATE):
            yield update


def _ends(turn: Turn, mine: Turn | None, shared: dict[Key, Turn]) -> Iterator[v1.Update]:
    partners = _partners(turn, mine, shared)
    for entry in turn.transcript.entries:
        partner = partners.get(entry.key)
        if (
            isinstance(entry, CallEntry)
            and isinstance(partner, CallEntry)
            and (news := _news(partner, entry)) is not None
        ):
            yield news
        elif (
            isinstance(entry, CompactionEntry)
            and isinstance(partner, CompactionEntry)
            and partner.status != entry.status
        ):
            yield v1.CompactionUpdate(compaction_id=entry.id, status=entry.status, error=entry.error or UNSET)


def _partners(turn: Turn, mine: Turn | None, shared: dict[Key, Turn]) -> dict[int, Entry]:
    """The entries of ours for those of a turn of theirs. An id that comes again in one turn means the next of that id."""
    ours: dict[Key, list[Entry]] = {}
    for entry in mine.transcript.entries if mine is not None else ():
        if (key := key_of(entry)) is not None:
            ours.setdefault(key, []).append(entry)
    found: dict[int, Entry] = {}
    for entry in turn.transcript.entries:
        key = key_of(entry)
        if key is None:
            continue
        if ours.get(key):
            found[entry.key] = ours[key].pop(0)
        elif (home := shared.get(key)) is not None and home is not mine:
            found[entry.key] = next(each for each in home.transcript.entries if key_of(each) == key)
    return found


def _news(ours: CallEntry, theirs: CallEntry) -> v1.ToolCallUpdate | None:
    """What a call is beyond what we know of it. One that ended for us has ended."""
    begins = ours.status == v1.ToolStatus.PENDING != theirs.status
    if ours.finished or not (theirs.finished or begins):
        return None
    news: dict[str, Any] = {}
    for name in ("kind", "name", "content", "locations", "raw_input", "raw_output"):
        value = getattr(theirs, name)
        if value is not UNSET and value != getattr(ours, name) and (value or name.startswith("raw_")):
            news[name] = value
    if theirs.title and not ours.title.endswith(theirs.title):  # ours may have the engine's name before it
        news["title"] = theirs.title
    return v1.ToolCallUpdate(tool_call_id=theirs.id, status=theirs.status, **news)


class _Found(NamedTuple):
    """A piece of news of theirs."""

    news: list[v1.Update]
    known: bool
    """Whether we have the thing that it is about."""
    aside: bool = False
    """Whether it is no part of the talk and the work, and is told only where nothing we know of comes after it."""


class _Rest:
    """What a turn of theirs has that its partner has not."""

    def __init__(self, mine: Turn, turn: Turn, shared: dict[Key, Turn]) -> None:
        self._mine = mine
        self._partners = _partners(turn, mine, shared)
        paired = {id(each) for each in self._partners.values()}
        loose = [each for each in mine.transcript.entries if id(each) not in paired]
        self._streams: dict[type, Written] = {
            Message: Written([each for each in loose if isinstance(each, Message) and each.speaker == "agent"]),
            Thought: Written([each for each in loose if isinstance(each, Thought)]),
        }
        self._written: dict[int, Written] = {}
        self._ids: dict[int, str | None] = {}
        self._had = {_plain(each.update) for each in mine.pieces}
        self._told = list(_told_again(turn))
        self._last = {entry.key: number for number, (entry, _) in enumerate(self._told) if entry is not None}

    def told(self) -> list[v1.Update]:
        found = [self._found(number, entry, update) for number, (entry, update) in enumerate(self._told)]
        last = max((number for number, each in enumerate(found) if each.known), default=-1)
        told: list[v1.Update] = []
        for number, each in enumerate(found):
            if each.known:
                told += each.news
            elif each.aside:
                told += each.news if number > last and not self._mine.ended else []
            elif not self._mine.ended or (number > last and self._partners and _has_id(each.news)):
                told += each.news
        return told

    def _found(self, number: int, entry: Entry | None, update: v1.Update) -> _Found:
        match entry:
            case Message() | Thought() if isinstance(update, v1.AgentMessageChunk | v1.AgentThoughtChunk):
                return self._talk(entry, update)
            case CallEntry():
                return self._call(entry, update, is_last=self._last[entry.key] == number)
            case CompactionEntry():
                return self._compaction(entry, update)
            case _ if isinstance(update, STATE):
                return _Found([], known=False)
            case _:
                had = _plain(update) in self._had
                return _Found([] if had else [update], known=had, aside=True)

    def _talk(self, entry: Message | Thought, update: v1.AgentMessageChunk | v1.AgentThoughtChunk) -> _Found:
        partner = self._partners.get(entry.key)
        if isinstance(partner, Message | Thought):
            written = self._written.setdefault(entry.key, Written([partner]))
        else:
            written = self._streams[type(entry)]
        compared = written.take(update.content)
        if compared.known and partner is None:
            self._ids[entry.key] = written.id  # the rest goes where the beginning stands
        if compared.rest is None:
            return _Found([], known=True)
        if (compared.known or partner is not None) and (compared.strange or self._mine.ended):
            return _Found([], known=True)  # told otherwise, but it is the same
        id = self._ids.get(entry.key, update.message_id)
        return _Found(
            [msgspec.structs.replace(update, content=compared.rest, message_id=id)],
            known=compared.known or partner is not None,
        )

    def _call(self, entry: CallEntry, update: v1.Update, *, is_last: bool) -> _Found:
        partner = self._partners.get(entry.key)
        if not isinstance(partner, CallEntry):
            return _Found([update], known=False)
        news = _news(partner, entry) if is_last else None
        return _Found([] if news is None else [news], known=True)

    def _compaction(self, entry: CompactionEntry, update: v1.Update) -> _Found:
        partner = self._partners.get(entry.key)
        if not isinstance(partner, CompactionEntry):
            return _Found([update], known=False)
        return _Found([] if partner.status != v1.CompactionStatus.IN_PROGRESS else [update], known=True)


def _told_again(turn: Turn) -> Iterator[tuple[Entry | None, v1.Update]]:
    """The turn's own news, each with the entry that it is about; what the user said is known, since the turn is."""
    again = Transcript()
    for update, home in turn.pieces:
        if home is turn and not isinstance(update, v1.UserMessageChunk):
            yield again.apply(update), update


def _has_id(news: Sequence[v1.Update]) -> bool:
    return all(not isinstance(each, v1.MessageChunk) or each.message_id is not None for each in news)


def _plain(update: v1.Update) -> bytes:
    """As it is told, whoever told it."""
    return encode(update if isinstance(update, Unknown) else msgspec.structs.replace(update, meta=None))
