"""What a line of the CLI becomes: updates for the client and events for the session, above all how a turn ended."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from antiphon.engines.bounded import MOST_TOKENS, tokens
from antiphon.engines.claude.wire import Assistant, RateLimitInfo, ResultLine
from antiphon.engines.events import (
    EngineNotice,
    Mirror,
    ModeChanged,
    ModelChanged,
    SignInNeeded,
    TitleChanged,
    TurnEnd,
    TurnFailure,
)
from antiphon.errors import Code
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.engines.claude.wire import SlashCommand
    from antiphon.protocol.base import JsonObject

__all__ = [
    "ClaudeEvent",
    "ClaudeTurnEnded",
    "CliStarted",
    "CommandsChanged",
    "ConversationReset",
    "EngineNotice",
    "Mirror",
    "ModeChanged",
    "ModelChanged",
    "SignInNeeded",
    "TitleChanged",
    "TurnEnd",
    "TurnFailure",
    "cost_of",
    "end_of",
    "error_of",
    "mentions_limit",
    "moment_text",
    "reset_in",
    "reset_moment",
    "text_of",
    "usage_of",
]


class _Event(msgspec.Struct, frozen=True):
    """Base of events for the session, which the client does not get as they are."""


class CommandsChanged(_Event, frozen=True):
    """The slash commands that there are from now on."""

    commands: "Sequence[SlashCommand]"


class CliStarted(_Event, frozen=True):
    """The model, mode and capabilities at the start of a turn."""

    model: str | None = None
    mode: str | None = None
    capabilities: "Sequence[str]" = ()


class ConversationReset(_Event, frozen=True):
    """The session was cleared; what follows belongs to `new_id`."""

    new_id: str


class ClaudeTurnEnded(_Event, frozen=True):
    """A turn ended. Without ids and with an `origin` the CLI had started it by itself."""

    end: TurnEnd
    user_message_uuids: "Sequence[str]" = ()
    origin: "JsonObject | None" = None


ClaudeEvent: TypeAlias = (
    v1.Update
    | EngineNotice
    | ModeChanged
    | ModelChanged
    | CommandsChanged
    | TitleChanged
    | CliStarted
    | ConversationReset
    | Mirror
    | ClaudeTurnEnded
    | SignInNeeded
)


# How a turn ended: a stop reason of the protocol, or an error with a hint; always one of them.

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
"""Reasons that are errors whatever else is in the result."""


def end_of(
    result: ResultLine, last: Assistant | None = None, limit: RateLimitInfo | None = None, *, now: float | None = None
) -> TurnEnd:
    """Return how the turn ended. `last` is its last message, `limit` the last report of the usage limits."""
    if last is not None and last.parent_tool_use_id is not None:
        last = None  # an error of a sub-agent is not the turn's
    reason = _reason(result, last)
    error = error_of(result, last, limit, now=now) if reason is None else None
    return TurnEnd(stop_reason=reason, error=error, usage=usage_of(result), cost=cost_of(result))


def usage_of(result: ResultLine) -> v1.Usage | None:
    """Return the tokens of all models since the session began, or those of this turn if there is no more."""
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


def cost_of(result: ResultLine) -> v1.Cost | None:
    """What the session has cost; None for what is not a price."""
    dollars = result.total_cost_usd
    return v1.Cost(amount=dollars, currency="USD") if dollars is not None and 0 <= dollars <= MOST_TOKENS else None


def _usage(sent: int, got: int, read: int, write: int, thought: int | None) -> v1.Usage:
    sent, got, read, write = tokens(sent), tokens(got), tokens(read), tokens(write)
    return v1.Usage(
        total_tokens=tokens(sent + got + read + write), input_tokens=sent, output_tokens=got,
        thought_tokens=None if thought is None else tokens(thought), cached_read_tokens=read, cached_write_tokens=write,
    )  # fmt: skip


def _reason(result: ResultLine, last: Assistant | None) -> v1.StopReason | None:
    """The stop reason; None if it is an error."""
    for table, name in (
        (_BY_REASON, result.terminal_reason),
        (_BY_SUBTYPE, result.subtype),
        (_BY_STOP, result.stop_reason),
    ):
        if name in table:
            return table[name]
    if "max_output_tokens" in (result.api_error, last.error if last else None, last.api_error if last else None):
        return _STOP.MAX_TOKENS
    if _failed(result, last):
        return _STOP.CANCELLED if _was_interrupted(result) else None
    return _STOP.END_TURN


def _failed(result: ResultLine, last: Assistant | None) -> bool:
    if result.is_error or result.subtype.startswith("error") or result.terminal_reason in _FAILED:
        return True
    # Older CLIs report an API error as a success, and their own message is all there is.
    if last is not None and (last.is_api_error_message or last.error is not None):
        return True
    made_up = last is None or last.message.model == "<synthetic>"
    return made_up and mentions_limit(result.result or "")


def _was_interrupted(result: ResultLine) -> bool:
    """Older CLIs give no reason for an interrupt."""
    value = " ".join(result.errors)
    return result.terminal_reason is None and ("Request was aborted" in value or "[Request interrupted" in value)


# Errors between the CLI and its model, as one of a few kinds, each with a hint.

_HINTS: Final = {
    "auth": "sign in with `antiphon agent --engine claude --login`, or set a valid ANTHROPIC_API_KEY, and send the prompt again",
    "usage_limit": "wait for the limit to end, choose another model, or sign in with another account or an API key",
    "rate_limit": "too many requests at once: wait a minute and send the prompt again",
    "overloaded": "the service is busy: wait a moment and send the prompt again, or choose another model",
    "billing": "add credit or a means of payment to the account, or sign in with another one",
    "access": "the account or the cloud credentials have to be put in order outside of Claude Code; then send the prompt again",
    "model_not_found": "choose another model",
    "prompt_too_long": "compact the session with /compact, attach less, or start a new session",
    "too_large": "send fewer or smaller images and files, or start a new session",
    "connection": "check the network, the proxy and ANTHROPIC_BASE_URL, and send the prompt again",
    "invalid_request": "change the prompt or the model, or start a new session",
    "server_error": "the trouble is at the service: wait a moment and send the prompt again",
    "session_not_found": "start a new session",
    "startup": "check the settings of Claude Code, and start a new session",
    "execution": "send the prompt again; if that does not help, start a new session",
    "api": "send the prompt again; if that does not help, choose another model or start a new session",
}  # fmt: skip

_BY_NAME: Final = {
    "account_on_hold": "billing", "authentication_failed": "auth", "billing_error": "billing", "cloud_credential_error": "access",
    "connection_failed": "connection", "invalid_request": "invalid_request", "model_not_found": "model_not_found",
    "oauth_org_not_allowed": "auth", "overloaded": "overloaded", "rate_limit": "rate_limit", "server_error": "server_error",
    "usage_limit_reached": "usage_limit", "verification_required": "access",
    "authentication_error": "auth", "overloaded_error": "overloaded", "rate_limit_error": "rate_limit", "request_too_large": "too_large",
    "blocking_limit": "prompt_too_long", "image_error": "too_large", "prompt_too_long": "prompt_too_long",
    "rapid_refill_breaker": "prompt_too_long", "turn_setup_failed": "startup",
}  # fmt: skip
"""What the CLI and the API call it."""

_BY_STATUS: Final = {
    401: "auth", 402: "billing", 403: "auth", 404: "model_not_found", 413: "too_large", 429: "rate_limit", 529: "overloaded",
}  # fmt: skip

_SIGNS: Final = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in (
    (r"\b(?:not logged in|please run /login|invalid api key|oauth token (?:has )?(?:been )?(?:expired|revoked))", "auth"),
    (r"\bcredit balance is too low", "billing"),
    (r"^prompt is too long", "prompt_too_long"),
    (r"\boverloaded\b", "overloaded"),
    (r"\bno conversation found\b", "session_not_found"),
    (r"\bE(?:CONNREFUSED|CONNRESET|NOTFOUND|TIMEDOUT|AI_AGAIN)\b|\bconnection (?:error|refused)|\bunable to connect", "connection"),
))  # fmt: skip
"""Errors that only the text names."""

_OVERLOADED: Final = re.compile(r"\brepeated 529\b", re.IGNORECASE)
"""An older CLI has it in its text alone."""

_LIMIT: Final = re.compile(
    r"^(?:claude(?: ai)? usage limit reached|you've (?:hit|reached) your\b.*\blimit|you're out of (?:extra usage|usage credits)"
    r"|your org is out of usage|your seat type doesn't include|your usage allocation has been disabled|your group's usage limit"
    r"|.{1,40} requires usage credits|(?:5-hour|weekly|session|opus|sonnet)(?: usage)? limit reached)",
    re.IGNORECASE,
)
_PREFIX: Final = re.compile(r"^(?:API Error:?\s*)+")
_DIAGNOSTIC: Final = "[ede_diagnostic]"


def mentions_limit(text: str) -> bool:
    """Whether the text means that a subscription is used up."""
    return _LIMIT.match(text.strip().replace("\u2019", "'")) is not None


def error_of(
    result: ResultLine, last: Assistant | None = None, limit: RateLimitInfo | None = None, *, now: float | None = None
) -> TurnFailure:
    """Return the error of a turn that ended with this result, after this message, under this limit.

    `now` is there for messages without a time, whose limit ends at an hour of the day.
    """
    text = text_of(result, last)
    kind = _kind(result, last, text)
    status = _first(result.api_error_status, last.api_error_status if last else None)
    limited = kind in ("usage_limit", "rate_limit")
    resets_at = _reset(text, limit, _when(last) if now is None else now) if limited else None
    if kind == "rate_limit" and limit is not None and limit.status == "rejected":
        kind = "usage_limit"
    hint = _HINTS[kind]
    if kind == "usage_limit" and resets_at is not None:
        hint = (
            f"wait until {moment_text(resets_at)}, choose another model, or sign in with another account or an API key"
        )
    code = {"auth": Code.AUTH_REQUIRED, "session_not_found": Code.RESOURCE_NOT_FOUND}.get(kind, Code.INTERNAL_ERROR)
    return TurnFailure(
        kind=kind, code=code, message=_message(text, kind), hint=hint, status=status, resets_at=resets_at
    )


def text_of(result: ResultLine, last: Assistant | None = None) -> str:
    """Return the error text of the CLI, without what is only for its developers."""
    value = result.result or "\n".join(error for error in result.errors if not error.startswith(_DIAGNOSTIC))
    if not value.strip() and last is not None and (last.is_api_error_message or last.error):
        value = "".join(getattr(block, "text", "") for block in last.message.blocks)
    return value.strip()


def _kind(result: ResultLine, last: Assistant | None, text: str) -> str:
    if mentions_limit(text):
        return "usage_limit"
    names = [
        result.api_error,
        last.api_error if last else None,
        result.terminal_reason,
        result.api_error_type,
        _error(last),
    ]
    status = _first(result.api_error_status, last.api_error_status if last else None)
    if status == 529 or _OVERLOADED.search(text):
        return "overloaded"  # which the CLI calls a server error
    for name in names:
        if name in _BY_NAME:
            return _BY_NAME[name]
    for sign, kind in _SIGNS:
        if sign.search(text):
            return kind
    return _otherwise(result, status)


def _otherwise(result: ResultLine, status: int | None) -> str:
    if status is not None:
        if status in _BY_STATUS:
            return _BY_STATUS[status]
        return "server_error" if status >= 500 else "invalid_request" if status >= 400 else "api"
    if result.startup_failure_reason:
        return "startup"
    return "execution" if result.subtype.startswith("error") else "api"


def _error(last: Assistant | None) -> str | None:
    return last.error if last is not None else None


def _reset(text: str, limit: RateLimitInfo | None, now: float | None) -> float | None:
    if limit is not None and limit.status != "allowed" and (known := reset_moment(limit.resets_at)) is not None:
        return known
    return reset_in(text, now)


def _when(last: Assistant | None) -> float | None:
    """When the message was sent: `3pm` means the next one after that."""
    try:
        return datetime.fromisoformat(last.timestamp).timestamp() if last is not None and last.timestamp else None
    except (ValueError, OverflowError, OSError):
        return None


def _message(text: str, kind: str) -> str:
    value = _PREFIX.sub("", re.sub(r"\|\s*\d{10,13}\b", "", text)).strip()
    return value or {
        "execution": "Claude Code stopped in the middle of the turn",
        "startup": "Claude Code could not start the turn",
    }.get(kind, "Claude Code ended the turn with an error that it did not name")


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


# When a limit ends: the CLI writes it as a number, behind a bar in its text, or as a time of day.

_NUMBER: Final = re.compile(r"\|\s*(\d{10}(?:\d{3})?)\b")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_RESET_TEXT: Final = re.compile(
    r"resets?\s+(?:at\s+|on\s+)?"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:,?\s+(?P<year>\d{{4}}))?(?:,|\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?\b"
    r"(?:\s*\((?P<zone>[A-Za-z_+\-/0-9]+)\))?",
    re.IGNORECASE,
)
_IN_MILLISECONDS: Final = 100_000_000_000
_END: Final = 253_402_300_800
"""The end of the year 9999, the last that `datetime` can express."""


def reset_moment(seconds: float | None) -> float | None:
    """Return seconds since 1970, also from milliseconds; None for what is not a time."""
    if seconds is None or not 0 < seconds < _END * 1000:
        return None
    found = seconds / 1000 if seconds >= _IN_MILLISECONDS else float(seconds)
    return found if found < _END else None


def reset_in(text: str, now: float | None = None) -> float | None:
    """The moment that a text names: `…|1760000000`, or seen from `now` `resets 3pm`, `resets Nov 20, 5:07am (UTC)`."""
    if found := _NUMBER.search(text):
        return reset_moment(float(found[1]))
    found = _RESET_TEXT.search(text)
    if now is None or found is None or (found["half"] is None and found["minute"] is None):
        return None
    try:
        return _next(found, datetime.fromtimestamp(now, _zone(found["zone"])))
    except (ValueError, OverflowError, OSError):
        return None


def moment_text(seconds: float) -> str:
    """Return the moment as text, the same in every time zone: `2025-10-09 08:53 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _next(found: "re.Match[str]", now: datetime) -> float:
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    then = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if found["month"]:
        year = int(found["year"] or now.year)
        then = then.replace(year=year, month=_MONTHS.index(found["month"].lower()) + 1, day=int(found["day"]))
        if found["year"] is None and now - then > timedelta(days=180):
            then = then.replace(year=year + 1)
    elif then <= now:
        then += timedelta(days=1)
    return then.timestamp()


def _zone(name: str | None) -> tzinfo | None:
    """Return the named time zone; without a known one that of this machine, on which the CLI runs too."""
    if name is None or name.upper() in ("UTC", "GMT"):
        return UTC if name else datetime.now().astimezone().tzinfo
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # only needed for a limit that is written as a time of day

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.now().astimezone().tzinfo
