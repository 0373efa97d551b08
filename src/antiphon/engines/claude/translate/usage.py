"""How full the context is and what the session has cost, told when it changes."""

from typing import TYPE_CHECKING

from antiphon.engines.counting import MOST, tokens
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.engines.claude import wire

__all__ = ["Gauge", "cost_of"]

SYNTHETIC = "<synthetic>"
"""The model's name on messages that the CLI made up; they used nothing."""


def cost_of(result: "wire.Result") -> v1.Cost | None:
    """What the session has cost; None for what is no price."""
    dollars = result.total_cost_usd
    return v1.Cost(amount=dollars, currency="USD") if dollars is not None and 0 <= dollars <= MOST else None


class Gauge:
    """The session's gauge. How large the window is stands in results alone, so nothing is told before the first one."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._prompt: wire.Usage | None = None
        self._used = 0
        self._size = 0
        self._cost: v1.Cost | None = None
        self._told: v1.UsageUpdate | None = None

    def message(self, message: "wire.Message | None") -> None:
        """A message of the main conversation began. It is told of when it is written."""
        if message is None or message.usage is None or message.model == SYNTHETIC:
            return
        self._model = message.model or self._model
        self._prompt = message.usage
        self._used = message.usage.context or self._used

    def written(self, usage: "wire.Usage | None") -> "Sequence[v1.UsageUpdate]":
        """It is written. Older servers repeat only how long the answer is."""
        if usage is None:
            return ()
        before = self._prompt
        if usage.input_tokens is None and before is not None:
            self._used = max(before.context - (before.output_tokens or 0) + (usage.output_tokens or 0), 0)
        else:
            self._used = usage.context or self._used
        return self._news()

    def cleared(self) -> "Sequence[v1.UsageUpdate]":
        """The conversation begins anew."""
        self._used = 0
        return self._news()

    def compacted(self, tokens: int | None) -> "Sequence[v1.UsageUpdate]":
        """The context was made shorter."""
        if not tokens or tokens < 0:
            return ()
        self._used = tokens
        return self._news()

    def turn(self, result: "wire.Result") -> "Sequence[v1.UsageUpdate]":
        """A turn is over: the window's size and the price are known."""
        self._size = self._window(result) or self._size
        self._cost = cost_of(result) or self._cost
        return self._news()

    def _window(self, result: "wire.Result") -> int:
        sizes = {model: usage.context_window for model, usage in result.model_usage.items() if usage.context_window > 0}
        if not sizes:
            return 0
        ours = [size for model, size in sizes.items() if self._model is not None and model.startswith(self._model)]
        return max(ours or sizes.values())

    def _news(self) -> "Sequence[v1.UsageUpdate]":
        if not self._size:
            return ()
        update = v1.UsageUpdate(used=tokens(self._used), size=tokens(self._size), cost=self._cost)
        if update == self._told:
            return ()
        self._told = update
        return (update,)
