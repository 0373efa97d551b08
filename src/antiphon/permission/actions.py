"""What an agent wants to do, as the policy takes it, with every link followed, and as people are shown it, with nothing left out."""

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import structs

from antiphon.local.files import FileProblem, read_text
from antiphon.local.roots import RealPaths
from antiphon.policy import Action
from antiphon.policy.paths import PathResolver
from antiphon.protocol import v1
from antiphon.text import exact, exact_line, fenced

if TYPE_CHECKING:
    from antiphon.local.roots import Workspace

__all__ = ["FileNow", "Passing", "Wanted", "action_of", "call_of", "texts_shown"]

Passing: TypeAlias = v1.ReadTextFile | v1.WriteTextFile | v1.CreateTerminal
"""What an agent does through its client without a permission request."""

Wanted: TypeAlias = v1.RequestPermission | Passing
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


def call_of(request: Passing, id: str, now: str | None = None) -> v1.ToolCallPatch:
    """The tool call that an agent did not announce before it reads, writes or runs something, for people who decide about it.

    It has all that they decide by: the whole text of a write as a diff from `now`, and of a command each word, the variables that it
    sets and its directory.
    """
    match request:
        case v1.WriteTextFile(path=path, content=content):
            return v1.ToolCallPatch(
                id, kind=v1.ToolKind.EDIT, title=f"Write {exact_line(path)}", name="Write", raw_input={"path": path},
                content=[v1.Diff(path, content, now)], locations=[v1.ToolLocation(path)], status=v1.ToolStatus.PENDING,
            )  # fmt: skip
        case v1.ReadTextFile(path=path):
            return v1.ToolCallPatch(
                id, kind=v1.ToolKind.READ, title=f"Read {exact_line(path)}", name="Read", raw_input={"path": path},
                locations=[v1.ToolLocation(path)], status=v1.ToolStatus.PENDING,
            )  # fmt: skip
        case v1.CreateTerminal():
            line = shlex.join([request.command, *request.args]) if request.args else request.command
            variables = "".join(f"{each.name}={shlex.quote(each.value)} " for each in request.env)
            text = fenced(exact(f"{variables}{line}"), "sh") + (
                f"\nin {exact_line(request.cwd)}" if request.cwd else ""
            )
            raw: dict[str, object] = {"command": line}
            raw |= {"cwd": request.cwd} if request.cwd else {}
            raw |= {"env": {each.name: each.value for each in request.env}} if request.env else {}
            return v1.ToolCallPatch(
                id, kind=v1.ToolKind.EXECUTE, title=exact_line(f"{variables}{line}"), name="Bash", raw_input=raw,
                content=[v1.ContentItem(v1.TextBlock(text))], status=v1.ToolStatus.PENDING,
            )  # fmt: skip
        case _:
            assert_never(request)


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
