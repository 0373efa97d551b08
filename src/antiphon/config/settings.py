"""The settings that hold in a directory: the user's config file, and the project's as far as it is trusted.

Anything wrong with either is told and makes the rest stricter, never looser: see `Loaded`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from antiphon.config.files import ConfigFile, project_file, read_file, user_file
from antiphon.config.merging import merge, only_users, waiting
from antiphon.config.reading import Part, Problem, read
from antiphon.config.shapes import McpServer, OwnAgent, RuleText, Settings, Source
from antiphon.errors import Advice

__all__ = ["Loaded", "McpServer", "OwnAgent", "RuleText", "Settings", "Sources", "Trusted", "find", "load", "settle"]

Trusted: TypeAlias = Callable[[Path, str], bool]
"""Whether the user trusts this text (by its digest) in this project's directory."""

RuleProblem: TypeAlias = Callable[[str], str | None]
"""What is wrong with a rule, in a sentence; None if it can be used. The policy knows, this room does not."""


class Sources(msgspec.Struct, frozen=True):
    """The files that there are, read once: what is asked about, trusted and used is the same text."""

    user: ConfigFile | None = None
    project: ConfigFile | None = None

    @property
    def directory(self) -> Path | None:
        """The project's directory: what is trusted, together with the digest of its file."""
        return None if self.project is None else self.project.path.parent.parent


class Loaded(msgspec.Struct, frozen=True):
    """Settings, and what has to be said about them."""

    settings: Settings
    problems: tuple[Advice, ...] = ()
    """What was not understood: file, line, sentence and hint."""
    policy_broken: bool = False
    """Whether the rules may be other than the user meant: then every call is asked about, and nothing remembered counts."""
    notes: tuple[Advice, ...] = ()
    """What does not count yet, and how it would."""
    sources: Sources = Sources()


def find(cwd: str | os.PathLike[str]) -> Sources:
    """Read the files that matter in a directory."""
    return Sources(read_file(user_file()), project_file(cwd))


def load(cwd: str | os.PathLike[str], trusted: Trusted, *, rule_problem: RuleProblem = lambda _: None) -> Loaded:
    """The settings that hold in a directory. Who has to wait for the answer about trust uses `find` and `settle`."""
    sources = find(cwd)
    directory, project = sources.directory, sources.project
    trust = (
        directory is not None and project is not None and bool(project.digest) and trusted(directory, project.digest)
    )
    return settle(sources, trusted=trust, rule_problem=rule_problem)


def settle(sources: Sources, *, trusted: bool, rule_problem: RuleProblem = lambda _: None) -> Loaded:
    """The settings that follow from the files. Pure."""
    files: dict[Source, ConfigFile | None] = {"user config": sources.user, "project config": sources.project}
    parts = {source: Part() if file is None else read(file.text) for source, file in files.items()}
    problems: list[Advice] = []
    broken = False
    for source, file in files.items():
        if file is None:
            continue
        if file.trouble is not None:
            problems.append(
                Advice(
                    f"{file.path} cannot be read: {file.trouble}", "correct it; until then every call is asked about"
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


def _bad_rules(part: Part, rule_problem: RuleProblem) -> list[Problem]:
    return [
        Problem(line, f"`{'.'.join(path)}` has a rule that cannot be used: {wrong}", "correct it, or take it out", True)
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


def _of_programs(sources: Sources, project: Part) -> tuple[Advice, ...]:
    """An engine is asked for by editors, which ask nobody for trust: which program it runs is the user's to say."""
    keys = [".".join(path) for path in project.values if only_users(path)]
    if not keys or sources.project is None:
        return ()
    listed = ", ".join(f"`{key}`" for key in keys)
    return (Advice(f"{sources.project.path} sets {listed}, which counts only in your own config file"),)
