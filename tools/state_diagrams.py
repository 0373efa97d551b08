"""Draw a state diagram, written as in Mermaid's `stateDiagram-v2`, as SVG: states below each other, their transitions beside them.

Every transition leaves its state at a line of its own, under its name, and enters the next state at another line, so that no two texts
meet. Colours are those of the page around it.
"""

import re
from html import escape
from typing import Final, NamedTuple

__all__ = ["svg"]

STEP: Final = 20
"""Pixels between two lines of a state."""
LETTER: Final = 6.6
"""Pixels of a letter in the labels, at most."""
GAP: Final = 16
BOX: Final = 110
LANE: Final = 12
ARROW: Final = re.compile(r"(\S+) --> (\S+?)(?:: (.+))?$")
ENDS: Final = "[*]"


class Transition(NamedTuple):
    """One arrow between two states."""

    source: str
    target: str
    label: str


def svg(text: str) -> str:
    """Return the diagram as one element, on lines that Markdown leaves alone."""
    found = [
        Transition(match[1], match[2], match[3] or "")
        for match in map(ARROW.match, map(str.strip, text.splitlines()))
        if match
    ]
    first = {one.target for one in found if one.source == ENDS}
    last = {one.source for one in found if one.target == ENDS}
    arrows = [one for one in found if ENDS not in one[:2]]
    states = list(dict.fromkeys(state for one in arrows for state in one[:2]))
    drawing = _Drawing(states, arrows)
    for state in states:
        drawing.box(state, first=state in first, last=state in last)
    for number, arrow in enumerate(sorted(arrows, key=drawing.length)):
        drawing.arrow(arrow, number)
    return drawing.element()


class _Drawing:
    def __init__(self, states: list[str], arrows: list[Transition]) -> None:
        self._top: dict[str, int] = {}
        self._ports: dict[tuple[Transition, bool], int] = {}
        self._lines: dict[str, int] = {}
        y = GAP
        for state in states:
            self._top[state] = y
            leaving = [one for one in arrows if one.source == state]
            entering = [one for one in arrows if one.target == state]
            for number, (one, out) in enumerate(
                [*((one, False) for one in entering), *((one, True) for one in leaving)]
            ):
                self._ports[one, out] = y + number * STEP + STEP // 2
            self._lines[state] = max(len(leaving) + len(entering), 1)
            y += self._lines[state] * STEP + GAP
        self._height = y
        self._labels = BOX + 2 * GAP + int(max((len(one.label) for one in arrows), default=0) * LETTER)
        self._width = self._labels + LANE * (len(arrows) + 1)
        self._parts: list[str] = []
        self._names = ", ".join(states)

    def length(self, arrow: Transition) -> int:
        return abs(self._ports[arrow, True] - self._ports[arrow, False])

    def box(self, state: str, *, first: bool, last: bool) -> None:
        top, height = self._top[state], self._lines[state] * STEP
        kind = "first" if first else "last" if last else "state"
        name = escape(state.replace("_", " "))
        self._parts.append(f'<rect class="{kind}" x="{GAP}" y="{top}" width="{BOX - GAP}" height="{height}" rx="6"/>')
        middle = f'x="{GAP + (BOX - GAP) // 2}" y="{top + height // 2}"'
        self._parts.append(f'<text {middle} text-anchor="middle" dominant-baseline="central">{name}</text>')

    def arrow(self, arrow: Transition, number: int) -> None:
        out, into = self._ports[arrow, True], self._ports[arrow, False]
        lane = self._labels + LANE * number
        self._parts.append(f'<path class="arrow" d="M{BOX} {out}H{lane}V{into}H{BOX + 7}"/>')
        self._parts.append(f'<path class="head" d="M{BOX} {into}l8 -4v8z"/>')
        self._parts.append(f'<text class="label" x="{BOX + GAP}" y="{out - 3}">{escape(arrow.label)}</text>')

    def element(self) -> str:
        size = f'viewBox="0 0 {self._width} {self._height}" width="{self._width}"'
        title = f"<title>states: {escape(self._names)}</title>"
        return f'<svg class="states" role="img" {size}>{title}{"".join(self._parts)}</svg>'
