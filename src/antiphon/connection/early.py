"""`initialize` answered before the event loop is even imported.

An editor starts an agent and waits for one response. asyncio and the rest of the protocol take as long to import as everything
before them; they can be imported while the editor reads. So this module reads the first line of stdin by itself, answers
it if it is a sound `initialize`, and hands over whatever else it has read. It imports no loop.
"""

import errno
import os
import select
from typing import TYPE_CHECKING, Final, TypeVar

from antiphon.errors import StdioClosed
from antiphon.protocol.base import encode
from antiphon.protocol.timeouts import START_TIMEOUT
from antiphon.rpc.envelope import Request, decode, head_of_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.protocol.methods import Call

__all__ = ["answer_initialize"]

P = TypeVar("P")
R = TypeVar("R")

LONGEST: Final = 1024 * 1024
"""Bytes of a first line after which this is no `initialize`: the connection, which has a limit and an error for it, takes over."""


def answer_initialize(call: "Call[P, R]", initialize: "Callable[[P], R]", *, stdin: int = 0, stdout: int = 1) -> bytes:
    """Wait for the first line on stdin and answer it, if it is a `call` (`v1.methods.INITIALIZE`) that `initialize` takes.

    Returns what was read and not answered, for `open_stdio(already_read=…)`. A first line that is anything else is among it: the
    connection deals with it, as with a second `initialize`, so give the router the same handler.

    Raises:
        StdioClosed: stdin or stdout is closed.
    """
    try:
        os.fstat(stdout)
    except OSError:
        raise StdioClosed() from None
    read = b""
    while b"\n" not in read and len(read) < LONGEST:
        try:
            chunk = os.read(stdin, 65536)
        except OSError as error:
            if error.errno == errno.EBADF:  # now, before the event loop takes the free number for a file of its own
                raise StdioClosed() from None
            return read  # not readable this way (set to non-blocking, for example): the transport knows what to do
        if not chunk:
            _end_of(stdin)
            return read
        read += chunk
    line, end, rest = read.partition(b"\n")
    answer = _answer(line, call, initialize) if end else None
    if answer is None:
        return read
    _write(stdout, answer)
    return rest


def _write(stdout: int, answer: bytes) -> None:
    """Write all of it. If that cannot be, nothing follows it either: after half a frame nothing can be read."""
    try:
        while answer:
            try:
                answer = answer[os.write(stdout, answer) :]
            except BlockingIOError:  # another process that shares it made it non-blocking, and it is full
                if not _has_space(stdout):
                    raise
    except OSError:  # the client is gone already, or the disk is full; the connection will notice
        read_fd, write_fd = os.pipe()
        os.close(read_fd)
        os.dup2(write_fd, stdout)
        os.close(write_fd)


def _has_space(stdout: int) -> bool:
    """Wait until something can be written, as long as a client waits for an answer to `initialize`."""
    poll = select.poll()
    poll.register(stdout, select.POLLOUT)
    return bool(poll.poll(START_TIMEOUT * 1000))


def _end_of(stdin: int) -> None:
    """Replace stdin by an empty file: a terminal would ask for more after its end, the empty file ends at every read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, stdin)
    os.close(nothing)


def _answer(line: bytes, call: "Call[P, R]", initialize: "Callable[[P], R]") -> bytes | None:
    request = decode(line)
    if not isinstance(request, Request) or request.method != call.name:
        return None
    try:
        reading = call.read_params(request.params)
        result = encode(initialize(reading.value))
    except Exception:  # the connection will get the same error, log it and answer it
        return None
    return head_of_answer(request.id) + (reading.reply(result) if reading.reply else result) + b"}\n"
