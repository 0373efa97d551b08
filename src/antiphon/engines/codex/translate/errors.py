"""What went wrong between Codex and its model, as one of a few kinds, each with what to do about it."""

import re
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from antiphon.engines.codex.wire import ErrorFacts, TurnError
from antiphon.engines.events import EndError
from antiphon.errors import Code
from antiphon.protocol.base import BAD_INPUT

__all__ = ["error_of", "kind_of", "message_of", "status_of"]

_HINTS: Final = {
    "auth": "sign in with `antiphon agent --engine codex --login`, or set a valid API key, and send the prompt again",
    "usage_limit": "wait for the limit to end, choose another model, or sign in with another account or an API key",
    "rate_limit": "too many requests at once: wait a minute and send the prompt again",
    "overloaded": "the service is busy: wait a moment and send the prompt again, or choose another model",
    "billing": "add credit or a means of payment to the account, or sign in with another one",
    "access": "the account may not do this: choose another model, or sign in with another account",
    "model_not_found": "choose another model",
    "prompt_too_long": "compact the conversation with /compact, attach less, or start a new session",
    "too_large": "send fewer or smaller images and files, or start a new session",
    "connection": "check the network, the proxy and the provider's address, and send the prompt again",
    "invalid_request": "change the prompt or the model, or start a new session",
    "server_error": "the trouble is at the service: wait a moment and send the prompt again",
    "configuration": "set it where the agent is started, or name another provider in Codex's configuration, and open a new session",
    "sandbox": "check the sandbox of Codex, or choose a mode that needs none",
    "denied": "the automatic reviewer said no too often: tell Codex another way, or choose a mode in which you are asked",
    "busy": "wait until the running turn is over, or cancel it, and send the prompt again",
    "rollback": "start a new session, or send the prompt again",
    "api": "send the prompt again; if that does not help, choose another model or start a new session",
}

_BY_NAME: Final = {
    "contextWindowExceeded": "prompt_too_long", "sessionBudgetExceeded": "budget", "usageLimitExceeded": "usage_limit",
    "rateLimitExceeded": "rate_limit", "flexUnavailable": "overloaded", "serverOverloaded": "overloaded",
    "policyCapacityUnavailable": "overloaded", "modelNotFound": "model_not_found", "cyberPolicy": "refusal",
    "misalignmentPolicyViolation": "refusal", "tooManyDenials": "denied", "internalServerError": "server_error",
    "unauthorized": "auth", "badRequest": "invalid_request", "threadRollbackFailed": "rollback", "sandboxError": "sandbox",
    "httpConnectionFailed": "connection", "responseStreamConnectionFailed": "connection",
    "responseStreamDisconnected": "connection", "responseTooManyFailedAttempts": "connection", "activeTurnNotSteerable": "busy",
}  # fmt: skip
"""What Codex calls it."""

_VAGUE: Final = frozenset({"api", "connection", "invalid_request"})
"""Kinds that a status or the text may know better."""

_BY_STATUS: Final = {
    401: "auth", 402: "billing", 403: "access", 413: "too_large", 429: "rate_limit", 503: "overloaded",
    529: "overloaded",
}  # fmt: skip

_SIGNS: Final = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in (
    (r"\bmax_output_tokens\b", "max_tokens"),
    (r"\bcontent_filter\b|\bcyber_policy\b", "refusal"),
    (r"\bcontext_length_exceeded\b|\bcontext window\b", "prompt_too_long"),
    (r"\bmodel_not_found\b|\b404 not found: .*\bmodel\b", "model_not_found"),
    (r"\bmissing environment variable\b", "configuration"),
    (r"\bnot logged in\b|\binvalid_api_key\b|\bmissing bearer\b|\b401 unauthorized\b", "auth"),
    (r"\binsufficient_quota\b", "billing"),
    (r"\busage_limit_reached\b|\bhit your usage limit\b", "usage_limit"),
    (r"\brate_limit_exceeded\b|\b429 too many\b", "rate_limit"),
    (r"\bserver_is_overloaded\b|\bat capacity\b", "overloaded"),
    (r"\bstream disconnected\b|\berror sending request\b|\bconnection (?:refused|reset|closed)\b|\bdns error\b", "connection"),
    (r"\binvalid_request_error\b", "invalid_request"),
))  # fmt: skip
"""Where only the text tells."""


def kind_of(error: TurnError) -> str:
    """The kind; three of them are stop reasons of the protocol and no errors: `max_tokens`, `refusal`, `budget`."""
    name, _ = _info(error)
    kind = _BY_NAME.get(name, "api")
    if kind not in _VAGUE:
        return kind
    status = status_of(error)
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    text = f"{error.message} {error.additional_details or ''}"
    said = next((sign_kind for sign, sign_kind in _SIGNS if sign.search(text)), None)
    if said is not None and (said != "connection" or kind == "api"):
        return said
    if status is not None and status >= 400:
        return "server_error" if status >= 500 else "invalid_request"
    return kind


def status_of(error: TurnError) -> int | None:
    """The HTTP status behind it."""
    name, facts = _info(error)
    if facts is not None and facts.http_status_code is not None:
        return facts.http_status_code
    return 401 if name == "unauthorized" else None


def message_of(error: TurnError) -> str:
    """What Codex says about it. The body of an answer that it passes on as it came is opened."""
    message = _opened(error.message.strip()) or "Codex ended the turn with an error that it did not name"
    details = _opened((error.additional_details or "").strip())
    return f"{message}\n{details}" if details and details not in message else message


def error_of(error: TurnError, resets_at: float | None) -> EndError:
    """The error, with what to do about it."""
    kind = kind_of(error)
    limited = kind in ("usage_limit", "rate_limit")
    hint = _HINTS.get(kind, _HINTS["api"])
    if kind == "usage_limit" and resets_at is not None:
        until = datetime.fromtimestamp(resets_at, UTC).isoformat(timespec="seconds")
        hint = f"wait until {until}, choose another model, or sign in with another account or an API key"
    return EndError(
        kind=kind,
        code=Code.AUTH_REQUIRED if kind == "auth" else Code.INTERNAL_ERROR,
        message=message_of(error),
        hint=hint,
        status=status_of(error),
        resets_at=resets_at if limited else None,
    )


def _info(error: TurnError) -> tuple[str, ErrorFacts | None]:
    info = error.codex_error_info
    if isinstance(info, dict):
        return next(iter(info.items()), ("", None))
    return info or "", None


def _opened(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        body: Any = msgspec.json.decode(text)
    except BAD_INPUT:
        return text
    for inner in (body.get("error"), body.get("detail"), body):
        said = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(said, str) and said:
            return said
    return text
