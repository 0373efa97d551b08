"""What users of this library decide: permission, questions, signing in. Their answers are read here, and never too generously.

Rule 1: an option is looked for by its id first, then by its kind. The order of the options means nothing.
Rule 2: what is not understood is a rejection. An option of a kind from tomorrow is chosen by its id alone: it may be anything.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from antiphon.protocol import v1
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind

__all__ = [
    "Authenticate", "Elicitation", "Elicited", "Permission", "PermissionAnswer", "allow_always", "allow_once",
    "outcome_of", "reject", "result_of",
]  # fmt: skip

T = TypeVar("T")

_log = logging.getLogger(__name__)

PermissionAnswer: TypeAlias = v1.PermissionOutcome | v1.PermissionResult | str | bool
"""An outcome (alone, or in the result that carries it), the id (or the kind) of an option, or yes and no."""
Permission: TypeAlias = Callable[[v1.RequestPermission], PermissionAnswer | Awaitable[PermissionAnswer]]

Elicited: TypeAlias = v1.Accepted | v1.Declined | v1.Dismissed
AskForm: TypeAlias = Callable[[v1.FormElicitation], Elicited | Awaitable[Elicited]]
AskUrl: TypeAlias = Callable[[v1.UrlElicitation], Elicited | Awaitable[Elicited]]

Authenticate: TypeAlias = Callable[[Sequence[v1.AuthMethod]], str | None | Awaitable[str | None]]
"""Given the agent's ways to sign in: the id of the one to use, or None to let the request fail."""


@dataclass(frozen=True, slots=True)
class Elicitation:
    """Handlers of the agent's questions to the user. What is not given is not advertised, and declined if asked anyway."""

    form: AskForm | None = None
    url: AskUrl | None = None
    completed: Callable[[str], None] | None = None
    """Told the `elicitation_id` when the user is done on a page."""


# Ready-made answers for permission.


def allow_once(request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Allow this call and no other. Where the agent offers no such option, reject."""
    return _chosen(request.options, (Kind.ALLOW_ONCE, *_REJECTING))


def allow_always(request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Allow this call and those like it; where the agent does not offer that, this one."""
    return _chosen(request.options, (Kind.ALLOW_ALWAYS, Kind.ALLOW_ONCE, *_REJECTING))


def reject(request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Reject: this call, else all like it, else by giving no answer."""
    return _chosen(request.options, _REJECTING)


_REJECTING: Final = (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS)


def result_of(answer: object, request: v1.RequestPermission) -> v1.PermissionResult:
    """What a handler said, as the answer to send."""
    if isinstance(answer, v1.PermissionResult):
        return v1.PermissionResult(outcome_of(answer.outcome, request), meta=answer.meta)
    return v1.PermissionResult(outcome_of(answer, request))


def outcome_of(answer: object, request: v1.RequestPermission) -> v1.PermissionOutcome:
    """What a handler chose."""
    match answer:
        case v1.Cancelled():
            return answer
        case bool():
            return allow_once(request) if answer else reject(request)
        case v1.Selected(option_id=wanted) | str(wanted):
            return _wanted(wanted, request)
        case _:
            _log.error("a permission handler returned %r, which is no answer: rejected", answer)
            return reject(request)


def _wanted(wanted: str, request: v1.RequestPermission) -> v1.PermissionOutcome:
    wanted = wanted.value if isinstance(wanted, Kind) else wanted
    for option in request.options:
        if option.option_id == wanted:
            return v1.Selected(option.option_id)
    kind = Kind(wanted)
    if kind.known and isinstance(found := _chosen(request.options, (kind,)), v1.Selected):
        return found
    offered = ", ".join(f"`{option.option_id}`" for option in request.options)
    _log.error("a permission handler chose `%s`, but the options were %s: rejected", wanted, offered)
    return reject(request)


def _chosen(options: Sequence[v1.PermissionOption], kinds: Sequence[Kind]) -> v1.PermissionOutcome:
    """The first option of the first of these kinds that is offered at all."""
    for kind in kinds:
        for option in options:
            # An unknown kind reads as a rejection, but what it would mean to choose it nobody here knows.
            if option.kind.known and option.kind == kind:
                return v1.Selected(option.option_id)
    return v1.Cancelled()
