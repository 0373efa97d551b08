"""The process of an agent and its open sessions: which session an update or a request of the agent belongs to."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon import __version__
from antiphon.aio import ignore_result
from antiphon.client.relay import LiveAgent, Relay
from antiphon.engines.acp.errors import AgentIdentity, need_method, request_errors
from antiphon.engines.acp.requests import AnyCall, ClientRequest
from antiphon.engines.bounded import SessionIds, trim
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from antiphon.engines.acp.engine import AcpStart
    from antiphon.engines.acp.session import AcpSession

__all__ = ["AcpHub", "AcpSessions"]

# Open sessions.


class AcpSessions:
    """The sessions that are open at one agent, by its ids and by ours."""

    def __init__(self) -> None:
        self._by_id: dict[str, AcpSession] = {}
        """Sessions by the agent's own ids."""
        self._remote: list[AcpSession] = []
        self._ids = SessionIds()
        """The agent's ids where it forgot a session and has a new one in its place."""

    def all(self) -> "list[AcpSession]":
        """Return every open session."""
        return list(self._by_id.values())

    def put(self, session: "AcpSession", id: str) -> None:
        """Add a session that is open by this id at the agent."""
        self._by_id[id] = session

    def forget(self, session: "AcpSession", id: str) -> None:
        """Remove a session that is closed."""
        if self._by_id.get(id) is session:
            del self._by_id[id]

    @contextmanager
    def opening(self, session: "AcpSession") -> Iterator[None]:
        """Open a session in this block whose id is not known yet."""
        self._remote.append(session)
        try:
            yield
        finally:
            self._remote.remove(session)

    # Names.

    def id_of(self, session_id: str) -> str:
        """Return the agent's id of a session that our client names."""
        return self._ids.own_id(session_id)

    def known_as(self, id: str) -> str:
        """Return our client's id of a session that the agent names."""
        return self._ids.session_id(id)

    def rename(self, session_id: str, id: str) -> None:
        """Note that a session of our client has another id at the agent now."""
        self._ids.move(session_id, id)

    def deleted(self, session_id: str) -> None:
        """Forget the id of a deleted session."""
        self._ids.forget(session_id)

    # The session of a message.

    def find(self, session_id: str | None) -> "AcpSession | None":
        """Return the session of this id, or the one that is being opened: agents read their instructions before they respond."""
        found = self._by_id.get(session_id) if session_id is not None else None
        return self._remote[0] if found is None and len(self._remote) == 1 else found

    def addressed(self, params: msgspec.Raw) -> "tuple[AcpSession | None, object]":
        """Return the session that unknown params name, else the only one, and the params with our client's id."""
        try:
            given = msgspec.json.decode(params) if bytes(params) else {}
        except BAD_INPUT:
            return None, None
        named = given.get("sessionId") if isinstance(given, dict) else None
        if not isinstance(named, str):
            return (self.all()[0] if len(self._by_id) == 1 else None), given
        session = self._by_id.get(named)
        return session, given if session is None else {**given, "sessionId": session.session.id}


class AcpHub:
    """The agent's process, and the sessions that are open in it."""

    def __init__(
        self,
        start: "AcpStart",
        client: v1.ClientCapabilities,
        know: "Callable[[Sequence[v1.AuthMethod]], None]",
    ) -> None:
        self.identity = AgentIdentity(start.title, start.command)
        """The agent that errors are about."""
        self._know = know
        """Called with the authentication methods as soon as they are known."""
        hello = v1.Initialize(
            V1.number, client_capabilities=_offered(client), client_info=v1.Implementation("antiphon", __version__)
        )
        self._relay = Relay(start.command, self, hello, name=start.title, cwd=start.cwd, env=start.whole_env())
        self.sessions = AcpSessions()
        self._pages: dict[str, AcpSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # The process.

    async def alive(self) -> LiveAgent:
        """Return the agent, started if necessary. Raises what `request_errors` translates."""
        agent = await self._relay.alive()
        if self.identity.methods is not agent.initialized.auth_methods:
            self.identity.methods = agent.initialized.auth_methods
            self._know(agent.initialized.auth_methods)
        return agent

    async def end(self, agent: LiveAgent) -> None:
        """Kill an agent that does not respond."""
        await self._relay.end(agent)

    async def close(self) -> None:
        """Close it for good."""
        await self._relay.close()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def agent_ended(self, agent: LiveAgent) -> None:
        """Report the end of the agent to its sessions; each is opened again with its next prompt."""
        self._pages.clear()
        for session in self.sessions.all():
            if session.lives_in(agent):
                _ = self.do(session.lost())

    def do(self, work: "Coroutine[object, object, None]") -> "asyncio.Task[None]":
        """Start work that outlives its caller, and ends before the hub is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(ignore_result)
        return task

    # Requests and notifications of the agent.

    async def handle_request(self, call: AnyCall, params: ClientRequest) -> object:
        """Handle a request that agents send to clients."""
        session_id = getattr(params, "session_id", None)
        session = self.sessions.find(session_id)
        if call.name == m.CREATE_ELICITATION.name:
            if session is None or session_id is None:
                return v1.Declined()  # about no session: there is no user to ask
            if isinstance(params, v1.UrlElicitation):
                return await self._page(session, call, params)
        if session is None:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"there is no session `{session_id}` here")
        return await session.handle_request(call, params)

    async def _page(self, session: "AcpSession", call: AnyCall, params: v1.UrlElicitation) -> object:
        """Forward a page to open. It belongs to the session until it is completed, refused, or the session is closed."""
        id, accepted = params.elicitation_id, False
        self._pages[id] = session
        trim(self._pages)  # most agents never report that a page is completed
        try:
            answer = await session.handle_request(call, params)
            accepted = isinstance(answer, v1.Accepted)
        finally:
            if not accepted and self._pages.get(id) is session:
                del self._pages[id]
        return answer

    def closed(self, session: "AcpSession") -> None:
        """Forget the pages of a closed session."""
        self._pages = {id: each for id, each in self._pages.items() if each is not session}

    async def forward_request(self, method: str, params: msgspec.Raw) -> object:
        """Forward a request with an extension method: the client decides whether it knows it."""
        session, given = self.sessions.addressed(params)
        if session is None or not method.startswith("_"):
            raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        return await session.forward_request(Call(method, _ANY, _ANY), given)

    def forward_notification(self, method: str, params: msgspec.Raw) -> None:
        """Forward a notification with an extension method."""
        session, given = self.sessions.addressed(params)
        if session is not None and method.startswith("_"):
            _ = self.do(session.forward_notification(Notice(method, _ANY), given))

    def completed(self, completed: v1.CompleteElicitation) -> None:
        """Forward that the user is done on a page."""
        session = self._pages.pop(completed.elicitation_id, None)
        if session is not None and session in self.sessions.all():
            _ = self.do(session.forward_notification(m.COMPLETE_ELICITATION, completed))

    # Requests without a session.

    async def list(self, query: v1.ListSessions) -> v1.ListSessionsResult:
        """Return the sessions of the agent; none if it has no such method, because clients ask without checking."""
        with request_errors(self.identity):
            agent = await self.alive()
            if not agent.abilities.has("session/list"):
                return v1.ListSessionsResult([])
            page = await agent.request(m.LIST_SESSIONS, query)
        ours = self.sessions.known_as
        rows = [msgspec.structs.replace(row, session_id=ours(row.session_id)) for row in page.sessions]
        return msgspec.structs.replace(page, sessions=rows)

    async def delete(self, session_id: str) -> None:
        """Delete a session of the agent."""
        with request_errors(self.identity):
            agent = await self.alive()
            need_method(agent.abilities, "session/delete")
            await agent.request(m.DELETE_SESSION, v1.DeleteSession(self.sessions.id_of(session_id)))
        self.sessions.deleted(session_id)

    async def authenticate(self, method_id: str) -> None:
        """Sign in."""
        with request_errors(self.identity):
            await (await self.alive()).request(m.AUTHENTICATE, v1.Authenticate(method_id))

    async def logout(self) -> None:
        """Sign out."""
        with request_errors(self.identity):
            agent = await self.alive()
            need_method(agent.abilities, "logout")
            await agent.request(m.LOGOUT, v1.Logout())


_ANY: Any = Any


def _offered(client: v1.ClientCapabilities) -> v1.ClientCapabilities:
    """Return the capabilities that the agent gets: those of our client, and files and commands in any case, which this machine has."""
    return msgspec.structs.replace(client, fs=v1.FileCapabilities(True, True), terminal=True)
