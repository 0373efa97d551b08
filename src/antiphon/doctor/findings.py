"""What a check is, and what it finds. Plain values."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from antiphon.catalogue.registry import Registry
from antiphon.config.settings import Loaded
from antiphon.config.shapes import NOTHING, Settings
from antiphon.errors import Advice

__all__ = ["Check", "DoctorContext", "Finding", "Look", "Status", "note", "ok", "problem", "split"]

Status: TypeAlias = Literal["ok", "note", "problem"]
"""`note` is something to know, with which everything works; a `problem` is something that does not."""


class Finding(msgspec.Struct, frozen=True):
    """What was found: a sentence, and what to do."""

    status: Status
    sentence: str
    hint: str | None = None
    facts: Mapping[str, str] = NOTHING
    """The same for programs: a version, a path, a line."""


class DoctorContext(msgspec.Struct, frozen=True):
    """What checks look at: a directory, an environment, and the settings there."""

    cwd: str
    environment: Mapping[str, str]
    loaded: Loaded = Loaded(Settings())
    trusted: bool = False
    """Whether the project's config file, as it is now, is trusted."""
    registry: Registry = Registry({})
    registry_trouble: Advice | None = None
    named: frozenset[str] = frozenset()
    """Checks that were named on the command line: what they look for must exist."""
    limit: float = 10.0
    """Seconds that a program may take for an answer."""
    start_limit: float = 60.0
    """Seconds that an agent may take to start, open a session and end."""


Look: TypeAlias = Callable[[DoctorContext], Sequence[Finding]] | Callable[[DoctorContext], Awaitable[Sequence[Finding]]]
"""Run the check and return its finding; None if another check reports it better."""


class Check(msgspec.Struct, frozen=True):
    """A check. The first word of its id is its part of the report."""

    id: str
    title: str
    look: Look
    limit: float
    """Seconds after which the runner gives up waiting."""
    about: tuple[str, ...] = ()
    """Names that select the check on the command line, besides its id and the beginnings of that."""

    @property
    def part(self) -> str:
        """The part of the report."""
        return self.id.partition(".")[0]

    def is_about(self, name: str) -> bool:
        """Whether a name selects this check."""
        return f"{self.id}.".startswith(f"{name}.") or name in self.about


def ok(sentence: str, **facts: str) -> list[Finding]:
    """Return a finding: everything is fine."""
    return [Finding("ok", sentence, None, facts)]


def note(sentence: str, hint: str | None = None, **facts: str) -> list[Finding]:
    """Return a finding that is not a problem."""
    return [Finding("note", sentence, hint, facts)]


def problem(sentence: str, hint: str, **facts: str) -> list[Finding]:
    """Return a problem, and what to do."""
    return [Finding("problem", sentence, hint, facts)]


def split(advice: Advice, otherwise: str) -> tuple[str, str]:
    """Return the sentence and the hint. `otherwise` is the hint if the advice has none."""
    return advice.sentence, advice.hint or otherwise
