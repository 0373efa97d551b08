"""Requirements as data, the scenarios that show them, and the verdicts on them.

A requirement is one sentence that an agent or a client keeps, with a link into the specification, a level and what to change. A
scenario is a function that exchanges messages with a real peer and reports for each of its requirements whether it held. The rules of
`antiphon.traffic` are requirements too: they are checked on the traffic of every scenario.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Generic, TypeVar

from antiphon.traffic.checker import SPECS, Level, Side, rules
from antiphon.traffic.entries import Entry

__all__ = [
    "EVERY",
    "Blocked",
    "NoResponse",
    "NotOffered",
    "NotSeen",
    "OtherVersion",
    "Requirement",
    "RequirementStatus",
    "RequirementVerdict",
    "Scenario",
    "Suite",
    "TooLong",
    "advice",
    "capability",
    "must",
    "should",
]

EVERY: Final = "every scenario"
"""The scenario of those requirements that are judged on all traffic."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What has to hold. `needs` names requirements without which this one cannot hold either: it is their dependant."""

    id: str
    level: Level
    text: str
    link: str
    fix: str
    needs: tuple[str, ...] = ()
    scenario: str = EVERY


def _at(level: Level) -> Callable[..., Requirement]:
    def made(id: str, text: str, *, link: str, fix: str, needs: tuple[str, ...] = (), version: int = 1) -> Requirement:
        return Requirement(id, level, text, SPECS[version] + link, fix, needs)

    return made


must = _at(Level.MUST)
should = _at(Level.SHOULD)
capability = _at(Level.CAPABILITY)
advice = _at(Level.ADVICE)

S = TypeVar("S")
"""The run that a scenario is given: one for agents, another for clients."""


@dataclass(frozen=True, slots=True)
class Scenario(Generic[S]):
    """A scenario. `alone`: it has a peer of its own, because it introduces itself differently, breaks something or ends it."""

    name: str
    title: str
    shows: tuple[Requirement, ...]
    play: Callable[[S], Awaitable[None]]
    alone: bool = False
    process: bool = False
    """Whether it only makes sense with a real process: its end, its children, its output."""
    provokes: bool = False
    """Whether it sends what no correct client sends: the agent that it shares with others of its kind may leave after that."""
    stdio: bool = False
    """Whether it is about lines on stdin and stdout, which an agent on a network does not have."""
    files: bool = False
    """Whether it works with files or commands of this machine, which an agent on another machine must not reach."""


@dataclass(slots=True)
class Suite(Generic[S]):
    """The scenarios for one side, and with the rules of all traffic its requirements."""

    side: Side
    scenarios: dict[str, Scenario[S]] = field(default_factory=dict)
    general: tuple[Requirement, ...] = ()
    """Requirements that the runner itself judges, whatever is run."""
    follows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What fails when something else does, where `needs` cannot express it: rules of all traffic have no `needs`."""
    judges_traffic: bool = True
    """Whether the rules of all traffic are among its requirements."""
    version: int = 1
    """The version of the protocol that it is about."""

    def scenario(
        self,
        name: str,
        title: str,
        *,
        shows: Iterable[Requirement],
        alone: bool = False,
        process: bool = False,
        provokes: bool = False,
        stdio: bool = False,
        files: bool = False,
    ) -> Callable[[Callable[[S], Awaitable[None]]], Callable[[S], Awaitable[None]]]:
        """Make a scenario of the function below."""

        def made(play: Callable[[S], Awaitable[None]]) -> Callable[[S], Awaitable[None]]:
            if name in self.scenarios:
                raise ValueError(f"there are two scenarios called {name}")
            shown = tuple(replace(one, scenario=name) for one in shows)
            self.scenarios[name] = Scenario(name, title, shown, play, alone, process, provokes, stdio, files)
            return play

        return made

    def requirements(self) -> dict[str, Requirement]:
        """All requirements by id: the general ones, the rules of all traffic, then scenario by scenario."""
        listed = [*self.general, *self._rules(), *(one for record in self.scenarios.values() for one in record.shows)]
        found: dict[str, Requirement] = {}
        for one in listed:
            if one.id in found:
                raise ValueError(f"there are two requirements called {one.id}")
            found[one.id] = one
        return found

    def dependants(self, id: str) -> set[str]:
        """All requirements that cannot hold if this one does not."""
        found: set[str] = set()
        waiting = [id]
        while waiting:
            one = waiting.pop()
            direct = {other.id for other in self.requirements().values() if one in other.needs} | set(
                self.follows.get(one, ())
            )
            waiting += direct - found
            found |= direct
        return found - {id}

    def _rules(self) -> list[Requirement]:
        return [
            Requirement(one.id, one.level, one.text, one.link, one.fix)
            for one in rules(self.version).values()
            if self.judges_traffic and one.side in (self.side, Side.BOTH)
        ]


# --- verdicts, with the messages that prove them


class RequirementStatus(StrEnum):
    """`noted`: advice that is not followed. `skipped`: not offered, so not asked for. `unseen`: it never came to it. `blocked`: something
    before it went wrong."""

    PASSED = "passed"
    FAILED = "failed"
    NOTED = "noted"
    SKIPPED = "skipped"
    UNSEEN = "unseen"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class RequirementVerdict:
    """The result of one requirement. `text` is what was wrong, or why it could not be shown."""

    status: RequirementStatus
    text: str = ""
    evidence: tuple[Entry, ...] = ()
    awaited: Entry | None = None
    """The request whose response had not come when this was found: if it comes later, the verdict was too early."""
    fix: str = ""
    """What to change, where it differs from the requirement's own fix."""


class ScenarioStopped(Exception):
    """A scenario cannot go on: what it has not shown yet gets `status`, with this reason."""

    status = RequirementStatus.BLOCKED


class NotOffered(ScenarioStopped):
    """The peer does not advertise the capability."""

    status = RequirementStatus.SKIPPED


class NotSeen(ScenarioStopped):
    """The peer did not do what would have shown it, and need not."""

    status = RequirementStatus.UNSEEN


class Blocked(ScenarioStopped):
    """Something that another requirement is about went wrong first."""


class OtherVersion(Blocked):
    """The peer speaks another version of the protocol than the suite is about, so there is nothing to judge."""


class TooLong(Blocked):
    """A turn took longer than we wait, which it may: the protocol has no limit for one."""


class NoResponse(Blocked):
    """A request of ours was not answered in time, or the peer left before it did (`left`). `request` is that request."""

    def __init__(self, asked: Entry, reason: str, *, left: bool = False) -> None:
        super().__init__(f"`{asked.method}` was not answered: {reason}")
        self.request = asked
        self.reason = reason
        self.left = left
