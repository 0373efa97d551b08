"""The one server that all sessions share: started when it is first needed, and again when it has ended. Routes messages by thread."""

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Final, Protocol

from antiphon import __version__
from antiphon.config.environment import environment_for, harmless_git
from antiphon.engines.bounded import SessionIds, trim
from antiphon.engines.cli_program import home_directory, notes_folder, read_notes, write_notes
from antiphon.engines.codex import wire
from antiphon.engines.codex.login import Mark, kept_login
from antiphon.engines.codex.server import CodexServer
from antiphon.engines.process import KeptProcess
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError, ResponseError
from antiphon.text import strip_ansi

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from antiphon.engines.cli_program import FoundProgram

__all__ = ["EARLY", "CodexHub", "ThreadListener"]

INTRODUCTION: Final = {
    "clientInfo": {"name": "antiphon", "title": "Antiphon", "version": __version__},
    # Without the experimental part there is no way to end a command that outlives its turn.
    "capabilities": {"experimentalApi": True, "requestAttestation": False},
}

EARLY: Final = frozenset({"configWarning", "deprecationNotice", "warning", "guardianWarning"})
"""Notifications without a thread, mostly at the start of the server, that every session should get."""

MOST_EARLY: Final = 16
"""Notifications of that kind that are kept for sessions to come."""

START_DELAYS: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds before another start, if two servers make the databases of a new home at once. Making them takes half a second."""

_IN_THE_WAY: Final = re.compile(r"initialize (?:sqlite )?state runtime|database is locked", re.IGNORECASE)

_BACKTRACE: Final = re.compile(r"^\s*(?:Stack backtrace:|\d+: \S)", re.MULTILINE)

_ONCE: Final = re.compile(r"\bbubblewrap\b|\bbwrap\b", re.IGNORECASE)
"""Warnings about the machine that are sent once, and not with each start: the user knows by now, or does not mind."""

SENT_ONCE: Final = "codex-warnings.json"
"""The file with the warnings that were sent."""

CALLS: Final = (wire.CommandExecution, wire.FileChange, wire.McpToolCall)
"""Items that a request to the user may be about."""

_log = logging.getLogger(__name__)


UNLOAD_AT_ONCE: Final = ("-c", "thread_unload_delay_secs=0")
"""Unload a thread when its last client leaves: by default a server keeps it loaded for a while, and no other server can open it."""


IN_MEMORY: Final = ("-c", 'cli_auth_credentials_store="ephemeral"')
"""Keep a login in the memory of the server. It reads no stored one then."""


class ThreadListener(Protocol):
    """The session of a thread."""

    def expect(self) -> None:
        """Messages of the server have arrived, perhaps about the thread, which are handled in the next turn of the event loop."""

    def receive(self, message: wire.ServerNotification) -> "Awaitable[None]":
        """Handle a notification about the thread."""

    def receive_request(self, server: CodexServer, question: wire.ServerRequest) -> None:
        """Handle a request about the thread."""

    async def lost(self, server: CodexServer) -> None:
        """The server has ended."""

    def displaced(self) -> None:
        """Another session has the thread now."""


class CodexHub:
    """The server of one engine, and the sessions that have a thread in it. Owns the process."""

    def __init__(self, program: "FoundProgram") -> None:
        self.program = program
        self._kept: KeptProcess[CodexServer] = KeptProcess(self)
        self._listeners: dict[str, ThreadListener] = {}
        self._parents: dict[str, str] = {}
        self.ids = SessionIds()
        """Sessions that go on in another thread than the one that they are called after."""
        self._early: dict[str, wire.ServerNotification] = {}
        self._models: tuple[CodexServer, list[wire.CodexModel]] | None = None
        self.login: Mark = None
        """The login that the server has read."""
        self.key: str | None = None
        """The API key that each server gets when it starts, and does not store. None: it uses the stored login."""
        self.may_use_key = True
        """Whether a key of the environment may be used without a request: not after the user has signed out."""

    async def ready(self) -> CodexServer:
        """Return the server once it can be used.

        Raises:
            RequestError: it does not start.
        """
        try:
            return await self._started()
        except ResponseError:
            raise
        except AcpError as error:
            raise RequestError(Code.INTERNAL_ERROR, "Codex does not start", strip_ansi(str(error))) from error

    async def _started(self) -> CodexServer:
        """Return the server. One that ends because another was making the databases of a new home at that moment is started again."""
        for pause in START_DELAYS:
            try:
                return await self._kept.ready()
            except ConnectionClosed as error:
                if not _was_in_the_way(str(error)):
                    raise
                _log.info("Codex is started again in %g s: %s", pause, error)
                await asyncio.sleep(pause)
        return await self._kept.ready()

    def start_soon(self) -> None:
        """Begin to start the server."""
        self._kept.start_soon()

    def drop(self, server: CodexServer) -> None:
        """End a server that hangs. The next caller of `ready` gets another."""
        self._kept.drop(server)

    def drop_unused(self, server: CodexServer) -> None:
        """End a server if no session needs it."""
        if not self._listeners:
            self.drop(server)

    def listen(self, thread_id: str, listener: ThreadListener) -> None:
        """Send what concerns a thread to this session, and to no other."""
        before = self._listeners.get(thread_id)
        self._listeners[thread_id] = listener
        if before is not None and before is not listener:
            before.displaced()

    def early_notifications(self) -> list[wire.ServerNotification]:
        """Return the notifications for every session that came before a session was open."""
        return list(self._early.values())

    def sent_before(self, message: wire.ServerNotification) -> bool:
        """Whether this warning about the machine was sent in some session before. From now on it counts as sent."""
        text = " ".join(
            str(getattr(message.params, name, None) or "") for name in ("message", "summary", "details")
        ).strip()
        if not _ONCE.search(text):
            return False
        path = notes_folder() / SENT_ONCE
        notes = read_notes(path) or {}
        if text in notes:
            return True
        notes[text] = True
        trim(notes, MOST_EARLY)
        write_notes(path, notes)
        return False

    def listener_of(self, thread_id: str) -> ThreadListener | None:
        """Return the session of a thread, if it is open here."""
        return self._listeners.get(thread_id)

    def forget(self, thread_id: str, listener: ThreadListener) -> bool:
        """Send messages of a thread to this session no longer. False: they were sent to another one, or to none."""
        if self._listeners.get(thread_id) is not listener:
            return False
        del self._listeners[thread_id]
        family = {thread_id}
        while grown := {child for child, parent in self._parents.items() if parent in family} - family:
            family |= grown
        self._parents = {child: parent for child, parent in self._parents.items() if child not in family}
        return True

    async def models(self) -> list[wire.CodexModel]:
        """Return the models on offer; requested once from each server."""
        server = await self.ready()
        if self._models is None or self._models[0] is not server:
            found: list[wire.CodexModel] = []
            cursor: str | None = None
            known: set[str] = set()
            while True:
                page = await server.call("model/list", {"cursor": cursor, "limit": 100}, wire.ModelPage)
                found += page.data
                cursor = page.next_cursor
                if not cursor or not page.data or cursor in known:
                    break
                known.add(cursor)
            self._models = server, [model for model in found if not model.hidden]
        return self._models[1]

    async def close(self) -> None:
        """End the server for good."""
        await self._kept.close()

    # As the owner of a process.

    async def start(self) -> CodexServer:
        """Start a server in the user's own environment, where its home, login and settings are, and not in the project's directory."""
        self._early.clear()  # the next one has its own
        self.login = kept_login()
        command = [self.program.path, "app-server", *UNLOAD_AT_ONCE, *(IN_MEMORY if self.key else ())]
        return await CodexServer.start(command, home_directory(), harmless_git(environment_for("codex")), self._expect)

    def _expect(self) -> None:
        for each in self._listeners.values():
            each.expect()

    async def began(self, server: CodexServer) -> None:
        """Send `initialize`, and the key that the server has to use."""
        await server.request("initialize", INTRODUCTION)
        server.notify("initialized")
        if self.key is not None:
            await server.request("account/login/start", {"type": "apiKey", "apiKey": self.key})

    def receive(
        self, server: CodexServer, line: "wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage"
    ) -> "Awaitable[None]":
        """Route a message to its session. Nearly all are a token of the model, which is sent without a coroutine."""
        if type(line) is wire.ServerNotification and type(line.params) is wire.Delta:
            listener = self._listeners.get(line.params.thread_id or "")
            if listener is not None:
                return listener.receive(line)
        return self._receive(server, line)

    async def _receive(
        self, server: CodexServer, line: "wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage"
    ) -> None:
        match line:
            case wire.GarbledMessage():
                _log.warning("a message of Codex could not be read: %.200s", line.text_head)
            case wire.ServerRequest():
                listener = self._of(line.thread_id)
                if listener is None:
                    server.refuse(line.id, "this thread is not open here", Code.METHOD_NOT_FOUND)
                else:
                    listener.receive_request(server, line)
            case wire.ServerNotification():
                self._note_child(line)
                if line.thread_id is None:
                    await self._send_to_all(line)
                elif line.thread_id in self._listeners:
                    await self._listeners[line.thread_id].receive(line)
                elif _is_of_a_call(line) and (listener := self._of(line.thread_id)) is not None:
                    await listener.receive(line)

    async def _send_to_all(self, line: wire.ServerNotification) -> None:
        """Send a notification about account or configuration to every session, whatever goes wrong with one of them."""
        if line.method in EARLY:
            self._early[f"{line.method} {line.params!r}"] = line
            trim(self._early, MOST_EARLY)
        for each in list(self._listeners.values()):
            try:
                await each.receive(line)
            except Exception:
                _log.exception("a session did not handle a notification: %.200r", line)

    def _note_child(self, line: wire.ServerNotification) -> None:
        """Remember the parent of a sub-agent's thread: its requests go to the session of the parent."""
        match line.params:
            case wire.ThreadStarted(thread=wire.Thread(id=child, parent_thread_id=str() as parent)):
                self._parents[child] = parent
                trim(self._parents)
            case _:
                pass

    def _of(self, thread_id: str | None) -> ThreadListener | None:
        seen: set[str] = set()
        while thread_id is not None and thread_id not in self._listeners and thread_id not in seen:
            seen.add(thread_id)
            thread_id = self._parents.get(thread_id)
        return self._listeners.get(thread_id) if thread_id is not None else None

    async def ended(self, server: CodexServer) -> None:
        """Report the end of the server to all sessions; each opens its thread again with its next prompt."""
        for each in list(self._listeners.values()):
            try:
                await each.lost(server)
            except Exception:
                _log.exception("a session did not handle the end of Codex")


def _was_in_the_way(error: str) -> bool:
    """Whether another server may be the reason. Where Rust adds a backtrace the reason itself is not among the last lines."""
    return _IN_THE_WAY.search(error) is not None or ("Error:" not in error and _BACKTRACE.search(error) is not None)


def _is_of_a_call(line: wire.ServerNotification) -> bool:
    """Whether the session of a sub-agent's parent has to get it: a call that a request may be about, a request that is resolved."""
    match line.params:
        case wire.RequestResolved():
            return True
        case wire.ItemNotification(item=item):
            return isinstance(item, CALLS)
        case _:
            return False
