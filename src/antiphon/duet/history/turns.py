"""A history cut into the turns of one engine, from our events or from the engine's own history; and the turns of both paired. Pure.

A turn begins with a prompt of the user and has what followed it, folded. An update about something that began in an earlier turn (a call
that ran on, a message that a steering prompt cut in two) belongs to the turn where it began, as on a screen.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from antiphon.duet.history.events import EndEvent, GivenEvent, HistoryView, PromptEvent, UpdateEvent
from antiphon.protocol import v1
from antiphon.transcript.entries import CallEntry, CompactionEntry, Entry, Message, NoticeEntry, Thought
from antiphon.transcript.transcript import Transcript

__all__ = [
    "HistoryTurn",
    "Key",
    "TurnPiece",
    "key_of",
    "paired_turns",
    "shared_ids",
    "squeezed",
    "turns_of_updates",
    "turns_of_view",
]

Key: TypeAlias = tuple[type, str]
"""The kind of an entry, and its id."""


class TurnPiece(NamedTuple):
    """An update, and the turn in which the thing began that it is about."""

    update: v1.Update
    home: "HistoryTurn"


class HistoryTurn:
    """A prompt of the user and what followed it."""

    def __init__(self, number: int, prompt: str | None) -> None:
        self.number = number
        self.prompt = prompt
        """The prompt without its white space, which engines store as they like; None: there was none before this."""
        self.pieces: list[TurnPiece] = []
        self.transcript = Transcript()
        self.ended = False
        """Whether we saw its end, so that nothing of it is missing."""
        self.joins = False
        """Whether its prompt was added to the turn before."""

    @cached_property
    def text(self) -> str:
        """The engine's messages without white space. Read it when the turn is whole."""
        return squeezed("".join(each.text for each in _answers(self.transcript.entries)))

    @cached_property
    def keys(self) -> frozenset[Key]:
        """The keys of its entries that have ids."""
        return frozenset(key for each in self.transcript.entries if (key := key_of(each)) is not None)

    @property
    def empty(self) -> bool:
        """Whether it has nothing but notices."""
        return all(isinstance(each, NoticeEntry) for each in self.transcript.entries)


def key_of(entry: Entry) -> Key | None:
    """The key by which an entry is found in both histories. Prompts have other ids in each of them."""
    match entry:
        case Message(speaker="user") | NoticeEntry():
            return None
        case Message() | Thought():
            return None if entry.message_id is None else (type(entry), entry.message_id)
        case CallEntry() | CompactionEntry():
            return type(entry), entry.id


def squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


def turns_of_view(view: HistoryView, engine: str) -> list[HistoryTurn]:
    """The turns of an engine as we know them, from where the user last began afresh."""
    builder = _TurnBuilder()
    steering = False
    for event, update in view:
        match event:
            case PromptEvent():
                steering = event.steering
            case GivenEvent() if event.engine == engine:
                builder.given(event.text, steering)
            case EndEvent() if event.engine == engine:
                builder.ended(whole=bool(event.stop_reason))
            case UpdateEvent() if event.engine == engine and update is not None:
                builder.take(update)
            case _:
                pass
    return builder.turns


def turns_of_updates(updates: Iterable[v1.Update]) -> list[HistoryTurn]:
    """The turns of an engine as its own history has them."""
    builder = _TurnBuilder()
    for update in updates:
        builder.take(update)
    return builder.turns


class _TurnBuilder:
    def __init__(self) -> None:
        self.turns = [HistoryTurn(0, None)]
        self._homes: dict[Key, HistoryTurn] = {}
        self._prompt: list[str] | None = None  # while a prompt comes in pieces
        self._prompt_id: str | None = None
        self._given = ""  # what an engine may repeat before it answers

    def given(self, text: str, steering: bool) -> None:
        self._begin(squeezed(text))
        self.turns[-1].joins = steering
        self._prompt, self._given = None, squeezed(text)

    def ended(self, whole: bool) -> None:
        self._given = ""
        for turn in reversed(self.turns):
            turn.ended = whole
            if not turn.joins:
                break

    def take(self, update: v1.Update) -> None:
        if isinstance(update, v1.UserMessageChunk):
            self._add_prompt(update)
            return
        if not isinstance(update, v1.StateUpdate):
            self._prompt = None
        home = self._home(update)
        home.transcript.apply(update)
        self.turns[-1].pieces.append(TurnPiece(update, home))

    def _add_prompt(self, chunk: v1.UserMessageChunk) -> None:
        words = squeezed(chunk.content.text) if isinstance(chunk.content, v1.TextBlock) else ""
        turn = self.turns[-1]
        if self._prompt is None and words and self._given.startswith(words) and turn.empty:
            self._given = self._given[len(words) :]  # the engine repeats what it was given
            return
        if self._prompt is None or (chunk.message_id is not None and chunk.message_id != self._prompt_id):
            self._begin("")
            self._prompt, self._prompt_id = [], chunk.message_id
            turn = self.turns[-1]
        self._prompt.append(words)
        turn.prompt = "".join(self._prompt)
        turn.pieces.append(TurnPiece(chunk, turn))

    def _begin(self, prompt: str) -> None:
        self.turns.append(HistoryTurn(len(self.turns), prompt))

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


# Which turns of the two histories are the same:
#
# 1. Turns that share the id of a message, a thought, a call or a compaction are the same. An id counts if it stands in one turn alone on
#    either side: some engines count their calls from one in each turn.
# 2. Without such an id, the prompt decides (white space aside; the longer may go on where the shorter was clipped), and what was
#    answered decides between equal prompts.
# 3. Engines write some of their own commands down by another name: a command that was answered with the same text is the same. And they
#    write down what came with a prompt, such as files, before or after its words: such a prompt is the same, if nothing contradicts it.
# 4. The order is kept. Of several ways to pair them the one with the most certain pairs is taken, of equal ones the earliest.

CLIPPED: Final = 64
"""Characters that two prompts share at least, if one of them is taken for the clipped form of the other."""

ANSWER: Final = 20
"""Characters of an answer by which a turn is recognised though the prompt is another."""

NAMED: Final = 4
"""Characters of a prompt that is looked for inside of another text."""

OURS_COMPARED: Final = 200
"""Turns that are compared with every turn of the other side: the last ones, where the two differ. Equal ones before them cost nothing."""

THEIRS_COMPARED: Final = 1000
"""Turns of the other side that they are compared with."""


def shared_ids(ours: Sequence[HistoryTurn], theirs: Sequence[HistoryTurn]) -> dict[Key, HistoryTurn]:
    """The ids that both sides know and that stand in one turn alone on each, with the turn of ours."""
    mine, others = (Counter(key for turn in side for key in turn.keys) for side in (ours, theirs))
    return {key: turn for turn in ours for key in turn.keys if mine[key] == 1 and others[key] == 1}


def paired_turns(
    ours: Sequence[HistoryTurn], theirs: Sequence[HistoryTurn], shared: dict[Key, HistoryTurn]
) -> dict[int, HistoryTurn]:
    """The turn of ours for each turn of theirs, by its number, as far as there is one."""
    same = 0
    while same < min(len(ours), len(theirs)) and _equal(ours[same], theirs[same], shared):
        same += 1
    pairs = {turn.number: ours[number] for number, turn in enumerate(theirs[:same])}
    rest = [turn for turn in ours[same:] if turn.prompt is not None or not turn.empty][-OURS_COMPARED:]
    pairs |= _best(rest, theirs[same : same + THEIRS_COMPARED], shared)
    for turn in theirs[same:]:  # a prompt may be unknown here, such as one added to a running turn
        for key in turn.keys & shared.keys():
            pairs.setdefault(turn.number, shared[key])
    return pairs


def _equal(mine: HistoryTurn, other: HistoryTurn, shared: dict[Key, HistoryTurn]) -> bool:
    if mine.prompt != other.prompt or mine.text != other.text:
        return False
    return (
        bool(mine.text) or any(shared.get(key) is mine for key in other.keys) or (mine.prompt is None and other.empty)
    )


def _best(
    ours: Sequence[HistoryTurn], theirs: Sequence[HistoryTurn], shared: dict[Key, HistoryTurn]
) -> dict[int, HistoryTurn]:
    """The pairs with the greatest sum, found from the end; followed from the beginning, so that the earliest are taken."""
    width = len(theirs) + 1
    sums = [[0] * width for _ in range(len(ours) + 1)]
    partners = [{shared[key].number for key in other.keys & shared.keys()} for other in theirs]
    sure = [
        [8 if mine.number in known else _certainty(mine, other) for other, known in zip(theirs, partners, strict=True)]
        for mine in ours
    ]
    for row in range(len(ours) - 1, -1, -1):
        here, below, certain = sums[row], sums[row + 1], sure[row]
        for column in range(width - 2, -1, -1):
            paired = certain[column] + below[column + 1] if certain[column] else 0
            here[column] = max(paired, below[column], here[column + 1])
    pairs: dict[int, HistoryTurn] = {}
    row = column = 0
    while row < len(ours) and column < len(theirs):
        certain_here = sure[row][column]
        if certain_here and certain_here + sums[row + 1][column + 1] == sums[row][column]:
            pairs[theirs[column].number] = ours[row]
            row, column = row + 1, column + 1
        elif sums[row + 1][column] == sums[row][column]:
            row += 1
        else:
            column += 1
    return pairs


def _certainty(mine: HistoryTurn, other: HistoryTurn) -> int:
    """How sure it is that two turns without a common id are the same: 0 to 3."""
    fits = mine.text.startswith(other.text) or other.text.startswith(mine.text)
    if _same_words(mine.prompt, other.prompt):
        if not fits:
            return 1
        return 3 if mine.text and other.text else 2
    if mine.prompt is None or other.prompt is None:
        return 0
    if mine.empty and mine.prompt.startswith("/") and other.prompt.startswith("/"):
        return 1
    if fits and len(mine.prompt) >= NAMED and mine.prompt in other.prompt:
        return 1
    return 1 if fits and min(len(mine.text), len(other.text)) >= ANSWER else 0


def _same_words(mine: str | None, other: str | None) -> bool:
    if mine is None or other is None or mine == other:
        return mine == other
    if len(mine) < CLIPPED or len(other) < CLIPPED:
        return False
    short, long = sorted((mine.removesuffix("…"), other.removesuffix("…")), key=len)
    return long.startswith(short)
