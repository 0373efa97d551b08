"""The settings that hold in a directory, as every command finds them: both config files, trust from the store, rules checked."""

import os
import sys
from typing import TYPE_CHECKING

from antiphon.cli.screen import plain
from antiphon.config.settings import Loaded, Sources, find, settle

if TYPE_CHECKING:
    from antiphon.store.database import Database

__all__ = ["rule_problem", "settings_here", "tell"]


async def settings_here(cwd: str | os.PathLike[str], database: "Database | None" = None) -> Loaded:
    """The settings that hold in a directory. The store is only opened if there is a project to trust."""
    import msgspec

    from antiphon.store.errors import StoreError

    sources = find(cwd)
    try:
        trusted, trouble = await _is_trusted(sources, database), None
    except StoreError as error:
        trusted, trouble = False, str(error)
    loaded = settle(sources, trusted=trusted, rule_problem=rule_problem)
    return loaded if trouble is None else msgspec.structs.replace(loaded, problems=(*loaded.problems, trouble))


def tell(loaded: Loaded) -> None:
    """Say on stderr what is wrong with the config files, and what does not count yet."""
    for kind, texts in (("warning", loaded.problems), ("note", loaded.notes)):
        for text in texts:
            sys.stderr.write(f"{kind}: {plain(text)}\n")


async def _is_trusted(sources: Sources, database: "Database | None") -> bool:
    directory, project = sources.directory, sources.project
    if directory is None or project is None or not project.digest:
        return False
    from antiphon.store.schema import open_database
    from antiphon.store.trust import TrustStore

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
