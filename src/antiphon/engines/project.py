"""What a session's project gives to its engine: read only if the user trusts it, told if not, and `/trust`."""

import os
from typing import TYPE_CHECKING, Final

from antiphon.errors import Advice
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.agent.turn import Turn
    from antiphon.config.project_files import Family
    from antiphon.store.project_trust import ProjectTrust

__all__ = ["TRUST", "Project", "is_trust", "trust_by_command"]

TRUST: Final = v1.Command("trust", "Trust this project's own settings, hooks and MCP servers as they are now")
"""The command by which a user trusts the project in an editor."""

UNTRUSTED: Final = {"antiphon": {"untrusted": True}}
"""The `_meta` of a notice that files of the project do not count."""

SHOWN: Final = 8
"""Files that a notice names. The rest is counted."""


def is_trust(turn: "Turn") -> bool:
    """Whether the prompt is that command."""
    return turn.command is not None and turn.command[0] == TRUST.name


class Project:
    """The project of one session, as an engine of one family reads it."""

    def __init__(self, session: "Session", title: str, family: "Family") -> None:
        self._session = session
        self._title = title
        self._family = family
        self._told: tuple[str, ...] | None = None
        self._found: ProjectTrust | None = None

    async def look(self) -> bool:
        """Look again. Whether all that the project gives is trusted; False also where it gives nothing."""
        from antiphon.store.project_trust import look  # late: `session/new` is answered without it

        self._found = await look(self._family, (self._session.cwd, *self._session.directories))
        return self._found.trusted

    @property
    def has_files(self) -> bool:
        """Whether the project had anything to give when it was last looked at."""
        return self._found is not None and bool(self._found.files)

    async def tell(self) -> None:
        """Tell the user what was left out, once for each set of files."""
        found = self._found
        told, self._told = self._told, None if found is None else found.waiting
        if found is not None and found.waiting and found.waiting != told:
            await self._warn(*left_out(self._title, found, self._session.cwd))

    async def warn(self) -> None:
        """Tell the user what the engine may read all the same: what an agent of somebody else does is not ours to prevent."""
        await self.look()
        found = self._found
        if found is not None and found.waiting:
            await self._warn(*may_read(self._title, found, self._session.cwd))

    async def _warn(self, title: str, description: Advice) -> None:
        """Show a notice with a mark, so that a client which shows nothing else of the kind can show this one."""
        session = self._session
        if session.client.shows_notices:
            await session.update(v1.NoticeUpdate(v1.NoticeSeverity.WARNING, title, str(description), meta=UNTRUSTED))
        else:
            await session.notice(title, str(description), v1.NoticeSeverity.WARNING)


def left_out(engine: str, trust: "ProjectTrust", cwd: str) -> tuple[str, Advice]:
    """A notice that files were left out: its title, and which ones and what to do."""
    why = "changed since you trusted it" if trust.changed else "is not trusted"
    hint = "look at these files; if you agree with them, type `/trust` or run `antiphon policy trust`"
    described = f"left out: {_listed(trust.waiting, cwd)}."
    if trust.trouble:
        described = f"{trust.trouble.partition(chr(10))[0]}; {described}"
    return f"This project {why}, so {engine} works with your own settings only", Advice(described, hint)


def may_read(agent: str, trust: "ProjectTrust", cwd: str) -> tuple[str, Advice]:
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


async def trust_by_command(turn: "Turn") -> None:
    """Do what `/trust` asks for, and say what is trusted now. The next prompt goes by it.

    Raises:
        AcpError: the project's config file has mistakes, or it cannot be stored.
    """
    from antiphon.store.project_trust import NothingToTrust, trust_project

    session = turn.session
    try:
        said = said_of(await trust_project((session.cwd, *session.directories)), session.cwd)
    except NothingToTrust as error:
        said = str(error).partition("\n")[0]
    await turn.say(said)


def said_of(trusted: "list[str]", cwd: str) -> str:
    """What a user reads after `/trust`."""
    return (
        f"Trusted as they are now: {_listed(tuple(trusted), cwd)}. They count from the next prompt on, and have to be trusted again "
        "when they change. `antiphon policy distrust` takes it back."
    )
