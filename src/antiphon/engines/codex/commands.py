"""The slash commands of a session with Codex. Each is a request to the server; some begin a turn, others only print."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.process import CliRefused
from antiphon.engines.project import TRUST
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.base import Items

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.codex.server import CodexServer
    from antiphon.protocol.base import JsonObject

__all__ = ["AT_ONCE", "COMMANDS", "NEXT_TURN", "REPORTS", "run_command", "status_of"]

NEXT_TURN: Final = "the turn that starts now"
"""Stands for the id of a turn where the server does not send it."""

COMMANDS: Final = (
    v1.Command("review", "Review uncommitted changes, or what you name", v1.CommandInput("what to look at")),
    v1.Command("review-branch", "Review the changes since a branch", v1.CommandInput("branch")),
    v1.Command("review-commit", "Review one commit", v1.CommandInput("commit")),
    v1.Command("compact", "Go on with a summary of the session"),
    v1.Command("rename", "Give the session another title", v1.CommandInput("title")),
    v1.Command("archive", "Take the session off the list"),
    v1.Command("status", "Show the account, its limits and the settings"),
    v1.Command("mcp", "Show the MCP servers and their tools"),
    v1.Command("skills", "Show the skills there are"),
    TRUST,
)

AT_ONCE: Final = frozenset({"rename", "archive", "status", "mcp", "skills"})
"""Commands that begin no turn: only the response is waited for."""


async def run_command(turn: "AgentTurn", name: str, rest: str, server: "CodexServer", thread: str) -> str | None:
    """Run a command; return the id of the turn that it begins, if it begins one."""
    match name:
        case "review" | "review-branch" | "review-commit":
            target = _target(name, rest.strip())
            begun = await server.call("review/start", {"threadId": thread, "target": target}, wire.TurnStarted)
            return begun.turn.id if begun.turn is not None else begun.turn_id
        case "compact":
            await server.request("thread/compact/start", {"threadId": thread})
            return NEXT_TURN
        case "rename":
            title = _needed(name, rest)
            await server.request("thread/name/set", {"threadId": thread, "name": title})
            await turn.say(f"The session is called “{title}” now.")
        case "archive":
            await server.request("thread/archive", {"threadId": thread})
            await turn.say("The session is archived: it is off the list until you go on with it, or load it by its id.")
        case "status":
            await turn.say(await status_of(server, turn.session))
        case _:
            await turn.say(await REPORTS[name](server, thread))
    return None


def _target(name: str, rest: str) -> "JsonObject":
    match name:
        case "review-branch":
            return {"type": "baseBranch", "branch": _needed(name, rest)}
        case "review-commit":
            return {"type": "commit", "sha": _needed(name, rest)}
        case _:
            return {"type": "custom", "instructions": rest} if rest else {"type": "uncommittedChanges"}


def _needed(name: str, rest: str) -> str:
    if not rest.strip():
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"`/{name}` needs a word after it")
    return rest.strip()


# The output of `/status`, `/mcp` and `/skills`: responses of the server as Markdown.


class _Limits(msgspec.Struct, frozen=True, rename="camel"):
    rate_limits: wire.RateLimits | None = None


class _McpServer(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    tools: dict[str, msgspec.Raw] = {}
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


async def status_of(server: "CodexServer", session: "AgentSession") -> str:
    """Return the account, the settings of the session, and the limits of the account, as Markdown."""
    account = await server.call("account/read", {}, wire.AccountRead)
    lines = [f"- Account: {_account(account)}", f"- Session: `{session.id}`"]
    lines += [f"- {name}: {value}" for name, value in _settings(session).items()]
    try:
        limits = await server.call("account/rateLimits/read", {}, _Limits)
    except CliRefused:  # only accounts with a plan have limits
        return "\n".join(lines)
    found = limits.rate_limits
    windows = (found.primary, found.secondary) if found is not None else ()
    lines += [f"- {_window(window)}" for window in windows if window is not None]
    return "\n".join(lines)


def _settings(session: "AgentSession") -> dict[str, str]:
    """Return the name of each setting, and of its current value."""
    found: dict[str, str] = {}
    for option in session.config_options:
        if isinstance(option, v1.SelectConfig):
            names = {each.value: each.name for each in option.options if isinstance(each, v1.SelectOption)}
            found[option.name] = names.get(option.current_value, option.current_value)
    return found


def _account(read: wire.AccountRead) -> str:
    account = read.account
    if account is None:
        return "not signed in" if read.requires_openai_auth else "none is needed"
    plan = f" ({account.plan_type})" if account.plan_type else ""
    return f"{account.email or account.type}{plan}"


def _window(window: wire.RateLimitWindow) -> str:
    minutes = window.window_duration_mins
    span = f"{minutes // 60} hours" if minutes and minutes >= 60 else f"{minutes} minutes" if minutes else "Limit"
    until = ""
    with suppress(OverflowError, ValueError, OSError):  # not a time that a calendar has
        if window.resets_at is not None:
            until = f", resets {datetime.fromtimestamp(window.resets_at, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{span}: {window.used_percent:g} % used{until}"


async def _mcp(server: "CodexServer", thread: str) -> str:
    page = await server.call("mcpServerStatus/list", {"threadId": thread, "limit": 100}, _McpPage)
    if not page.data:
        return "There are no MCP servers."
    return "\n".join(
        f"- **{each.name}**: {', '.join(f'`{tool}`' for tool in each.tools) or 'no tools'}"
        + (" (not signed in)" if each.auth_status == "notLoggedIn" else "")
        for each in page.data
    )


async def _skills(server: "CodexServer", thread: str) -> str:
    opened = await server.call("thread/read", {"threadId": thread}, wire.ThreadOpened)
    page = await server.call("skills/list", {"cwds": [opened.thread.cwd] if opened.thread.cwd else []}, _SkillPage)
    found = [skill for folder in page.data for skill in folder.skills if skill.enabled]
    if not found:
        return "There are no skills."
    return "\n".join(f"- `${each.name}`: {each.short_description or each.description}" for each in found)


REPORTS: "Final[dict[str, Callable[[CodexServer, str], Awaitable[str]]]]" = {
    "mcp": _mcp,
    "skills": _skills,
}
"""Command → the function that makes its output."""
