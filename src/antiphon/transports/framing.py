"""Lines out of a stream of bytes. Sans-IO: fed with chunks, however cut; gives whole lines back, alone or in blocks."""

from typing import Final

from antiphon.rpc.envelope import Frame, Line, Overlong

__all__ = ["MAX_FRAME", "LineFramer", "lines_of"]

MAX_FRAME: Final = 64 * 1024 * 1024
"""Longest line we buffer. A base64 screenshot is a few MiB; beyond this the peer is broken or hostile."""

LONG: Final = 256 * 1024
"""Bytes above which a line is worth not being copied."""

HEAD: Final = 4096
TAIL: Final = 256
"""What is kept of a line over the limit: an id stands near its start or its end, and what waits for it has to learn of it."""


class LineFramer:
    """Cuts a byte stream into lines. A line over `limit` is not kept; an `Overlong` stands in its place."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self.limit = limit
        self._line = bytearray()  # the unfinished line, or the head of one over the limit
        self.pending = 0
        """Bytes of a line whose end has not come yet."""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[Frame]:
        """The whole lines that this chunk completes, without their ends; empty lines are skipped."""
        frames: list[Frame] = []
        for block in self.blocks(chunk):
            frames += [block] if isinstance(block, Overlong) else lines_of(block)
        return frames

    def blocks(self, chunk: bytes) -> list[Frame]:
        """The same, but consecutive lines stay together in one block that ends with a line end."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return []
        if not self.pending and end <= self.limit:
            found: list[Frame] = [chunk if end == len(chunk) else chunk[:end]]
        elif self.pending + end <= min(LONG, self.limit):
            # Together with the line that they complete: two blocks would cost their reader two wake-ups.
            found = [b"".join((self._line, memoryview(chunk)[:end]))]
            self._line, self.pending = bytearray(), 0
        else:
            found = self._finish(chunk[:end])
        if end < len(chunk):
            self._keep(chunk[end:])
        return found

    def end(self) -> list[Frame]:
        """The stream is over: a last line without its end counts too."""
        if not self.pending:
            return []
        return [frame if isinstance(frame, Overlong) else bytes(frame).rstrip(b"\r\n") for frame in self._finish(b"\n")]

    def _keep(self, part: bytes) -> None:
        over_before = self.pending > self.limit
        self.pending += len(part)
        if self.pending <= self.limit:
            self._line += part
            return
        if not over_before:  # too long from here on: of what was kept only the ends stay
            self._tail = bytes(self._line[-TAIL:])
            self._line = self._line[:HEAD]
        self._line += part[: HEAD - len(self._line)]
        self._tail = (self._tail + part[-TAIL:])[-TAIL:]

    def _finish(self, lines: bytes) -> list[Frame]:
        """Blocks out of the unfinished line and the lines that follow it, when either may be too long."""
        cut = lines.index(b"\n") + 1
        first, rest = lines[:cut], lines[cut:]
        found: list[Frame] = []
        if self.pending + cut - 1 > self.limit:
            self._keep(first[:-1])
            found.append(Overlong(bytes(self._line), self._tail.rstrip(), self.pending, self.limit))
        else:
            self._line += first
            # A long line is handed on as it is; a short one as bytes, which is what most code expects.
            found.append(self._line if len(self._line) > LONG else bytes(self._line))
        self._line, self.pending, self._tail = bytearray(), 0, b""
        if len(rest) <= self.limit:
            return [*found, rest] if rest else found
        for line in rest.split(b"\n")[:-1]:
            size = len(line)
            ends = line[:HEAD], line[-TAIL:].rstrip()
            found.append(Overlong(*ends, size, self.limit) if size > self.limit else line + b"\n")
        return found


def lines_of(block: Line) -> list[bytes]:
    """The lines of a block, without their ends; blank ones are left out."""
    return [line.rstrip(b"\r") for line in bytes(block).split(b"\n") if line and not line.isspace()]
