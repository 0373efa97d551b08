"""How a turn ended: a stop reason of the protocol, or an error that says what to do. Never neither."""

from typing import Final

from antiphon.engines.claude.translate.errors import EndError, error_of, says_limit
from antiphon.engines.claude.translate.usage import cost_of
from antiphon.engines.claude.wire import Assistant, RateLimitInfo, Result
from antiphon.engines.counting import tokens
from antiphon.engines.news import End
from antiphon.protocol import v1

__all__ = ["End", "EndError", "end_of", "usage_of"]


_STOP: Final = v1.StopReason
_BY_REASON: Final = {
    "aborted_streaming": _STOP.CANCELLED, "aborted_tools": _STOP.CANCELLED,
    "budget_exhausted": _STOP.MAX_TURN_REQUESTS, "max_turns": _STOP.MAX_TURN_REQUESTS,
}  # fmt: skip
_BY_SUBTYPE: Final = {
    "cancelled": _STOP.CANCELLED, "error_max_budget_usd": _STOP.MAX_TURN_REQUESTS, "error_max_turns": _STOP.MAX_TURN_REQUESTS,
    "max_tokens": _STOP.MAX_TOKENS, "refusal": _STOP.REFUSAL,
}  # fmt: skip
_BY_STOP: Final = {"max_tokens": _STOP.MAX_TOKENS, "refusal": _STOP.REFUSAL}
_FAILED: Final = frozenset({
    "api_error", "blocking_limit", "image_error", "malformed_tool_use_exhausted", "model_error", "prompt_too_long", "rapid_refill_breaker",
    "structured_output_retry_exhausted", "turn_setup_failed",
})  # fmt: skip
"""Reasons that are errors whatever else the result says."""


def end_of(
    result: Result, last: Assistant | None = None, limit: RateLimitInfo | None = None, *, now: float | None = None
) -> End:
    """How the turn ended. `last` is the last message that was said in it, `limit` what was last heard of the limits."""
    if last is not None and last.parent_tool_use_id is not None:
        last = None  # a sub-agent's trouble is not the turn's
    reason = _reason(result, last)
    error = error_of(result, last, limit, now=now) if reason is None else None
    return End(stop_reason=reason, error=error, usage=usage_of(result), cost=cost_of(result))


def usage_of(result: Result) -> v1.Usage | None:
    """The tokens of all models since the session began, or those of this turn if no more is told."""
    models = list(result.model_usage.values())
    if models:
        read, write = sum(m.cache_read_input_tokens for m in models), sum(m.cache_creation_input_tokens for m in models)
        sent, got = sum(m.input_tokens for m in models), sum(m.output_tokens for m in models)
        thought = [m.thinking_tokens for m in models if m.thinking_tokens is not None]
        return _usage(sent, got, read, write, sum(thought) if thought else None)
    used = result.usage
    if used is None or not used.context:
        return None
    return _usage(
        used.input_tokens or 0, used.output_tokens or 0,
        used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0, None,
    )  # fmt: skip


def _usage(sent: int, got: int, read: int, write: int, thought: int | None) -> v1.Usage:
    sent, got, read, write = tokens(sent), tokens(got), tokens(read), tokens(write)
    return v1.Usage(
        total_tokens=tokens(sent + got + read + write), input_tokens=sent, output_tokens=got,
        thought_tokens=None if thought is None else tokens(thought), cached_read_tokens=read, cached_write_tokens=write,
    )  # fmt: skip


def _reason(result: Result, last: Assistant | None) -> v1.StopReason | None:
    """The stop reason; None if it is an error."""
    for table, word in (
        (_BY_REASON, result.terminal_reason),
        (_BY_SUBTYPE, result.subtype),
        (_BY_STOP, result.stop_reason),
    ):
        if word in table:
            return table[word]
    if "max_output_tokens" in (result.api_error, last.error if last else None, last.api_error if last else None):
        return _STOP.MAX_TOKENS
    if _failed(result, last):
        return _STOP.CANCELLED if _was_interrupted(result) else None
    return _STOP.END_TURN


def _failed(result: Result, last: Assistant | None) -> bool:
    if result.is_error or result.subtype.startswith("error") or result.terminal_reason in _FAILED:
        return True
    # Older CLIs say how an API error ended as a success, and their own message is all there is.
    if last is not None and (last.is_api_error_message or last.error is not None):
        return True
    made_up = last is None or last.message.model == "<synthetic>"
    return made_up and says_limit(result.result or "")


def _was_interrupted(result: Result) -> bool:
    """Older CLIs give no reason for an interrupt."""
    said = " ".join(result.errors)
    return result.terminal_reason is None and ("Request was aborted" in said or "[Request interrupted" in said)
