"""The settings that hold in a directory: the user's config file, and the project's as far as it is trusted.

Anything wrong with either is reported and makes the rest stricter, never looser: see `Loaded`.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

import msgspec

from antiphon.config.reader import ConfigFile, ConfigProblem, ConfigValues, project_file, read, read_file, user_file
from antiphon.config.shapes import ChatConfig, DuetConfig, McpServerConfig, OwnAgent, RuleText, Settings, Source
from antiphon.errors import Advice

__all__ = [
    "STRICTER",
    "Loaded",
    "McpServerConfig",
    "OwnAgent",
    "RuleText",
    "Settings",
    "Sources",
    "Trusted",
    "agents_of",
    "chat_of",
    "duet_of",
    "find",
    "load",
    "mcp_of",
    "merge",
    "only_users",
    "settle",
    "waiting",
]

Trusted: TypeAlias = Callable[[Path, str], bool]
"""Whether the user trusts this text (by its digest) in this project's directory."""

RuleProblem: TypeAlias = Callable[[str], str | None]
"""What is wrong with a rule, in a sentence; None if it can be used. The caller passes it, because `config` does not import `policy`."""


class Sources(msgspec.Struct, frozen=True):
    """The config files, read once, so that what is trusted is what is used."""

    user: ConfigFile | None = None
    project: ConfigFile | None = None

    @property
    def directory(self) -> Path | None:
        """The project's directory: what is trusted, together with the digest of its file."""
        return None if self.project is None else self.project.path.parent.parent


class Loaded(msgspec.Struct, frozen=True):
    """Settings, with their problems and notes."""

    settings: Settings
    problems: tuple[Advice, ...] = ()
    """What was not understood: file, line, sentence and hint."""
    policy_broken: bool = False
    """Whether the rules may be other than the user meant: then the user is asked about every call, and no remembered answer counts."""
    notes: tuple[Advice, ...] = ()
    """What does not count yet, and how it would."""
    sources: Sources = Sources()


def find(cwd: str | os.PathLike[str]) -> Sources:
    """Read the files that matter in a directory."""
    return Sources(read_file(user_file()), project_file(cwd))


def load(cwd: str | os.PathLike[str], trusted: Trusted, *, rule_problem: RuleProblem = lambda _: None) -> Loaded:
    """Return the settings in a directory. Use `find` and `settle` if the answer about trust comes later."""
    sources = find(cwd)
    directory, project = sources.directory, sources.project
    trust = (
        directory is not None and project is not None and bool(project.digest) and trusted(directory, project.digest)
    )
    return settle(sources, trusted=trust, rule_problem=rule_problem)


def settle(sources: Sources, *, trusted: bool, rule_problem: RuleProblem = lambda _: None) -> Loaded:
    """Return the settings that follow from the files. Pure."""
    files: dict[Source, ConfigFile | None] = {"user config": sources.user, "project config": sources.project}
    parts = {source: ConfigValues() if file is None else read(file.text) for source, file in files.items()}
    problems: list[Advice] = []
    broken = False
    for source, file in files.items():
        if file is None:
            continue
        if file.trouble is not None:
            problems.append(
                Advice(
                    f"{file.path} cannot be read: {file.trouble}",
                    "correct it; until then you are asked about every call",
                )
            )
            broken = True
        part = parts[source]
        found = [*part.problems, *_bad_rules(part, rule_problem)]
        problems += [problem.shown(str(file.path)) for problem in found]
        broken = broken or any(problem.policy for problem in found)

    def where(source: Source, line: int) -> str:
        file = files[source]
        return "" if file is None else f"{file.path}, line {line}"

    user, project = parts["user config"], parts["project config"]
    return Loaded(
        merge(user, project, trusted=trusted, broken=broken, where=where),
        tuple(problems),
        broken,
        (*(() if trusted else _notes(sources, waiting(user, project))), *_of_programs(sources, project)),
        sources,
    )


def _bad_rules(part: ConfigValues, rule_problem: RuleProblem) -> list[ConfigProblem]:
    return [
        ConfigProblem(
            line, f"`{'.'.join(path)}` has a rule that cannot be used: {wrong}", "correct it, or take it out", True
        )
        for (path, rule), line in part.lines.items()
        if (wrong := rule_problem(rule)) is not None
    ]


def _notes(sources: Sources, keys: list[str]) -> tuple[Advice, ...]:
    if not keys or sources.project is None:
        return ()
    listed = ", ".join(f"`{key}`" for key in keys)
    return (
        Advice(
            f"{sources.project.path} also sets {listed}, which does not count because the project is not trusted",
            "look at the file; if you agree with it, `antiphon policy trust`",
        ),
    )


def _of_programs(sources: Sources, project: ConfigValues) -> tuple[Advice, ...]:
    """Return problems with programs in a project's file: only the user's own file may name them."""
    keys = [".".join(path) for path in project.values if only_users(path)]
    if not keys or sources.project is None:
        return ()
    listed = ", ".join(f"`{key}`" for key in keys)
    return (Advice(f"{sources.project.path} sets {listed}, which counts only in your own config file"),)


# --- merging the user's file and the project's. Pure -----------------------------------------------------------------
# A project comes from somewhere else, often with code that was never read. Until it is trusted only that counts which tightens: `deny`,
# `ask`, a stricter permission mode, `on_ask` that denies. Agents, MCP servers, models, modes and `allow` wait.

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
    user: ConfigValues,
    project: ConfigValues,
    *,
    trusted: bool,
    broken: bool,
    where: Callable[[Source, int], str] = lambda *_: "",
) -> Settings:
    """Return the merged settings. `broken`: a file has errors, so neither may allow anything."""

    def rules(list_name: str, *, loosens: bool = False) -> tuple[RuleText, ...]:
        if loosens and broken:
            return ()
        both: list[tuple[Source, ConfigValues]] = [("user config", user)]
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
        duet=duet_of(user, project if trusted else ConfigValues()),
        chat=chat_of(user),
    )


def waiting(user: ConfigValues, project: ConfigValues) -> list[str]:
    """Return the keys of an untrusted project that are ignored until it is trusted."""
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
    """Whether a key is valid in the user's own file only, because it names a program to run, or is about the user's terminal."""
    return path[0] in ("engines", "chat") or path in _PROGRAMS


def duet_of(user: ConfigValues, project: ConfigValues) -> DuetConfig:
    """Return the settings of the joint agent, the project's before the user's."""
    given = {path[1]: value for path, value in user.values.items() if path[0] == "duet"}
    given |= {path[1]: value for path, value in project.values.items() if path[0] == "duet" and not only_users(path)}
    return msgspec.convert(given, DuetConfig)


def chat_of(user: ConfigValues) -> ChatConfig:
    """Return the settings of the chat."""
    return msgspec.convert({path[1]: value for path, value in user.values.items() if path[0] == "chat"}, ChatConfig)


def agents_of(part: ConfigValues) -> dict[str, OwnAgent]:
    """Return the agents of a file that have a command."""
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


def mcp_of(part: ConfigValues) -> dict[str, McpServerConfig]:
    """Return the MCP servers of a file that have a command or an address."""
    found = {}
    for name in part.names("mcp"):
        command, url = part.texts("mcp", name, "command"), part.text("mcp", name, "url")
        kind = part.text("mcp", name, "type") or ("stdio" if url is None else "http")
        if command if kind == "stdio" else url:
            found[name] = McpServerConfig(
                name,
                cast("Literal['stdio', 'http', 'sse']", kind),
                command if kind == "stdio" else (),
                part.table("mcp", name, "env"),
                url if kind != "stdio" else None,
                part.table("mcp", name, "headers"),
            )
    return found


def _permission_mode(user: ConfigValues, project: ConfigValues, trusted: bool, broken: bool) -> str:
    mode = user.text("policy", "mode") or "default"
    theirs = project.text("policy", "mode")
    if theirs is not None and (trusted or theirs in STRICTER[mode]):
        mode = theirs
    return mode if not broken or mode in STRICTER["default"] else "default"


_STRICTNESS = ("allow", "deny", "fail")


def _on_ask(user: ConfigValues, project: ConfigValues, trusted: bool, broken: bool) -> str:
    answer = user.text("policy", "on_ask") or "deny"
    theirs = project.text("policy", "on_ask")
    if theirs is not None and (trusted or _STRICTNESS.index(theirs) > _STRICTNESS.index(answer)):
        answer = theirs
    return "deny" if broken and answer == "allow" else answer
