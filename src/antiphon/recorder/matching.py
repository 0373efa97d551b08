"""Whether a message is the recorded one, and where it is not: the path, what was recorded, what came. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from antiphon.text import exact
from antiphon.traffic.entries import NO_JSON, Direction, Entry, parse

__all__ = ["ABSENT", "Difference", "Ignored", "content", "differences", "heard", "label", "signature"]

DEEPEST: Final = 200
"""Levels of nesting that are compared. What is deeper is no message of this protocol, and would cost us the stack."""

SHOWN: Final = 200
"""Characters of a value that a sentence shows."""

_PLAIN: Final = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
_METHOD: Final = re.compile(r"[\w$./-]{1,80}", re.ASCII)


class _Absent:
    """What stands for a value that is not there; null is one that is."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


class Difference(NamedTuple):
    """One place where something else came. `message` counts the lines of the recording; None: it was never recorded."""

    message: int | None
    what: str
    path: str
    recorded: Any = ABSENT
    got: Any = ABSENT

    def __str__(self) -> str:
        where = f"message {self.message} ({self.what})" if self.message is not None else self.what
        if self.path:
            where = f"{where}: {self.path}"
        return f"{where}: recorded {_shown(self.recorded)}, got {_shown(self.got)}"

    def as_data(self) -> dict[str, Any]:
        """For JSON; what was absent is left out."""
        fields = {"message": self.message, "what": self.what, "path": self.path}
        values = {"recorded": self.recorded, "got": self.got}
        return fields | {name: value for name, value in values.items() if value is not ABSENT}


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    text = exact(text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class Ignored:
    """Places that may differ: `params.clientInfo`, `result.items[*].size`; with everything below them."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        either = "|".join(
            re.escape(one).replace(r"\[\*\]", r"\[\d+\]").replace(r"\*", r"[^.\[\]]+") for one in patterns
        )
        self._pattern = re.compile(rf"(?:{either})(?:[.\[].*)?", re.DOTALL) if either else None

    def __call__(self, path: str) -> bool:
        return self._pattern is not None and self._pattern.fullmatch(path) is not None


def heard(number: int, direction: Direction, raw: bytes) -> Entry:
    """A line of the live peer. What is nested beyond all sense is noise."""
    entry = parse(number, 0.0, direction, raw)
    if raw.count(b"{") + raw.count(b"[") > DEEPEST and _depth(entry.msg) > DEEPEST:
        return Entry(number, 0.0, direction, raw, NO_JSON)
    return entry


def _depth(value: Any) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        value, depth = left.pop()
        deepest = max(deepest, depth)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left.extend((one, depth + 1) for one in inner)
    return deepest


def signature(entry: Entry) -> tuple[str, str | None]:
    """What a line is, whatever it says: its kind and its method."""
    if entry.is_noise:
        return "noise", None
    if entry.is_request:
        return "request", entry.method
    if entry.is_notification:
        return "notification", entry.method
    return ("answer" if entry.is_answer else "other"), None


def label(entry: Entry) -> str:
    """A line in two words."""
    kind, method = signature(entry)
    names = {"noise": "a line that is no JSON", "answer": "an answer", "other": "JSON that is no message"}
    if method is None:
        return names[kind]
    return method if _METHOD.fullmatch(method) else _shown(method)  # it is anybody's text, and goes to a terminal


def content(entry: Entry) -> Any:
    """What a line says: all but its envelope."""
    if entry.is_noise:
        return entry.raw.decode("utf-8", "replace")
    if not isinstance(entry.msg, dict):
        return entry.msg
    return {key: value for key, value in entry.msg.items() if key not in ("id", "jsonrpc", "method")}


def differences(recorded: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ: path, recorded, got."""
    if isinstance(recorded, dict) and isinstance(got, dict):
        for key in dict.fromkeys((*recorded, *got)):
            yield from differences(recorded.get(key, ABSENT), got.get(key, ABSENT), _below(path, key))
    elif isinstance(recorded, list) and isinstance(got, list):
        for place in range(max(len(recorded), len(got))):
            old, new = (some[place] if place < len(some) else ABSENT for some in (recorded, got))
            yield from differences(old, new, f"{path}[{place}]")
    elif recorded != got or isinstance(recorded, bool) != isinstance(got, bool):
        yield path, recorded, got


def _below(path: str, key: str) -> str:
    name = key if _PLAIN.fullmatch(key) else exact(msgspec.json.encode(key).decode())
    return f"{path}.{name}" if path else name
