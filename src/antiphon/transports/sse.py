"""Server-sent events as plain functions of bytes: events are encoded, and read from whatever pieces arrive.

The format is that of the HTML standard: fields in lines, an event ends with an empty line, a line ends with LF, CRLF or CR.
The data of an event of ours is one JSON message on one line; the parser joins several `data:` lines, as the standard says.
"""

from typing import Final, NamedTuple

from antiphon.errors import RemoteProtocolError

__all__ = ["KEEP_ALIVE", "MAX_EVENT", "EventParser", "ServerEvent", "encode_event"]

MAX_EVENT: Final = 64 * 1024 * 1024
"""Bytes that one event may have. Larger than a frame on a pipe is never meant."""

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which says nothing and shows that the stream is alive."""

_BOM: Final = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event of a stream."""

    data: bytes
    id: str = ""
    """The last id that the stream has named, which is what `Last-Event-ID` repeats; empty if it never did."""
    event: str = "message"


def encode_event(data: bytes, id: str = "") -> bytes:
    """Return an event with a message on one line.

    An id cannot hold a line end or a NUL: either would end the field, or make the reader ignore it.
    """
    if b"\n" in data or b"\r" in data:
        raise ValueError("the data of an event is one line")
    if not id:
        return b"data: %b\n\n" % data
    if any(character in id for character in "\n\r\0"):
        raise ValueError("the id of an event is one line without NUL")
    return b"id: %b\ndata: %b\n\n" % (id.encode(), data)


class EventParser:
    """Events out of the bytes of a stream, in whatever pieces they come. An event that was cut off by the end is dropped."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._searched = 0
        """How much of `_rest` is known to hold no line end, so that a long line is searched once."""
        self._skip_newline = False
        """The last piece ended with CR: an LF at the start of the next one belongs to it."""
        self._at_start = True
        self._data: list[bytes] = []
        self._size = 0
        self._event = ""
        self.last_id = ""
        self.retry: int | None = None
        """Milliseconds to wait before the stream is opened again, if the server sent that."""

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Take a piece of the stream and return the events that it completed.

        Raises:
            RemoteProtocolError: an event is larger than the limit.
        """
        events: list[ServerEvent] = []
        for line in self._lines(piece):
            if line:
                self._field(line)
            elif self._data:
                events.append(ServerEvent(b"\n".join(self._data), self.last_id, self._event or "message"))
                self._data, self._size, self._event = [], 0, ""
            else:
                self._event = ""
        if self._size + len(self._rest) > self._limit:
            raise RemoteProtocolError(
                f"an event of the stream is larger than {self._limit} bytes", hint="have the peer send it in parts"
            )
        return events

    def _lines(self, piece: bytes) -> list[bytes]:
        rest = self._rest
        if self._skip_newline and piece:
            self._skip_newline = False
            if piece[0] == 0x0A:
                piece = piece[1:]
        rest += piece
        if self._at_start:
            if len(rest) < len(_BOM) and _BOM.startswith(rest):
                return []  # it may still become a byte order mark
            self._at_start = False
            if rest.startswith(_BOM):
                del rest[: len(_BOM)]
        if rest.find(b"\r", self._searched) < 0:
            end = rest.rfind(b"\n", self._searched)
            if end < 0:
                self._searched = len(rest)
                return []
            lines = bytes(rest[:end]).split(b"\n")
            del rest[: end + 1]
        else:
            self._skip_newline = rest.endswith(b"\r")
            whole = bytes(rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            *lines, last = whole.split(b"\n")
            rest[:] = last
        self._searched = len(rest)
        return lines

    def _field(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if not name and colon:
            return  # a comment
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"id":
            if b"\0" not in value:
                self.last_id = value.decode(errors="replace")
        elif name == b"event":
            self._event = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and value.isascii():
            self.retry = int(value[:9])
