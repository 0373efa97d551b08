"""What differs from run to run, put into recorded lines: ids, paths, and nothing else. All other bytes stay as they were."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from antiphon.recorder.matching import content
from antiphon.traffic.entries import Direction, Entry

__all__ = ["MADE_UP", "Names", "anonymous", "with_id", "written_id"]

MADE_UP: Final = frozenset((
    "sessionId", "terminalId", "toolCallId", "messageId", "userMessageId", "elicitationId", "compactionId", "planId",
    "parentToolCallId", "parentSessionId", "subagentId", "noticeId",
))  # fmt: skip
"""Fields whose value somebody makes up in each run, so that it means the same and is another. Others (`optionId`) are choices."""

CANCEL_REQUEST: Final = "$/cancel_request"

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_ID: Final = re.compile(rb'"id"\s*:\s*(' + _STRING + rb"|[^\s,{}\[\]]+)")
_REQUEST: Final = re.compile(rb'("requestId"\s*:\s*)(' + _STRING + rb"|[^\s,{}\[\]]+)", re.DOTALL)
_TOKENS: Final = re.compile(_STRING + rb"|[{}\[\]:,]|[^\s{}\[\]:,\"]+", re.DOTALL)
_STRINGS: Final = re.compile(_STRING, re.DOTALL)
_MADE_UP: Final = re.compile(
    rb'("(?:' + "|".join(sorted(MADE_UP)).encode() + rb')"\s*:\s*)(' + _STRING + rb")", re.DOTALL
)


class _Envelope(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"")


_open: Final = msgspec.json.Decoder(_Envelope).decode


def written_id(raw: bytes) -> bytes:
    """The id of a message in the very bytes it has there; nothing where there is none."""
    try:
        return bytes(_open(raw).id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""


def with_id(raw: bytes, id: bytes) -> bytes:
    """The same message under another id."""
    if written_id(raw) == id:
        return raw
    place = _place_of_id(raw)
    if place is None:  # the name of the field is written with escapes
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return msgspec.json.encode({**fields, "id": msgspec.Raw(id)})
    return raw[: place[0]] + id + raw[place[1] :]


def _place_of_id(raw: bytes) -> tuple[int, int] | None:
    found = [match.span(1) for match in _ID.finditer(raw)]
    if len(found) == 1 and raw[slice(*found[0])] == written_id(raw):
        return found[0]
    depth, before = 0, b""  # several: only the one of the envelope counts
    starts = {span[0]: span for span in found}
    for token in _TOKENS.finditer(raw):
        if depth == 1 and before == b":" and token.start() in starts:
            return starts[token.start()]
        before = token[0]
        depth += (before in (b"{", b"[")) - (before in (b"}", b"]"))
    return None


class Names:
    """Recorded → live: directories, and ids that somebody made up. Learnt from what the other side says."""

    def __init__(
        self, lines: Iterable[Entry], theirs: Direction, *, verbatim: bool = False, renew: bool = False
    ) -> None:
        """`renew`: a name that is given again, and is another one now, counts from then on."""
        self.ids: dict[str, str] = {}
        self.requests: dict[bytes, bytes] = {}
        """The ids of their questions, as they are written: recorded → live."""
        self._paths: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._hints: list[bytes] = []  # a line without any of them, and without escapes, has no such path
        self._verbatim = verbatim
        self._renew = renew
        self._moves = theirs is Direction.C2A  # the client says where to work
        # Who says an id first has made it up. What is ours stays as it is: the other side learns it from us.
        makers: dict[str, Direction] = {}
        for line in lines:
            for name in _made_up(line.msg):
                makers.setdefault(name, line.dir)
        self._theirs = {name for name, maker in makers.items() if maker is theirs}

    def move(self, recorded: str, live: str) -> None:
        """From now on what was in one directory is in another."""
        if self._verbatim or len(recorded) < 2 or not recorded.startswith("/"):
            return
        recorded, live = recorded.rstrip("/"), live.rstrip("/") or "/"
        if self._renew or recorded not in self._paths:
            self._paths[recorded] = live
            longest = sorted((old for old, new in self._paths.items() if old != new), key=len, reverse=True)
            either = "|".join(re.escape(old) for old in longest)
            # A whole path, or the beginning of one, wherever it stands; `/songs` is neither in `/songster` nor in `/my/songs`.
            around = rf"(?:(?<![\w./~-])|(?<=file://))({either})(?![\w-]|\.\w)"
            self._pattern = re.compile(around) if longest else None
            self._hints = [old.encode("utf-8", "surrogatepass") for old in longest]

    def learn(self, recorded: Any, got: Any) -> None:
        """Take note of what has another name now, in two values of which one stands for the other."""
        if isinstance(recorded, dict) and isinstance(got, dict):
            for key in recorded.keys() & got.keys():
                old, new = recorded[key], got[key]
                if key in MADE_UP and isinstance(old, str) and isinstance(new, str):
                    if old in self._theirs and (self._renew or old not in self.ids):
                        self.ids[old] = new
                elif key == "cwd" and self._moves and isinstance(old, str) and isinstance(new, str):
                    self.move(old, new)
                else:
                    self.learn(old, new)
        elif isinstance(recorded, list) and isinstance(got, list):
            for old, new in zip(recorded, got, strict=False):
                self.learn(old, new)

    def content(self, line: Entry) -> Any:
        """What a recorded line of theirs has to say now."""
        said = self.value(content(line))
        if line.method == CANCEL_REQUEST and "requestId" in line.params:  # it names a question of who sends it
            id = msgspec.json.encode(line.params["requestId"])
            said["params"]["requestId"] = msgspec.json.decode(self.requests.get(id, id))
        return said

    def value(self, recorded: Any, key: str = "") -> Any:
        """A recorded value as it has to be now."""
        if isinstance(recorded, dict):
            return {self._moved(name): self.value(value, name) for name, value in recorded.items()}
        if isinstance(recorded, list):
            return [self.value(item) for item in recorded]
        if not isinstance(recorded, str):
            return recorded
        return self.ids.get(recorded, recorded) if key in MADE_UP else self._moved(recorded)

    def line(self, raw: bytes) -> bytes:
        """A recorded message as it has to be sent now."""
        if self.ids:
            raw = _MADE_UP.sub(lambda found: found[1] + self._renamed(found[2]), raw)
        if b'"requestId"' in raw and CANCEL_REQUEST.encode() not in raw:  # it names a question of who gets it
            raw = _REQUEST.sub(lambda found: found[1] + self.requests.get(found[2], found[2]), raw)
        if self._pattern is not None and (b"\\" in raw or any(hint in raw for hint in self._hints)):
            raw = _STRINGS.sub(lambda found: self._moved_token(found[0]), raw)
        return raw

    def _renamed(self, token: bytes) -> bytes:
        old = _text(token)
        return msgspec.json.encode(self.ids[old]) if old in self.ids else token

    def _moved_token(self, token: bytes) -> bytes:
        if b"/" not in token:
            return token
        old = _text(token)
        new = self._moved(old)
        return token if new == old else msgspec.json.encode(new)

    def _moved(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._paths[found[1]], text) if self._pattern is not None else text


def anonymous(value: Any) -> Any:
    """The value without the ids that somebody made up."""
    if isinstance(value, dict):
        return {key: "" if key in MADE_UP else anonymous(inner) for key, inner in value.items()}
    return [anonymous(inner) for inner in value] if isinstance(value, list) else value


def _text(token: bytes) -> str:
    try:
        text: str = msgspec.json.decode(token, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair: nobody's id and nobody's path
        return ""
    return text


def _made_up(value: Any) -> Iterator[str]:
    left = [value]  # not by recursion: a recording may be nested as deeply as it likes
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from (inner for key, inner in value.items() if key in MADE_UP and isinstance(inner, str))
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
