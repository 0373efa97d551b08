"""Whether the user trusts what a project gives to an engine: the files on this machine, compared with what the store has."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.config.project_files import ANY, CLAUDE, CODEX, ProjectFile, ProjectFileKinds, project_files, untrusted
from antiphon.config.settings import find, settle
from antiphon.errors import AcpError, Advice

if TYPE_CHECKING:
    from antiphon.store.database import Database

__all__ = ["NothingToTrust", "ProjectTrust", "left_out", "look", "may_read", "trust_project", "trusted_text"]

SHOWN: Final = 8
"""Files that a notice names. The rest is counted."""


class NothingToTrust(AcpError):
    """A directory has no file that trust would change anything about."""


class ProjectTrust(msgspec.Struct, frozen=True):
    """What an engine would read from a project, and what of it the user has not trusted as it is."""

    files: tuple[ProjectFile, ...] = ()
    waiting: tuple[str, ...] = ()
    """Paths that are not trusted, or not as they are now."""
    changed: tuple[str, ...] = ()
    """Untrusted files that were trusted with other content."""
    trouble: str = ""
    """Why the store could not be asked. Then nothing is trusted."""

    @property
    def trusted(self) -> bool:
        """Whether there is something, and all of it is trusted."""
        return bool(self.files) and not self.waiting


async def look(
    family: ProjectFileKinds, directories: Sequence[str], database: "Database | None" = None
) -> ProjectTrust:
    """Look what an engine would read for a session in these directories. The store is only opened where there is something."""
    from antiphon.store.errors import StoreError

    found = await asyncio.to_thread(project_files, family, directories)
    if not found:
        return ProjectTrust()
    try:
        known = await _digests(database)
    except StoreError as error:
        return ProjectTrust(tuple(found), tuple(file.path for file in found), (), str(error))
    waiting = [file.path for file in untrusted(found, known)]
    return ProjectTrust(tuple(found), tuple(waiting), tuple(path for path in waiting if path in known))


async def _digests(database: "Database | None") -> "dict[str, str]":
    from antiphon.store.decisions import TrustStore
    from antiphon.store.schema import open_database

    if database is not None:
        return dict(await TrustStore(database).digests())
    ours = open_database()
    if not ours.path.exists():  # looking must not create the database
        return {}
    async with ours:
        return dict(await TrustStore(ours).digests())


def _every_file(directories: Iterable[str]) -> list[ProjectFile]:
    directories = tuple(directories)
    found = {file.path: file for family in (ANY, CODEX, CLAUDE) for file in project_files(family, directories)}
    return list(found.values())


async def trust_project(directories: Sequence[str], database: "Database | None" = None) -> list[str]:
    """Trust all that the project of a directory gives to engines, and its `.antiphon/config.toml`, as they are now: their paths.

    Raises:
        NothingToTrust: there is nothing of the kind.
        AcpError: its config file has mistakes, or the store cannot be written.
    """
    from antiphon.store.decisions import TrustStore
    from antiphon.store.schema import open_database

    sources = find(directories[0])
    config, project = sources.project, sources.directory
    if config is not None:
        loaded = settle(msgspec.structs.replace(sources, user=None), trusted=False)
        if loaded.problems:
            raise AcpError(loaded.problems[0].sentence, hint=loaded.problems[0].hint)
    files = await asyncio.to_thread(_every_file, directories)
    readable = [file for file in files if file.digest]
    if config is None and not readable:
        raise NothingToTrust(
            f"there is nothing to trust in `{directories[0]}` or above it",
            hint="a project has settings in .antiphon/config.toml, .claude, .mcp.json or .codex.",
        )

    async def keep(database: "Database") -> None:
        store = TrustStore(database)
        if config is not None and project is not None:
            await store.trust(str(project), config.digest)
        await store.trust_files(readable)

    if database is not None:
        await keep(database)
    else:
        async with open_database() as ours:
            await keep(ours)
    return [*([] if config is None else [str(config.path)]), *(file.path for file in readable)]


# --- texts for the user -----------------------------------------------------------------------------------------------


def left_out(engine: str, trust: ProjectTrust, cwd: str) -> tuple[str, Advice]:
    """A notice that files were left out: its title, and which ones and what to do."""
    why = "changed since you trusted it" if trust.changed else "is not trusted"
    hint = "look at these files; if you agree with them, type `/trust` or run `antiphon policy trust`"
    described = f"left out: {_listed(trust.waiting, cwd)}."
    if trust.trouble:
        described = f"{trust.trouble.partition(chr(10))[0]}; {described}"
    return f"This project {why}, so {engine} works with your own settings only", Advice(described, hint)


def may_read(agent: str, trust: ProjectTrust, cwd: str) -> tuple[str, Advice]:
    """A warning that an agent may read files that are not trusted."""
    return (
        f"This project is not trusted, and {agent} may run programs that it names",
        Advice(
            f"it has {_listed(trust.waiting, cwd)}.",
            "look at these files; `antiphon policy trust` ends this warning until they change",
        ),
    )


def _listed(paths: tuple[str, ...], cwd: str) -> str:
    """Paths in short, relative to the session's directory where they are in it."""
    here = os.path.realpath(cwd)
    short = [os.path.relpath(path, here) if path.startswith(f"{here.rstrip('/')}/") else path for path in paths]
    more = f" and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
    return ", ".join(f"`{path}`" for path in short[:SHOWN]) + more


def trusted_text(trusted: "list[str]", cwd: str) -> str:
    """What a user reads after `/trust`."""
    return (
        f"Trusted as they are now: {_listed(tuple(trusted), cwd)}. They count from the next prompt on, and have to be trusted again "
        "when they change. `antiphon policy distrust` takes it back."
    )
