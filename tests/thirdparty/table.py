"""The table of `docs/evidence/thirdparty.md`: the tests put their results in, one test compares it with the page or writes it."""

from typing import Final

from tests.interop.table import OK, REWRITE, on_page, put, row
from tests.thirdparty.agents import ROOT, agents

__all__ = ["CHAT", "LAST", "NAME", "OK", "PAGE", "REWRITE", "RUN", "complete", "note", "on_page", "put", "render"]

PAGE: Final = ROOT / "docs" / "evidence" / "thirdparty.md"
NAME: Final = "third-party agents"
RUN: Final = "`antiphon run`: "
CHAT: Final = "`antiphon chat`: "
LAST: Final = "nothing is left running"
NOT_YET: Final = "not yet"

RESULTS: dict[str, dict[str, str]] = {}
"""The name of an agent → the title of a step → its result."""


def note(name: str, title: str, result: str = OK) -> None:
    """A step was played with an agent."""
    RESULTS.setdefault(name, {})[title] = result


def complete() -> bool:
    """Whether everything was played: with `connect`, and with both commands."""
    marks = (LAST, RUN, CHAT)
    return all(any(step.startswith(mark) for step in RESULTS.get(name, ())) for name in agents() for mark in marks)


def render() -> str:
    """A line for each step, a column for each agent; the two commands come last."""
    who = agents()
    steps = list(dict.fromkeys(step for name in who for step in RESULTS[name]))
    steps.sort(key=lambda step: step.startswith(RUN) + 2 * step.startswith(CHAT))
    lines = [row(["step", *(f"{each.name} {each.version}" for each in who.values())]), row(["---"] * (len(who) + 1))]
    lines += [row([step, *(RESULTS[name].get(step, NOT_YET) for name in who)]) for step in steps]
    return "\n".join(lines)
