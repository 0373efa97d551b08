"""From a question of the server to its answer. Whatever goes wrong on the way, nothing is allowed by it."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.changes import ask_about_changes
from antiphon.engines.codex.approvals.commands import ask_about_command
from antiphon.engines.codex.approvals.decisions import NEW, OLD
from antiphon.engines.codex.approvals.permissions import NOTHING, ask_for_permissions
from antiphon.engines.codex.approvals.questions import NO_ANSWERS, ask_questions
from antiphon.engines.codex.approvals.servers import ask_for_server
from antiphon.engines.questions import CANCEL, DECLINE, Body, CalledOff, Refused, why, withdrawn
from antiphon.errors import AcpError, TurnOver
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.asking import Asking
    from antiphon.agent.session import Session

__all__ = ["Asker"]


class _Way(msgspec.Struct, frozen=True):
    """How a method is asked about, and what it is answered with if there is no answer."""

    params: type[Any]
    ask: "Callable[[Any, Asking, v1.ToolCallPatch | None], Awaitable[Body]]"
    declined: Body
    """Nobody could be asked: the turn goes on without."""
    called_off: Body
    """The turn is being cancelled."""


_WAYS: Final = {
    "item/commandExecution/requestApproval": _Way(wire.CommandApproval, ask_about_command, NEW.declined, NEW.stopped),
    "execCommandApproval": _Way(wire.ExecApproval, ask_about_command, OLD.declined, OLD.stopped),
    "item/fileChange/requestApproval": _Way(wire.FileApproval, ask_about_changes, NEW.declined, NEW.stopped),
    "applyPatchApproval": _Way(wire.ApplyPatchApproval, ask_about_changes, OLD.declined, OLD.stopped),
    "item/permissions/requestApproval": _Way(wire.PermissionsApproval, ask_for_permissions, NOTHING, NOTHING),
    "item/tool/requestUserInput": _Way(wire.UserInputAsked, ask_questions, NO_ANSWERS, NO_ANSWERS),
    "mcpServer/elicitation/request": _Way(wire.Elicitation, ask_for_server, DECLINE, CANCEL),
}


class Asker:
    """Asks for one session. Several questions may be open at once; whoever cancels one withdraws it at the client."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def answer(
        self,
        method: str,
        params: "wire.Request | wire.Unread",
        stage: "Asking",
        call: v1.ToolCallPatch | None = None,
    ) -> Body | None:
        """What the server is told; None if it asks for something that no user is asked about. `call` is what the client knows of it."""
        way = _WAYS.get(method)
        if way is None:
            return None
        if not isinstance(params, way.params):
            await self._tell("the question could not be read")
            return dict(way.declined)
        try:
            return await way.ask(params, stage, call)
        except asyncio.CancelledError:
            if withdrawn():
                raise
            return dict(way.called_off)  # the turn has ended, and its questions with it
        except (CalledOff, TurnOver):
            return dict(way.called_off)
        except Refused:  # by a rule or a mode that the user has set: no news for them
            return dict(way.declined)
        except AcpError as error:
            await self._tell(why(error))
            return dict(way.declined)

    async def _tell(self, reason: str) -> None:
        """The server has no words for why it is refused, so the user gets them."""
        title = "Codex wanted to ask something and could not, so it was declined"
        with suppress(AcpError):  # a client that is gone
            await self._session.notice(title, reason, v1.NoticeSeverity.WARNING)
