"""What a tool call of a CLI does, as the policy judges it: links are followed on the disk of this machine."""

import os
from typing import TYPE_CHECKING

from msgspec import structs

from antiphon.local.roots import RealPaths
from antiphon.policy import Action

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.agent.session import Session
    from antiphon.protocol import v1

__all__ = ["action_of"]


def action_of(
    session: "Session", call: "v1.ToolCallPatch", cwd: str | None = None, also: "Iterable[str]" = ()
) -> Action:
    """Return the action of a call in a session, run in `cwd` if that is another directory; `also` are further roots.

    An action with a path that cannot be followed is marked as unread.
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
