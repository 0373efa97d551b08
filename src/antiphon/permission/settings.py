"""The settings of a directory, as every command loads them: both config files, trust from the store, rules checked."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.config.settings import Loaded, Sources, find, settle
from antiphon.errors import AcpError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.config.shapes import RuleText, Settings
    from antiphon.policy import Rule, Rules
    from antiphon.store.database import Database

__all__ = ["BROKEN", "PolicyFileError", "rule_problem", "rules_in", "settings_here", "with_policy"]

BROKEN: Final = "The configuration could not be read, so everything is asked."
"""Why everything is asked where a config file makes no sense."""


async def settings_here(cwd: str | os.PathLike[str], database: "Database | None" = None) -> Loaded:
    """The settings that hold in a directory. The store is only opened if there is a project to trust."""
    import msgspec

    from antiphon.store.errors import StoreError

    sources = find(cwd)
    try:
        trusted, trouble = await _is_trusted(sources, database), None
    except StoreError as error:
        trusted, trouble = False, error.advice
    loaded = settle(sources, trusted=trusted, rule_problem=rule_problem)
    return loaded if trouble is None else msgspec.structs.replace(loaded, problems=(*loaded.problems, trouble))


class PolicyFileError(AcpError):
    """A policy file cannot be read, or says something else than a policy."""


def with_policy(loaded: Loaded, path: str) -> Loaded:
    """Return the settings with the policy of one more file: its rules beside the others, its mode and its `on_ask` before theirs.

    Raises:
        PolicyFileError: the file cannot be read, has mistakes, or sets anything but a policy.
    """
    import msgspec

    from antiphon.config.reader import read, read_file
    from antiphon.config.shapes import RuleText

    file = read_file(Path(path))
    if file is None or file.trouble is not None:
        why = "it does not exist" if file is None else file.trouble
        raise PolicyFileError(f"cannot read `{path}`: {why}", hint="check the path")
    found = read(file.text)
    if found.problems:
        advice = found.problems[0].shown(path)
        raise PolicyFileError(advice.sentence, hint=advice.hint)
    others = [".".join(key) for key in found.values if key[0] != "policy"]
    if others or not found.values:
        what = f"it sets `{others[0]}`" if others else "it is empty"
        raise PolicyFileError(
            f"`{path}` is not a policy: {what}", hint="a policy file has a table `[policy]` and no other"
        )

    def rules(kind: str) -> "tuple[RuleText, ...]":
        texts = found.texts("policy", kind)
        for text in texts:
            if (problem := rule_problem(text)) is not None:
                raise PolicyFileError(f"`{path}`: {problem}", hint="correct the rule")
        return tuple(
            RuleText(text, "policy file", f"{path}, line {found.lines.get((('policy', kind), text), 1)}")
            for text in texts
        )

    settings = loaded.settings
    return msgspec.structs.replace(
        loaded,
        settings=msgspec.structs.replace(
            settings,
            allow=(*rules("allow"), *settings.allow),
            deny=(*rules("deny"), *settings.deny),
            ask=(*rules("ask"), *settings.ask),
            permission_mode=found.text("policy", "mode") or settings.permission_mode,
            on_ask=found.text("policy", "on_ask") or settings.on_ask,
        ),
    )


async def _is_trusted(sources: Sources, database: "Database | None") -> bool:
    directory, project = sources.directory, sources.project
    if directory is None or project is None or not project.digest:
        return False
    from antiphon.store.decisions import TrustStore
    from antiphon.store.schema import open_database

    if database is not None:
        return await TrustStore(database).trusted(str(directory), project.digest)
    async with open_database() as ours:
        return await TrustStore(ours).trusted(str(directory), project.digest)


def rule_problem(text: str) -> str | None:
    """What is wrong with a rule of the policy, in a sentence; None if it can be used."""
    from antiphon.policy import Rule, RuleError

    try:
        Rule.parse(text)
    except RuleError as error:
        return str(error).partition("\n")[0]
    return None


def rules_in(settings: "Settings") -> "Rules":
    """The rules of the files."""
    from antiphon.policy import Rules

    return Rules(_usable(settings.allow), _usable(settings.deny), _usable(settings.ask))


def _usable(rules: "Iterable[RuleText]") -> "tuple[Rule, ...]":
    """The texts that are valid rules. An invalid one has already marked the policy as broken."""
    from antiphon.policy import Rule, RuleError

    found = []
    for rule in rules:
        with suppress(RuleError):
            found.append(Rule.parse(rule.text, rule.source))
    return tuple(found)
