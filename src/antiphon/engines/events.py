"""What a translator makes of the output of a CLI besides updates of ACP, and how all of it is sent to the client.

Output of commands can be mirrored in terminals of the client, with `ANTIPHON_MIRROR_TERMINALS=1`: the captured output is printed again, and
the command never runs a second time. Only for users who ask for it: a client that asks before it runs anything would ask about the printing.
"""

import asyncio
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from antiphon.aio import background
from antiphon.errors import AcpError, Advice, RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.text import fenced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from antiphon.agent.client import ConnectedClient
    from antiphon.agent.session import AgentSession

__all__ = [
    "CREATE_WAIT",
    "EXIT_WAIT",
    "MIRROR_BYTES",
    "VARIABLE",
    "CommonEvent",
    "EngineNotice",
    "Handler",
    "Mirror",
    "ModeChanged",
    "ModelChanged",
    "SignInNeeded",
    "TitleChanged",
    "TurnEnd",
    "TurnEnded",
    "TurnFailure",
    "UpdateSender",
    "mirror",
    "mirrors",
]


class _EngineEvent(msgspec.Struct, frozen=True):
    """Base of what concerns the session, and is not an update for the client as it stands."""


class EngineNotice(_EngineEvent, frozen=True):
    """A notice for the user that belongs to no message."""

    title: str
    description: str | None = None
    severity: v1.NoticeSeverity = v1.NoticeSeverity.INFO


class ModeChanged(_EngineEvent, frozen=True):
    """The CLI has switched to another mode."""

    mode: str


class ModelChanged(_EngineEvent, frozen=True):
    """The CLI uses another model from now on."""

    model: str


class TitleChanged(_EngineEvent, frozen=True):
    """The CLI has given the session a title."""

    title: str


class Mirror(_EngineEvent, frozen=True):
    """The output of a command that ran, for a terminal that only shows it."""

    call_id: str
    command: str
    output: str
    exit_code: int | None = None


class SignInNeeded(_EngineEvent, frozen=True):
    """The user is not signed in."""

    text: str


class TurnFailure(msgspec.Struct, frozen=True):
    """The error that ended a turn: its kind, and what to do about it."""

    kind: str
    code: int
    message: str
    hint: str = ""
    status: int | None = None
    """The HTTP status behind it."""
    resets_at: float | None = None
    """When a limit is lifted, in seconds since 1970."""

    def __str__(self) -> str:
        return str(Advice(self.message, self.hint))

    def refusal(self) -> RequestError:
        """Return the error as the response to a prompt."""
        data: dict[str, object] = {"kind": self.kind}
        if self.hint:
            data["hint"] = self.hint
        if self.status is not None:
            data["status"] = self.status
        if self.resets_at is not None:
            with suppress(ValueError, OverflowError, OSError):  # not a time that a calendar has
                data["resetsAt"] = datetime.fromtimestamp(self.resets_at, UTC).isoformat(timespec="seconds")
        return RequestError(self.code, self.message, data)


class TurnEnd(msgspec.Struct, frozen=True):
    """How a turn ended: for a stop reason of the protocol, or with an error."""

    stop_reason: v1.StopReason | None = None
    error: TurnFailure | None = None
    usage: v1.Usage | None = None
    cost: v1.Cost | None = None


class TurnEnded(_EngineEvent, frozen=True):
    """A turn has ended: the one of these prompts, or one that the CLI had started by itself."""

    end: TurnEnd
    ids: tuple[str, ...] = ()
    by_itself: bool = False


CommonEvent: TypeAlias = EngineNotice | ModeChanged | ModelChanged | TitleChanged | Mirror | SignInNeeded | TurnEnded
"""The events that every CLI has."""


Handler: TypeAlias = "Callable[[Any], Awaitable[None]]"
"""Sends an event of one type to the client, or does what it asks for."""


class UpdateSender:
    """Sends events to the client of one session. Most are updates already; the rest depends on what the client shows, or has a handler."""

    def __init__(self, session: "AgentSession", handlers: "Mapping[type, Handler]") -> None:
        self._session = session
        self._handlers: dict[type, Handler] = {
            EngineNotice: self._notice,
            TitleChanged: self._title,
            Mirror: self._mirror,
            SignInNeeded: self.send_sign_in,
            v1.CompactionUpdate: self._compaction,
            v1.CompactionSummaryChunk: self._summary,
            **handlers,
        }

    def send(self, event: Any) -> "Awaitable[None]":
        """Send an event. Await it: it waits while the client is slow."""
        handler = self._handlers.get(type(event))
        return self._session.update(event) if handler is None else handler(event)

    async def _notice(self, notice: EngineNotice) -> None:
        await self._session.notice(notice.title, notice.description, notice.severity)

    async def _title(self, titled: TitleChanged) -> None:
        await self._session.entitle(titled.title)

    async def _mirror(self, command: Mirror) -> None:
        await mirror(self._session, command.call_id, command.output, command.exit_code)

    async def send_sign_in(self, needed: SignInNeeded) -> None:
        """Send a notice that the user has to sign in."""
        await self._session.notice("Sign in first", needed.text, v1.NoticeSeverity.WARNING)

    async def _compaction(self, update: v1.CompactionUpdate) -> None:
        if self._session.client.shows_compaction:
            await self._session.update(update)
        elif update.status == v1.CompactionStatus.COMPLETED:
            await self._session.notice("The session was compacted", "It goes on with a summary.")
        elif update.status == v1.CompactionStatus.FAILED:
            why = update.error if isinstance(update.error, str) else None
            await self._session.notice("The session could not be compacted", why, v1.NoticeSeverity.WARNING)

    async def _summary(self, chunk: v1.CompactionSummaryChunk) -> None:
        if self._session.client.shows_compaction:
            await self._session.update(chunk)


# Terminals of the client that show the output of a command.

VARIABLE: Final = "ANTIPHON_MIRROR_TERMINALS"

MIRROR_BYTES: Final = 100_000
"""Bytes that are printed in a terminal: systems take 128 KiB as one argument. Longer output is shown as text."""

CREATE_WAIT: Final = 0.5
"""Seconds until the terminal must be there. All updates wait meanwhile; after that the output is shown as text."""

EXIT_WAIT: Final = 10.0
"""Seconds that printing may take before the terminal is released in any case."""


def mirrors(client: "ConnectedClient") -> bool:
    """Whether output is shown in terminals: the client has them, and the user wants it."""
    return client.runs_commands and os.environ.get(VARIABLE) == "1"


async def mirror(session: "AgentSession", call_id: str, output: str, exit_code: int | None = None) -> None:
    """Show the output of a command in its tool call: in a terminal, or as text where that does not work."""
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


async def _terminal(session: "AgentSession", output: str) -> str | None:
    """Create a terminal that prints the output; return its id, or None if there is no terminal."""
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


def _release_when_there(session: "AgentSession", creating: "asyncio.Task[v1.CreateTerminalResult]") -> None:
    """Release a terminal that is created too late."""

    def came(task: "asyncio.Task[v1.CreateTerminalResult]") -> None:
        if not task.cancelled() and task.exception() is None:
            _ = background(_release(session, task.result().terminal_id, 0))

    creating.add_done_callback(came)


async def _release(session: "AgentSession", terminal_id: str, limit: float) -> None:
    """Release a terminal once it has printed all. Clients go on showing what it holds."""
    try:
        async with asyncio.timeout(limit):
            await session.request(m.WAIT_FOR_EXIT, v1.WaitForExit(session.id, terminal_id))
    except (AcpError, TimeoutError):
        pass
    await session.request(m.RELEASE_TERMINAL, v1.ReleaseTerminal(session.id, terminal_id))


def _as_text(output: str, exit_code: int | None) -> str:
    ended = f"\nIt ended with exit code {exit_code}." if exit_code else ""
    return (fenced(output) if output.strip() else "There was no output.") + ended
