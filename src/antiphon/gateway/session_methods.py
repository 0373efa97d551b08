"""The requests of clients about whole sessions: open, load, resume, fork, list, attach, close, delete.

The gateway answers for the sessions that it has, from its own store; the agent is asked for those that only it has.
"""

import asyncio
import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import AcpError, Code, RequestError, RequestRefused
from antiphon.gateway.access.messages import reduced_opening
from antiphon.gateway.base import AccessRole, GatewaySession
from antiphon.gateway.events import asks_for_merged, notice, numbered
from antiphon.gateway.methods.history import begin_of_last
from antiphon.gateway.session import HubSession
from antiphon.gateway.settings import agent_id_in
from antiphon.gateway.turns import error_object, for_role
from antiphon.local.roots import RealPaths
from antiphon.rpc.envelope import BAD_INPUT, Request, Response, error_frame, head_of_answer
from antiphon.rpc.spans import UNREADABLE, params_values_of, replaced, with_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from antiphon.gateway.agents.link import AgentLink
    from antiphon.gateway.attachment import SessionAttachment
    from antiphon.gateway.client import RemoteClient

__all__ = ["SessionMethods"]

FOLLOW: Final = "`session/list` has those that it may follow: load or resume one, as `antiphon chat --resume ID` does"

DIRECTORIES: Final = 64
"""Directories of a session besides its first: each is followed, link by link."""

_log = logging.getLogger(__name__)


class _Params(msgspec.Struct, rename="camel"):
    session_id: str = ""
    cwd: str = ""
    additional_directories: list[str] | None = None
    mcp_servers: list[Raw] | None = None
    cursor: str | None = None
    after: int | UnsetType = UNSET
    last: int | UnsetType = UNSET
    meta: Raw = msgspec.field(default_factory=Raw, name="_meta")


class _Marks(msgspec.Struct):
    dropped: Raw = msgspec.field(default_factory=Raw)


class _Meta(msgspec.Struct):
    antiphon: _Marks = msgspec.field(default_factory=_Marks)


class _Opened(msgspec.Struct, rename="camel"):
    session_id: str = ""
    cwd: str = ""


class _Listed(msgspec.Struct, rename="camel"):
    sessions: list[Raw] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class SessionMethods:
    """The requests of one client about sessions."""

    def __init__(self, client: "RemoteClient") -> None:
        self._client = client
        self._listing = asyncio.Lock()
        self._handlers: dict[str, Callable[[Request, bytes, _Params], None]] = {
            "session/new": self._new,
            "session/fork": self._fork,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "_antiphon/session/attach": self._attach,
            "_antiphon/session/detach": self._detach,
        }

    def handle(self, request: Request, line: bytes) -> bool:
        """Handle a request about sessions. False: it is another one."""
        handler = self._handlers.get(request.method)
        if handler is None:
            return False
        try:
            params = msgspec.json.decode(request.params, type=_Params)
        except BAD_INPUT as error:
            self._client.refuse(request, Code.INVALID_PARAMS, f"`{request.method}` cannot be read: {error}")
            return True
        handler(request, line, params)
        return True

    def offered(self, result: bytes, extension: "Mapping[str, object]") -> bytes:
        """Return the agent's result of `initialize` with what the gateway offers for every agent, and with its extension."""
        offers = self._client.process.abilities.session_capabilities
        result = with_value(result, ("_meta", "antiphon"), msgspec.json.encode(extension))
        result = with_value(result, ("agentCapabilities", "loadSession"), b"true")
        for name in ("list", "resume", "close", "delete"):
            if getattr(offers, name) is None:
                result = with_value(result, ("agentCapabilities", "sessionCapabilities", name), b"{}")
        if offers.fork is not None and offers.fork.meta:  # a fork that ends earlier would have another history here
            result = with_value(result, ("agentCapabilities", "sessionCapabilities", "fork"), b"{}")
        return result

    # A new session, and a fork.

    def _new(self, request: Request, line: bytes, params: _Params) -> None:
        self._start(lambda: self._open_new(request, line, params), request)

    async def _open_new(self, request: Request, line: bytes, params: _Params) -> None:
        client, hub = self._client, self._client.process.hub
        if not client.may(AccessRole.DRIVE):
            raise RequestError(
                Code.INVALID_REQUEST, "this token may open no session", for_role(AccessRole.DRIVE), hint=FOLLOW
            )
        line, servers, left_out = self._reduced(line, params)
        link = await client.process.ready()
        if client.closed.is_set():
            return  # no session for a client that will not know of it
        self._forward_opening(link, request, line, params, servers, left_out)
        hub.note(client.principal, "new", "", params.cwd)

    def _forward_opening(
        self,
        link: "AgentLink",
        request: Request,
        line: bytes,
        params: _Params,
        servers: bytes,
        left_out: list[str],
        source: HubSession | None = None,
    ) -> None:
        """Forward a request whose response names a new session; `source` is the session that it is a fork of."""
        client = self._client
        answer = client.answering(request, line)

        async def store(session: HubSession, response: Response, frame: bytes) -> None:
            directories = tuple(params.additional_directories or ())
            copied = await client.process.hub.store_new(session, directories, client.principal, source)
            attachment = session.attach(client, copied)
            answer(response, self._opening(frame, copied))
            attachment.start()
            if left_out:
                client.put(_notice(session.id, left_out), session.id)

        def then(response: Response, frame: bytes) -> None:
            try:
                session = self._begin(link, response, params)
            except RequestError as error:
                client.put(error_frame(request.id, error_object(error)), None, request.id)
                return
            finally:
                link.opened()  # not earlier: it forgets what arrived before the response
            if session is None:
                answer(response, frame)
                return
            session.settings.mcp_servers = servers
            self._start(lambda: store(session, response, frame), request, session.id)

        link.opening += 1
        client.forward(link, request, line, then)

    def _begin(self, link: "AgentLink", response: Response, params: _Params) -> HubSession | None:
        """Make the session that a response names: what arrives for it from now on is recorded."""
        if response.result is None:
            return None
        try:
            session_id = msgspec.json.decode(response.result, type=_Opened).session_id
        except BAD_INPUT:
            return None
        if not session_id:
            return None
        session = self._client.process.hub.begin(self._client.process, session_id, params.cwd, self._client.principal)
        session.link = link
        session.settings.opened(bytes(response.result))
        if early := link.take_early(session_id):
            session.receive(early)
        return session

    def _fork(self, request: Request, line: bytes, params: _Params) -> None:
        def forked(session: HubSession) -> None:
            self._start(lambda: self._open_fork(session, request, line, params), request)

        self._client.with_session(request, params.session_id, AccessRole.DRIVE, forked)

    async def _open_fork(self, source: HubSession, request: Request, line: bytes, params: _Params) -> None:
        client = self._client
        if not client.may(AccessRole.DRIVE):
            raise RequestError(
                Code.INVALID_REQUEST, "this token may open no session", for_role(AccessRole.DRIVE), hint=FOLLOW
            )
        if _ends_earlier(params.meta):
            raise RequestError(
                Code.INVALID_PARAMS,
                "a gateway forks whole sessions",
                hint="leave out `_meta.antiphon.dropped`, which the gateway does not offer",
            )
        line, servers, left_out = self._reduced(line, params)
        link = await source.reopen()
        await source.settled()
        line = source.settings.for_agent(line)
        self._forward_opening(link, request, line, params, servers, left_out, source)
        client.process.hub.note(client.principal, "fork", source.key, params.cwd)

    # An earlier session.

    def _load(self, request: Request, line: bytes, params: _Params) -> None:
        process = self._client.process

        def found(session: HubSession | None) -> None:
            if session is None and self._client.may(AccessRole.DRIVE):
                self._start(lambda: self._load_from_agent(request, line, params), request, params.session_id)
            elif session is None or not self._client.may(AccessRole.WATCH, session.key):
                self._unknown(request, params.session_id)
            else:
                attachment = session.attach(self._client, 0, replay=True)
                self._merge_if_wanted(attachment, request)
                frame = b"%b%b}" % (head_of_answer(request.id), session.settings.result())
                attachment.respond(frame, request.id, session.last)
                attachment.start()

        def failed(error: AcpError) -> None:
            self._client.put(error_frame(request.id, error_object(error)), params.session_id, request.id)

        process.with_session(params.session_id, found, failed, by=self._client.principal)

    async def _load_from_agent(self, request: Request, line: bytes, params: _Params) -> None:
        """Load a session that only the agent has. Its replay is recorded, so the next client gets it from here.

        Until the agent has confirmed it, nothing finds it in the store: an end of the gateway would leave a session there that is nowhere.
        """
        client, process = self._client, self._client.process
        link = await process.ready()
        if not process.abilities.load_session or params.session_id.encode() in link.renamed:  # ours, by another id
            self._unknown(request, params.session_id)
            return
        line, servers, left_out = self._reduced(line, params)
        session = process.hub.begin(process, params.session_id, params.cwd, client.principal)
        session.settings.mcp_servers = servers
        directories = tuple(params.additional_directories or ())
        await process.hub.store_new(session, directories, client.principal, hidden=True)
        session.attach(client, 0).start()
        answer = client.answering(request, line, session)
        loaded: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def then(response: Response, frame: bytes) -> None:
            loaded.set_result(response.result is not None)
            if response.result is not None:
                process.hub.note(client.principal, "load", session.key, params.cwd)
                session.link = link
                session.settings.opened(bytes(response.result))
                session.row = msgspec.structs.replace(session.row, updated=time.time())
                session.save()
                process.hub.feed.changed(session)
                process.hub.search.note(session.key)
            answer(response, frame)
            if response.result is not None and left_out:
                client.put(_notice(session.id, left_out), session.id)

        client.forward(link, request, line, then)
        if await asyncio.shield(loaded):
            await process.hub.show(session)
        else:
            await self._delete_refused(session)

    async def _delete_refused(self, session: HubSession) -> None:
        """Delete a session that the agent does not have. Its client has the agent's error already."""
        try:
            await self._client.process.hub.delete(session)
        except AcpError as error:
            _log.error("session `%s`, which its agent refused to load, is still stored: %s", session.id, error)

    def _resume(self, request: Request, line: bytes, params: _Params) -> None:
        def resumed(session: HubSession) -> None:
            attachment = session.attach(self._client, session.last)
            frame = b"%b%b}" % (head_of_answer(request.id), session.settings.result())
            self._client.put(self._opening(frame, session.last), session.id, request.id)
            if session.settings.commands is not None and not self._client.offer.numbers:
                self._client.put(session.settings.commands, session.id)
            attachment.start()

        self._client.with_session(request, params.session_id, AccessRole.WATCH, resumed)

    def _attach(self, request: Request, line: bytes, params: _Params) -> None:
        def attached(session: HubSession) -> None:
            if not isinstance(params.last, UnsetType):
                last = params.last
                self._start(lambda: self._attach_last(session, request, line, params, last), request, session.id)
                return
            after = session.last if isinstance(params.after, UnsetType) else params.after
            if not 0 <= after <= session.last:
                self._client.refuse(
                    request,
                    Code.INVALID_PARAMS,
                    f"`after` has to be a number from 0 to {session.last}",
                    hint="load the session to get all of it",
                    session_id=session.id,
                )
                return
            self._attach_after(session, request, after)

        self._client.with_session(request, params.session_id, AccessRole.WATCH, attached)

    async def _attach_last(
        self, session: HubSession, request: Request, line: bytes, params: _Params, last: int
    ) -> None:
        """Attach before about the last events. The session may leave memory while their beginning is looked for: then it is opened anew."""
        after = await begin_of_last(session, last)
        if session.is_over:
            self._attach(request, line, params)
        else:
            self._attach_after(session, request, after)

    def _attach_after(self, session: HubSession, request: Request, after: int) -> None:
        attachment = session.attach(self._client, after)
        self._merge_if_wanted(attachment, request)
        state = {
            "number": session.last,
            "after": after,
            "turn": session.row.turn or None,
            "queued": session.turns.to_begin,
            "queue": session.turns.waiting,
            "prompts": session.turns.names,
            "requests": [waiting.id for waiting in session.requests.waiting()],
            "settings": Raw(session.settings.result()),
            "title": session.row.title or None,
            **session.settings.state(),
        }
        frame = b"%b%b}" % (head_of_answer(request.id), msgspec.json.encode(state))
        self._client.put(frame, session.id, request.id)
        attachment.start()

    def _merge_if_wanted(self, attachment: "SessionAttachment", request: Request) -> None:
        merged = asks_for_merged(request.params)
        if merged is not None:
            attachment.merged = merged

    def _detach(self, request: Request, line: bytes, params: _Params) -> None:
        def detached(session: HubSession) -> None:
            session.detach(self._client)
            self._client.put(b"%b{}}" % head_of_answer(request.id), session.id, request.id)
            session.release_if_idle()

        self._client.with_session(request, params.session_id, AccessRole.WATCH, detached)

    # The list.

    def _list(self, request: Request, line: bytes, params: _Params) -> None:
        self._start(lambda: self._send_list(request, params), request)

    async def _send_list(self, request: Request, params: _Params) -> None:
        """Send a list when those before it were sent, and read: a list may be long."""
        async with self._listing:
            await self._client.room()
            await self._put_list(request, params)

    async def _put_list(self, request: Request, params: _Params) -> None:
        """Send the sessions of the gateway, then those that only the agent has; each of them once."""
        client, process = self._client, self._client.process
        rows = await process.hub.rows.list(process.name)
        known = {id for row in rows for id in (row.session_id, agent_id_in(row.state))}
        shown: list[Raw] = []
        of_fleet = _asks_for_rows(request.params)
        if of_fleet is not False and not params.cursor:
            wanted = {params.cwd, *_real(params.cwd)}
            here = [
                row for row in rows if client.may(AccessRole.WATCH, row.key) and (not params.cwd or row.cwd in wanted)
            ]
            shown = [Raw(msgspec.json.encode(_info(row))) for row in here]
        next_cursor = None
        agent_lists = client.may(AccessRole.DRIVE) and process.abilities.session_capabilities.list is not None
        if agent_lists:
            page = await self._listed_by_agent(params)
            next_cursor = page.next_cursor
            shown += [each for each in page.sessions if self._is_listed(each, known)]
        result: dict[str, object] = {"sessions": shown}
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        if of_fleet is not None:
            result["_meta"] = {"antiphon": {"lists": agent_lists}}
        client.put(b"%b%b}" % (head_of_answer(request.id), msgspec.json.encode(result)), None, request.id)

    def _is_listed(self, info: Raw, known: "Collection[str]") -> bool:
        """Whether a session that the agent lists is shown: not one of ours, and one in a directory where it could be loaded."""
        found = msgspec.json.decode(info, type=_Opened)
        try:
            self._client.process.hub.inside_roots(found.cwd)
        except RequestError:
            return False
        return found.session_id not in known

    async def _listed_by_agent(self, params: _Params) -> _Listed:
        """Return a page of the agent's own list; an empty one if the agent does not start: the stored sessions can be read."""
        process = self._client.process
        try:
            link = await process.ready()
        except AcpError as error:
            _log.warning("the list of sessions is without those of agent `%s`: %s", process.name, error.sentence)
            return _Listed()
        asked = {"cwd": params.cwd, "cursor": params.cursor}
        wanted = msgspec.json.encode({name: value for name, value in asked.items() if value})
        listed = await link.call("session/list", wanted, process.hub.limits.start_timeout)
        return msgspec.json.decode(listed, type=_Listed)

    # The end of a session.

    def _close(self, request: Request, line: bytes, params: _Params) -> None:
        self._end(request, line, params, delete=False)

    def _delete(self, request: Request, line: bytes, params: _Params) -> None:
        self._end(request, line, params, delete=True)

    def _end(self, request: Request, line: bytes, params: _Params, *, delete: bool) -> None:
        def ended(session: HubSession) -> None:
            if not delete or self._may_delete(request, session.row.owner):
                self._start(lambda: self._end_session(session, request, delete=delete), request, session.id)

        if delete and self._client.principal.sessions is not None:
            self._client.refuse(request, Code.INVALID_REQUEST, "the holder of a share cannot delete the session")
        elif delete:
            self._client.with_session(
                request, params.session_id, AccessRole.DRIVE, ended, lambda: self._delete_at_agent(request, line)
            )
        else:
            self._client.with_session(request, params.session_id, AccessRole.DRIVE, ended)

    def _may_delete(self, request: Request, owner: str) -> bool:
        """Whether the client may delete a session of this owner; if not, refuse it. What others have is for admins to delete."""
        if self._client.may(AccessRole.ADMIN) or owner == self._client.principal.name:
            return True
        why = "this token deletes the sessions that it has opened, and no others"
        self._client.refuse(request, Code.INVALID_REQUEST, why, hint="close it, or ask an admin of the gateway")
        return False

    def _delete_at_agent(self, request: Request, line: bytes) -> None:
        """Delete a session that only the agent may have. One that is nowhere is deleted already."""
        if self._client.process.abilities.session_capabilities.delete is None:
            self._client.put(b"%b{}}" % head_of_answer(request.id), None, request.id)
        elif self._may_delete(request, ""):
            self._client.forward_soon(request, line)

    async def _end_session(self, session: HubSession, request: Request, *, delete: bool) -> None:
        """Close or delete a session, at the agent too if it can. Its other clients are detached."""
        client, process = self._client, self._client.process
        await self._end_at_agent(session, request, delete=delete)
        process.hub.note(client.principal, "delete" if delete else "close", session.key, session.id)
        await (process.hub.delete(session) if delete else process.hub.end(session))
        client.note_closed(session.id)
        client.put(b"%b{}}" % head_of_answer(request.id), session.id, request.id)

    async def _end_at_agent(self, session: HubSession, request: Request, *, delete: bool) -> None:
        process = self._client.process
        offers = process.abilities.session_capabilities
        if (offers.delete if delete else offers.close) is None or not (delete or session.is_open):
            return
        link = await process.ready()
        params = with_value(bytes(request.params), ("sessionId",), msgspec.json.encode(session.agent_id))
        seconds = process.hub.limits.start_timeout
        if delete:
            with suppress(RequestRefused):  # one that the agent has forgotten can be deleted here all the same
                await link.call("session/delete", params, seconds)
        elif session.link is link:
            await link.call("session/close", params, seconds)

    # Small things.

    def _start(self, work: "Callable[[], Awaitable[None]]", request: Request, holds: str | None = None) -> None:
        """Do what a request asks for. What else concerns the session that it holds waits meanwhile."""
        process = self._client.process
        if holds is None:
            process.hub.run(self._run(work, request))
        else:
            process.hold(holds)
            process.hub.run(self._run(work, request), after=lambda: process.let_go(holds))

    async def _run(self, work: "Callable[[], Awaitable[None]]", request: Request) -> None:
        try:
            await work()
        except AcpError as error:
            self._client.put(error_frame(request.id, error_object(error)), None, request.id)
        except TimeoutError:
            self._client.refuse(request, Code.REQUEST_TIMEOUT, "the agent did not answer in time")
        except UNREADABLE as error:
            self._client.refuse(request, Code.INVALID_PARAMS, f"`{request.method}` cannot be read: {error}")
        except Exception:
            _log.exception("a request of a client failed")
            self._client.refuse(request, Code.INTERNAL_ERROR, "Internal error")

    def _opening(self, frame: bytes, number: int) -> bytes:
        """Return the response that opens a session, with the number after which its events begin."""
        return (
            numbered(frame, number, ("result", "_meta", "antiphon", "after")) if self._client.offer.numbers else frame
        )

    def _unknown(self, request: Request, session_id: str) -> None:
        self._client.refuse(
            request,
            Code.RESOURCE_NOT_FOUND,
            f"there is no session `{session_id}` here",
            hint="`session/list` has those that there are",
            session_id=session_id,
        )

    def _reduced(self, line: bytes, params: _Params) -> tuple[bytes, bytes, list[str]]:
        """Return the request as the agent gets it, the MCP servers that are left in it, and the names of what is not.

        Raises:
            RequestError: a directory is outside of the roots or does not exist, or the params make no sense.
        """
        line = self._inside_roots(line, params)
        opening = reduced_opening(line, params.mcp_servers or (), self._client.process.hub.client_rules)
        return opening.line, opening.servers, opening.left_out

    def _inside_roots(self, line: bytes, params: _Params) -> bytes:
        """Put the real paths of directories into a request and its params: the agent uses what was checked.

        Raises:
            RequestError: one is outside of the roots, or the first does not exist.
        """
        given = (params.cwd, *(params.additional_directories or ()))
        if len(given) > 1 + DIRECTORIES:
            raise RequestError(Code.INVALID_PARAMS, f"a session has at most {DIRECTORIES} additional directories")
        hub = self._client.process.hub
        real = hub.inside_roots(*given)
        if not hub.client_files and not Path(real[0]).is_dir():  # else it may be on the client's machine alone
            why = f"there is no directory `{params.cwd}` on the machine of the gateway"
            raise RequestError(Code.INVALID_PARAMS, why, hint="make it there, or give another one as `cwd`")
        if real == [*given]:
            return line
        params.cwd, more = real[0], real[1:]
        changes = [(span, msgspec.json.encode(real[0])) for span in params_values_of(line, "cwd")]
        if more:
            params.additional_directories = more
            changes += [(span, msgspec.json.encode(more)) for span in params_values_of(line, "additionalDirectories")]
        return replaced(line, changes)


def _real(directory: str) -> list[str]:
    """Return the real path of a directory, nothing if it has none."""
    try:
        return [RealPaths()(directory)]
    except ValueError:
        return []


class _ListOptions(msgspec.Struct):
    rows: bool | None = None


class _ListMeta(msgspec.Struct):
    antiphon: _ListOptions = msgspec.field(default_factory=_ListOptions)


class _ListParams(msgspec.Struct):
    meta: _ListMeta = msgspec.field(default_factory=_ListMeta, name="_meta")


def _asks_for_rows(params: Raw) -> bool | None:
    """Whether the gateway of a fleet wants the stored sessions in a list; None: it is asked for by another client."""
    try:
        return msgspec.json.decode(params, type=_ListParams).meta.antiphon.rows
    except BAD_INPUT:
        return None


def _notice(session_id: str, left_out: list[str]) -> bytes:
    names = ", ".join(f"`{name}`" for name in left_out)
    text = f"The gateway starts no programs and reaches no servers for clients: {names}. Configure it at the gateway."
    return notice(session_id, "A part of the request was left out", text)


def _info(row: GatewaySession) -> dict[str, object]:
    info: dict[str, object] = {"sessionId": row.session_id, "cwd": row.cwd}
    if row.title:
        info["title"] = row.title
    if row.updated or row.created:
        info["updatedAt"] = datetime.fromtimestamp(row.updated or row.created, UTC).isoformat()
    return info


def _ends_earlier(meta: Raw) -> bool:
    """Whether a fork is to leave out prompts of its source."""
    try:
        return bool(bytes(meta)) and bool(bytes(msgspec.json.decode(meta, type=_Meta).antiphon.dropped))
    except UNREADABLE:
        return False
