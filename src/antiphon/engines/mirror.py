"""A terminal at the client that shows what a command printed. It prints the captured output again; the command never runs a second time.

Only for those who ask for it, with `ANTIPHON_MIRROR_TERMINALS=1`: a client that asks its user before it runs anything would ask about
the printing, too.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final, TypeVar

from antiphon.aio import background
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.text import fenced

if TYPE_CHECKING:
    from antiphon.agent.client import Client
    from antiphon.agent.session import Session

__all__ = ["CREATE_WAIT", "EXIT_WAIT", "MIRROR_BYTES", "VARIABLE", "mirror", "mirrors"]

R = TypeVar("R")

VARIABLE: Final = "ANTIPHON_MIRROR_TERMINALS"

MIRROR_BYTES: Final = 100_000
"""Bytes that are printed in a terminal: systems take 128 KiB as one argument. Longer output is shown as text."""

CREATE_WAIT: Final = 0.5
"""Seconds until the terminal must be there. All that the engine says waits meanwhile; after that the output is shown as text."""

EXIT_WAIT: Final = 10.0
"""Seconds that printing may take before the terminal is given back in any case."""


def mirrors(client: "Client") -> bool:
    """Whether output is shown in terminals: the client has them, and the user wants it."""
    return client.runs_commands and os.environ.get(VARIABLE) == "1"


async def mirror(session: "Session", call_id: str, output: str, exit_code: int | None = None) -> None:
    """Show what a command printed in its tool call: in a terminal, or as text where that does not work."""
    terminal_id = await _terminal(session, output)
    if terminal_id is None:
        shown: v1.ToolContent = v1.ContentItem(v1.TextBlock(_as_text(output, exit_code)))
    else:
        shown = v1.TerminalItem(terminal_id)
    try:
        await session.update(v1.ToolCallUpdate(call_id, content=[shown]))
    finally:
        if terminal_id is not None:
            _ = background(_release(session, terminal_id, EXIT_WAIT))


async def _terminal(session: "Session", output: str) -> str | None:
    """A terminal that prints it, or None."""
    if not output or "\0" in output or len(output.encode(errors="replace")) > MIRROR_BYTES:
        return None
    # A list of words, so that no shell reads the output: `printf` interprets its first argument only.
    asked = v1.CreateTerminal(session.id, "printf", ["%s", output], cwd=session.cwd, output_byte_limit=2 * MIRROR_BYTES)
    creating = background(session.request(m.CREATE_TERMINAL, asked))
    try:
        async with asyncio.timeout(CREATE_WAIT):
            return (await asyncio.shield(creating)).terminal_id
    except AcpError:
        return None
    except TimeoutError:
        _release_when_there(session, creating)
        return None
    except asyncio.CancelledError:
        _release_when_there(session, creating)
        raise


def _release_when_there(session: "Session", creating: "asyncio.Task[v1.CreateTerminalResult]") -> None:
    """A terminal that comes too late is nobody's."""

    def came(task: "asyncio.Task[v1.CreateTerminalResult]") -> None:
        if not task.cancelled() and task.exception() is None:
            _ = background(_release(session, task.result().terminal_id, 0))

    creating.add_done_callback(came)


async def _release(session: "Session", terminal_id: str, patience: float) -> None:
    """Give it back once it has printed all. Clients go on showing what it holds."""
    try:
        async with asyncio.timeout(patience):
            await session.request(m.WAIT_FOR_EXIT, v1.WaitForExit(session.id, terminal_id))
    except (AcpError, TimeoutError):
        pass
    await session.request(m.RELEASE_TERMINAL, v1.ReleaseTerminal(session.id, terminal_id))


def _as_text(output: str, exit_code: int | None) -> str:
    ended = f"\nIt ended with exit code {exit_code}." if exit_code else ""
    return (fenced(output) if output.strip() else "There was no output.") + ended
