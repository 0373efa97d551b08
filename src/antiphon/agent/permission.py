"""What to offer when permission is asked, and what the answer means. Nothing that is not understood is ever an approval."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from antiphon.protocol.v1.permission import (
    PermissionOption,
    PermissionOptionKind,
    PermissionOutcome,
    Selected,
)

if TYPE_CHECKING:
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.v1.permission import PermissionResult, RequestPermission

__all__ = ["OPTIONS", "QUESTION", "Permission", "is_question", "refusal", "why_refused"]

QUESTION: "Final[JsonObject]" = {"antiphon": {"question": True}}
"""The `_meta` of what is shown like a question for permission and is none: no policy may answer it in the user's place."""

OPTIONS: Final = (
    PermissionOption("allow", "Allow", PermissionOptionKind.ALLOW_ONCE),
    PermissionOption("allow_always", "Always allow", PermissionOptionKind.ALLOW_ALWAYS),
    PermissionOption("reject", "Reject", PermissionOptionKind.REJECT_ONCE),
    PermissionOption("reject_always", "Always reject", PermissionOptionKind.REJECT_ALWAYS),
)

_ALLOWING: Final = (PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS)
_LASTING: Final = (PermissionOptionKind.ALLOW_ALWAYS, PermissionOptionKind.REJECT_ALWAYS)


class Permission:
    """The user's answer; true if it allows. `option` is what was chosen, None if the question was called off."""

    def __init__(self, outcome: PermissionOutcome, options: Sequence[PermissionOption]) -> None:
        self.option = _chosen(outcome.option_id, options) if isinstance(outcome, Selected) else None

    def __bool__(self) -> bool:
        return self.option is not None and self.option.kind in _ALLOWING

    @property
    def always(self) -> bool:
        """Whether the answer is meant to last."""
        return self.option is not None and self.option.kind in _LASTING


def _chosen(option_id: str, options: Sequence[PermissionOption]) -> PermissionOption | None:
    """By its id; older clients answer with the kind instead."""
    for option in options:
        if option.option_id == option_id:
            return option
    meant = [option for option in options if option.kind.known and option.kind.value == option_id]
    return meant[0] if len(meant) == 1 else None


def is_question(request: "RequestPermission") -> bool:
    """Whether it only looks like a question for permission."""
    ours = (request.meta or {}).get("antiphon")
    return isinstance(ours, dict) and ours.get("question") is True


def refusal(why: str) -> "JsonObject":
    """The `_meta` of an answer that a policy gave in the user's place, so that nobody says that the user did."""
    return {"antiphon": {"refused": why}}


def why_refused(result: "PermissionResult") -> str | None:
    """Why a policy refused it; None if it was not a policy that answered."""
    ours = (result.meta or {}).get("antiphon")
    why = ours.get("refused") if isinstance(ours, dict) else None
    return why if isinstance(why, str) else None
