"""What one prompt of the user may take before somebody has to ask: turns of engines, tokens, money. Pure.

Engines tell two things. `PromptResult.usage` has all tokens since the conversation began, so a turn took what it grew by. `UsageUpdate`
has the size of the last request in `used` and what the whole conversation cost so far in `cost`. While a turn runs the sum of the
requests stands for its tokens; when it ends the exact number takes their place, so nothing is counted twice.
"""

from typing import Final

import msgspec

from antiphon.errors import Advice
from antiphon.protocol import v1

__all__ = ["Budget", "Exceeded", "Spent", "UsageTotals"]

CURRENCY: Final = "USD"


class UsageTotals(msgspec.Struct):
    """What each engine's conversation had taken when it was last heard of. It outlives a prompt: keep it with the session."""

    tokens: dict[str, int] = {}
    cost: dict[str, float] = {}

    def begins(self, engine: str) -> None:
        """The engine begins a new conversation, which has taken nothing yet."""
        self.tokens[engine], self.cost[engine] = 0, 0.0

    def unknown(self, engine: str) -> None:
        """The engine opens a conversation that it had elsewhere: what that took is not known before it tells."""
        self.tokens.pop(engine, None)
        self.cost.pop(engine, None)


class Spent(msgspec.Struct, frozen=True):
    """What a prompt has taken so far."""

    turns: int = 0
    tokens: int = 0
    cost: float = 0.0


class Exceeded(msgspec.Struct, frozen=True):
    """A limit is reached: what to tell the user, and why the turn ends."""

    why: Advice
    stop_reason: v1.StopReason


class Budget:
    """The budget of one prompt. A limit that is None is none."""

    def __init__(
        self, turns: int | None, tokens: int | None = None, cost: float | None = None, ledger: UsageTotals | None = None
    ) -> None:
        self._most = (turns, tokens, cost)
        self._ledger = UsageTotals() if ledger is None else ledger
        self._turns = 0
        self._tokens = 0
        self._cost = 0.0
        self._running: dict[str, int] = {}  # engine at work → what its requests add up to
        self._last_request: dict[str, int] = {}

    @property
    def spent(self) -> Spent:
        """What it has taken so far, with what is running."""
        return Spent(self._turns, self._tokens + sum(self._running.values()), self._cost)

    def turn_begins(self, engine: str) -> None:
        """An engine begins to work."""
        self._turns += 1
        self._settle(engine)
        self._running[engine] = 0

    def turn_ended(self, engine: str, result: "v1.PromptResult | v1.Usage | None" = None) -> None:
        """An engine's turn is over; without a result it failed, or did not tell."""
        usage = result.usage if isinstance(result, v1.PromptResult) else result
        if usage is not None:
            before = self._ledger.tokens.get(engine)
            total = self._ledger.tokens[engine] = usage.total_tokens
            if before is not None:
                # Less than before: the engine counts anew, or tells of each turn alone.
                self._running[engine] = total - before if total >= before else total
            else:
                self._running[engine] = min(self._running.get(engine, 0), total)
        self._settle(engine)

    def heard(self, engine: str, update: v1.UsageUpdate) -> None:
        """An engine told how full its context is, and maybe what its conversation cost so far."""
        only_cost = update.cost is not None and update.used == self._last_request.get(engine)
        if engine in self._running and not only_cost:
            self._running[engine] += update.used
        self._last_request[engine] = update.used
        if update.cost is None or update.cost.currency != CURRENCY:
            return
        before = self._ledger.cost.get(engine)
        total = self._ledger.cost[engine] = update.cost.amount
        if before is not None:
            self._cost += total - before if total >= before else total

    def exceeded(self) -> Exceeded | None:
        """Ask before another turn begins: the limit that forbids it, if any."""
        most = self._most[0]
        if most is not None and self._turns >= most:
            turns = "1 turn" if most == 1 else f"{most} turns"
            return Exceeded(
                Advice(
                    f"Stopped: this prompt has had {turns}, which is the limit",
                    "say how to go on, or raise `duet.max_turns`",
                ),
                v1.StopReason.MAX_TURN_REQUESTS,
            )
        return self.overrun()

    def overrun(self) -> Exceeded | None:
        """Ask while a turn runs: the limit that ends it, if any. Turns are not ended because they are the last."""
        _, tokens, cost = self._most
        spent = self.spent
        if tokens is not None and spent.tokens >= tokens:
            return Exceeded(
                Advice(
                    f"Stopped: this prompt took {spent.tokens:,} tokens, and {tokens:,} are the limit",
                    "say how to go on, or raise `duet.max_tokens`",
                ),
                v1.StopReason.MAX_TOKENS,
            )
        if cost is not None and spent.cost >= cost:
            return Exceeded(
                Advice(
                    f"Stopped: this prompt cost {_dollars(spent.cost)}, and {_dollars(cost)} is the limit",
                    "say how to go on, or raise `duet.max_cost`",
                ),
                v1.StopReason.MAX_TURN_REQUESTS,
            )
        return None

    def _settle(self, engine: str) -> None:
        self._tokens += self._running.pop(engine, 0)


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.01 else f"${amount:.5f}"
