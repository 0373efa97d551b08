"""Adding to a turn that runs: the extension that editors use for it. The protocol itself has no word for it yet."""

from typing import Final

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.salvage import salvage

__all__ = ["INJECTED", "STEERING", "read_steering", "too_late"]

STEERING: Final = "_session/steering"
"""The method. Its params are those of a prompt."""

INJECTED: Final = {"outcome": "injected"}
_TOO_LATE: Final = {"outcome": "promptRequired", "reason": "noRunningTurn"}


def read_steering(params: msgspec.Raw) -> v1.Prompt:
    """What the user adds.

    Raises:
        RequestError: the params are something else.
    """
    try:
        asked = salvage(params, v1.Prompt)
    except msgspec.DecodeError as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", str(error)) from error
    if not asked.prompt:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "`prompt` is empty")
    return asked


def too_late(asked: v1.Prompt) -> dict[str, str]:
    """The answer when no turn runs. A client that says so in advance prompts by itself; another is told, so that nothing is lost unseen.

    Raises:
        RequestError: it did not say so.
    """
    wish = (asked.meta or {}).get("steering")
    if isinstance(wish, dict) and wish.get("idleBehavior") == "promptRequired":
        return _TOO_LATE
    raise RequestError(
        Code.INVALID_REQUEST,
        "Invalid request",
        "there is no turn that it could be added to: send it with `session/prompt`",
    )
