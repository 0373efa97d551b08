"""The protocol that NATS servers speak with their clients: commands as bytes, and bytes as messages. No socket is used here.

Each command is a line, and those with a message have its bytes after it:

    PUB subject [reply] size                    HPUB subject [reply] size-of-headers size
    MSG subject subscription [reply] size       HMSG subject subscription [reply] size-of-headers size

Headers are lines as in HTTP after a first line `NATS/1.0`, which may have a status: 503 where nothing takes a request, 204 at the end of
several messages, 404 where there is none.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from antiphon.errors import AcpError

__all__ = [
    "ServerLine",
    "WireError",
    "WireEvent",
    "WireHeaders",
    "WireMessage",
    "WireParser",
    "encode_publish",
    "encode_subscribe",
    "encode_unsubscribe",
    "read_headers",
]

MAX_LINE: Final = 1 << 20
"""Bytes of one line: a server sends the addresses of all others of its cluster in one."""

MAX_MESSAGE: Final = 64 << 20
"""Bytes of one message: the largest that a server can be configured to."""

PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"

_HEADER_LINE: Final = b"NATS/1.0"
_word: Final = re.compile(r"[!-~]+").fullmatch
_name: Final = re.compile(r"[!-9;-~]+").fullmatch


class WireError(AcpError):
    """The server sent something that is not its protocol."""


class WireMessage(NamedTuple):
    """A message for a subscription."""

    sid: int
    """The number of the subscription."""
    subject: str
    reply: str
    head: bytes
    """Its headers as they came; empty if it has none."""
    data: bytes


class ServerLine(NamedTuple):
    """A line of the server that is no message: `INFO`, `PING`, `PONG`, `+OK` or `-ERR`, and what it says."""

    kind: str
    text: str


class WireHeaders(NamedTuple):
    """The headers of a message, and the status of the server in them; 0 if there is none."""

    status: int
    fields: Mapping[str, str]


WireEvent: TypeAlias = WireMessage | ServerLine


def encode_publish(subject: str, data: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> bytes:
    """Return the command that publishes a message.

    Raises:
        ValueError: a subject or a header would end its line.
    """
    _check_word(subject)
    if reply:
        _check_word(reply)
    where = f"{subject} {reply}" if reply else subject
    if not headers:
        return b"PUB %b %d\r\n%b\r\n" % (where.encode(), len(data), data)
    head = encode_headers(headers)
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (where.encode(), len(head), len(head) + len(data), head, data)


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Return the headers of a message as bytes.

    Raises:
        ValueError: a header would end its line.
    """
    lines = []
    for name, value in headers.items():
        if not _name(name) or "\r" in value or "\n" in value:
            raise ValueError(f"{name!r} cannot be a header with that value")
        lines.append(f"{name}: {value}\r\n")
    return b"%b\r\n%b\r\n" % (_HEADER_LINE, "".join(lines).encode())


def encode_subscribe(sid: int, pattern: str, queue: str = "") -> bytes:
    """Return the command that subscribes to a pattern.

    Raises:
        ValueError: the pattern or the queue is no word.
    """
    _check_word(pattern)
    if queue:
        _check_word(queue)
    return f"SUB {pattern} {queue} {sid}\r\n".encode() if queue else f"SUB {pattern} {sid}\r\n".encode()


def encode_unsubscribe(sid: int) -> bytes:
    """Return the command that ends a subscription."""
    return b"UNSUB %d\r\n" % sid


def read_headers(head: bytes) -> WireHeaders:
    """Return the headers of a message; those that are no header are left out."""
    first, _, rest = head.partition(b"\r\n")
    status, fields = 0, {}
    words = first[len(_HEADER_LINE) :].split(maxsplit=1)
    if words and words[0].isdigit():
        status = int(words[0])
    for line in rest.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            fields[name.decode(errors="replace")] = value.strip().decode(errors="replace")
    return WireHeaders(status, fields)


def _check_word(text: str) -> None:
    if not _word(text):
        raise ValueError(f"{text!r} cannot be a subject: a subject has no spaces, and only ASCII")


class WireParser:
    """Bytes of a server as messages and lines, however they are cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._message: tuple[int, str, str, int, int] | None = None
        """Of the message whose bytes are awaited: subscription, subject, reply, size of its headers, size."""

    def feed(self, data: bytes | memoryview) -> list[WireEvent]:
        """Take bytes and return what they complete.

        Raises:
            WireError: they are no protocol of NATS.
        """
        buffer = self._buffer
        buffer += data
        events: list[WireEvent] = []
        at = 0
        while True:
            if self._message is None:
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    if len(buffer) - at > MAX_LINE:
                        raise WireError("the server sent a line without an end")
                    break
                line = bytes(buffer[at:end])
                at = end + 2
                event = self._read_line(line)
                if event is not None:
                    events.append(event)
            else:
                sid, subject, reply, head, size = self._message
                end = at + size
                if len(buffer) < end + 2:
                    break
                if buffer[end : end + 2] != b"\r\n":
                    raise WireError("the server sent a message that is longer than it says")
                events.append(
                    WireMessage(sid, subject, reply, bytes(buffer[at : at + head]), bytes(buffer[at + head : end]))
                )
                at = end + 2
                self._message = None
        del buffer[:at]
        return events

    def _read_line(self, line: bytes) -> ServerLine | None:
        """Return what a line says; None where a message follows."""
        kind, _, rest = line.partition(b" ")
        kind = kind.upper()
        try:
            if kind == b"MSG":
                subject, sid, *reply, size = rest.split()
                self._expect(sid, subject, reply, b"0", size)
                return None
            if kind == b"HMSG":
                subject, sid, *reply, head, size = rest.split()
                self._expect(sid, subject, reply, head, size)
                return None
        except ValueError:
            raise WireError("the server sent a message that cannot be read") from None
        if kind in (b"INFO", b"PING", b"PONG", b"+OK", b"-ERR"):
            return ServerLine(kind.decode(), rest.decode(errors="replace").strip())
        raise WireError("what answers there does not speak the protocol of NATS")

    def _expect(self, sid: bytes, subject: bytes, reply: list[bytes], head: bytes, size: bytes) -> None:
        most, least = int(size), int(head)
        if len(reply) > 1 or not 0 <= least <= most <= MAX_MESSAGE:
            raise ValueError
        answer_to = reply[0].decode() if reply else ""
        self._message = int(sid), subject.decode(), answer_to, least, most
