"""`!command`: runs in the user's shell, in this terminal, and its output can be handed to the agent.

The command has a terminal of its own between it and the user's, so that programs which draw or ask work as in a shell, and
everything that it writes is both shown and kept.
"""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from prompt_toolkit.application.application import attach_winch_signal_handler

from antiphon.text import fenced
from antiphon.transcript.presentation import written_lines

__all__ = ["LAST_OUTPUT", "ShellOutput", "run_command"]

LAST_OUTPUT: Final = "@!"
"""In a prompt: the output of the last command."""

KEPT: Final = 256 * 1024
"""Bytes of an output that are kept for the agent: as much text as a prompt may embed. The end of it, where errors stand."""


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """What a command of the user wrote, and how it ended."""

    command: str
    output: str
    status: int
    is_cut: bool = False

    @property
    def ending(self) -> str:
        """How it ended, in words; empty if it succeeded."""
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        return f"exit status {self.status}" if self.status else ""

    def for_agent(self) -> str:
        """Return the command and its output as Markdown."""
        lines = written_lines(self.output)
        before = "(the beginning is left out)\n" if self.is_cut else ""
        ended = f"\n{self.ending[0].upper()}{self.ending[1:]}." if self.ending else ""
        return f"I ran `{self.command}`:\n{before}{fenced(chr(10).join(lines), 'console')}{ended}"


async def run_command(command: str, cwd: str, head: Sequence[str]) -> ShellOutput:
    """Run a command in the user's shell until it ends. The terminal is its own meanwhile: keys go to it, Ctrl-C too.

    The lines of `head` are written first, as soon as keys reach the command.
    """
    ours, theirs = pty.openpty()
    try:
        _copy_size(ours)
        process = await asyncio.create_subprocess_exec(
            os.environ.get("SHELL") or "/bin/sh", "-c", command, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    kept = bytearray()
    try:
        with _raw_keyboard(), attach_winch_signal_handler(lambda: _copy_size(ours)):
            _write_all(sys.stdout.fileno(), "".join(f"{line}\x1b[0m\r\n" for line in head).encode())
            is_cut = await _forward(ours, process, kept)
            status = await process.wait()
    finally:
        os.close(ours)
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGHUP)
    if kept and not kept.endswith(b"\n"):
        os.write(sys.stdout.fileno(), b"\r\n")
    return ShellOutput(command, kept.decode("utf-8", "replace"), status, is_cut)


async def _forward(ours: int, process: "asyncio.subprocess.Process", kept: bytearray) -> bool:
    """Move bytes between the user's terminal and the command's until it is over; whether not all of the output was kept."""
    loop, over, is_cut = asyncio.get_running_loop(), asyncio.Event(), False

    def write() -> None:
        nonlocal is_cut
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # EIO: the last program has closed it
            data = b""
        if not data:
            loop.remove_reader(ours)
            over.set()
            return
        kept.extend(data)
        if len(kept) > KEPT:
            del kept[:-KEPT]
            is_cut = True
        _write_all(sys.stdout.fileno(), data)

    def typed() -> None:
        with suppress(OSError):
            _write_all(ours, os.read(sys.stdin.fileno(), 4096))

    loop.add_reader(ours, write)
    loop.add_reader(sys.stdin.fileno(), typed)
    try:
        ended = asyncio.ensure_future(process.wait())
        closed = asyncio.ensure_future(over.wait())
        await asyncio.wait((ended, closed), return_when=asyncio.FIRST_COMPLETED)
        closed.cancel()
        while not over.is_set() and _readable(ours):  # the last of it; a program left behind may keep the terminal open
            write()
        return is_cut
    finally:
        loop.remove_reader(ours)
        loop.remove_reader(sys.stdin.fileno())


def _readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _copy_size(ours: int) -> None:
    """Give the command's terminal the size of the user's."""
    with suppress(OSError):
        size = os.get_terminal_size(sys.stdout.fileno())
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))


@contextmanager
def _raw_keyboard() -> Iterator[None]:
    """Let every key through to the command."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setraw(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
