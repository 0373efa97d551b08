"""The project of a session: whether its settings are trusted, the command `/trust`, and what a tool call does in it."""

import os
from typing import TYPE_CHECKING, Final

from msgspec import structs

from antiphon.errors import Advice
from antiphon.local.roots import RealPaths
from antiphon.permission.project_trust import left_out, may_read, trusted_text
from antiphon.policy import Action
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.config.project_files import ProjectFileKinds
    from antiphon.permission.project_trust import ProjectTrust

__all__ = ["TRUST", "Project", "action_of", "is_trust", "trust_by_command"]

TRUST: Final = v1.Command("trust", "Trust this project's own settings, hooks and MCP servers as they are now")
"""The command by which a user trusts the project in an editor."""

UNTRUSTED: Final = {"antiphon": {"untrusted": True}}
"""The `_meta` of a notice that files of the project do not count."""


def is_trust(turn: "AgentTurn") -> bool:
    """Whether the prompt is the command `/trust`."""
    command = turn.command
    return command is not None and command[0] == TRUST.name


class Project:
    """The files of a project that an engine of one family reads: settings, hooks, MCP servers."""

    def __init__(self, session: "AgentSession", title: str, family: "ProjectFileKinds") -> None:
        self._session = session
        self._title = title
        self._family = family
        self._noticed: tuple[str, ...] | None = None
        self._found: ProjectTrust | None = None

    async def look(self) -> bool:
        """Look at the files. Return whether all of them are trusted; False also without such files."""
        from antiphon.permission.project_trust import look  # late: `session/new` is answered without it

        self._found = await look(self._family, (self._session.cwd, *self._session.directories))
        return self._found.trusted

    @property
    def has_files(self) -> bool:
        """Whether the project had such files when it was last looked at."""
        return self._found is not None and bool(self._found.files)

    async def send_notice(self) -> None:
        """Send a notice of the files that were left out, once for each set of files."""
        found = self._found
        before, self._noticed = self._noticed, None if found is None else found.waiting
        if found is not None and found.waiting and found.waiting != before:
            await self._warn(*left_out(self._title, found, self._session.cwd))

    async def send_warning(self) -> None:
        """Send a notice of the files that the engine may read all the same: another agent cannot be kept from it."""
        await self.look()
        found = self._found
        if found is not None and found.waiting:
            await self._warn(*may_read(self._title, found, self._session.cwd))

    async def _warn(self, title: str, description: Advice) -> None:
        """Send a notice with a mark, so that a client which shows no other notices can show this one."""
        session = self._session
        if session.client.shows_notices:
            await session.update(v1.NoticeUpdate(v1.NoticeSeverity.WARNING, title, str(description), meta=UNTRUSTED))
        else:
            await session.notice(title, str(description), v1.NoticeSeverity.WARNING)


async def trust_by_command(turn: "AgentTurn") -> None:
    """Run `/trust`: trust the project, and show what is trusted now. It counts from the next prompt on.

    Raises:
        AcpError: the project's config file has mistakes, or it cannot be stored.
    """
    from antiphon.permission.project_trust import NothingToTrust, trust_project

    session = turn.session
    try:
        text = trusted_text(await trust_project((session.cwd, *session.directories)), session.cwd)
    except NothingToTrust as error:
        text = str(error).partition("\n")[0]
    await turn.say(text)


def action_of(
    session: "AgentSession", call: "v1.ToolCallPatch", cwd: str | None = None, also: "Iterable[str]" = ()
) -> Action:
    """Return the action of a tool call as the policy judges it, run in `cwd` if that is another directory; `also` are further roots.

    Links are followed on the disk of this machine. An action with a path that cannot be followed is marked as unread.
    """
    resolve = RealPaths()
    action = Action.of_tool_call(
        call,
        cwd or session.cwd,
        (session.cwd, *session.directories, *also),
        home=os.path.expanduser("~"),
        resolve=resolve,
        exists=os.path.lexists,
    )
    return structs.replace(action, unread=True) if resolve.lost else action
