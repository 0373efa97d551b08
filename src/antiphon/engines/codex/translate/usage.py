"""How full the context is, what the thread has used so far, and when a limit is lifted."""

from collections.abc import Sequence

from antiphon.engines.bounded import tokens
from antiphon.engines.codex.wire import RateLimits, TokenUsage
from antiphon.protocol import v1

__all__ = ["Gauge", "Limits"]

LAST_TIME = 253_402_300_799
"""The end of the year 9999, after which nothing that tells times can tell one."""


class Gauge:
    """A thread's gauge, told when it changes."""

    def __init__(self) -> None:
        self.usage: v1.Usage | None = None
        """All tokens of the thread so far."""
        self._told: v1.UsageUpdate | None = None

    @property
    def total(self) -> int:
        """The same in one number."""
        return self.usage.total_tokens if self.usage is not None else 0

    def tokens(self, usage: TokenUsage) -> Sequence[v1.UsageUpdate]:
        """A request was answered."""
        total = usage.total
        self.usage = v1.Usage(
            total_tokens=tokens(total.total_tokens),
            input_tokens=tokens(total.input_tokens),
            output_tokens=tokens(total.output_tokens),
            thought_tokens=tokens(total.reasoning_output_tokens),
            cached_read_tokens=tokens(total.cached_input_tokens),
            cached_write_tokens=tokens(total.cache_write_input_tokens),
        )
        used, size = usage.last.total_tokens, usage.model_context_window
        if used <= 0 or not size or size < 0:  # an answer that was cut short counts nothing
            return ()
        update = v1.UsageUpdate(used=tokens(used), size=tokens(size))
        if update == self._told:
            return ()
        self._told = update
        return (update,)


class Limits:
    """An account's limits. News of them come in pieces: what is missing in one is as it was."""

    def __init__(self) -> None:
        self._limits = RateLimits()

    def updated(self, limits: RateLimits) -> None:
        """They are told again."""
        self._limits = RateLimits(
            primary=limits.primary or self._limits.primary,
            secondary=limits.secondary or self._limits.secondary,
            rate_limit_reached_type=limits.rate_limit_reached_type,
        )

    def resets_at(self) -> float | None:
        """When one may go on: as soon as the last of the limits that are used up is lifted."""
        windows = [each for each in (self._limits.primary, self._limits.secondary) if each is not None]
        used_up = [each for each in windows if each.used_percent >= 100]
        if not used_up and self._limits.rate_limit_reached_type is not None:
            used_up = sorted(windows, key=lambda each: each.used_percent)[-1:]
        resets_at = max((each.resets_at or 0 for each in used_up), default=0)
        return float(resets_at) if 0 < resets_at <= LAST_TIME else None
