"""What the user should know besides the session."""

from typing import Any

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.events import EngineNotice, SignInNeeded
from antiphon.engines.claude.translate.notices import notices_of
from antiphon.protocol import v1
from tests.rows import each_row

INFO, WARNING, ERROR = v1.NoticeSeverity.INFO, v1.NoticeSeverity.WARNING, v1.NoticeSeverity.ERROR


def limit(**fields: Any) -> wire.RateLimit:
    return wire.RateLimit(rate_limit_info=wire.RateLimitInfo(**fields))


NOTICES = [
    (wire.ApiRetry(attempt=1, max_retries=10, retry_delay_ms=2000, error_status=529, error="overloaded"),
     EngineNotice("Claude is overloaded, retrying in 2 s (1 of 10)", None, WARNING)),
    (wire.ApiRetry(attempt=2, max_retries=2, retry_delay_ms=540, error="unknown"),
     EngineNotice("No connection to Claude, retrying in 1 s (2 of 2)", None, WARNING)),
    (wire.ApiRetry(error_status=418, error="unknown"), EngineNotice("Claude answered with an error (418), retrying", None, WARNING)),
    (limit(status="allowed_warning", rate_limit_type="five_hour", utilization=0.91, resets_at=1_760_000_000),
     EngineNotice("91 % of the 5-hour limit is used", "It resets at 2025-10-09 08:53 UTC.", WARNING)),
    (limit(status="allowed_warning"), EngineNotice("The usage limit is near", None, WARNING)),
    (limit(status="rejected", rate_limit_type="seven_day"), EngineNotice("The weekly limit is reached", None, ERROR)),
    (limit(status="rejected", is_using_overage=True),
     EngineNotice("The usage limit is reached; extra usage is used from now on", None, WARNING)),
    (wire.Informational(content="Continuing once", level="notice"), EngineNotice("Continuing once", None, INFO)),
    (wire.Informational(content="Careful\nmore of it", level="warning"), EngineNotice("Careful", "more of it", WARNING)),
    (wire.NotificationLine(text="Look", priority="high"), EngineNotice("Look", None, WARNING)),
    (wire.PermissionDenied(tool_name="Bash", message="Needs approval. IMPORTANT: You *may* try others."),
     EngineNotice("Bash was refused without asking", "Needs approval.", WARNING)),
    (wire.PermissionDenied(tool_name="mcp__s__t", decision_reason="A rule says so"),
     EngineNotice("t (s) was refused without asking", "A rule says so", WARNING)),
    (wire.HookResponse(hook_name="SessionStart:startup", stdout="Welcome\n", exit_code=0),
     EngineNotice("Hook SessionStart:startup", "Welcome", INFO)),
    (wire.HookResponse(hook_name="Stop", stderr="boom", exit_code=2), EngineNotice("The hook Stop failed with exit code 2", "boom", WARNING)),
    (wire.HookResponse(hook_name="Stop", outcome="error"), EngineNotice("The hook Stop failed", None, WARNING)),
    (wire.Init(mcp_servers=[wire.McpServerStatus(name="good", status="connected"), wire.McpServerStatus(name="bad", status="failed")]),
     EngineNotice("The MCP server bad could not be started", "Its tools are missing. Check its command or address.", WARNING)),
    (wire.Init(mcp_servers=[wire.McpServerStatus(name="shy", status="needs-auth")]),
     EngineNotice("The MCP server shy wants you to sign in", "Its tools are missing until then. Sign in with /mcp in a terminal.", WARNING)),
    (wire.Init(plugin_errors=[{"plugin": "p", "message": "broken"}]), EngineNotice("The plugin p has trouble", "broken", WARNING)),
    (wire.RefusalLine(original_model="m"),
     EngineNotice("The model declined to answer", "Put the request in other words, or choose another model.", WARNING)),
    (wire.FallbackLine(original_model="a", fallback_model="b", direction="retry"),
     EngineNotice("a declined to answer; b answers instead", None, WARNING)),
    (wire.AuthRequiredLine(content="Please run /login"), SignInNeeded("Please run /login")),
    (wire.AuthStatusLine(error="no such account"), EngineNotice("The sign-in failed", "no such account", ERROR)),
    (wire.PluginInstall(status="failed", name="p", error="offline"), EngineNotice("The plugin p could not be installed", "offline", WARNING)),
    (wire.ResultLine(subtype="error_max_turns", errors=["Reached maximum number of turns (1)"]),
     EngineNotice("Reached maximum number of turns (1)", None, WARNING)),
]  # fmt: skip

QUIET = [
    limit(status="allowed", resets_at=1_760_000_000),
    wire.Informational(content="  "),
    wire.NotificationLine(text="by the way", priority="low"),
    wire.HookResponse(hook_name="Stop", stdout="", exit_code=0),
    wire.HookResponse(hook_name="Stop", stdout='{"continue": true}', exit_code=0),
    wire.Init(
        mcp_servers=[
            wire.McpServerStatus(name="good", status="connected"),
            wire.McpServerStatus(name="soon", status="pending"),
        ]
    ),
    wire.FallbackLine(original_model="a", fallback_model="b", direction="revert"),
    wire.AuthStatusLine(is_authenticating=True, output=["…"]),
    wire.PluginInstall(status="started", name="p"),
    wire.Status(status="requesting"),
    wire.ResultLine(subtype="success", result="Done"),
    wire.UnknownLine("system", "of tomorrow"),
    None,
]


@each_row(("line", "notice"), NOTICES, ids=[type(line).__name__ for line, _ in NOTICES])
def test_the_user_gets_a_notice(line: object, notice: object) -> None:
    assert list(notices_of(line)) == [notice]


@each_row("line", QUIET, ids=[type(line).__name__ for line in QUIET])
def test_the_user_is_left_in_peace(line: object) -> None:
    assert list(notices_of(line)) == []


def test_a_long_message_keeps_its_beginning_as_the_title() -> None:
    (notice,) = notices_of(wire.Informational(content="word " * 1000))
    assert isinstance(notice, EngineNotice) and notice.description is not None
    assert len(notice.title) <= 200 and len(notice.description) <= 2000


def test_a_hook_that_prints_colours_is_read_without_them() -> None:
    (notice,) = notices_of(wire.HookResponse(hook_name="h", stdout="\x1b[31mred\x1b[0m"))
    assert notice == EngineNotice("Hook h", "red", INFO)
