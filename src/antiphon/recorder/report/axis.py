"""Time as a place on the page. Long silences between turns are folded, so that a lunch break does not squeeze the work into a corner."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from antiphon.recorder.story import Call, Shown, Story, Turn, Wait

__all__ = ["Axis", "Silence", "Tick"]

_STEPS: Final = (
    *(base * 10.0**power for power in range(-3, 1) for base in (1, 2, 5)),
    *(10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400),
)
_SHORTEST_SILENCE: Final = 2.0
"""Seconds. Shorter ones are drawn as long as they are."""
_FOLDED_WIDTH: Final = 4.0
_ALL_FOLDED_WIDTH: Final = 40.0
"""Percent of the width for one folded silence, and for all of them."""
_MOST_TICKS: Final = 400
_APART: Final = 0.5
"""Seconds by which lines of one recording may be out of order."""


class Silence(NamedTuple):
    """A stretch in which nobody said anything and nothing was asked for. `x` and `width` are percent of the width."""

    start: float
    end: float
    x: float
    width: float


class Tick(NamedTuple):
    """A moment on the axis. `level` 0 is always shown; finer ones where the picture is drawn wider."""

    t: float
    x: float
    step: float
    level: int


class Axis:
    """Where a moment is, in percent of the width."""

    def __init__(
        self,
        start: float,
        end: float,
        folded: Sequence[tuple[float, float]] = (),
        restarts: Sequence[tuple[int, float]] = (),
    ) -> None:
        self.restarts = [(0, 0.0), *restarts]
        """From which message on how many seconds are added: a file may hold recordings whose clocks each begin anew."""
        self.start = start
        self.end = max(end, start + 0.001)
        width = min(_FOLDED_WIDTH, _ALL_FOLDED_WIDTH / len(folded)) if folded else 0.0
        shown = self.end - self.start - sum(end - start for start, end in folded)
        self.scale = (100.0 - width * len(folded)) / max(shown, 0.001)
        self.silences: list[Silence] = []
        self.points: list[tuple[float, float]] = [(self.start, 0.0)]
        for begin, stop in folded:
            x = self._beyond(begin)
            self.silences.append(Silence(begin, stop, x, width))
            self.points += [(begin, x), (stop, x + width)]
        self.points.append((self.end, 100.0))
        self._times = [t for t, _ in self.points]

    @classmethod
    def of(cls, story: Story, entries: Sequence[Shown]) -> "Axis":
        """The axis for a recording."""
        restarts = list(_restarts(entries))
        clock = cls(0.0, 1.0, (), restarts)
        busy = sorted(_busy(story, entries, clock))
        if not busy:
            return cls(0.0, 1.0)
        start, end = busy[0][0], max(stop for _, stop in busy)
        if 0 < start < end / 20:
            start = 0.0  # a recording that begins at its beginning says so
        gaps: list[tuple[float, float]] = []
        reached = start
        for begin, stop in busy:
            if begin - reached > _SHORTEST_SILENCE:
                gaps.append((reached, begin))
            reached = max(reached, stop)
        worked = end - start - sum(stop - begin for begin, stop in gaps)
        return cls(start, end, [(begin, stop) for begin, stop in gaps if stop - begin > worked / 8], restarts)

    def _beyond(self, t: float) -> float:
        """Where a moment after the last point is."""
        before, x = self.points[-1]
        return x + (t - before) * self.scale

    def elapsed(self, t: float, message: int) -> float:
        """The time of a message, counted from the beginning of the file and not of its own recording."""
        return t + self.restarts[bisect_right(self.restarts, message, key=lambda restart: restart[0]) - 1][1]

    def place(self, t: float, message: int) -> float:
        """Where a moment is that a message tells of."""
        return self.at(self.elapsed(t, message))

    def at(self, t: float) -> float:
        """Where a moment since the beginning of the file is."""
        if t <= self.start:
            return 0.0
        if t >= self.end:
            return 100.0
        place = bisect_right(self._times, t)
        (before, low), (after, high) = self.points[place - 1], self.points[place]
        return low + (high - low) * (t - before) / (after - before) if after > before else low

    def ticks(self, wished: int = 9) -> Iterator[Tick]:
        """Round moments along the axis, none of them inside a folded silence, and finer ones for a wider picture."""
        step = next((step for step in _STEPS if step * self.scale >= 100 / wished), _STEPS[-1])
        drawn: list[float] = []
        for level in range(3):
            room = 60 / wished / 5**level
            for t in (*(silence.end for silence in self.silences), *self._round(step)):
                x = self.at(t)
                place = bisect_right(drawn, x)
                near = (abs(x - other) < room for other in drawn[max(place - 1, 0) : place + 1])
                if x <= 97 and not any(near):
                    drawn.insert(place, x)
                    yield Tick(t, x, step, level)
            step /= 5

    def _round(self, step: float) -> Iterator[float]:
        """Round moments that are not folded away."""
        first = int(-(-self.start // step))
        for number in range(first, min(int(self.end // step), first + _MOST_TICKS) + 1):
            if not any(silence.start < number * step < silence.end for silence in self.silences):
                yield number * step


def _busy(story: Story, entries: Sequence[Shown], clock: Axis) -> Iterator[tuple[float, float]]:
    """Stretches in which something went on. A turn without an end is busy for as long as it says something, which its messages show."""
    spans: list[Turn | Call | Wait] = [*story.turns, *story.calls, *story.waits]
    for span in spans:
        start = clock.elapsed(span.start, span.message)
        yield start, clock.elapsed(span.end, span.message) if span.end is not None else start
    for entry in entries:
        t = clock.elapsed(entry.t, entry.message)
        yield t, t


def _restarts(entries: Sequence[Shown]) -> Iterator[tuple[int, float]]:
    """Where the clock goes back by more than two writers could be apart, and what has to be added from there on."""
    added = 0.0
    for before, entry in pairwise(entries):
        if entry.t < before.t - _APART:
            added += before.t - entry.t
            yield entry.message, added
