"""Permission requests: the user is asked before a tool runs."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Model, Unknown
from antiphon.protocol.v1.base import OptionId, SessionId
from antiphon.protocol.v1.tools import ToolCallPatch
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "Cancelled", "PermissionOption", "PermissionOptionKind", "PermissionOutcome", "PermissionResult",
    "RequestPermission", "Selected",
]  # fmt: skip


# An option we do not understand must never look like an approval.
@unknown_reads_as("reject_once")
class PermissionOptionKind(Word):
    """What choosing an option means."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"


class PermissionOption(Model, frozen=True):
    """One of the user's choices."""

    option_id: OptionId
    name: str
    kind: PermissionOptionKind


class RequestPermission(Model, frozen=True):
    """Ask whether a call may run."""

    session_id: SessionId
    tool_call: ToolCallPatch
    options: list[PermissionOption]


class Selected(Model, frozen=True, tag_field="outcome", tag="selected"):
    """The user chose."""

    option_id: OptionId


class Cancelled(Model, frozen=True, tag_field="outcome", tag="cancelled"):
    """The turn was cancelled before the user chose."""


if TYPE_CHECKING:
    PermissionOutcome: TypeAlias = Selected | Cancelled | Unknown
else:
    PermissionOutcome = Selected | Cancelled


class PermissionResult(Model, frozen=True):
    """What became of the question."""

    outcome: PermissionOutcome
