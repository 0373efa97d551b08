"""Notices: what the user should know besides messages and calls. Most lines become no notice."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.content import text
from antiphon.engines.claude.translate.descriptions import server_tool
from antiphon.engines.claude.translate.events import EngineNotice, SignInNeeded, moment_text, reset_moment
from antiphon.engines.claude.translate.results import failure_in
from antiphon.engines.labels import one_line, prose, sentence
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.engines.claude.translate.events import ClaudeEvent

__all__ = ["notices_of"]

_INFO, _WARNING, _ERROR = v1.NoticeSeverity.INFO, v1.NoticeSeverity.WARNING, v1.NoticeSeverity.ERROR
_LONGEST: Final = 2000
_LONGEST_WAIT: Final = 86_400_000
_FULL: Final = 10
"""Usage above ten times a limit is not shown: it is a wrong number."""

_API_ERRORS: Final = {
    "account_on_hold": "The account is on hold",
    "authentication_failed": "The sign-in was not accepted",
    "billing_error": "The account cannot pay",
    "cloud_credential_error": "The cloud credentials were not accepted",
    "overloaded": "Claude is overloaded",
    "rate_limit": "Too many requests",
    "server_error": "Claude's service has trouble",
}
_LIMITS: Final = {
    "five_hour": "5-hour limit",
    "overage": "limit for extra usage",
    "seven_day": "weekly limit",
    "seven_day_opus": "weekly limit for Opus",
    "seven_day_overage_included": "weekly limit, extra usage included",
    "seven_day_sonnet": "weekly limit for Sonnet",
}
_SERVERS: Final = {
    "failed": ("could not be started", "Its tools are missing. Check its command or address."),
    "needs-auth": ("wants you to sign in", "Its tools are missing until then. Sign in with /mcp in a terminal."),
}


def notices_of(line: object) -> "Sequence[ClaudeEvent]":
    """The notices of a line, most often none."""
    known = _BY_LINE.get(type(line))
    return known(line) if known is not None else ()


def _retry(line: wire.ApiRetry) -> "Sequence[ClaudeEvent]":
    problem = _API_ERRORS.get(line.error or "")
    if problem is None:
        problem = (
            "No connection to Claude"
            if line.error_status is None
            else f"Claude answered with an error ({line.error_status})"
        )
    delay = line.retry_delay_ms or 0
    wait = f" in {max(round(delay / 1000), 1)} s" if 0 < delay < _LONGEST_WAIT else ""
    count = f" ({line.attempt} of {line.max_retries})" if line.attempt and line.max_retries else ""
    return (EngineNotice(f"{problem}, retrying{wait}{count}", None, _WARNING),)


def _limit(line: wire.RateLimit) -> "Sequence[ClaudeEvent]":
    info = line.rate_limit_info
    name = _LIMITS.get(info.rate_limit_type or "", "usage limit")
    ends = reset_moment(info.resets_at)
    until = f"It resets at {moment_text(ends)}." if ends is not None else None
    if info.status == "rejected" and info.is_using_overage:
        return (EngineNotice(f"The {name} is reached; extra usage is used from now on", until, _WARNING),)
    if info.status == "rejected":
        return (EngineNotice(f"The {name} is reached", until, _ERROR),)
    if info.status == "allowed_warning":
        part = info.utilization or 0
        used = f"{round(part * 100)} % of the {name} is used" if 0 < part <= _FULL else f"The {name} is near"
        return (EngineNotice(used, until, _WARNING),)
    return ()


def _informational(line: wire.Informational) -> "Sequence[ClaudeEvent]":
    return _text_notice(line.content, _WARNING if line.level == "warning" or line.prevent_continuation else _INFO)


def _notification(line: wire.NotificationLine) -> "Sequence[ClaudeEvent]":
    return (
        _text_notice(line.text, _WARNING if line.priority in ("high", "immediate") else _INFO)
        if line.priority != "low"
        else ()
    )


def _denied(line: wire.PermissionDenied) -> "Sequence[ClaudeEvent]":
    server = server_tool(line.tool_name)
    name = f"{server[1]} ({server[0]})" if server else line.tool_name or "A tool"
    why = line.decision_reason or failure_in(line.message)
    return (EngineNotice(f"{one_line(name)} was refused without asking", sentence(why, _LONGEST) or None, _WARNING),)


def _hook(line: wire.HookResponse) -> "Sequence[ClaudeEvent]":
    """Return a notice for a hook that failed or printed something for the user; none for any other."""
    failed = line.outcome == "error" or bool(line.exit_code)
    value = _plain((line.stderr if failed else None) or line.stdout or line.output or (line.stderr or ""))
    if value.startswith("{"):
        value = "" if not failed else value  # instructions for the CLI
    if not failed and not value:
        return ()
    name = one_line(line.hook_name or line.hook_event or "", 80) or "A hook"
    code = f" with exit code {line.exit_code}" if line.exit_code else ""
    return (
        EngineNotice(
            f"The hook {name} failed{code}" if failed else f"Hook {name}", value or None, _WARNING if failed else _INFO
        ),
    )


def _servers(line: wire.Init) -> "Sequence[ClaudeEvent]":
    found: list[ClaudeEvent] = []
    for server in line.mcp_servers:
        if server.status in _SERVERS:
            problem, advice = _SERVERS[server.status]
            found.append(EngineNotice(f"The MCP server {one_line(server.name, 80)} {problem}", advice, _WARNING))
    for error in line.plugin_errors:
        name = one_line(text(error, "plugin") or "?", 80)
        found.append(
            EngineNotice(f"The plugin {name} has trouble", _plain(text(error, "message") or "") or None, _WARNING)
        )
    return found


def _refused(line: wire.RefusalLine) -> "Sequence[ClaudeEvent]":
    why = _plain(line.api_refusal_explanation or line.content)
    advice = "Put the request in other words, or choose another model."
    return (EngineNotice("The model declined to answer", f"{why} {advice}" if why else advice, _WARNING),)


def _fallback(line: wire.FallbackLine) -> "Sequence[ClaudeEvent]":
    if line.direction == "revert":
        return ()
    title = f"{line.original_model or 'The model'} declined to answer; {line.fallback_model or 'another one'} answers instead"
    return (EngineNotice(one_line(title), _plain(line.content) or None, _WARNING),)


def _sign_in(line: wire.AuthRequiredLine) -> "Sequence[ClaudeEvent]":
    return (SignInNeeded(_plain(line.content) or "You are not signed in to Claude"),)


def _signing_in(line: wire.AuthStatusLine) -> "Sequence[ClaudeEvent]":
    if line.error:
        return (EngineNotice("The sign-in failed", _plain(line.error), _ERROR),)
    return ()


def _plugin(line: wire.PluginInstall) -> "Sequence[ClaudeEvent]":
    if line.status != "failed":
        return ()
    return (
        EngineNotice(
            f"The plugin {one_line(line.name or '?', 80)} could not be installed",
            _plain(line.error or "") or None,
            _WARNING,
        ),
    )


def _result(line: wire.ResultLine) -> "Sequence[ClaudeEvent]":
    """What stopped the turn, where the stop reason does not have the limit."""
    if line.terminal_reason in ("max_turns", "budget_exhausted") or line.subtype in (
        "error_max_turns",
        "error_max_budget_usd",
    ):
        return _text_notice("\n".join(line.errors), _WARNING)
    return ()


def _text_notice(text_of_line: str, severity: v1.NoticeSeverity) -> "Sequence[ClaudeEvent]":
    """Return a text of the CLI as a notice: a short line is the title, of a longer text the first line."""
    text_of_line = _plain(text_of_line)
    if not text_of_line:
        return ()
    first, _, rest = text_of_line.partition("\n")
    short = sentence(first)
    return (EngineNotice(short, (text_of_line if short != first.strip() else rest.strip()) or None, severity),)


def _plain(text_of_line: str) -> str:
    text_of_line = prose(text_of_line).strip()
    return text_of_line if len(text_of_line) <= _LONGEST else text_of_line[: _LONGEST - 1] + "…"


_BY_LINE: Final[Mapping[type, Callable[[Any], "Sequence[ClaudeEvent]"]]] = {
    wire.ApiRetry: _retry,
    wire.AuthRequiredLine: _sign_in,
    wire.AuthStatusLine: _signing_in,
    wire.FallbackLine: _fallback,
    wire.HookResponse: _hook,
    wire.Informational: _informational,
    wire.Init: _servers,
    wire.NotificationLine: _notification,
    wire.PermissionDenied: _denied,
    wire.PluginInstall: _plugin,
    wire.RateLimit: _limit,
    wire.RefusalLine: _refused,
    wire.ResultLine: _result,
}
