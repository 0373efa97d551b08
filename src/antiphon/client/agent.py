"""An agent that we are connected to: sessions are opened, listed and deleted here."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from msgspec import UNSET

from antiphon.client.capabilities import spoken_version
from antiphon.client.link import Link
from antiphon.client.session import ClientSession, SessionWorkspace
from antiphon.client.updates import ClientSessions, OnUpdate
from antiphon.errors import AcpError, AuthRequired, LocalProtocolError, NotSupported, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.protocol.methods import extension_call, extension_notice
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import Transcript

if TYPE_CHECKING:
    from antiphon.client.terminals import Terminals
    from antiphon.connection.connection import Connection

__all__ = ["SHORTEST", "AmbiguousId", "ConnectedAgent", "find_session", "is_script", "shortened"]

PathLike = str | os.PathLike[str]


_IN_USE: "WeakSet[Terminals]" = WeakSet()
"""Terminals that serve a connection. One that closes ends them all, so they are not shared."""


class ConnectedAgent:
    """An agent that `connect` returns. A program that is lost is started again when next needed, and its sessions opened again."""

    def __init__(
        self,
        link: Link,
        sessions: ClientSessions,
        terminals: "Terminals | None" = None,
        cwd: PathLike | None = None,
        transcript: int | None = None,
    ) -> None:
        self._link = link
        self._sessions = sessions
        self._terminals = terminals
        self._cwd = cwd
        self._transcript = transcript
        link.on_lost = self._forget
        if terminals is not None:
            if terminals in _IN_USE:
                raise LocalProtocolError(
                    "these terminals belong to another connection", hint="give each one its own `Terminals()`"
                )
            _IN_USE.add(terminals)

    @property
    def name(self) -> str:
        """The name of the agent: its own, else that of its program."""
        return self._link.name

    @property
    def info(self) -> v1.Implementation | None:
        """The name and version of the agent, if it sent them."""
        return self._link.initialized.agent_info

    @property
    def capabilities(self) -> v1.AgentCapabilities:
        """What the agent has advertised."""
        return self._link.initialized.agent_capabilities

    @property
    def meta(self) -> Mapping[str, object]:
        """What the agent sent in `_meta` with its capabilities."""
        return self._link.initialized.meta or {}

    @property
    def auth_methods(self) -> Sequence[v1.AuthMethod]:
        """The methods to sign in that the agent offers."""
        return self._link.initialized.auth_methods

    @property
    def version(self) -> int:
        """The version of ACP that the agent speaks, 1 or 2. What this program sees is version 1 in either case."""
        return spoken_version(self._link.connection)

    @property
    def connection(self) -> "Connection":
        """The connection below, for taps and for requests that have no method here. Another one after the agent was started again."""
        return self._link.connection

    @property
    def stderr(self) -> str:
        """The last lines that the agent's program wrote to stderr: look here when it fails."""
        return self._link.stderr

    def __repr__(self) -> str:
        return f"<agent {self._link.name!r}>"

    # Sessions.

    async def new_session(
        self,
        cwd: PathLike | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[PathLike] = (),
        on_update: OnUpdate | None = None,
        timeout: Timeout = UNSET,
        meta: JsonObject | None = None,
    ) -> ClientSession:
        """Open a session in a directory: the one given, else the one the agent was started in, else ours.

        Raises:
            NotSupported: the agent does not reach such MCP servers, or works in one directory only.
            AuthRequired: the user has to sign in first.
            RequestTimeout: the agent did not respond in time: within `timeout` seconds, if given, else those of `connect`.
        """
        workspace = self._workspace_for(cwd, mcp_servers, additional_directories, meta)

        async def open_it(connection: "Connection") -> ClientSession:
            with self._sessions.opening(workspace):
                answer = await connection.request(m.NEW_SESSION, workspace.new(), timeout=timeout)
            return self._opened(answer, connection, workspace, on_update)

        return await self._link.attempt(open_it)

    async def fork_session(
        self,
        session_id: str,
        cwd: PathLike | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[PathLike] = (),
        on_update: OnUpdate | None = None,
        timeout: Timeout = UNSET,
        meta: JsonObject | None = None,
    ) -> ClientSession:
        """Open a new session that begins with the history of another."""
        self._link.abilities.need_method("session/fork")
        workspace = self._workspace_for(cwd, mcp_servers, additional_directories, meta)

        async def open_it(connection: "Connection") -> ClientSession:
            with self._sessions.opening(workspace):
                answer = await connection.request(m.FORK_SESSION, workspace.fork(session_id), timeout=timeout)
            return self._opened(answer, connection, workspace, on_update)

        return await self._link.attempt(open_it)

    async def load_session(
        self,
        session_id: str,
        cwd: PathLike | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[PathLike] = (),
        on_update: OnUpdate | None = None,
        timeout: Timeout = UNSET,
        meta: JsonObject | None = None,
    ) -> ClientSession:
        """Open an earlier session with its history, which goes to the session's transcript and to `on_update`."""
        self._link.abilities.need_method("session/load")
        session = self._session(
            session_id, self._workspace_for(cwd, mcp_servers, additional_directories, meta), on_update
        )

        async def open_it(connection: "Connection") -> None:
            session.transcript = Transcript(self._transcript)  # a try that failed may have replayed half of it
            answer = await connection.request(m.LOAD_SESSION, session._workspace.load(session_id), timeout=timeout)
            session._opened(connection, answer)

        return await self._reopened(session, open_it)

    async def resume_session(
        self,
        session_id: str,
        cwd: PathLike | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[PathLike] = (),
        on_update: OnUpdate | None = None,
        timeout: Timeout = UNSET,
        meta: JsonObject | None = None,
    ) -> ClientSession:
        """Open an earlier session without its history."""
        self._link.abilities.need_method("session/resume")
        session = self._session(
            session_id, self._workspace_for(cwd, mcp_servers, additional_directories, meta), on_update
        )

        async def open_it(connection: "Connection") -> None:
            answer = await connection.request(m.RESUME_SESSION, session._workspace.resume(session_id), timeout=timeout)
            session._opened(connection, answer)

        return await self._reopened(session, open_it)

    async def list_sessions(
        self, cwd: PathLike | None = None, *, timeout: Timeout = UNSET
    ) -> AsyncIterator[v1.SessionInfo]:
        """Iterate over the sessions that the agent keeps, of all directories or of one, page by page. `timeout` is that of a page."""
        self._link.abilities.need_method("session/list")
        directory = None if cwd is None else SessionWorkspace.at(cwd).cwd
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await self._link.request(
                m.LIST_SESSIONS, v1.ListSessions(cwd=directory, cursor=cursor), timeout=timeout
            )
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None or cursor in seen:  # a cursor that repeats would go on for ever
                return
            seen.add(cursor)

    async def delete_session(self, session_id: str, *, timeout: Timeout = UNSET) -> None:
        """Remove a session from the list for good."""
        self._link.abilities.need_method("session/delete")
        await self._link.request(m.DELETE_SESSION, v1.DeleteSession(session_id), timeout=timeout)

    # Extensions.

    async def request_extension(self, method: str, params: object = None, *, timeout: Timeout = UNSET) -> Any:
        """Send an extension request, such as `_mine/ping`, and return its result as plain JSON values.

        Raises:
            RequestRefused: the agent does not know the method, or refuses.
        """
        return await self._link.request(extension_call(method), {} if params is None else params, timeout=timeout)

    async def notify_extension(self, method: str, params: object = None) -> None:
        """Send an extension notification."""
        await (await self._link.connected()).notify(extension_notice(method), {} if params is None else params)

    # The account.

    async def authenticate(self, method_id: str, *, timeout: Timeout = UNSET) -> None:
        """Sign in by one of the `auth_methods`. A person may have to do something for it, so there is no timeout unless given."""
        ids = [getattr(method, "id", None) for method in self.auth_methods]
        if method_id not in ids:
            offered = ", ".join(f"`{id}`" for id in ids if id) or "none"
            raise NotSupported(f"{self.name} does not offer to sign in by `{method_id}`", hint=f"it offers {offered}")
        await self._link.sign_in(method_id, timeout)

    async def logout(self, *, timeout: Timeout = UNSET) -> None:
        """Sign out."""
        self._link.abilities.need_method("logout")
        await self._link.request(m.LOGOUT, v1.Logout(), timeout=timeout)

    async def close(self) -> None:
        """Close the connection, and end the agent if we started it and every terminal that it left."""
        try:
            await self._link.close()
        finally:
            if self._terminals is not None:
                await self._terminals.close()
                _IN_USE.discard(self._terminals)

    # Parts of the above.

    def _workspace_for(
        self,
        cwd: PathLike | None,
        servers: Sequence[v1.McpServer],
        directories: Sequence[PathLike],
        meta: JsonObject | None,
    ) -> SessionWorkspace:
        workspace = SessionWorkspace.at(self._cwd if cwd is None else cwd, directories, servers, meta)
        self._link.abilities.need_workspace(workspace.servers, workspace.directories)
        return workspace

    def _session(self, id: str, workspace: SessionWorkspace, on_update: OnUpdate | None) -> ClientSession:
        return ClientSession(id, workspace, self._link, self._sessions, self._terminals, on_update, self._transcript)

    def _opened(
        self,
        answer: v1.NewSessionResult | v1.ForkSessionResult,
        connection: "Connection",
        workspace: SessionWorkspace,
        on_update: OnUpdate | None,
    ) -> ClientSession:
        session = self._session(answer.session_id, workspace, on_update)
        session._opened(connection, answer)
        self._sessions.put(session)
        return session

    async def _reopened(
        self, session: ClientSession, open_it: Callable[["Connection"], Awaitable[None]]
    ) -> ClientSession:
        """Open a session whose id we know: it gets all updates from the start, and is removed if it cannot be opened."""
        self._sessions.early.claim(session.id)  # what came for the same id before
        before = self._sessions.put(session)
        try:
            await self._link.attempt(open_it)
        except BaseException:
            self._sessions.forget(session)
            if before is not None:
                self._sessions.put(before)
            raise
        return session

    async def _forget(self) -> None:
        """Drop what belonged to a lost agent: its terminals, and updates whose ids the next one may use for other sessions."""
        self._sessions.drop_early()
        if self._terminals is not None:
            await self._terminals.close()


# Find a session by the beginning of its id, among those that an agent lists.

SHORTEST: Final = 8
"""Letters of an id that are shown at least."""

CANDIDATES: Final = 5
"""Sessions that an error lists."""


class AmbiguousId(AcpError):
    """Several sessions have ids with this beginning."""


async def find_session(agent: "ConnectedAgent", word: str, cwd: str | None = None) -> "v1.SessionInfo | None":
    """Find the session with this id, or with this beginning of an id: in the directory, else in all. None: the agent lists none.

    Raises:
        AmbiguousId: several are meant.
        AuthRequired: the agent lists its sessions after a sign-in only.
    """
    if not word or agent.capabilities.session_capabilities.list is None:
        return None
    for directory in dict.fromkeys((cwd, None)):
        try:
            found = [info async for info in agent.list_sessions(directory) if info.session_id.startswith(word)]
        except AuthRequired:
            raise
        except (RequestRefused, NotSupported):  # it may still know the id
            return None
        found = [info for info in found if info.session_id == word] or list(
            {info.session_id: info for info in found}.values()
        )
        if directory is not None and not _same_directory(found, directory):
            continue
        if len(found) > 1:
            raise _several(word, found)
        if found:
            return found[0]
    return None


def shortened(ids: "list[str]") -> dict[str, str]:
    """Map each id to its shortest unique beginning, of at least eight letters. Sorted, an id shares most with its neighbours."""
    order = sorted(set(ids))
    shown = {}
    for index, id in enumerate(order):
        neighbours = (*order[max(index - 1, 0) : index], *order[index + 1 : index + 2])
        shared = max((_shared(id, other) for other in neighbours), default=0)
        shown[id] = id[: max(SHORTEST, shared + 1)]
    return shown


def _shared(one: str, other: str) -> int:
    """Count the letters that both have in common at their beginning."""
    return next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def is_script(info: "v1.SessionInfo") -> bool:
    """Whether a script made a session, as far as the agent reports it."""
    return _marks(info).get("script") is True


def _marks(info: "v1.SessionInfo") -> "dict[str, object]":
    ours = (info.meta or {}).get("antiphon")
    return ours if isinstance(ours, dict) else {}


def _same_directory(found: "list[v1.SessionInfo]", directory: str) -> bool:
    """Whether all of them are of this directory: some agents list all that they have, whatever the request asks for."""
    return bool(found) and all(info.cwd in (directory, os.path.realpath(directory)) for info in found)


def _several(word: str, found: "list[v1.SessionInfo]") -> AmbiguousId:
    shown = shortened([info.session_id for info in found])
    listed = [f"\n  {shown[info.session_id]}  {info.title or info.cwd}" for info in found]
    more = f"\n  … and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
    return AmbiguousId(
        f"`{word}` is the beginning of {len(found)} sessions:{''.join(listed[:CANDIDATES])}{more}",
        hint="give some more letters of the one you mean",
    )
