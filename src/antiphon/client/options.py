"""Which of the agent's options says what was decided. An option of a kind that we do not know is chosen by its id alone, and never to deny.

An "always" of ours is remembered by us, and the agent is told "once": it may take its own "always" for more than the rule that was shown.
"""

from collections.abc import Sequence

from antiphon.protocol import v1
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind

__all__ = ["allowing", "rejecting"]


def allowing(options: Sequence[v1.PermissionOption], option_id: str | None, *, always: bool) -> str | None:
    """The option that allows: the one the user picked, else the one that fits. None: there is no way to allow this and no more."""
    picked = _of_id(options, option_id)
    if picked is not None and not (picked.kind.known and picked.kind in (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS)):
        return picked.option_id
    return _of_kinds(options, (Kind.ALLOW_ONCE, Kind.ALLOW_ALWAYS) if always else (Kind.ALLOW_ONCE,))


def rejecting(options: Sequence[v1.PermissionOption], option_id: str | None, *, always: bool) -> str | None:
    """The option that rejects: the one the user picked, else the one that fits, else any. None: the agent takes no for no answer."""
    picked = _of_id(options, option_id)
    if picked is not None and picked.kind.known and picked.kind in (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS):
        return picked.option_id
    kinds = (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS)
    return _of_kinds(options, kinds[::-1] if always else kinds)


def _of_id(options: Sequence[v1.PermissionOption], option_id: str | None) -> v1.PermissionOption | None:
    return next((option for option in options if option.option_id == option_id), None)


def _of_kinds(options: Sequence[v1.PermissionOption], kinds: Sequence[Kind]) -> str | None:
    for kind in kinds:
        for option in options:
            if option.kind.known and option.kind == kind:
                return option.option_id
    return None
