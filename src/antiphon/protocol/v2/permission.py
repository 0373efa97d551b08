"""Permission requests: the user is asked about a call, a command, or anything else."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Exact, Model, Unknown
from antiphon.protocol.v1.permission import (
    Cancelled,
    PermissionOption,
    PermissionOptionKind,
    PermissionOutcome,
    PermissionResult,
    Selected,
)
from antiphon.protocol.v2.base import SessionId, TerminalId, ToolCallId
from antiphon.protocol.v2.tools import ToolCallPatch

__all__ = [
    "Cancelled", "CommandSubject", "PermissionOption", "PermissionOptionKind", "PermissionOutcome", "PermissionResult",
    "PermissionSubject", "RequestPermission", "Selected", "ToolCallSubject",
]  # fmt: skip


class ToolCallSubject(Model, frozen=True, tag_field="type", tag="tool_call"):
    """A call, which is applied as an update before the user is asked."""

    tool_call: ToolCallPatch


class CommandSubject(Model, frozen=True, tag_field="type", tag="command"):
    """A command that is to run."""

    command: str
    cwd: str
    tool_call_id: ToolCallId | None = None
    terminal_id: TerminalId | None = None


if TYPE_CHECKING:
    PermissionSubject: TypeAlias = ToolCallSubject | CommandSubject | Unknown
else:
    PermissionSubject = ToolCallSubject | CommandSubject


class RequestPermission(Model, frozen=True):
    """Ask the user. The title is that of the question, never of a call."""

    session_id: SessionId
    title: str
    options: list[PermissionOption]
    description: str | None = None
    subject: Exact[PermissionSubject | None] = None
