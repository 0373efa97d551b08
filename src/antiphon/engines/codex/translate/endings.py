"""How a turn ended: a stop reason of the protocol, or an error that says what to do. Never neither."""

from typing import Final

from antiphon.engines.codex.translate.errors import error_of, kind_of, message_of
from antiphon.engines.codex.wire import Turn, TurnError
from antiphon.engines.events import End, Notice
from antiphon.protocol import v1

__all__ = ["end_of", "note_on"]

_STOPS: Final = {
    "max_tokens": v1.StopReason.MAX_TOKENS,
    "refusal": v1.StopReason.REFUSAL,
    "budget": v1.StopReason.MAX_TURN_REQUESTS,
}
"""Kinds of errors that the protocol has a word for."""

_NOTES: Final = {
    v1.StopReason.MAX_TOKENS: "The answer was cut off because it got too long",
    v1.StopReason.REFUSAL: "The answer was refused",
    v1.StopReason.MAX_TURN_REQUESTS: "The budget of the session is used up",
}


def end_of(turn: Turn, last: TurnError | None, usage: v1.Usage | None, resets_at: float | None) -> End:
    """How the turn ended. `last` is the error that was told last in it, `resets_at` when a used up limit is lifted."""
    if turn.status == "interrupted":
        return End(stop_reason=v1.StopReason.CANCELLED, usage=usage)
    error = turn.error or (last if turn.status == "failed" else None)
    if error is None and turn.status != "failed":
        return End(stop_reason=v1.StopReason.END_TURN, usage=usage)
    error = error or TurnError()
    stop = _STOPS.get(kind_of(error))
    if stop is not None:
        return End(stop_reason=stop, usage=usage)
    return End(error=error_of(error, resets_at), usage=usage)


def note_on(end: End, error: TurnError | None) -> Notice | None:
    """What Codex says about an end that is no error to the protocol but that the user should understand."""
    title = _NOTES.get(end.stop_reason) if end.stop_reason is not None else None
    return Notice(title, message_of(error), v1.NoticeSeverity.WARNING) if title and error is not None else None
