"""The picture of a recording: turns, tool calls, waits, marks and traffic over one axis of time, as SVG.

Positions are percent of the width and heights are pixels, so the picture fits every screen with letters that stay readable; the
script zooms by making it wider. Colour is never the only sign: bars carry words, a failed call is crossed out, a wait is
hatched, marks have shapes.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from antiphon.recorder.analysis import Analysis, RecordedCall, RecordedMessage, RecordedTurn, RecordedWait
from antiphon.recorder.labels import about, clock, counted, seconds, size
from antiphon.recorder.report.markup import Markup, joined, tag

__all__ = ["Axis", "FoldedSilence", "Tick", "family", "timeline"]

# --- the axis: long silences between turns are folded, so that a lunch break does not squeeze the work into a corner

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


class FoldedSilence(NamedTuple):
    """A stretch in which nothing was sent and no request was open. `x` and `width` are percent of the width."""

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
    """The position of a moment, in percent of the width."""

    def __init__(
        self,
        start: float,
        end: float,
        folded: Sequence[tuple[float, float]] = (),
        restarts: Sequence[tuple[int, float]] = (),
    ) -> None:
        self.restarts = [(0, 0.0), *restarts]
        """The message from which on so many seconds are added: a file may hold recordings whose clocks each begin anew."""
        self.start = start
        self.end = max(end, start + 0.001)
        width = min(_FOLDED_WIDTH, _ALL_FOLDED_WIDTH / len(folded)) if folded else 0.0
        shown = self.end - self.start - sum(end - start for start, end in folded)
        self.scale = (100.0 - width * len(folded)) / max(shown, 0.001)
        self.silences: list[FoldedSilence] = []
        self.points: list[tuple[float, float]] = [(self.start, 0.0)]
        for begin, stop in folded:
            x = self._beyond(begin)
            self.silences.append(FoldedSilence(begin, stop, x, width))
            self.points += [(begin, x), (stop, x + width)]
        self.points.append((self.end, 100.0))
        self._times = [t for t, _ in self.points]

    @classmethod
    def of(cls, analysis: Analysis, entries: Sequence[RecordedMessage]) -> "Axis":
        """The axis for a recording."""
        restarts = list(_restarts(entries))
        clock = cls(0.0, 1.0, (), restarts)
        busy = sorted(_busy(analysis, entries, clock))
        if not busy:
            return cls(0.0, 1.0)
        start, end = busy[0][0], max(stop for _, stop in busy)
        if 0 < start < end / 20:
            start = 0.0  # a recording with a header begins at zero
        gaps: list[tuple[float, float]] = []
        reached = start
        for begin, stop in busy:
            if begin - reached > _SHORTEST_SILENCE:
                gaps.append((reached, begin))
            reached = max(reached, stop)
        worked = end - start - sum(stop - begin for begin, stop in gaps)
        return cls(start, end, [(begin, stop) for begin, stop in gaps if stop - begin > worked / 8], restarts)

    def _beyond(self, t: float) -> float:
        """The position of a moment after the last point."""
        before, x = self.points[-1]
        return x + (t - before) * self.scale

    def elapsed(self, t: float, message: int) -> float:
        """The time of a message, counted from the beginning of the file and not of its own recording."""
        return t + self.restarts[bisect_right(self.restarts, message, key=lambda restart: restart[0]) - 1][1]

    def place(self, t: float, message: int) -> float:
        """The position of the moment of a message."""
        return self.at(self.elapsed(t, message))

    def at(self, t: float) -> float:
        """The position of a moment since the beginning of the file."""
        if t <= self.start:
            return 0.0
        if t >= self.end:
            return 100.0
        place = bisect_right(self._times, t)
        (before, low), (after, high) = self.points[place - 1], self.points[place]
        return low + (high - low) * (t - before) / (after - before) if after > before else low

    def ticks(self, wanted: int = 9) -> Iterator[Tick]:
        """Round moments along the axis, none of them inside a folded silence, and finer ones for a wider picture."""
        step = next((step for step in _STEPS if step * self.scale >= 100 / wanted), _STEPS[-1])
        drawn: list[float] = []
        for level in range(3):
            distance = 60 / wanted / 5**level
            for t in (*(silence.end for silence in self.silences), *self._round(step)):
                x = self.at(t)
                place = bisect_right(drawn, x)
                near = (abs(x - other) < distance for other in drawn[max(place - 1, 0) : place + 1])
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


def _busy(analysis: Analysis, entries: Sequence[RecordedMessage], clock: Axis) -> Iterator[tuple[float, float]]:
    """Stretches in which something went on. A turn without an end is busy for as long as it sends messages."""
    spans: list[RecordedTurn | RecordedCall | RecordedWait] = [*analysis.turns, *analysis.calls, *analysis.waits]
    for span in spans:
        start = clock.elapsed(span.start, span.message)
        yield start, clock.elapsed(span.end, span.message) if span.end is not None else start
    for entry in entries:
        t = clock.elapsed(entry.t, entry.message)
        yield t, t


def _restarts(entries: Sequence[RecordedMessage]) -> Iterator[tuple[int, float]]:
    """The messages at which the clock goes back by more than two writers could be apart, and what is added from there on."""
    added = 0.0
    for before, entry in pairwise(entries):
        if entry.t < before.t - _APART:
            added += before.t - entry.t
            yield entry.message, added


_AXIS, _TURN, _LANE, _WAIT, _MARK, _TRAFFIC, _GAP = 26, 34, 22, 22, 24, 64, 8
_MOST_LANES: Final = 16
_MOST_TURN_LANES: Final = 4
"""Calls, and turns, that are drawn one below the other. Turns overlap where there are several sessions, or prompts that are held."""
_MOST_BARS: Final = 4000
_MOST_MARKS: Final = 1000
"""A picture with more of them shows nothing more, and takes long to draw."""
_BUCKETS: Final = 240

_FAMILIES: Final = {
    "read": "look", "search": "look", "fetch": "look", "edit": "change", "delete": "change", "move": "change", "execute": "run",
}  # fmt: skip


def family(kind: str | None) -> str:
    """The colour of a kind of tool: reads, changes something, runs something, or anything else."""
    return _FAMILIES.get(kind or "", "other")


def timeline(analysis: Analysis, entries: Sequence[RecordedMessage], axis: Axis) -> Markup:
    """The picture with its names at the left and a scroll of its own."""
    turns = _lanes(analysis.turns[:_MOST_BARS], axis, _MOST_TURN_LANES)
    lanes = _lanes(analysis.calls[:_MOST_BARS], axis, _MOST_LANES)
    rows = [
        ("turns", _TURN * len(turns), _turns(turns, axis)),
        ("tool calls", _LANE * len(lanes), _calls(lanes, analysis, axis)),
        ("waits", _WAIT, _waits(analysis.waits[:_MOST_BARS], axis)),
        ("marks", _MARK, _marks(analysis, entries, axis)),
        ("traffic", _TRAFFIC, _traffic(entries, axis)),
    ]
    names: list[Markup] = []
    drawn: list[Markup] = []
    top = _AXIS
    for name, height, shapes in rows:
        if not shapes:
            continue
        names.append(tag("text", name, x=0, y=top + min(height, _TURN) / 2 + 4))
        drawn.append(tag("g", *shapes, transform=f"translate(0 {top})", class_=name.replace(" ", "-")))
        top += height + _GAP
    picture = tag(
        "svg", _PATTERNS, *_silences(axis, top), *_ticks(axis, top), *drawn,
        tag("line", id="cursor", x1="0", x2="0", y1=_AXIS - 6, y2=top, visibility="hidden"),
        id="picture", role="img", width="100%", height=top, aria_label=_description(analysis),
    )  # fmt: skip
    left = tag("svg", *names, class_="names", width=84, height=top, aria_hidden="true")
    return tag(
        "div", left, tag("div", picture, id="stage", tabindex=0, role="group", aria_label="Timeline"), class_="timeline"
    )


def _description(analysis: Analysis) -> str:
    counts = (
        counted(len(analysis.turns), "turn"),
        counted(len(analysis.calls), "tool call"),
        counted(len(analysis.waits), "wait"),
        f"{seconds(analysis.duration)} in all",
    )
    return f"Timeline: {', '.join(counts)}. The tables below have the same data."


_PATTERNS: Final = Markup(
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch-ground" width="6" height="6"/><rect class="hatch-line" width="2.5" height="6"/></pattern>'
    '<pattern id="crossed" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<path class="crossed-line" d="M0 0L7 7M7 0L0 7"/></pattern></defs>'
)


def _place(axis: Axis, span: RecordedTurn | RecordedCall | RecordedWait, end: float | None) -> dict[str, str]:
    """The position of something with a duration. Without an end it goes on until the recording stops."""
    left = axis.place(span.start, span.message)
    right = axis.place(end, span.message) if end is not None else 100.0
    return {"x": f"{left:.3f}%", "width": f"{max(right - left, 0.0):.3f}%"}


def _link(message: int, *content: object, title: str, where: str | None = None) -> Markup:
    """A shape that leads to a message. The tables have the same links for those who go by keyboard."""
    return tag("a", tag("title", title), *content, href=where or f"#m={message}", tabindex=-1)


def _bar(
    kind: str, height: int, label: str, where: dict[str, str], *, over: str | None = None, open_end: bool = False
) -> Markup:
    """A bar with words that are cut where it ends. The shortest still has a width that can be seen."""
    covered = tag("rect", width="100%", height=height, rx=2, fill=f"url(#{over})") if over else None
    return joined(
        tag(
            "svg",
            tag("rect", class_=f"bar {kind}{' open' if open_end else ''}", width="100%", height=height, rx=2), covered,
            tag("text", label, x=7, y=height / 2 + 4, class_=kind),
            height=height, **where,
        ),
        tag("rect", class_=f"sliver {kind}", x=where["x"], width=2.5, height=height, rx=1),
    )  # fmt: skip


def _silences(axis: Axis, height: int) -> list[Markup]:
    return [
        tag(
            "svg",
            tag("title", f"{seconds(one.end - one.start)} of silence, folded"),
            tag("rect", class_="silence", width="100%", height=height - _AXIS + 4),
            tag("text", about(one.end - one.start), x="50%", y=18, text_anchor="middle", class_=_words_class(one)),
            x=f"{one.x:.3f}%", width=f"{one.width:.3f}%", y=_AXIS - 4, height=height, class_="folded",
        )
        for one in axis.silences
    ]  # fmt: skip


def _words_class(silence: FoldedSilence) -> str:
    """A narrow one has room for its words only in a wider picture."""
    return "silence-words" if silence.width > 3.5 else "silence-words level-1"


def _ticks(axis: Axis, height: int) -> list[Markup]:
    return [
        tag(
            "g",
            tag("line", x1=f"{tick.x:.3f}%", x2=f"{tick.x:.3f}%", y1=_AXIS - 6, y2=height),
            tag("text", clock(tick.t, tick.step), x=f"{tick.x:.3f}%", y=14, dx=2),
            class_=f"tick level-{tick.level}",
        )
        for tick in axis.ticks()
    ]


def _turns(lanes: list[list[RecordedTurn]], axis: Axis) -> list[Markup]:
    return [
        tag("g", *(_turn(turn, axis) for turn in lane), transform=f"translate(0 {place * _TURN})")
        for place, lane in enumerate(lanes)
    ]


def _turn(turn: RecordedTurn, axis: Axis) -> Markup:
    ending = turn.error or turn.stop_reason or "no end"
    title = f"Turn {turn.number}: {turn.prompt}\n{seconds(turn.duration)}, {counted(turn.calls, 'tool call')}, {ending}"
    bar = _bar(
        "turn",
        _TURN - 4,
        f"{turn.number}  {turn.prompt}",
        _place(axis, turn, turn.end),
        open_end=turn.end is None,
    )
    return _link(turn.message, bar, title=title, where=f"#turn={turn.number}")


Span = TypeVar("Span", RecordedTurn, RecordedCall)


def _lanes(spans: Iterable[Span], axis: Axis, most: int) -> list[list[Span]]:
    """What runs at the same time, one below the other. Where there is too much at once, the last lane takes the rest."""
    lanes: list[list[Span]] = []
    free: list[float] = []
    for span in sorted(spans, key=lambda span: axis.elapsed(span.start, span.message)):
        start = axis.elapsed(span.start, span.message)
        end = axis.elapsed(span.end, span.message) if span.end is not None else float("inf")
        place = next((place for place, until in enumerate(free) if until <= start), len(lanes))
        if place < len(lanes):
            free[place] = end
        elif len(lanes) < most:
            lanes.append([])
            free.append(end)
        else:
            place = most - 1
        lanes[place].append(span)
    return lanes


def _calls(lanes: list[list[RecordedCall]], analysis: Analysis, axis: Axis) -> list[Markup]:
    ends = {turn.number: turn.end for turn in analysis.turns}
    return [
        tag(
            "g",
            *(_call(call, axis, ends.get(call.turn or 0)) for call in lane),
            transform=f"translate(0 {place * _LANE})",
        )
        for place, lane in enumerate(lanes)
    ]


def _call(call: RecordedCall, axis: Axis, turn_end: float | None) -> Markup:
    failed = call.status == "failed"
    words = f"{'✕ ' if failed else ''}{call.kind or 'tool'}: {call.title or call.id}"
    title = f"{words}\n{call.status or 'no status'}, {seconds(call.duration)}"
    where = _place(axis, call, call.end if call.end is not None else turn_end)
    kind = f"{family(call.kind)}{' failed' if failed else ''}"
    return _link(
        call.message,
        _bar(kind, _LANE - 4, words, where, over="crossed" if failed else None, open_end=call.end is None),
        title=title,
    )


def _waits(waits: Sequence[RecordedWait], axis: Axis) -> list[Markup]:
    return [
        _link(
            wait.message,
            _bar(
                "wait",
                _WAIT - 4,
                wait.outcome or "waiting",
                _place(axis, wait, wait.end),
                open_end=wait.end is None,
            ),
            title=f"{wait.kind}: {wait.title or wait.call or ''}\n{wait.outcome or 'no answer'} after {seconds(wait.duration)}",
        )
        for wait in waits
    ]


def _marks(analysis: Analysis, entries: Sequence[RecordedMessage], axis: Axis) -> list[Markup]:
    """A cross for an error, a triangle for a deviation."""
    places = {entry.message: axis.place(entry.t, entry.message) for entry in entries}
    errors = [
        _mark(
            places.get(error.message, 0.0),
            "✕",
            "error-mark",
            error.message,
            f"Error {error.code}: {error.text}",
        )
        for error in analysis.errors[:_MOST_MARKS]
    ]
    seen: dict[int, list[str]] = {}
    for one in analysis.deviations[:_MOST_MARKS]:
        seen.setdefault(one.message, []).append(f"{one.rule}: {one.text}")
    deviations = [
        _mark(places.get(message, 0.0), "▲", "deviation-mark", message, "\n".join(texts))
        for message, texts in seen.items()
    ]
    return errors + deviations


def _mark(x: float, sign: str, kind: str, message: int, title: str) -> Markup:
    anchor = "start" if x < 1 else "end" if x > 99 else "middle"
    shape = tag("text", sign, x=f"{x:.3f}%", y=10 if kind == "error-mark" else 22, text_anchor=anchor, class_=kind)
    return _link(message, shape, title=f"Message {message}\n{title}")


def _traffic(entries: Sequence[RecordedMessage], axis: Axis) -> list[Markup]:
    """How much each side sent when: the client above the line, the agent below it. The square root keeps small messages visible."""
    buckets: dict[tuple[int, str], list[RecordedMessage]] = {}
    for entry in entries:
        buckets.setdefault(
            (min(int(axis.place(entry.t, entry.message) / 100 * _BUCKETS), _BUCKETS - 1), entry.dir), []
        ).append(entry)
    most = max((sum(entry.size for entry in found) for found in buckets.values()), default=0) or 1
    middle = _TRAFFIC / 2
    shapes = [tag("line", x1="0", x2="100%", y1=middle, y2=middle, class_="middle")]
    for (place, direction), found in sorted(buckets.items()):
        total = sum(entry.size for entry in found)
        height = max((total / most) ** 0.5 * (middle - 2), 1.5)
        shape = tag(
            "rect", class_=direction, x=f"{place * 100 / _BUCKETS:.3f}%", width=f"{80 / _BUCKETS:.3f}%",
            y=f"{middle - height if direction == 'c2a' else middle:.1f}", height=f"{height:.1f}",
        )  # fmt: skip
        sender = "client" if direction == "c2a" else "agent"
        shapes.append(
            _link(found[0].message, shape, title=f"{sender}: {counted(len(found), 'message')}, {size(total)}")
        )
    return shapes
