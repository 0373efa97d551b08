"""Our own stdin and stdout as a transport, for a program that a client has started."""

import os
import sys

from antiphon.errors import StdioClosed
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.pipes import PipeTransport

__all__ = ["open_stdio"]


def open_stdio(*, limit: int = MAX_FRAME, already_read: bytes = b"") -> PipeTransport:
    """Take stdin and stdout for the protocol alone.

    From here on whatever a library prints to stdout lands on stderr, and what reads stdin finds it empty, child
    processes included: a stray `print` must not break the connection. `already_read` is what was taken from stdin before.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        read_fd, write_fd = os.dup(0), os.dup(1)
    except OSError:
        raise StdioClosed() from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return PipeTransport(read_fd, write_fd, limit=limit, already_read=already_read)
