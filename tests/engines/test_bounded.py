"""Books that do not grow for ever."""

from collections import Counter

from antiphon.engines.bounded import Recent, tally, trim


def test_only_the_last_ones_are_remembered() -> None:
    recent: Recent[int] = Recent(3)
    for each in (1, 2, 3, 1, 4):
        recent.add(each)
    assert len(recent) == 3 and 2 not in recent and all(each in recent for each in (3, 1, 4))
    recent.discard(1)
    recent.discard(9)
    assert 1 not in recent and len(recent) == 2


def test_the_oldest_go_first() -> None:
    kept = {"a": 1, "b": 2, "c": 3}
    trim(kept, 2)
    assert kept == {"b": 2, "c": 3}


def test_sorts_beyond_a_number_are_counted_as_one() -> None:
    counts: Counter[str] = Counter()
    for each in range(1000):
        tally(counts, f"{each}" + "x" * 1000)
    assert len(counts) == 101 and counts["others"] == 900 and all(len(sort) <= 80 for sort in counts)
