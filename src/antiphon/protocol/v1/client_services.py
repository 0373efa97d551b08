"""Files and terminals that the client serves to the agent."""

from typing import ClassVar

import msgspec

from antiphon.protocol.base import Exact, Legacy, Model, OrDefault, Uint
from antiphon.protocol.v1.base import SecretModel, SessionId, TerminalId

__all__ = [
    "CreateTerminal",
    "CreateTerminalResult",
    "EnvVariable",
    "ExitStatus",
    "KillTerminal",
    "KillTerminalResult",
    "ReadTextFile",
    "ReadTextFileResult",
    "ReleaseTerminal",
    "ReleaseTerminalResult",
    "TerminalOutput",
    "TerminalOutputResult",
    "WaitForExit",
    "WaitForExitResult",
    "WriteTextFile",
    "WriteTextFileResult",
]

# Files as the client sees them, unsaved edits included.


class ReadTextFile(Model, frozen=True):
    """Ask for a text file, or for `limit` lines from `line` on, counted from 1."""

    session_id: SessionId
    path: str
    line: Exact[Uint | None] = None
    limit: Exact[Uint | None] = None


class ReadTextFileResult(Model, frozen=True):
    """The text of a file."""

    content: str


class WriteTextFile(Model, frozen=True):
    """Write a whole text file."""

    session_id: SessionId
    path: str
    content: str


class WriteTextFileResult(Model, frozen=True):
    """The file is written."""


class EnvVariable(SecretModel, frozen=True):
    """A variable of the environment; its value is often a key, so it is never printed."""

    __secret__: ClassVar[tuple[str, ...]] = ("value",)

    name: str
    value: str


class CreateTerminal(Model, frozen=True):
    """Start a command. Beyond `output_byte_limit` the oldest output is dropped."""

    session_id: SessionId
    command: str
    args: OrDefault[list[str]] = msgspec.field(default_factory=list)
    env: OrDefault[list[EnvVariable]] = msgspec.field(default_factory=list)
    cwd: Exact[str | None] = None
    output_byte_limit: Exact[Uint | None] = None


class CreateTerminalResult(Model, frozen=True):
    """The terminal that runs it; it lives until it is released."""

    terminal_id: TerminalId


class TerminalOutput(Model, frozen=True):
    """Ask for the output so far."""

    session_id: SessionId
    terminal_id: TerminalId


class ExitStatus(Model, frozen=True):
    """How a command ended: with a code, or by a signal."""

    exit_code: Uint | None = None
    signal: str | None = None


class TerminalOutputResult(Model, frozen=True):
    """The output so far, and how the command ended if it has."""

    output: str
    truncated: bool
    exit_status: ExitStatus | None = None
    # Beside the output instead of inside `exit_status`, as the OpenCode-derived spec has them.
    exit_code: Legacy[Uint | None] = None
    signal: Legacy[str | None] = None


class WaitForExit(Model, frozen=True):
    """Ask for a response when the command ends."""

    session_id: SessionId
    terminal_id: TerminalId


class WaitForExitResult(Model, frozen=True):
    """The command ended: with a code, or by a signal."""

    exit_code: Uint | None = None
    signal: str | None = None


class KillTerminal(Model, frozen=True):
    """Stop the command and keep its output."""

    session_id: SessionId
    terminal_id: TerminalId


class KillTerminalResult(Model, frozen=True):
    """The command is killed."""


class ReleaseTerminal(Model, frozen=True):
    """Stop the command and forget the terminal."""

    session_id: SessionId
    terminal_id: TerminalId


class ReleaseTerminalResult(Model, frozen=True):
    """The terminal is released."""
