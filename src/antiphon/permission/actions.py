"""What an agent wants to do, as the policy takes it: with the session's directories, and with every link followed."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import structs

from antiphon.local.files import FileProblem, read_text
from antiphon.local.roots import RealPaths
from antiphon.policy import Action
from antiphon.policy.paths import PathResolver
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.local.roots import Workspace

__all__ = ["FileNow", "Wanted", "action_of", "texts_shown"]

Wanted: TypeAlias = v1.RequestPermission | v1.ReadTextFile | v1.WriteTextFile | v1.CreateTerminal
"""The requests that are decided about."""


def action_of(request: Wanted, workspace: "Workspace | None") -> Action:
    """Return the action of a request, in the directories of its session. What cannot be determined is marked, and the user is asked."""
    cwd, roots, home = _directories(workspace)
    resolve = RealPaths()
    match request:
        case v1.RequestPermission():
            action = Action.of_tool_call(
                request.tool_call, cwd, roots, home=home, resolve=resolve, exists=os.path.lexists
            )
            title = request.tool_call.title
            action = structs.replace(action, title=title if isinstance(title, str) else "")
        case v1.CreateTerminal():
            action = Action.of_terminal(request, cwd, roots, home=home, resolve=resolve, exists=os.path.lexists)
        case v1.ReadTextFile():
            action = Action.of_read(request, cwd, roots, home=home, resolve=resolve)
        case v1.WriteTextFile():
            action = Action.of_write(request, cwd, roots, home=home, resolve=resolve)
        case _:
            assert_never(request)
    return structs.replace(action, unread=True) if resolve.lost or workspace is None else action


def texts_shown(
    request: v1.RequestPermission, workspace: "Workspace | None"
) -> dict[str, list[tuple[str | None, str]]]:
    """The old and new texts in the diffs of a permission request, by the real path of the file."""
    cwd, roots, home = _directories(workspace)
    where = PathResolver(cwd, roots, home, os.path.realpath)
    shown: dict[str, list[tuple[str | None, str]]] = {}
    for item in request.tool_call.content or ():
        if isinstance(item, v1.Diff):
            for path in where.real([item.path]):
                shown.setdefault(path, []).append((item.old_text, item.new_text))
    return shown


def _directories(workspace: "Workspace | None") -> tuple[str, tuple[str, ...], str]:
    home = os.path.expanduser("~")
    return ("/", (), home) if workspace is None else (workspace.cwd, (workspace.cwd, *workspace.directories), home)


@dataclass(frozen=True, slots=True)
class FileNow:
    """What a file is at one moment: whether anything is there, and its text if it can be read."""

    there: bool
    text: str | None = None

    @classmethod
    def read(cls, path: str) -> "FileNow":
        """Read it. Blocks."""
        try:
            return cls(True, read_text(path))
        except FileProblem:
            return cls(os.path.lexists(path))
