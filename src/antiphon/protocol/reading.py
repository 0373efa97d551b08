"""One way in for every message part: strict first, then the dialects, then salvage. A good message pays only for strict."""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.dialects.hints import HINTS, Half, Reply

__all__ = ["Reading", "read"]

T = TypeVar("T")


class Reading(Generic[T]):
    """A message part, understood: its value, the names of the rules it took, and how to answer if asked in a dialect."""

    __slots__ = ("reply", "rules", "value")

    def __init__(self, value: T, rules: tuple[str, ...] = (), reply: Reply | None = None) -> None:
        self.value = value
        self.rules = rules
        self.reply = reply


def read(strict: "msgspec.json.Decoder[T]", kind: Any, method: str, half: Half, raw: bytes | Raw) -> Reading[T]:
    """Understand one half of a method as well as the rules allow.

    Raises:
        RequestError: -32602 (or -32700), if these are params and no rule makes sense of them.
        RemoteProtocolError: the same for an answer.
    """
    # Some dialect fields are legal extras to the strict decoder and would vanish without a word; their names are hints.
    hints = HINTS.get((method, half))
    if hints is None or not _mentions(raw, hints):
        try:
            return Reading(strict.decode(raw))
        except BAD_INPUT:
            pass
    try:
        return _read_forgivingly(strict, kind, method, half, bytes(raw))
    except BAD_INPUT as error:
        raise _refusal(method, half, error) from None


def _mentions(raw: bytes | Raw, hints: tuple[bytes, ...]) -> bool:
    data = bytes(raw)
    for hint in hints:  # noqa: SIM110 - a generator for any() costs more than the search
        if hint in data:
            return True
    return False


def _read_forgivingly(strict: "msgspec.json.Decoder[T]", kind: Any, method: str, half: Half, raw: bytes) -> Reading[T]:
    from antiphon.protocol.dialects.table import repair
    from antiphon.protocol.salvage import MAX_VALUES, is_crowded, salvage_with_notes

    raw.decode("utf-8")  # broken text is an error of the whole message, never a field to drop
    if half == "params" and raw.strip() == b"null":
        raw = b"{}"
    if is_crowded(raw):
        try:
            return Reading(strict.decode(raw))
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(
                f"{error} (and with more than {MAX_VALUES} values it is not mended)"
            ) from None
    mended, rules, reply = repair(method, half, raw)
    try:
        return Reading(strict.decode(mended), rules, reply)
    except BAD_INPUT:
        value, notes = salvage_with_notes(mended, kind)
        return Reading(value, (*rules, *notes), reply)


def _refusal(method: str, half: Half, error: Exception) -> RequestError | RemoteProtocolError:
    if isinstance(error, UnicodeDecodeError):
        reason = f"not UTF-8: {error.reason} at byte {error.start}"
    else:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    if half == "result":
        return RemoteProtocolError(f"the answer to `{method}` makes no sense: {reason}")
    if isinstance(error, UnicodeDecodeError):
        return RequestError(Code.PARSE_ERROR, "Parse error", reason)
    return RequestError(Code.INVALID_PARAMS, "Invalid params", reason)
