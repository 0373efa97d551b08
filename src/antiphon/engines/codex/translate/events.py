"""What a notification becomes: updates for the client, events for the session, errors, turn ends and notices."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.wire import CodexTurn, ErrorFacts, ThreadSettings, TurnError
from antiphon.engines.events import (
    CommonEvent,
    EngineNotice,
    Mirror,
    ModeChanged,
    ModelChanged,
    SignInNeeded,
    TitleChanged,
    TurnEnd,
    TurnEnded,
    TurnFailure,
)
from antiphon.engines.labels import one_line
from antiphon.errors import Code
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT, JsonObject

__all__ = [
    "REPORTS",
    "CodexEvent",
    "EngineNotice",
    "Mirror",
    "ModeChanged",
    "ModelChanged",
    "SignInNeeded",
    "ThreadSettings",
    "TitleChanged",
    "TurnEnd",
    "TurnEnded",
    "TurnFailure",
    "end_of",
    "error_of",
    "kind_of",
    "message_of",
    "note_on",
    "retry",
    "status_of",
    "text_notice",
]

CodexEvent: TypeAlias = v1.Update | CommonEvent | ThreadSettings
"""`ThreadSettings` as the server has it: the settings of the thread have changed, for whatever reason."""


# What went wrong between Codex and its model, as one of a few kinds, each with what to do about it.

_HINTS: Final = {
    "auth": "sign in with `antiphon agent --engine codex --login`, or set a valid API key, and send the prompt again",
    "usage_limit": "wait for the limit to end, choose another model, or sign in with another account or an API key",
    "rate_limit": "too many requests at once: wait a minute and send the prompt again",
    "overloaded": "the service is busy: wait a moment and send the prompt again, or choose another model",
    "billing": "add credit or a means of payment to the account, or sign in with another one",
    "access": "the account may not do this: choose another model, or sign in with another account",
    "model_not_found": "choose another model",
    "prompt_too_long": "compact the session with /compact, attach less, or start a new session",
    "too_large": "send fewer or smaller images and files, or start a new session",
    "connection": "check the network, the proxy and the provider's address, and send the prompt again",
    "invalid_request": "change the prompt or the model, or start a new session",
    "server_error": "the trouble is at the service: wait a moment and send the prompt again",
    "configuration": "set it where the agent is started, or name another provider in Codex's configuration, and open a new session",
    "sandbox": "check the sandbox of Codex, or choose a mode that needs none",
    "denied": "the automatic reviewer denied too often: ask Codex for another way, or choose a mode in which you are asked",
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
"""Errors that only the text names."""


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
    value = next((sign_kind for sign, sign_kind in _SIGNS if sign.search(text)), None)
    if value is not None and (value != "connection" or kind == "api"):
        return value
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
    """Return the error text of Codex. The body of an HTTP response that it forwards is opened."""
    message = _opened(error.message.strip()) or "Codex ended the turn with an error that it did not name"
    details = _opened((error.additional_details or "").strip())
    return f"{message}\n{details}" if details and details not in message else message


def error_of(error: TurnError, resets_at: float | None) -> TurnFailure:
    """The error, with what to do about it."""
    kind = kind_of(error)
    limited = kind in ("usage_limit", "rate_limit")
    hint = _HINTS.get(kind, _HINTS["api"])
    if kind == "usage_limit" and resets_at is not None:
        until = datetime.fromtimestamp(resets_at, UTC).isoformat(timespec="seconds")
        hint = f"wait until {until}, choose another model, or sign in with another account or an API key"
    return TurnFailure(
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
        body = msgspec.json.decode(text, type=JsonObject)
    except BAD_INPUT:
        return text
    for inner in (body.get("error"), body.get("detail"), body):
        value = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(value, str) and value:
            return value
    return text


# How a turn ended: a stop reason of the protocol, or an error with a hint; always one of them.

_STOPS: Final = {
    "max_tokens": v1.StopReason.MAX_TOKENS,
    "refusal": v1.StopReason.REFUSAL,
    "budget": v1.StopReason.MAX_TURN_REQUESTS,
}
"""Kinds of errors that are stop reasons of the protocol."""

_NOTES: Final = {
    v1.StopReason.MAX_TOKENS: "The answer was cut off because it got too long",
    v1.StopReason.REFUSAL: "The answer was refused",
    v1.StopReason.MAX_TURN_REQUESTS: "The budget of the session is used up",
}


def end_of(turn: CodexTurn, last: TurnError | None, usage: v1.Usage | None, resets_at: float | None) -> TurnEnd:
    """Return how the turn ended. `last` is the last error in it, `resets_at` when a used up limit is lifted."""
    if turn.status == "interrupted":
        return TurnEnd(stop_reason=v1.StopReason.CANCELLED, usage=usage)
    error = turn.error or (last if turn.status == "failed" else None)
    if error is None and turn.status != "failed":
        return TurnEnd(stop_reason=v1.StopReason.END_TURN, usage=usage)
    error = error or TurnError()
    stop = _STOPS.get(kind_of(error))
    if stop is not None:
        return TurnEnd(stop_reason=stop, usage=usage)
    return TurnEnd(error=error_of(error, resets_at), usage=usage)


def note_on(end: TurnEnd, error: TurnError | None) -> EngineNotice | None:
    """Return a notice for an end that is not an error of the protocol but that the user should understand."""
    title = _NOTES.get(end.stop_reason) if end.stop_reason is not None else None
    return EngineNotice(title, message_of(error), v1.NoticeSeverity.WARNING) if title and error is not None else None


# What Codex wants the user to know that belongs to no message: warnings, retries, what hooks and reviewers decided.

_INFO: Final = v1.NoticeSeverity.INFO
_WARNING: Final = v1.NoticeSeverity.WARNING

_LOUD: Final = frozenset({"error", "feedback", "stop", "warning"})
"""Kinds of hook output for the user; the rest is for the model."""

_NOT_APPROVED: Final = {
    "denied": "The automatic reviewer denied it",
    "timedOut": "The automatic reviewer did not answer in time",
    "aborted": "The automatic review was broken off",
}
_HOOKS: Final = {"failed": "failed", "blocked": "blocked it", "stopped": "stopped the turn"}
_GOALS: Final = {
    "active": "Goal", "paused": "Goal paused", "blocked": "Goal blocked", "usageLimited": "Goal held up by a usage limit",
    "budgetLimited": "Goal held up by its budget", "complete": "Goal reached",
}  # fmt: skip


def text_notice(text: str, severity: v1.NoticeSeverity = _WARNING, details: str | None = None) -> EngineNotice:
    """Return a text as a notice: the first line is the title, the whole text the description if there is more or the line is too long."""
    first = text.strip().partition("\n")[0]
    title = one_line(first)
    whole = text.strip() if title != text.strip() else ""
    if title != first:
        title = "Codex warns" if severity == _WARNING else "Codex reports"
    description = "\n".join(part for part in (whole, (details or "").strip()) if part)
    return EngineNotice(title or "A message of Codex", description or None, severity)


def retry(error: wire.TurnError) -> EngineNotice:
    """The connection to the model broke, and Codex tries again."""
    message, _, details = message_of(error).partition("\n")
    return EngineNotice(one_line(message), details or None, _WARNING)


def _warning(params: wire.WarningNotification) -> Iterator[CodexEvent]:
    yield text_notice(params.message)


def _config(params: wire.ConfigWarning) -> Iterator[CodexEvent]:
    details = params.details or ""
    if params.path and params.path not in details:
        place = f":{params.range.start.line}:{params.range.start.column}" if params.range else ""
        details = f"{params.path}{place}: {details}" if details else f"{params.path}{place}"
    yield text_notice(params.summary, _WARNING, details)


def _deprecation(params: wire.DeprecationNotice) -> Iterator[CodexEvent]:
    if "`thread/" not in params.summary:  # about the protocol: for the developer of the client
        yield text_notice(params.summary, _INFO, params.details)


def _rerouted(params: wire.ModelRerouted) -> Iterator[CodexEvent]:
    reasons = {"highRiskCyberActivity": "The request looks like risky work on security."}
    yield EngineNotice(
        one_line(f"{params.to_model} answers instead of {params.from_model}"),
        reasons.get(params.reason, params.reason) or None,
        _WARNING,
    )
    if params.to_model:
        yield ModelChanged(params.to_model)


def _verified(params: wire.ModelVerified) -> Iterator[CodexEvent]:
    if params.verifications:
        yield text_notice("The account was checked before the model answered", _INFO, ", ".join(params.verifications))


def _buffering(params: wire.SafetyBuffering) -> Iterator[CodexEvent]:
    if params.show_buffering_ui:
        faster = f"{params.faster_model} would answer faster." if params.faster_model else None
        yield EngineNotice("The answer is being checked before it is shown", faster, _INFO)


def _recovery(params: wire.AuthRecovery) -> Iterator[CodexEvent]:
    yield text_notice(params.message or f"The sign-in at {params.provider} is being renewed", _INFO)


def _server(params: wire.McpStartup) -> Iterator[CodexEvent]:
    if params.status != "failed":
        return
    hint = "Sign in again: `codex mcp login " + params.name + "`" if params.failure_reason else None
    details = "\n".join(part for part in (params.error, hint) if part)
    yield EngineNotice(one_line(f"The MCP server {params.name} did not start"), details or None, _WARNING)


def _login(params: wire.McpLogin) -> Iterator[CodexEvent]:
    if params.success:
        yield EngineNotice(one_line(f"Signed in at the MCP server {params.name}"))
    else:
        yield EngineNotice(one_line(f"The sign-in at the MCP server {params.name} failed"), params.error, _WARNING)


def _hook(params: wire.HookCompleted) -> Iterator[CodexEvent]:
    run = params.run
    entries = [entry.text for entry in run.entries if entry.kind in _LOUD and entry.text]
    text = "\n".join([*([run.status_message] if run.status_message else []), *entries])
    if run.status in _HOOKS:
        yield EngineNotice(f"A {run.event_name} hook {_HOOKS[run.status]}", text or run.source_path, _WARNING)
    elif entries:
        yield EngineNotice(f"A {run.event_name} hook reports", text, _INFO)


def _review(params: wire.ReviewCompleted) -> Iterator[CodexEvent]:
    verdict = _NOT_APPROVED.get(params.review.status)
    if verdict is None:
        return
    action = params.action if isinstance(params.action, dict) else {}
    what = next((action[name] for name in ("command", "toolName", "target", "program") if action.get(name)), "")
    details = [str(what), params.review.rationale or ""]
    yield EngineNotice(verdict, "\n".join(part for part in details if part) or None, _WARNING)


def _strict(_: wire.ThreadNotification) -> Iterator[CodexEvent]:
    yield EngineNotice("What Codex does is reviewed more strictly from now on", None, _INFO)


def _goal(params: wire.GoalUpdated) -> Iterator[CodexEvent]:
    yield EngineNotice(one_line(f"{_GOALS.get(params.goal.status, 'Goal')}: {params.goal.objective}"), None, _INFO)


def _folders(params: wire.WorldWritable) -> Iterator[CodexEvent]:
    more = f"\nand {params.extra_count} more" if params.extra_count > 0 else ""
    paths = "\n".join(params.sample_paths)
    yield EngineNotice(
        "All users may write to some directories, which the sandbox cannot protect", paths + more or None, _WARNING
    )


REPORTS: Final[dict[str, Callable[[Any], Iterator[CodexEvent]]]] = {
    "warning": _warning, "guardianWarning": _warning, "configWarning": _config, "deprecationNotice": _deprecation,
    "model/rerouted": _rerouted, "model/verification": _verified, "model/safetyBuffering/updated": _buffering,
    "modelProvider/authRecoveryStarted": _recovery, "modelProvider/authRecoveryCompleted": _recovery,
    "mcpServer/startupStatus/updated": _server, "mcpServer/oauthLogin/completed": _login, "hook/completed": _hook,
    "item/autoApprovalReview/completed": _review, "autoApprovalReview/strictReviewRequired": _strict,
    "thread/goal/updated": _goal, "windows/worldWritableWarning": _folders,
}  # fmt: skip
"""The notices of each notification method."""
