"""What went wrong between the CLI and its model, as one of a few kinds, each with what to do about it."""

import re
from datetime import datetime
from typing import Final

from antiphon.engines.claude.translate import resets
from antiphon.engines.claude.wire import Assistant, RateLimitInfo, Result
from antiphon.engines.news import EndError
from antiphon.errors import Code

__all__ = ["EndError", "error_of", "says_limit", "text_of"]


_HINTS: Final = {
    "auth": "sign in with `antiphon agent --engine claude --login`, or set a valid ANTHROPIC_API_KEY, and send the prompt again",
    "usage_limit": "wait for the limit to end, choose another model, or sign in with another account or an API key",
    "rate_limit": "too many requests at once: wait a minute and send the prompt again",
    "overloaded": "the service is busy: wait a moment and send the prompt again, or choose another model",
    "billing": "add credit or a means of payment to the account, or sign in with another one",
    "access": "the account or the cloud credentials have to be put in order outside of Claude Code; then send the prompt again",
    "model_not_found": "choose another model",
    "prompt_too_long": "compact the conversation with /compact, attach less, or start a new session",
    "too_large": "send fewer or smaller images and files, or start a new session",
    "connection": "check the network, the proxy and ANTHROPIC_BASE_URL, and send the prompt again",
    "invalid_request": "change the prompt or the model, or start a new session",
    "server_error": "the trouble is at the service: wait a moment and send the prompt again",
    "session_not_found": "start a new session",
    "startup": "check the settings of Claude Code, and start a new session",
    "execution": "send the prompt again; if that does not help, start a new session",
    "api": "send the prompt again; if that does not help, choose another model or start a new session",
}  # fmt: skip

_BY_WORD: Final = {
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
"""Where only the text tells."""

_OVERLOADED: Final = re.compile(r"\brepeated 529\b", re.IGNORECASE)
"""An older CLI says it in its text alone."""

_LIMIT: Final = re.compile(
    r"^(?:claude(?: ai)? usage limit reached|you've (?:hit|reached) your\b.*\blimit|you're out of (?:extra usage|usage credits)"
    r"|your org is out of usage|your seat type doesn't include|your usage allocation has been disabled|your group's usage limit"
    r"|.{1,40} requires usage credits|(?:5-hour|weekly|session|opus|sonnet)(?: usage)? limit reached)",
    re.IGNORECASE,
)
_PREFIX: Final = re.compile(r"^(?:API Error:?\s*)+")
_DIAGNOSTIC: Final = "[ede_diagnostic]"


def says_limit(text: str) -> bool:
    """Whether the text is the CLI's word for a subscription that is used up."""
    return _LIMIT.match(text.strip().replace("\u2019", "'")) is not None


def error_of(
    result: Result, last: Assistant | None = None, limit: RateLimitInfo | None = None, *, now: float | None = None
) -> EndError:
    """What went wrong in a turn that ended with this result, after this message, under this limit.

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
            f"wait until {resets.told(resets_at)}, choose another model, or sign in with another account or an API key"
        )
    code = {"auth": Code.AUTH_REQUIRED, "session_not_found": Code.RESOURCE_NOT_FOUND}.get(kind, Code.INTERNAL_ERROR)
    return EndError(kind=kind, code=code, message=_message(text, kind), hint=hint, status=status, resets_at=resets_at)


def text_of(result: Result, last: Assistant | None = None) -> str:
    """What the CLI says about it, without what is only for those who make it."""
    said = result.result or "\n".join(error for error in result.errors if not error.startswith(_DIAGNOSTIC))
    if not said.strip() and last is not None and (last.is_api_error_message or last.error):
        said = "".join(getattr(block, "text", "") for block in last.message.blocks)
    return said.strip()


def _kind(result: Result, last: Assistant | None, text: str) -> str:
    if says_limit(text):
        return "usage_limit"
    words = [
        result.api_error,
        last.api_error if last else None,
        result.terminal_reason,
        result.api_error_type,
        _error(last),
    ]
    status = _first(result.api_error_status, last.api_error_status if last else None)
    if status == 529 or _OVERLOADED.search(text):
        return "overloaded"  # which the CLI calls a server error
    for word in words:
        if word in _BY_WORD:
            return _BY_WORD[word]
    for sign, kind in _SIGNS:
        if sign.search(text):
            return kind
    return _otherwise(result, status)


def _otherwise(result: Result, status: int | None) -> str:
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
    if limit is not None and limit.status != "allowed" and (known := resets.moment(limit.resets_at)) is not None:
        return known
    return resets.reset_in(text, now)


def _when(last: Assistant | None) -> float | None:
    """When the message was said: `3pm` means the next one after that."""
    try:
        return datetime.fromisoformat(last.timestamp).timestamp() if last is not None and last.timestamp else None
    except (ValueError, OverflowError, OSError):
        return None


def _message(text: str, kind: str) -> str:
    said = _PREFIX.sub("", re.sub(r"\|\s*\d{10,13}\b", "", text)).strip()
    return said or {
        "execution": "Claude Code stopped in the middle of the turn",
        "startup": "Claude Code could not start the turn",
    }.get(kind, "Claude Code ended the turn with an error that it did not name")


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
