"""What `/status`, `/mcp` and `/skills` say: answers of the server as Markdown."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.server import ServerRefused
from antiphon.protocol import v1
from antiphon.protocol.base import Items

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.session import Session
    from antiphon.engines.codex.server import Server

__all__ = ["REPORTS", "status_of"]


class _Limits(msgspec.Struct, frozen=True, rename="camel"):
    rate_limits: wire.RateLimits | None = None


class _McpServer(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    tools: dict[str, Any] = {}
    auth_status: str | None = None


class _McpPage(msgspec.Struct, frozen=True):
    data: Items[_McpServer] = msgspec.field(default_factory=list)


class _Skill(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    description: str = ""
    short_description: str | None = None
    enabled: bool = True


class _SkillFolder(msgspec.Struct, frozen=True):
    skills: Items[_Skill] = msgspec.field(default_factory=list)


class _SkillPage(msgspec.Struct, frozen=True):
    data: Items[_SkillFolder] = msgspec.field(default_factory=list)


async def status_of(server: "Server", session: "Session") -> str:
    """The account, the settings of the session, and the limits of the account."""
    account = await server.call("account/read", {}, wire.AccountRead)
    lines = [f"- Account: {_account(account)}", f"- Session: `{session.id}`"]
    lines += [f"- {name}: {value}" for name, value in _settings(session).items()]
    try:
        limits = await server.call("account/rateLimits/read", {}, _Limits)
    except ServerRefused:  # only accounts with a plan have limits
        return "\n".join(lines)
    found = limits.rate_limits
    windows = (found.primary, found.secondary) if found is not None else ()
    lines += [f"- {_window(window)}" for window in windows if window is not None]
    return "\n".join(lines)


def _settings(session: "Session") -> dict[str, str]:
    """The name of each setting, and of what is chosen in it."""
    found: dict[str, str] = {}
    for option in session.config_options:
        if isinstance(option, v1.SelectConfig):
            names = {each.value: each.name for each in option.options if isinstance(each, v1.SelectOption)}
            found[option.name] = names.get(option.current_value, option.current_value)
    return found


def _account(read: wire.AccountRead) -> str:
    account = read.account
    if account is None:
        return "nobody is signed in" if read.requires_openai_auth else "none is needed"
    plan = f" ({account.plan_type})" if account.plan_type else ""
    return f"{account.email or account.type}{plan}"


def _window(window: wire.RateLimitWindow) -> str:
    minutes = window.window_duration_mins
    span = f"{minutes // 60} hours" if minutes and minutes >= 60 else f"{minutes} minutes" if minutes else "Limit"
    until = ""
    with suppress(OverflowError, ValueError, OSError):  # no time that there is
        if window.resets_at is not None:
            until = f", resets {datetime.fromtimestamp(window.resets_at, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{span}: {window.used_percent:g} % used{until}"


async def _mcp(server: "Server", thread: str) -> str:
    page = await server.call("mcpServerStatus/list", {"threadId": thread, "limit": 100}, _McpPage)
    if not page.data:
        return "There are no MCP servers."
    return "\n".join(
        f"- **{each.name}**: {', '.join(f'`{tool}`' for tool in each.tools) or 'no tools'}"
        + (" (not signed in)" if each.auth_status == "notLoggedIn" else "")
        for each in page.data
    )


async def _skills(server: "Server", thread: str) -> str:
    opened = await server.call("thread/read", {"threadId": thread}, wire.ThreadOpened)
    page = await server.call("skills/list", {"cwds": [opened.thread.cwd] if opened.thread.cwd else []}, _SkillPage)
    found = [skill for folder in page.data for skill in folder.skills if skill.enabled]
    if not found:
        return "There are no skills."
    return "\n".join(f"- `${each.name}`: {each.short_description or each.description}" for each in found)


REPORTS: "Final[dict[str, Callable[[Server, str], Awaitable[str]]]]" = {
    "mcp": _mcp,
    "skills": _skills,
}
"""The command → what it says."""
