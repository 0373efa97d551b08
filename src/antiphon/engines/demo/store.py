"""The stored sessions of the demo. Where nothing can be stored, sessions work and are lost with the process."""

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.config.directories import state_dir
from antiphon.errors import Code, RequestError
from antiphon.journal.sqlite import SqliteJournal
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from antiphon.store.errors import BadCursor, NoSuchSession, StoreError
from antiphon.store.locks import LiveElsewhere
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore
from antiphon.transcript.fork_point import cut_point, dropped_prompts, no_cut

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.agent.session import AgentSession
    from antiphon.journal.base import Lease

__all__ = ["DemoState", "DemoStore"]

ENGINE: Final = "demo"
PAGE: Final = 50
"""Sessions in one answer to `session/list`."""


class DemoState(msgspec.Struct):
    """What a session needs to go on, besides its history."""

    mode: str = "default"
    options: dict[str, bool | str] = msgspec.field(default_factory=dict)
    always: dict[str, bool] = msgspec.field(default_factory=dict)
    """What a call does to what → whether it is always allowed or always refused."""
    title: str | None = None
    prompts: int = 0
    numbers: int = 0
    """How many tool calls and the like it had, so that their ids stay its own."""


class _Call(msgspec.Struct):
    """The fields of an update that name its tool call and the status of it."""

    toolCallId: str | None = None
    status: str | None = None


class _PromptPart(msgspec.Struct):
    """The fields of an update that show whether it is a part of a prompt, and of which."""

    sessionUpdate: str = ""
    messageId: str | None = None
    content: object = None

    @property
    def text(self) -> str:
        found = self.content.get("text") if isinstance(self.content, dict) else None
        return found if isinstance(found, str) else ""


_call: Final = msgspec.json.Decoder(_Call)
_prompt: Final = msgspec.json.Decoder(_PromptPart)


class DemoStore:
    """The demo's sessions in the store."""

    def __init__(self) -> None:
        self._store = SessionStore(open_database())
        self._creating: set[asyncio.Future[object]] = set()
        self._journal = SqliteJournal(self._store, state_dir())
        self._leases: dict[str, asyncio.Future[Lease]] = {}
        """The sessions that something was appended to. One without a message is never claimed."""
        self._writing: dict[str, list[asyncio.Future[int]]] = {}

    async def close(self) -> None:
        """Close the file, when what waits is stored."""
        await self._store.database.close()

    def create(self, session: "AgentSession") -> "asyncio.Future[object]":
        """Create a session. Await the result for errors; every other method waits for it."""
        creating: asyncio.Future[object] = asyncio.ensure_future(
            self._store.create(session.id, ENGINE, session.cwd, session.directories, client=session.client.name)
        )
        self._creating.add(creating)
        creating.add_done_callback(self._creating.discard)
        return creating

    async def _created(self) -> None:
        if self._creating:
            await asyncio.wait(tuple(self._creating))

    async def fork(self, session: "AgentSession", source: str) -> DemoState:
        """A new session with the history of another, up to the prompts that are to be left out."""
        await self._created()
        dropped = dropped_prompts(session.meta)
        try:
            length = await self._length_before(source, dropped) if dropped else None
            await self._store.fork(
                source,
                session.id,
                cwd=session.cwd,
                directories=session.directories,
                client=session.client.name,
                length=length,
            )
        except NoSuchSession as error:
            raise _not_found(source) from error
        state = await self.find(session.id, session.cwd)
        state.always = {}  # what was allowed in one session is not allowed in another
        return state

    async def _length_before(self, session_id: str, dropped: "list[str]") -> int:
        """How many updates of a session come before the first of these prompts."""
        found: list[tuple[int, str | None, str]] = []  # the number of the first update of a prompt, its id, its text
        for number, raw in enumerate(await self._store.history(session_id)):
            if (part := _prompt.decode(raw)).sessionUpdate == "user_message_chunk":
                if found and found[-1][1] == part.messageId:
                    found[-1] = (*found[-1][:2], found[-1][2] + part.text)
                else:
                    found.append((number, part.messageId, part.text))
        cut = cut_point([text for _, _, text in found], dropped)
        if cut is None:
            raise no_cut()
        return found[cut][0]

    async def find(self, session_id: str, cwd: str) -> DemoState:
        """Return the state of a session. In another directory nothing is allowed beforehand.

        Raises:
            RequestError: there is no such session of ours.
        """
        await self._created()
        row = await self._store.get(session_id)
        if row is None or row.engine != ENGINE:
            raise _not_found(session_id)
        state = await self._store.state(session_id)
        stored = msgspec.json.decode(state, type=DemoState) if state else DemoState()
        if row.cwd != cwd:
            stored.always = {}
        return stored

    async def directory(self, session_id: str) -> str | None:
        """The directory of a session of ours."""
        await self._created()
        row = await self._store.get(session_id)
        return row.cwd if row is not None and row.engine == ENGINE else None

    async def open_calls(self, session_id: str) -> list[str]:
        """The tool calls that were never finished: the process was killed meanwhile."""
        states: dict[str, str] = {}
        async for page in self._store.pages(session_id):
            for raw in page:
                seen = _call.decode(raw)
                if seen.toolCallId is not None and seen.status is not None:
                    states[seen.toolCallId] = seen.status
                elif seen.toolCallId is not None:
                    states.setdefault(seen.toolCallId, "pending")
        return [id for id, status in states.items() if status not in ("completed", "failed")]

    async def history(self, session_id: str) -> "AsyncIterator[v1.Update]":
        """Return the history as the stored bytes, which are not decoded."""
        async for page in self._store.pages(session_id):
            for raw in page:
                yield v1.Unknown("kept", raw)

    def append(self, session_id: str, updates: "list[v1.Update]") -> None:
        """Append updates. They are written soon, and are on the disk after `save`."""
        writing = asyncio.ensure_future(self._append(session_id, [encode(update) for update in updates]))
        self._writing.setdefault(session_id, []).append(writing)

    async def _append(self, session_id: str, events: "list[bytes]") -> int:
        claiming = self._leases.get(session_id)
        if claiming is None:
            claiming = self._leases[session_id] = asyncio.ensure_future(self._claim(session_id))
        return await self._journal.append(await asyncio.shield(claiming), events)

    async def _claim(self, session_id: str) -> "Lease":
        try:
            return await self._journal.claim(session_id)
        except LiveElsewhere as error:
            raise StoreError(error.sentence, hint=error.hint) from error

    async def release(self, session_id: str) -> None:
        """Let another process write the session."""
        claiming = self._leases.pop(session_id, None)
        if claiming is not None and claiming.done() and not claiming.cancelled() and claiming.exception() is None:
            await self._journal.release(claiming.result())

    async def save(self, session_id: str, state: DemoState) -> None:
        """Keep the state, and come back when everything of this session is on the disk."""
        writing = self._writing.pop(session_id, [])
        for done in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
        await self._store.set_state(session_id, encode(state))

    async def rename(self, session_id: str, title: str) -> None:
        """Set another title."""
        await self._store.rename(session_id, title)

    async def list(self, query: v1.ListSessions) -> v1.ListSessionsResult:
        """A page of sessions, the last used first. Sessions without a message are left out."""
        await self._created()
        try:
            rows, cursor = await self._store.list(ENGINE, query.cwd, query.cursor, PAGE)
        except BadCursor as error:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", str(error)) from error
        replayed = [row for row in rows if row.length]
        found = [v1.SessionInfo(row.id, row.cwd, [*row.directories], row.title, row.updated_at) for row in replayed]
        return v1.ListSessionsResult(found, cursor)

    async def delete(self, session_id: str) -> None:
        """Forget a session; one of another engine is not ours to forget."""
        await self._created()
        row = await self._store.get(session_id)
        if row is not None and row.engine == ENGINE:
            await self._store.delete(session_id)


def _not_found(session_id: str) -> RequestError:
    return RequestError(
        Code.RESOURCE_NOT_FOUND,
        "Resource not found",
        f"there is no session `{session_id}`: `session/list` has those there are",
    )
