"""What Codex wants the user to know that belongs to no message: warnings, retries, what hooks and reviewers decided."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.errors import message_of
from antiphon.engines.codex.translate.news import News
from antiphon.engines.events import ModelChanged, Notice
from antiphon.engines.labels import one_line
from antiphon.protocol import v1

__all__ = ["REPORTS", "retry", "told"]

_INFO: Final = v1.NoticeSeverity.INFO
_WARNING: Final = v1.NoticeSeverity.WARNING

_LOUD: Final = frozenset({"error", "feedback", "stop", "warning"})
"""What hooks say to the user; the rest is for the model."""

_NOT_APPROVED: Final = {
    "denied": "The automatic reviewer said no",
    "timedOut": "The automatic reviewer did not answer in time",
    "aborted": "The automatic review was broken off",
}
_HOOKS: Final = {"failed": "failed", "blocked": "blocked it", "stopped": "stopped the turn"}
_GOALS: Final = {
    "active": "Goal", "paused": "Goal paused", "blocked": "Goal blocked", "usageLimited": "Goal held up by a usage limit",
    "budgetLimited": "Goal held up by its budget", "complete": "Goal reached",
}  # fmt: skip


def told(text: str, severity: v1.NoticeSeverity = _WARNING, details: str | None = None) -> Notice:
    """A text as a notice: its first line on top, the whole below if there is more. A line that is too long for the top stands below alone."""
    first = text.strip().partition("\n")[0]
    title = one_line(first)
    whole = text.strip() if title != text.strip() else ""
    if title != first:
        title = "Codex warns" if severity == _WARNING else "Codex says"
    description = "\n".join(part for part in (whole, (details or "").strip()) if part)
    return Notice(title or "Codex has something to say", description or None, severity)


def retry(error: wire.TurnError) -> Notice:
    """The connection to the model broke, and Codex tries again."""
    message, _, details = message_of(error).partition("\n")
    return Notice(one_line(message), details or None, _WARNING)


def _warning(params: wire.Warned) -> Iterator[News]:
    yield told(params.message)


def _config(params: wire.ConfigWarning) -> Iterator[News]:
    details = params.details or ""
    if params.path and params.path not in details:
        place = f":{params.range.start.line}:{params.range.start.column}" if params.range else ""
        details = f"{params.path}{place}: {details}" if details else f"{params.path}{place}"
    yield told(params.summary, _WARNING, details)


def _deprecation(params: wire.DeprecationNotice) -> Iterator[News]:
    if "`thread/" not in params.summary:  # about the protocol: a word to whoever wrote the client
        yield told(params.summary, _INFO, params.details)


def _rerouted(params: wire.ModelRerouted) -> Iterator[News]:
    reasons = {"highRiskCyberActivity": "The request looks like risky work on security."}
    yield Notice(
        one_line(f"{params.to_model} answers instead of {params.from_model}"),
        reasons.get(params.reason, params.reason) or None,
        _WARNING,
    )
    if params.to_model:
        yield ModelChanged(params.to_model)


def _verified(params: wire.ModelVerified) -> Iterator[News]:
    if params.verifications:
        yield told("The account was checked before the model answered", _INFO, ", ".join(params.verifications))


def _buffering(params: wire.SafetyBuffering) -> Iterator[News]:
    if params.show_buffering_ui:
        faster = f"{params.faster_model} would answer faster." if params.faster_model else None
        yield Notice("The answer is being checked before it is shown", faster, _INFO)


def _recovery(params: wire.AuthRecovery) -> Iterator[News]:
    yield told(params.message or f"The sign-in at {params.provider} is being renewed", _INFO)


def _server(params: wire.McpStartup) -> Iterator[News]:
    if params.status != "failed":
        return
    hint = "Sign in again: `codex mcp login " + params.name + "`" if params.failure_reason else None
    details = "\n".join(part for part in (params.error, hint) if part)
    yield Notice(one_line(f"The MCP server {params.name} did not start"), details or None, _WARNING)


def _login(params: wire.McpLogin) -> Iterator[News]:
    if params.success:
        yield Notice(one_line(f"Signed in at the MCP server {params.name}"))
    else:
        yield Notice(one_line(f"The sign-in at the MCP server {params.name} failed"), params.error, _WARNING)


def _hook(params: wire.HookCompleted) -> Iterator[News]:
    run = params.run
    entries = [entry.text for entry in run.entries if entry.kind in _LOUD and entry.text]
    said = "\n".join([*([run.status_message] if run.status_message else []), *entries])
    if run.status in _HOOKS:
        yield Notice(f"A {run.event_name} hook {_HOOKS[run.status]}", said or run.source_path, _WARNING)
    elif entries:
        yield Notice(f"A {run.event_name} hook says", said, _INFO)


def _review(params: wire.ReviewCompleted) -> Iterator[News]:
    verdict = _NOT_APPROVED.get(params.review.status)
    if verdict is None:
        return
    action = params.action if isinstance(params.action, dict) else {}
    what = next((action[name] for name in ("command", "toolName", "target", "program") if action.get(name)), "")
    details = [str(what), params.review.rationale or ""]
    yield Notice(verdict, "\n".join(part for part in details if part) or None, _WARNING)


def _strict(_: wire.ThreadTold) -> Iterator[News]:
    yield Notice("What Codex does is reviewed more strictly from now on", None, _INFO)


def _goal(params: wire.GoalUpdated) -> Iterator[News]:
    yield Notice(one_line(f"{_GOALS.get(params.goal.status, 'Goal')}: {params.goal.objective}"), None, _INFO)


def _folders(params: wire.WorldWritable) -> Iterator[News]:
    more = f"\nand {params.extra_count} more" if params.extra_count > 0 else ""
    paths = "\n".join(params.sample_paths)
    yield Notice(
        "Everybody may write to some folders, which the sandbox cannot protect", paths + more or None, _WARNING
    )


REPORTS: Final[dict[str, Callable[[Any], Iterator[News]]]] = {
    "warning": _warning, "guardianWarning": _warning, "configWarning": _config, "deprecationNotice": _deprecation,
    "model/rerouted": _rerouted, "model/verification": _verified, "model/safetyBuffering/updated": _buffering,
    "modelProvider/authRecoveryStarted": _recovery, "modelProvider/authRecoveryCompleted": _recovery,
    "mcpServer/startupStatus/updated": _server, "mcpServer/oauthLogin/completed": _login, "hook/completed": _hook,
    "item/autoApprovalReview/completed": _review, "autoApprovalReview/strictReviewRequired": _strict,
    "thread/goal/updated": _goal, "windows/worldWritableWarning": _folders,
}  # fmt: skip
"""By method, what there is to say."""
