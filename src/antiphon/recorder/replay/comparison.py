"""Whether a message is the recorded one, and where it differs: the path, the recorded value, the new one. Pure."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from antiphon.text import exact
from antiphon.traffic.entries import NO_JSON, Direction, Entry, JsonObject, parse

__all__ = [
    "ABSENT",
    "Aligned",
    "Difference",
    "Ignored",
    "align",
    "content",
    "differences",
    "label",
    "received_entry",
    "signature",
]

DEEPEST: Final = 200
"""Levels of nesting that are compared. What is deeper is not a message of this protocol, and would cost us the stack."""

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
    recorded: object = ABSENT
    got: object = ABSENT

    def __str__(self) -> str:
        where = f"message {self.message} ({self.what})" if self.message is not None else self.what
        if self.path:
            where = f"{where}: {self.path}"
        return f"{where}: recorded {_shown(self.recorded)}, got {_shown(self.got)}"

    def as_data(self) -> JsonObject:
        """The difference as JSON; absent values are left out."""
        fields = {"message": self.message, "what": self.what, "path": self.path}
        values = {"recorded": self.recorded, "got": self.got}
        return fields | {name: value for name, value in values.items() if value is not ABSENT}


def _shown(value: object) -> str:
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


def received_entry(number: int, direction: Direction, raw: bytes) -> Entry:
    """A line of the live peer. What is nested beyond all sense is noise."""
    entry = parse(number, 0.0, direction, raw)
    if raw.count(b"{") + raw.count(b"[") > DEEPEST and _depth(entry.msg) > DEEPEST:
        return Entry(number, 0.0, direction, raw, NO_JSON)
    return entry


def _depth(value: object) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        value, depth = left.pop()
        deepest = max(deepest, depth)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left.extend((one, depth + 1) for one in inner)
    return deepest


def signature(entry: Entry) -> tuple[str, str | None]:
    """The kind and the method of a line, without its content."""
    if entry.is_noise:
        return "noise", None
    if entry.is_request:
        return "request", entry.method
    if entry.is_notification:
        return "notification", entry.method
    return ("answer" if entry.is_response else "other"), None


def label(entry: Entry) -> str:
    """A line in two words."""
    kind, method = signature(entry)
    names = {"noise": "a line that is not JSON", "answer": "an answer", "other": "JSON that is not a message"}
    if method is None:
        return names[kind]
    return method if _METHOD.fullmatch(method) else _shown(method)  # it is text of a peer, and goes to a terminal


def content(entry: Entry) -> object:
    """The content of a line: all but its envelope."""
    if entry.is_noise:
        return entry.raw.decode("utf-8", "replace")
    if not isinstance(entry.msg, dict):
        return entry.msg
    return {key: value for key, value in entry.msg.items() if key not in ("id", "jsonrpc", "method")}


def differences(recorded: object, got: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """The places where two values differ: path, recorded, got."""
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


# --- alignment: which update is which of the recorded ones, when some are missing, new or in another place

LARGEST: Final = 2000
"""Lines that differ in kind up to which the best alignment is looked for: it takes the square of it."""


class Aligned(NamedTuple):
    """Pairs of recorded and live lines. The others have no partner; `moved` have one, but at another place."""

    pairs: list[tuple[Entry, Entry]]
    moved: list[tuple[Entry, Entry]]
    missing: list[Entry]
    extra: list[Entry]


def align(recorded: list[Entry], live: list[Entry], words: Callable[[Entry], Hashable]) -> Aligned:
    """Pair the lines of one list with those of the other: those with the same content, and between them those of one kind."""
    found: list[tuple[int, int]] = []
    left, right = 0, 0
    ends = (len(recorded), len(live))
    for place in (*_places([words(line) for line in recorded], [words(line) for line in live]), ends):
        kinds = [_kind(line) for line in recorded[left : place[0]]], [_kind(line) for line in live[right : place[1]]]
        found += [(left + old, right + new) for old, new in _places(*kinds)]
        found += [place] if place != ends else []
        left, right = place[0] + 1, place[1] + 1
    return _aligned(recorded, live, found)


def _aligned(recorded: list[Entry], live: list[Entry], found: list[tuple[int, int]]) -> Aligned:
    lefts, rights = {left for left, _ in found}, {right for _, right in found}
    missing = [line for place, line in enumerate(recorded) if place not in lefts]
    extra = [line for place, line in enumerate(live) if place not in rights]
    moved = []
    for line in list(missing):
        partner = next((other for other in extra if _kind(other) == _kind(line)), None)
        if partner is not None:
            moved.append((line, partner))
            missing.remove(line)
            extra.remove(partner)
    return Aligned([(recorded[left], live[right]) for left, right in found], moved, missing, extra)


def _places(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Positions at which both lists have the same item, in ascending order."""
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    stop = next((n for n in range(shorter - start) if old[-1 - n] != new[-1 - n]), shorter - start)
    left, right = old[start : len(old) - stop], new[start : len(new) - stop]
    found = [(place, place) for place in range(start)]
    if left and right and max(len(left), len(right)) <= LARGEST:
        from difflib import SequenceMatcher

        for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
            found += [(start + block.a + n, start + block.b + n) for n in range(block.size)]
    return found + [(len(old) - n, len(new) - n) for n in range(stop, 0, -1)]


def _kind(line: Entry) -> str:
    update = line.params.get("update")
    kind = update.get("sessionUpdate") if isinstance(update, dict) else None
    return f"{line.method} {kind}"
