"""Which turns of two tellings of one conversation are the same. Pure.

1. Turns that share the id of a message, a thought, a call or a compaction are the same. An id counts if it stands in one turn alone on
   either side: some engines count their calls from one in each turn.
2. Without such an id, what the user said decides (white space aside; the longer may go on where the shorter was clipped), and what was
   answered decides between equal prompts.
3. Engines write some of their own commands down by another name: a command that was answered in the same words is the same. And they
   write down what came with a prompt, such as files, before or after its words: such a prompt is the same, if nothing speaks against it.
4. The order is kept. Of several ways to pair them the one with the most certain pairs is taken, of equal ones the earliest.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from antiphon.duet.told import HistoryTurn, Key

__all__ = ["paired_turns", "shared_ids"]

CLIPPED: Final = 64
"""Characters that two prompts share at least, if one of them is taken for the clipped form of the other."""

TELLING: Final = 20
"""Characters of an answer by which a turn is known though the prompt is another."""

NAMED: Final = 4
"""Characters of a prompt that is looked for among other words."""

OURS_COMPARED: Final = 200
"""Turns that are compared with every turn of the other side: the last ones, where the two part. Equal ones before them cost nothing."""

THEIRS_COMPARED: Final = 1000
"""And so many of the other side."""


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
    rest = [turn for turn in ours[same:] if turn.said is not None or not turn.empty][-OURS_COMPARED:]
    pairs |= _best(rest, theirs[same : same + THEIRS_COMPARED], shared)
    for turn in theirs[same:]:  # what the user said there may be unknown here, such as a steering word
        for key in turn.keys & shared.keys():
            pairs.setdefault(turn.number, shared[key])
    return pairs


def _equal(mine: HistoryTurn, other: HistoryTurn, shared: dict[Key, HistoryTurn]) -> bool:
    if mine.said != other.said or mine.text != other.text:
        return False
    return bool(mine.text) or any(shared.get(key) is mine for key in other.keys) or (mine.said is None and other.empty)


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
    if _same_words(mine.said, other.said):
        if not fits:
            return 1
        return 3 if mine.text and other.text else 2
    if mine.said is None or other.said is None:
        return 0
    if mine.empty and mine.said.startswith("/") and other.said.startswith("/"):
        return 1
    if fits and len(mine.said) >= NAMED and mine.said in other.said:
        return 1
    return 1 if fits and min(len(mine.text), len(other.text)) >= TELLING else 0


def _same_words(mine: str | None, other: str | None) -> bool:
    if mine is None or other is None or mine == other:
        return mine == other
    if len(mine) < CLIPPED or len(other) < CLIPPED:
        return False
    short, long = sorted((mine.removesuffix("…"), other.removesuffix("…")), key=len)
    return long.startswith(short)
