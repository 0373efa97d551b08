"""The user's file and the project's, put together. Pure: whether the project is trusted is told, not asked.

A project comes from somewhere else, often with code that was never read. Until it is trusted only that counts which tightens: `deny`,
`ask`, a stricter permission mode, `on_ask` that denies. Agents, MCP servers, models, modes and `allow` wait.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, cast

import msgspec

from antiphon.config.reading import Part
from antiphon.config.shapes import Duet, McpServer, OwnAgent, RuleText, Settings, Source

__all__ = ["STRICTER", "agents_of", "duet_of", "mcp_of", "merge", "only_users", "waiting"]

STRICTER: Final[Mapping[str, frozenset[str]]] = {
    "plan": frozenset({"plan"}),
    "dontAsk": frozenset({"dontAsk"}),
    "default": frozenset({"default", "plan", "dontAsk"}),
    "acceptEdits": frozenset({"acceptEdits", "default", "plan", "dontAsk"}),
    "bypassPermissions": frozenset({"bypassPermissions", "acceptEdits", "default", "plan", "dontAsk"}),
}
"""Mode → those that allow nothing which it would not. `plan` asks where `dontAsk` denies and denies where rules allow: neither is stricter."""

_TIGHTENING: Final = {("policy", "deny"), ("policy", "ask")}
_PROGRAMS: Final = {("duet", "engines"), ("duet", "tasks")}


def merge(
    user: Part, project: Part, *, trusted: bool, broken: bool, where: Callable[[Source, int], str] = lambda *_: ""
) -> Settings:
    """The settings that hold. `broken`: a file was not understood, so nothing may be allowed by either."""

    def rules(list_name: str, *, loosens: bool = False) -> tuple[RuleText, ...]:
        if loosens and broken:
            return ()
        both: list[tuple[Source, Part]] = [("user config", user)]
        if trusted or not loosens:
            both.append(("project config", project))
        path = ("policy", list_name)
        return tuple(
            RuleText(text, source, where(source, part.lines[path, text]))
            for source, part in both
            for text in part.texts(*path)
        )

    def value(*path: str) -> str | None:
        return (project.text(*path) if trusted else None) or user.text(*path)

    return Settings(
        agent=value("agent") or "",
        mode=value("mode"),
        model=value("model"),
        allow=rules("allow", loosens=True),
        deny=rules("deny"),
        ask=rules("ask"),
        permission_mode=_permission_mode(user, project, trusted, broken),
        on_ask=_on_ask(user, project, trusted, broken),
        agents=agents_of(user) | (agents_of(project) if trusted else {}),
        mcp=mcp_of(user) | (mcp_of(project) if trusted else {}),
        duet=duet_of(user, project if trusted else Part()),
    )


def waiting(user: Part, project: Part) -> list[str]:
    """The keys of an untrusted project that do not count until it is trusted."""
    held = []
    for path in project.values:
        if path in _TIGHTENING or only_users(path):  # trust changes nothing for either
            continue
        if path == ("policy", "mode") and project.text(*path) in STRICTER[user.text(*path) or "default"]:
            continue
        if path == ("policy", "on_ask") and project.text(*path) != "allow":
            continue
        held.append(".".join(path[:2]))
    return list(dict.fromkeys(held))


def only_users(path: tuple[str, ...]) -> bool:
    """Whether a key counts in the user's own file alone: it names a program, and editors that start an engine ask nobody for trust."""
    return path[0] == "engines" or path in _PROGRAMS


def duet_of(user: Part, project: Part) -> Duet:
    """What the two files say about the agent with every engine behind it, the project before the user."""
    said = {path[1]: value for path, value in user.values.items() if path[0] == "duet"}
    said |= {path[1]: value for path, value in project.values.items() if path[0] == "duet" and not only_users(path)}
    return msgspec.convert(said, Duet)


def agents_of(part: Part) -> dict[str, OwnAgent]:
    """The agents that a file describes, those that have a command."""
    return {
        name: OwnAgent(
            part.texts("agents", name, "command"),
            part.table("agents", name, "env"),
            part.text("agents", name, "cwd"),
            part.text("agents", name, "title"),
        )
        for name in part.names("agents")
        if part.texts("agents", name, "command")
    }


def mcp_of(part: Part) -> dict[str, McpServer]:
    """The MCP servers that a file describes, those that can be reached."""
    found = {}
    for name in part.names("mcp"):
        command, url = part.texts("mcp", name, "command"), part.text("mcp", name, "url")
        kind = part.text("mcp", name, "type") or ("stdio" if url is None else "http")
        if command if kind == "stdio" else url:
            found[name] = McpServer(
                name,
                cast("Literal['stdio', 'http', 'sse']", kind),
                command if kind == "stdio" else (),
                part.table("mcp", name, "env"),
                url if kind != "stdio" else None,
                part.table("mcp", name, "headers"),
            )
    return found


def _permission_mode(user: Part, project: Part, trusted: bool, broken: bool) -> str:
    mode = user.text("policy", "mode") or "default"
    theirs = project.text("policy", "mode")
    if theirs is not None and (trusted or theirs in STRICTER[mode]):
        mode = theirs
    return mode if not broken or mode in STRICTER["default"] else "default"


_STRICTNESS = ("allow", "deny", "fail")


def _on_ask(user: Part, project: Part, trusted: bool, broken: bool) -> str:
    answer = user.text("policy", "on_ask") or "deny"
    theirs = project.text("policy", "on_ask")
    if theirs is not None and (trusted or _STRICTNESS.index(theirs) > _STRICTNESS.index(answer)):
        answer = theirs
    return "deny" if broken and answer == "allow" else answer
