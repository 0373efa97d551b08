"""The limits of a run: what it has used so far, and when it has to stop.

Agents report what they use while they work: how many tokens the last request had, and what the session cost. A tool call that ends
means that the next request follows, so that is the moment to stop: before the limit is passed, where the agent reported in time. Codex
reports right after the call, while the next request is sent: that is still in time. What is reported only at the end of a turn is
compared then.
"""

from dataclasses import dataclass
from typing import Final

from antiphon.config.shapes import USED_TOKENS
from antiphon.duet.limits import Budget, UsageTotals
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.transcript.presentation import antiphon_meta, engine_of

__all__ = ["OverBudget", "RunBudget", "RunLimits"]

_ENDED: Final = (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED)


class OverBudget(AcpError):
    """A run has reached one of its limits."""


@dataclass(frozen=True)
class RunLimits:
    """The most that a run may use. None is no limit."""

    cost: float | None = None
    """US dollars."""
    tokens: int | None = None
    turns: int | None = None
    """Requests to the model."""

    def __bool__(self) -> bool:
        return (self.cost, self.tokens, self.turns) != (None, None, None)


class RunBudget:
    """What a run has used, of all its engines together."""

    def __init__(self, limits: RunLimits, *, before: v1.UsageUpdate | None = None, new: bool = True) -> None:
        """`before`: the last report about an earlier session that goes on; `new`: the session has used nothing yet."""
        self.limits = limits
        self._priced: set[str] = set()
        self._new = new
        self._totals = UsageTotals()
        self._budget = Budget(None, limits.tokens, limits.cost, self._totals)
        if before is not None and before.cost is not None:
            self._totals.cost[_engine(before)] = before.cost.amount
        self._open: set[str] = set()
        self._rounds: dict[str, int] = {}
        self._reports: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._running: set[str] = set()
        self._following: set[str] = set()
        """Engines whose calls have ended: their next request is sent, and nothing of its answer has come."""
        self._largest = 0.0
        """The most that the cost grew from one report to the next."""

    # What is reported.

    def update(self, update: v1.Update) -> OverBudget | None:
        """Take an update of a turn; return the reason if the run has to stop now."""
        engine = _engine(update)
        match update:
            case v1.UsageUpdate():
                self._used(engine, update)
                return self._overrun() or self._late(engine)
            case v1.ToolCall(tool_call_id=id, status=status) | v1.ToolCallUpdate(tool_call_id=id, status=status):
                self._begin(engine)
                used = antiphon_meta(update.meta).get(USED_TOKENS)
                if isinstance(used, int) and used != self._last.get(engine):
                    self._used(engine, v1.UsageUpdate(used=used, size=used))
                return self._call(engine, id, status)
            case v1.AgentMessageChunk() | v1.AgentThoughtChunk():
                self._begin(engine)
                self._following.discard(engine)
            case _:
                pass
        return None

    def turn_ended(self, usage: v1.Usage | None) -> OverBudget | None:
        """Take the end of a turn with its count of tokens; return the reason if a limit was passed in it."""
        engines = list(self._running)
        for engine in engines:
            self._budget.turn_ended(engine, usage if len(engines) == 1 else None)
        self._running.clear()
        self._open.clear()
        self._following.clear()
        return self._passed()

    # What follows.

    def _begin(self, engine: str) -> None:
        if engine not in self._running:
            self._running.add(engine)
            self._rounds[engine] = self._rounds.get(engine, 0) + 1
            if self._new and engine not in self._totals.tokens:
                self._totals.begins(engine)
            self._budget.turn_begins(engine)

    def _used(self, engine: str, update: v1.UsageUpdate) -> None:
        self._begin(engine)
        before = self._budget.spent.cost
        self._budget.used(engine, update)
        if update.cost is not None:
            self._priced.add(engine)
        self._largest = max(self._largest, self._budget.spent.cost - before)
        if update.used != self._last.get(engine):
            self._reports[engine] = self._reports.get(engine, 0) + 1
        self._last[engine] = update.used

    def _call(self, engine: str, id: str, status: object) -> OverBudget | None:
        key = f"{engine} {id}"
        if status not in _ENDED:
            if status is not v1.UNSET:
                self._open.add(key)
                self._following.discard(engine)
            return None
        if key not in self._open:  # it is reported again
            return None
        self._open.discard(key)
        if any(each.startswith(f"{engine} ") for each in self._open):
            return None  # others of the same request go on
        found = self._next_request(engine)
        self._rounds[engine] += 1
        self._following.add(engine)
        return found

    def _late(self, engine: str) -> OverBudget | None:
        """Compare a report that came after the last call of its request, while the next request has no answer yet."""
        if engine in self._following and self._reports.get(engine, 0) < self._rounds[engine]:
            return self._larger_than_left(engine)
        return None

    @property
    def unpriced(self) -> list[str]:
        """The engines that answered and have reported no cost; an agent without engines is an empty name."""
        return sorted(set(self._rounds) - self._priced)

    @property
    def turns(self) -> int:
        """The requests to models so far: as many as the engines report, and at least one for each round of tool calls."""
        return sum(max(self._reports.get(engine, 0), rounds) for engine, rounds in self._rounds.items())

    def _next_request(self, engine: str) -> OverBudget | None:
        """Return why the request that follows now would pass a limit; None if it would not."""
        limits = self.limits
        if limits.turns is not None and self.turns >= limits.turns:
            many = "1 request" if limits.turns == 1 else f"{limits.turns} requests"
            return OverBudget(f"stopped after {many} to the model", hint="allow more with `--max-turns`")
        return self._larger_than_left(engine)

    def _larger_than_left(self, engine: str) -> OverBudget | None:
        """Return why a request as large as those before it would pass a limit; None if it would not."""
        limits, spent = self.limits, self._budget.spent
        if limits.tokens is not None and spent.tokens + self._last.get(engine, 0) > limits.tokens:
            return OverBudget(
                f"stopped after {spent.tokens:,} tokens: the next request would pass {limits.tokens:,}",
                hint="allow more with `--max-tokens`",
            )
        if limits.cost is not None and spent.cost + self._largest > limits.cost:
            return OverBudget(
                f"stopped after ${spent.cost:.4f}: the next request would pass ${limits.cost:g}",
                hint="allow more with `--max-cost`",
            )
        return None

    def _overrun(self) -> OverBudget | None:
        """Return why a running turn has to stop at once: a limit is reached, though no call has ended."""
        return self._passed() if self._open else None

    def _passed(self) -> OverBudget | None:
        limits, spent = self.limits, self._budget.spent
        if limits.tokens is not None and spent.tokens > limits.tokens:
            return OverBudget(
                f"the run took {spent.tokens:,} tokens, and {limits.tokens:,} is the limit",
                hint="allow more with `--max-tokens`",
            )
        if limits.cost is not None and spent.cost > limits.cost:
            return OverBudget(
                f"the run cost ${spent.cost:.4f}, and ${limits.cost:g} is the limit",
                hint="allow more with `--max-cost`",
            )
        return None


def _engine(update: v1.Update) -> str:
    return engine_of(update) or ""
