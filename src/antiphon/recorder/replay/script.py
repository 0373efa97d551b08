"""A recording as a script for one side: what it sends in which order, which response belongs to which request.

Pure, and built from the entries of a recording. It interprets no more than JSON-RPC and a few names of the protocol, so it serves
every version of it. Ids and paths that differ from run to run are put into recorded lines; all other bytes stay as they were.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from antiphon.errors import AcpError, Advice
from antiphon.recorder.labels import counted
from antiphon.recorder.replay.comparison import content
from antiphon.traffic.entries import BAD_INPUT, Direction, Entry, as_object

__all__ = [
    "CANCEL",
    "MADE_UP",
    "BadRecording",
    "Exchange",
    "ReplayNames",
    "Script",
    "anonymous",
    "conversations",
    "is_none",
    "session_of",
    "with_id",
    "written_id",
]

# --- names: ids and paths that differ from run to run

MADE_UP: Final = frozenset((
    "sessionId", "terminalId", "toolCallId", "messageId", "userMessageId", "elicitationId", "compactionId", "planId",
    "parentToolCallId", "parentSessionId", "subagentId", "noticeId",
))  # fmt: skip
"""Fields with a new value in each run that means the same. Others (`optionId`) are choices."""

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
    """The id of a message in its exact bytes; empty without an id."""
    try:
        return bytes(_open(raw).id)
    except BAD_INPUT:
        return b""


def with_id(raw: bytes, id: bytes) -> bytes:
    """The same message under another id."""
    if written_id(raw) == id:
        return raw
    place = _span_of_id(raw)
    if place is None:  # the name of the field is written with escapes
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return msgspec.json.encode({**fields, "id": msgspec.Raw(id)})
    return raw[: place[0]] + id + raw[place[1] :]


def _span_of_id(raw: bytes) -> tuple[int, int] | None:
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


class ReplayNames:
    """Recorded → live: directories, and generated ids. Learnt from what the other side sends."""

    def __init__(
        self, lines: Iterable[Entry], theirs: Direction, *, verbatim: bool = False, renew: bool = False
    ) -> None:
        """`renew`: a name that is given again, and is another one now, counts from then on."""
        self.ids: dict[str, str] = {}
        self.requests: dict[bytes, bytes] = {}
        """The ids of their requests, as they are written: recorded → live."""
        self._paths: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._hints: list[bytes] = []  # a line without any of them, and without escapes, has no such path
        self._verbatim = verbatim
        self._renew = renew
        self._moves = theirs is Direction.C2A  # the client chooses the directory
        # The side that sends an id first has made it. Our ids stay as they are: the other side learns them from us.
        makers: dict[str, Direction] = {}
        for line in lines:
            for name in _made_up(line.msg):
                makers.setdefault(name, line.dir)
        self._theirs = {name for name, maker in makers.items() if maker is theirs}

    def move(self, recorded: str, live: str) -> None:
        """Translate paths in one directory to another from now on."""
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

    def learn(self, recorded: object, got: object) -> None:
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

    def content(self, line: Entry) -> object:
        """The recorded line of the peer as it has to be now."""
        value = self.value(content(line))
        params = as_object(as_object(value).get("params"))
        if line.method == CANCEL_REQUEST and "requestId" in params:  # it names a request of the one that sends it
            id = msgspec.json.encode(params["requestId"])
            params["requestId"] = msgspec.json.decode(self.requests.get(id, id))
        return value

    def value(self, recorded: object, key: str = "") -> object:
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
        if b'"requestId"' in raw and CANCEL_REQUEST.encode() not in raw:  # it names a request of the receiver
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


def anonymous(value: object) -> object:
    """The value without generated ids."""
    if isinstance(value, dict):
        return {key: "" if key in MADE_UP else anonymous(inner) for key, inner in value.items()}
    return [anonymous(inner) for inner in value] if isinstance(value, list) else value


def _text(token: bytes) -> str:
    try:
        text: str = msgspec.json.decode(token, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair: no id and no path
        return ""
    return text


def _made_up(value: object) -> Iterator[str]:
    left = [value]  # not by recursion: a recording may be nested as deeply as it likes
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from (inner for key, inner in value.items() if key in MADE_UP and isinstance(inner, str))
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)


CANCEL: Final = "session/cancel"


class BadRecording(AcpError):
    """Nothing can be played from this; the text has the reason and a hint."""


def is_none(name: str, lines: int) -> Advice:
    """The error for a file that is not a recording."""
    why = f"no message in {counted(lines, 'line')}" if lines else "it is empty"
    return Advice(
        f"`{name}` is not a recording: {why}",
        'a line is {"t": seconds, "dir": "c2a" or "a2c", "msg": …}, as `antiphon record` writes it',
    )


def conversations(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The lines of each conversation: a second `initialize` begins a new one.

    Raises:
        BadRecording: there is no line, or none of a client.
    """
    found: list[list[Entry]] = [[]]
    begun = False
    for entry in entries:
        if entry.dir is Direction.C2A and entry.is_request and entry.method == "initialize":
            if begun:
                found.append([])
            begun = True
        found[-1].append(entry)
    if not found[0]:
        raise BadRecording(
            "the recording is empty",
            hint='it takes lines such as {"t": 0.1, "dir": "c2a", "msg": {…}}; `antiphon record` makes them.',
        )
    if not any(entry.dir is Direction.C2A for entry in found[0]):
        raise BadRecording(
            "the recording has no line of a client, so nothing in it is an answer",
            hint="record both directions: client to agent is `c2a`, agent to client `a2c`.",
        )
    return found


class Exchange:
    """A request of the other side, and in their order the lines that belong to it: ours, and what ours had to wait for."""

    def __init__(self, request: Entry | None, answer: Entry | None) -> None:
        self.request = request
        self.response = answer
        self.session = session_of(request) or session_of(answer)
        self.lines: list[Entry] = []
        self.is_open = request is not None
        """While it is being put together: whether its response has not come yet."""

    def add(self, line: Entry) -> None:
        """The next line that belongs to it."""
        self.lines.append(line)
        self.is_open = self.is_open and line is not self.response


class Script:
    """One conversation, for the side that sends in the direction `ours`."""

    def __init__(self, lines: list[Entry], ours: Direction) -> None:
        self.lines = lines
        self.ours = ours
        self._responses: dict[int, Entry] = {}
        self._requests: dict[int, Entry] = {}
        self._pair()
        mine = [line for line in lines if line.dir is ours]
        self._cut = mine[-1] if mine and _is_cut(mine[-1]) else None

    def _pair(self) -> None:
        # By the id as it was written: a number too big for a float is still an id of its own.
        open: dict[tuple[Direction, bytes], Entry] = {}
        for line in self.lines:
            if line.is_request:
                open[line.dir, written_id(line.raw)] = line
            elif line.is_response and (request := open.pop((line.dir.other, written_id(line.raw)), None)) is not None:
                self._responses[request.number] = line
                self._requests[line.number] = request

    @property
    def version(self) -> int:
        """The version of the protocol that was settled; the first where none was."""
        for line in self.lines:
            if line.method == "initialize" and (answer := self.response_to(line)) is not None:
                version = as_object(answer.msg.get("result")).get("protocolVersion")
                if isinstance(version, int):
                    return version
        return 1

    def response_to(self, request: Entry) -> Entry | None:
        """The recorded response to a recorded request."""
        return self._responses.get(request.number)

    def request_of(self, answer: Entry) -> Entry | None:
        """The recorded request that a recorded response is for."""
        return self._requests.get(answer.number)

    def is_ours(self, line: Entry) -> bool:
        """Whether we send this line."""
        return line.dir is self.ours

    def ending(self, line: Entry) -> bytes:
        """The line end to send. A message that was cut off at the very end had none: its sender died while it wrote."""
        return b"" if line is self._cut else b"\n"

    def exchanges(self) -> list[Exchange]:
        """The exchanges, one for each request. The first has none: it is what we send before any request."""
        found = [Exchange(None, None)]
        homes: dict[int, Exchange] = {}  # id of a request of ours → the exchange of its response
        for line in self.lines:
            if not self.is_ours(line):
                self._receive(line, found, homes)
                continue
            request = self.request_of(line)
            home = homes[request.number] if request is not None else _owner(session_of(line), found)
            home.add(line)
            homes[line.number] = home
        return found

    def _receive(self, line: Entry, found: list[Exchange], homes: dict[int, Exchange]) -> None:
        if line.is_request:
            found.append(Exchange(line, self.response_to(line)))
            homes[line.number] = found[-1]
        elif line.is_response:
            request = self.request_of(line)
            if request is not None:
                homes[request.number].add(line)
        elif line.method == CANCEL:
            for one in found:
                if one.is_open and one.session == session_of(line):
                    one.add(line)


def _is_cut(line: Entry) -> bool:
    text = line.raw.strip()
    return line.is_noise and text.startswith(b"{") and not text.endswith(b"}")


def session_of(line: Entry | None) -> str | None:
    """The session that a line is about, or that it opens."""
    if line is None or not isinstance(line.msg, dict):
        return None
    about: object = line.msg.get("params", line.msg.get("result"))
    session = about.get("sessionId") if isinstance(about, dict) else None
    return session if isinstance(session, str) else None


def _owner(session: str | None, found: list[Exchange]) -> Exchange:
    """To which exchange a line of ours belongs that answers nothing: an open one of its session, before all."""
    latest = found[::-1]
    looks: tuple[Callable[[Exchange], bool], ...] = (
        lambda one: one.is_open and one.session == session,
        lambda one: one.is_open and (one.session is None or session is None),
        lambda one: session is not None and one.session == session,
        lambda one: one.is_open,
    )
    return next((one for fits in looks for one in latest if fits(one)), latest[0])
