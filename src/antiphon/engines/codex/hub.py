"""The one server that all sessions share: started when it is first needed, started again when it is gone, each word given to its thread."""

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
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError
from antiphon.text import strip_ansi

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from antiphon.engines.cli_program import FoundProgram

__all__ = ["EARLY", "CodexHub", "ThreadListener"]

INTRODUCTION: Final = {
    "clientInfo": {"name": "antiphon", "title": "Antiphon", "version": __version__},
    # Without the experimental part nobody can end a command that outlives its turn.
    "capabilities": {"experimentalApi": True, "requestAttestation": False},
}

EARLY: Final = frozenset({"configWarning", "deprecationNotice", "warning", "guardianWarning"})
"""What the server says about no thread, mostly as it starts, that every session should know."""

MOST_EARLY: Final = 16
"""Words of that kind that are kept for sessions to come."""

AGAIN: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds before another start, if two servers make the databases of a new home at once. Making them takes half a second."""

_IN_THE_WAY: Final = re.compile(r"initialize (?:sqlite )?state runtime|database is locked", re.IGNORECASE)

_BACKTRACE: Final = re.compile(r"^\s*(?:Stack backtrace:|\d+: \S)", re.MULTILINE)

ONCE: Final = re.compile(r"\bbubblewrap\b|\bbwrap\b", re.IGNORECASE)
"""Warnings about the machine that are told once, and not with each start: the user knows by now, or does not mind."""

TOLD_ONCE: Final = "codex-warnings.json"

CALLS: Final = (wire.CommandExecution, wire.FileChange, wire.McpToolCall)
"""Items that a question may be about."""

_log = logging.getLogger(__name__)


UNLOAD_AT_ONCE: Final = ("-c", "thread_unload_delay_secs=0")
"""By default a server keeps a thread loaded for a while after the last client left it, and no other server can open it then."""


class ThreadListener(Protocol):
    """A thread's session."""

    def expect(self) -> None:
        """The server has said something, perhaps about it, which is heard in the next turn of the loop."""

    def receive(self, told: wire.ServerNotification) -> "Awaitable[None]":
        """The server says something about it."""

    def receive_request(self, server: CodexServer, question: wire.ServerRequest) -> None:
        """The server asks something about it."""

    async def lost(self, server: CodexServer) -> None:
        """The server is gone."""

    def displaced(self) -> None:
        """Another session has the thread now."""


class CodexHub:
    """For one engine."""

    def __init__(self, found: "FoundProgram") -> None:
        self.found = found
        self._running: KeptProcess[CodexServer] = KeptProcess(self)
        self._listeners: dict[str, ThreadListener] = {}
        self._parents: dict[str, str] = {}
        self.ids = SessionIds()
        """Sessions that go on in another thread than the one that they are called after."""
        self._early: dict[str, wire.ServerNotification] = {}
        self._models: tuple[CodexServer, list[wire.CodexModel]] | None = None
        self.login: Mark = None
        """The login that the server has read."""

    async def ready(self) -> CodexServer:
        """The server, once it can be spoken to.

        Raises:
            RequestError: it does not start.
        """
        try:
            return await self._started()
        except RequestError:
            raise
        except AcpError as error:
            raise RequestError(Code.INTERNAL_ERROR, "Codex does not start", strip_ansi(str(error))) from error

    async def _started(self) -> CodexServer:
        """The server. One that ends because another was making the databases of a new home at that moment is started again."""
        for pause in AGAIN:
            try:
                return await self._running.ready()
            except ConnectionClosed as error:
                if not _was_in_the_way(str(error)):
                    raise
                _log.info("Codex is started again in %g s: %s", pause, error)
                await asyncio.sleep(pause)
        return await self._running.ready()

    def start_soon(self) -> None:
        """Begin to start it."""
        self._running.start_soon()

    def give_up(self, server: CodexServer) -> None:
        """It hangs: end it. Whoever needs one gets another."""
        self._running.give_up(server)

    def give_up_unused(self, server: CodexServer) -> None:
        """End it if no session needs it."""
        if not self._listeners:
            self.give_up(server)

    def listen(self, thread_id: str, listener: ThreadListener) -> None:
        """Give what concerns a thread to this session, and to no other."""
        before = self._listeners.get(thread_id)
        self._listeners[thread_id] = listener
        if before is not None and before is not listener:
            before.displaced()

    def said_early(self) -> list[wire.ServerNotification]:
        """What everybody should know, and was said before a session was there."""
        return list(self._early.values())

    def told_before(self, told: wire.ServerNotification) -> bool:
        """Whether the user was told this warning about the machine in some session before. From now on it was told."""
        text = " ".join(
            str(getattr(told.params, name, None) or "") for name in ("message", "summary", "details")
        ).strip()
        if not ONCE.search(text):
            return False
        path = notes_folder() / TOLD_ONCE
        notes = read_notes(path) or {}
        if text in notes:
            return True
        notes[text] = True
        trim(notes, MOST_EARLY)
        write_notes(path, notes)
        return False

    def listener_of(self, thread_id: str) -> ThreadListener | None:
        """The session of a thread, if it is open here."""
        return self._listeners.get(thread_id)

    def forget(self, thread_id: str, listener: ThreadListener) -> bool:
        """This session does not listen to it any more. False: it did not, or another one does."""
        if self._listeners.get(thread_id) is not listener:
            return False
        del self._listeners[thread_id]
        family = {thread_id}
        while grown := {child for child, parent in self._parents.items() if parent in family} - family:
            family |= grown
        self._parents = {child: parent for child, parent in self._parents.items() if child not in family}
        return True

    async def models(self) -> list[wire.CodexModel]:
        """The models on offer; asked for once in a server's life."""
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
        await self._running.close()

    # Being the owner of a process.

    async def start(self) -> CodexServer:
        """A server, in the user's own environment: it finds its home, its login and its settings there. Not in the project's directory."""
        self._early.clear()  # the next one has its own
        self.login = kept_login()
        command = [self.found.path, "app-server", *UNLOAD_AT_ONCE]
        return await CodexServer.start(command, home_directory(), harmless_git(environment_for("codex")), self._expect)

    def _expect(self) -> None:
        for each in self._listeners.values():
            each.expect()

    async def began(self, server: CodexServer) -> None:
        """Introduce ourselves."""
        await server.request("initialize", INTRODUCTION)
        server.notify("initialized")

    def receive(
        self, server: CodexServer, line: "wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage"
    ) -> "Awaitable[None]":
        """Give a word to whom it concerns. Nearly all are a word of the model, which is told without a coroutine."""
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
                _log.warning("Codex said what nobody understands: %.200s", line.text_head)
            case wire.ServerRequest():
                listener = self._of(line.thread_id)
                if listener is None:
                    server.refuse(line.id, "nobody here knows this thread", Code.METHOD_NOT_FOUND)
                else:
                    listener.receive_request(server, line)
            case wire.ServerNotification():
                self._note_child(line)
                if line.thread_id is None:
                    await self._tell_everybody(line)
                elif line.thread_id in self._listeners:
                    await self._listeners[line.thread_id].receive(line)
                elif _is_of_a_call(line) and (listener := self._of(line.thread_id)) is not None:
                    await listener.receive(line)

    async def _tell_everybody(self, line: wire.ServerNotification) -> None:
        """The account, the configuration: everybody's concern, whatever goes wrong with one of them."""
        if line.method in EARLY:
            self._early[f"{line.method} {line.params!r}"] = line
            trim(self._early, MOST_EARLY)
        for each in list(self._listeners.values()):
            try:
                await each.receive(line)
            except Exception:
                _log.exception("a session could not be told: %.200r", line)

    def _note_child(self, line: wire.ServerNotification) -> None:
        """Threads of sub-agents ask through the session that they belong to."""
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
        """All threads hear of it; each comes back with its next prompt."""
        for each in list(self._listeners.values()):
            try:
                await each.lost(server)
            except Exception:
                _log.exception("a session could not be told that Codex ended")


def _was_in_the_way(error: str) -> bool:
    """Whether another server may be the reason. Where Rust adds a backtrace the reason itself is not among the last words."""
    return _IN_THE_WAY.search(error) is not None or ("Error:" not in error and _BACKTRACE.search(error) is not None)


def _is_of_a_call(line: wire.ServerNotification) -> bool:
    """Whether the session that a sub-agent belongs to has to know: a call that may be asked about, a question that is settled."""
    match line.params:
        case wire.RequestResolved():
            return True
        case wire.ItemNotification(item=item):
            return isinstance(item, CALLS)
        case _:
            return False
