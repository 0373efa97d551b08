"""A player on stdin and stdout, as an editor starts it. A plain loop over two descriptors: the editor waits for the first answer."""

import os
import select
import time
from collections.abc import Callable
from typing import Final

from antiphon.recorder.replay import Player
from antiphon.transports.framing import LineFramer

__all__ = ["serve"]

CHUNK: Final = 256 * 1024
"""Bytes read at once."""

PENDING: Final = 16 * 1024 * 1024
"""Bytes that may wait for a client that does not read, before we stop to listen to it."""


def serve(player: Player, tell: Callable[[Player], None], source: int = 0, target: int = 1) -> None:
    """Play until the client closes its end or the player is over. `tell` is called after whatever the player heard."""
    framer = LineFramer()
    out = bytearray()
    listening = True
    while listening or out:
        now = time.monotonic()
        out += b"".join(player.ready(now))
        tell(player)
        if player.over:
            listening = False
            if not out:
                return
        readable, writable = _wait(
            source if listening and len(out) < PENDING else None, target if out else None, player.wait(now)
        )
        if writable and not _write(target, out):
            return
        if readable:
            chunk = _read(source)
            for frame in framer.feed(chunk) if chunk else framer.end():
                now = time.monotonic()
                player.hear(bytes(frame) if isinstance(frame, bytes | bytearray) else frame.head, now)
                out += b"".join(player.ready(now))  # before the next line: order is what it looks at
            if not chunk:
                out += b"".join(player.end(time.monotonic()))
                tell(player)
                listening = False


def _wait(source: int | None, target: int | None, seconds: float | None) -> tuple[bool, bool]:
    """Whether there is something to read, and room to write."""
    poll = select.poll()
    if source is not None:
        poll.register(source, select.POLLIN)
    if target is not None:
        poll.register(target, select.POLLOUT)
    ready = {fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)}
    return source in ready, target in ready


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:  # a terminal that is gone, or nothing there from the start
        return b""


def _write(target: int, out: bytearray) -> bool:
    """Send what fits without waiting: a client that writes to us before it reads must not find us stuck. False: it is gone."""
    try:
        sent = os.write(target, out[: select.PIPE_BUF])
    except OSError:
        return False
    del out[:sent]
    return True
