"""The machinery of the rules that all traffic keeps or breaks. The rules themselves are in `antiphon.traffic.rules`.

A rule is a function of the next message and of what has happened before it. It returns None where it does not apply, an empty
list where it was kept, and a sentence for each way in which it was broken. So a rule that was never tested is not taken for kept.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from antiphon.text import exact
from antiphon.traffic.entries import Direction, Entry
from antiphon.traffic.schema import FACTS
from antiphon.traffic.state import TrafficState

__all__ = [
    "ALL_VERSIONS",
    "SPEC",
    "SPECS",
    "Deviation",
    "Level",
    "Side",
    "TrafficChecker",
    "TrafficRule",
    "rule",
    "rules",
]

SPECS: Final = {version: f"https://agentclientprotocol.com/protocol/v{version}/" for version in FACTS}
"""The base of the links of rules and requirements, for each version of the protocol."""
SPEC: Final = SPECS[1]

ALL_VERSIONS: Final = tuple(SPECS)
"""The versions of the protocol that have rules."""


LONGEST: Final = 300
"""Most characters of a sentence about a deviation."""
MOST: Final = 10
"""Most sentences that one rule makes about one message."""


class Level(StrEnum):
    """How much it matters: `capability` is a must for a side that offers it, `advice` never fails a peer."""

    MUST = "must"
    SHOULD = "should"
    CAPABILITY = "capability"
    ADVICE = "advice"


class Side(StrEnum):
    """The side that has to keep a rule."""

    AGENT = "agent"
    CLIENT = "client"
    BOTH = "both"

    def includes(self, direction: Direction) -> bool:
        return self is Side.BOTH or self.value == direction.sender


Holds = Callable[[Entry, TrafficState], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class TrafficRule:
    """One rule of the protocol. `text` is what has to hold, `fix` what to change where it does not."""

    id: str
    side: Side
    level: Level
    text: str
    link: str
    fix: str
    holds: Holds
    on: frozenset[str] = frozenset()
    """The messages it is checked on; all where it names none."""


class Deviation(NamedTuple):
    """A rule that a message broke."""

    rule: str
    entry: Entry
    text: str
    version: int = 1
    """The version of the protocol whose rule it is: two versions may have different rules of one name."""


_RULES: Final[dict[int, dict[str, TrafficRule]]] = {version: {} for version in ALL_VERSIONS}


def rule(
    id: str,
    side: Side,
    level: Level,
    text: str,
    *,
    link: str,
    fix: str,
    on: Iterable[str] = (),
    versions: Iterable[int] = (1,),
    link_v2: str = "",
) -> Callable[[Holds], Holds]:
    """Make a rule of the function below, for each of the versions. `link` is a page of the specification with its anchor:
    `tool-calls#updating`; `link_v2` is that of version 2, where it is another.

    `on` names the lines that it is about, because asking every rule about every line takes long: a method (`session/prompt`), what
    answers it (`answer session/prompt`), an update (`update tool_call`), or all of a kind
    (`request`, `notification`, `answer`, and `error` for the responses that are errors).
    """
    names, pages = frozenset(on), {2: link_v2}

    def made(holds: Holds) -> Holds:
        for version in versions:
            if id in _RULES[version]:
                raise ValueError(f"version {version} has two rules called {id}")
            _RULES[version][id] = TrafficRule(
                id, side, level, text, SPECS[version] + (pages.get(version) or link), fix, holds, names
            )
        return holds

    return made


def rules(version: int = 1) -> dict[str, TrafficRule]:
    """All rules of a version by their id, in the order of the specification."""
    import antiphon.traffic.rules  # noqa: F401 - they register themselves when they are loaded

    return _RULES[version]


class TrafficChecker:
    """Checks the traffic of a connection message by message and notes what broke which rule."""

    def __init__(self) -> None:
        self.state = TrafficState()
        self.deviations: list[Deviation] = []
        self._rules: dict[int, tuple[list[TrafficRule], frozenset[str]]] = {}
        self._asked: dict[tuple[int, Direction, str, str], list[_Tally]] = {}
        self._tallies: dict[tuple[int, str, Direction], _Tally] = {}

    @property
    def seen(self) -> Counter[tuple[str, Direction]]:
        """How often a rule was tested by each side, kept or not, in whatever version."""
        found: Counter[tuple[str, Direction]] = Counter()
        for (_, id, direction), tally in self._tallies.items():
            if tally.count:
                found[id, direction] += tally.count
        return found

    def check(self, entry: Entry) -> list[Deviation]:
        """Check the next message; returns what it broke."""
        found: list[Deviation] = []
        state = self.state
        state.begin(entry)
        for tally in self._concerned(entry):
            faults = tally.holds(entry, state)
            if faults is not None:
                tally.count += 1
                if faults:
                    found += [Deviation(tally.id, entry, text, state.speaks) for text in _shown(faults)]
        state.add(entry)
        if found:
            self.deviations += found
        return found

    def _concerned(self, entry: Entry) -> "list[_Tally]":
        """The rules that may apply to a message. Only names that rules know are kept, so a peer cannot fill the memory."""
        kind, name = _kind_of(entry, self.state.request)
        version = self.state.speaks
        every, listed = self._rules_of(version)
        known = name if name in listed else "session/update" if name.startswith("update ") else ""
        key = version, entry.dir, kind, known
        if key not in self._asked:
            names = {kind, name} | ({"session/update"} if name.startswith("update ") else set())
            names |= {"answer"} if kind == "error" else set()
            self._asked[key] = [
                self._tallies.setdefault((version, one.id, entry.dir), _Tally(one.id, one.holds))
                for one in every
                if one.side.includes(entry.dir) and (not one.on or one.on & names)
            ]
        return self._asked[key]

    def _rules_of(self, version: int) -> tuple[list[TrafficRule], frozenset[str]]:
        """The rules of a version, and all that they are about."""
        if version not in self._rules:
            every = list(rules(version).values())
            self._rules[version] = every, frozenset[str]().union(*(one.on for one in every))
        return self._rules[version]


@dataclass(slots=True)
class _Tally:
    """How often a rule was tested by one side."""

    id: str
    holds: Holds
    count: int = 0


def _shown(faults: Sequence[str]) -> Iterable[str]:
    """Sentences for people: they quote what a peer has sent, which may be long, many and no text at all."""
    for text in faults[:MOST]:
        yield exact(text if len(text) <= LONGEST else f"{text[:LONGEST]}…").replace("\n", " ").replace("\t", " ")
    if len(faults) > MOST:
        yield f"and {len(faults) - MOST} times more in this message"


def _kind_of(entry: Entry, asked: Entry | None) -> tuple[str, str]:
    method = entry.method
    if method == "session/update" and "id" not in entry.msg:
        update = entry.params.get("update")
        return "notification", f"update {update.get('sessionUpdate') if isinstance(update, dict) else None}"
    if method is not None:
        return "request" if "id" in entry.msg else "notification", method
    if entry.is_response:
        return "error" if "error" in entry.msg else "answer", f"answer {asked.method}" if asked is not None else ""
    return "", ""
