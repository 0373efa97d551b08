"""The sessions of one client: opened, prompted, changed, closed. The client's requests become calls of the agent's hooks."""

import asyncio
import logging
import os
import sys
from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from antiphon.agent.prompts import INJECTED, PromptQueue, too_late
from antiphon.agent.questions import end_turn
from antiphon.agent.session import AgentSession, close_session, open_session
from antiphon.agent.turn import AgentTurn
from antiphon.aio import maybe_await
from antiphon.connection.router import Then
from antiphon.errors import Code, RequestError, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1.dialects import OWN_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from antiphon.agent.agent import Agent, Maybe, Outcome
    from antiphon.agent.client import ConnectedClient

    Asked = v1.NewSession | v1.LoadSession | v1.ResumeSession | v1.ForkSession

__all__ = ["CLOSE_GRACE", "AgentSessions", "check_content", "check_directories", "check_servers", "wait_for_ends"]

# Whether a client asks for what was advertised. The error has what was wrong and what would be right.


def check_content(prompt: "Iterable[v1.ContentBlock]", takes: Collection[str]) -> None:
    """Raise `RequestError` for content of a kind that the agent has not advertised."""
    for block in prompt:
        match block:
            case v1.TextBlock() | v1.ResourceLink():
                continue
            case v1.ImageBlock():
                kind = "image"
            case v1.AudioBlock():
                kind = "audio"
            case v1.EmbeddedResource():
                kind = "resource"
            case _:
                kind = block.kind
        if kind not in takes:
            raise _wrong(f"this agent takes no `{kind}` content in a prompt: send text or a `resource_link` instead")


def check_servers(servers: "Iterable[v1.McpServer]", mcp: Collection[str]) -> None:
    """Raise `RequestError` for an MCP server of a kind that the agent has not advertised."""
    for server in servers:
        match server:
            case v1.StdioServer():
                continue
            case v1.HttpServer():
                kind = "http"
            case v1.SseServer():
                kind = "sse"
            case v1.AcpServer():
                kind = "acp"
            case _:
                kind = server.kind
        if kind not in mcp:
            reached = ", ".join(("stdio", *mcp))
            raise _wrong(f"this agent reaches no MCP servers of type `{kind}`, only {reached}")


def check_directories(cwd: str, directories: Iterable[str]) -> None:
    """Raise `RequestError` for a directory that is not absolute."""
    for name, path in (("cwd", cwd), *(("additionalDirectories", each) for each in directories)):
        if not os.path.isabs(path):
            raise _wrong(f"`{name}` must be an absolute path, not `{path}`")


def _wrong(sentence: str) -> RequestError:
    return RequestError(Code.INVALID_PARAMS, "Invalid params", sentence)


CLOSE_GRACE: Final = 5.0
"""Seconds that sessions may take to release what they hold when the client is gone, before we end without them."""

MOST_PAGES: Final = 1000
"""Pages of an agent's list in which a session is looked for. A longer list repeats itself."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


async def wait_for_ends(ends: "Sequence[asyncio.Future[None]]", what: str) -> None:
    """Wait until everything is closed. What fails or takes too long is logged, because the client is gone."""
    done, stuck = await asyncio.wait(ends, timeout=CLOSE_GRACE) if ends else ((), ())
    for each in done:
        if not each.cancelled() and (error := each.exception()) is not None:
            _log.error("closing %s failed", what, exc_info=error)
    if stuck:
        _log.error("closing %s takes too long (%d times); ending without it", what, len(stuck))


class _Open:
    """An open session with its queue of prompts, and the task that closes it once that has begun."""

    def __init__(self, session: AgentSession) -> None:
        self.session = session
        self.turns = session._prompts = PromptQueue()
        self.ending: asyncio.Task[None] | None = None


class AgentSessions:
    """The open sessions of one client."""

    def __init__(self, agent: "Agent", client: "ConnectedClient") -> None:
        self._agent = agent
        self._client = client
        self._open: dict[str, _Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._over = False

    # Opening.

    async def new(self, asked: v1.NewSession) -> "Then[v1.NewSessionResult]":
        """Open a new session: `session/new`."""
        session = self._make(_new_id(), asked)
        await self._begin(session, self._agent.new_session)
        await self._choose_as_asked(session, asked)
        return Then(v1.NewSessionResult(session.id, *self._settings(session)), partial(open_session, session))

    async def load(self, asked: v1.LoadSession) -> v1.LoadSessionResult:
        """Open an earlier session with its history. Its updates are sent before the response, because the client knows it already."""
        session = await self._again(asked)
        open_session(session)
        await self._begin(session, self._agent.load_session)
        return v1.LoadSessionResult(*self._settings(session))

    async def resume(self, asked: v1.ResumeSession) -> "Then[v1.ResumeSessionResult]":
        """Open an earlier session without its history."""
        session = await self._again(asked)
        await self._begin(session, self._agent.resume_session)
        return Then(v1.ResumeSessionResult(*self._settings(session)), partial(open_session, session))

    async def fork(self, asked: v1.ForkSession) -> "Then[v1.ForkSessionResult]":
        """Open a new session that begins with the history of another."""
        session = self._make(_new_id(), asked)
        session.host.id_prefix = f"{os.urandom(2).hex()}-"
        await self._begin(session, self._agent.fork_session, asked.session_id)
        return Then(v1.ForkSessionResult(session.id, *self._settings(session)), partial(open_session, session))

    def _make(self, id: str, asked: "Asked", cwd: str | None = None) -> AgentSession:
        self._check_ready()
        cwd = asked.cwd if cwd is None else cwd
        check_directories(cwd, asked.additional_directories)
        check_servers(asked.mcp_servers, self._agent.mcp)
        session = AgentSession(id, cwd, self._client, asked.additional_directories, asked.mcp_servers)
        session.meta = asked.meta or {}
        return session

    async def _choose_as_asked(self, session: AgentSession, asked: v1.NewSession) -> None:
        """Set the mode and the model that some clients ask for with the session. One that is not on offer becomes a notice."""
        model = asked.model.model_id if asked.model is not None else None
        try:
            for what, wanted, choose in (
                ("mode", asked.mode_id, self._choose_mode),
                ("model", model, self._choose_model),
            ):
                if wanted is not None:
                    try:
                        await choose(session, wanted)
                    except ResponseError as error:
                        await session.notice(f"The {what} is not `{wanted}`", error.reason, v1.NoticeSeverity.WARNING)
        except BaseException:
            await self._end(session.id)  # the client does not get its id
            raise

    async def _again(self, asked: v1.LoadSession | v1.ResumeSession) -> AgentSession:
        own = not asked.cwd and (asked.meta or {}).get(OWN_DIRECTORY) is True
        session = self._make(asked.session_id, asked, await self._directory_of(asked.session_id) if own else None)
        session.host.id_prefix = f"{os.urandom(2).hex()}-"
        await self._end(asked.session_id)  # opened twice is not open twice: what the first one holds is released
        return session

    async def _directory_of(self, session_id: str) -> str:
        """Return the directory of an earlier session, for a client that opens it without naming one.

        Raises:
            RequestError: the agent does not know such a session.
        """
        self._check_ready()
        if (found := self._open.get(session_id)) is not None:
            return found.session.cwd
        directory = await maybe_await(self._agent.session_directory(session_id))
        if directory is None and self._agent.does("list_sessions"):
            directory = await self._listed_directory(session_id)
        if directory is None:
            raise RequestError(
                Code.RESOURCE_NOT_FOUND, "Resource not found", f"there is no session `{session_id}`: name its `cwd`"
            )
        return directory

    async def _listed_directory(self, session_id: str) -> str | None:
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self.list(v1.ListSessions(cursor=cursor))
            for info in page.sessions:
                if info.session_id == session_id:
                    return info.cwd
            cursor = page.next_cursor
            if not cursor:
                break
        return None

    def _check_ready(self) -> None:
        if not self._client._initialized:
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", "send `initialize` first")
        if self._over:
            raise _stopping()

    async def _begin(self, session: AgentSession, hook: "Callable[..., Maybe[None]]", *more: str) -> None:
        try:
            await maybe_await(hook(session, *more))
        except BaseException:
            close_session(session)  # tasks that the hook left running can send nothing any more
            raise
        # From here on the agent holds something for it, so it is closed however this ends.
        opened = _Open(session)
        try:
            while session.id in self._open:  # another request opened it while the hook ran
                await self._end(session.id)
            if self._over:
                raise _stopping()
        except BaseException:
            _ = self._begin_end(opened)
            raise
        self._open[session.id] = opened

    def _settings(
        self, session: AgentSession
    ) -> "tuple[v1.ModeState | None, list[v1.ConfigOption] | None, v1.ModelState | None]":
        options = session.host.settings.shown(self._client.shows_booleans) or None
        return session.modes, options, session.models

    # Prompts.

    async def prompt(self, asked: v1.Prompt) -> v1.PromptResult:
        """Run a prompt: `session/prompt`."""
        found = self._find(asked.session_id)
        check_content(asked.prompt, (*self._agent.takes, *self._agent.also_takes))
        return await found.turns.take(self._turn(found.session, asked), self._run, self._wait)

    def _turn(self, session: AgentSession, asked: v1.Prompt) -> AgentTurn:
        if asked.meta is None or self._client.version == 1:
            return AgentTurn(session, asked.prompt, asked.meta)
        from antiphon.protocol.extension import KEY, kept_in  # late: for clients of version 2 alone

        id = kept_in(asked.meta).get("messageId")
        meta = {key: value for key, value in asked.meta.items() if key != KEY}
        return AgentTurn(session, asked.prompt, meta, message_id=id if isinstance(id, str) else None)

    def cancel_part(self, method: str, params: msgspec.Raw) -> dict[str, str]:
        """Cancel one tool call or terminal, for a client of version 2."""
        from antiphon.protocol.extension import CANCEL_METHODS, OpenWork

        for kind, (call, member) in CANCEL_METHODS.items():
            if call.name == method:
                asked = call.decode_params(params)
                session = self._find(str(asked.get("sessionId"))).session
                session._work.cancel(OpenWork(kind, str(asked.get(member))))
                return {}
        raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)

    async def steer(self, asked: v1.Prompt) -> dict[str, str]:
        """Add to the turn that runs. Without a running turn, the client keeps what the user wrote."""
        found = self._find(asked.session_id)
        check_content(asked.prompt, (*self._agent.takes, *self._agent.also_takes))
        addition = self._turn(found.session, asked)
        try:
            taken = found.turns.busy and await maybe_await(self._agent.steer(addition))
        finally:
            end_turn(addition)
        return INJECTED if taken else too_late(asked)

    def _wait(self, turn: AgentTurn, before: int) -> None:
        if self._agent.does("waits"):
            self._begin_task(self._call_waits(turn, before), "call the hook `waits`")

    async def _call_waits(self, turn: AgentTurn, before: int) -> None:
        try:
            await maybe_await(self._agent.waits(turn, before))
        except Exception:  # the prompt itself can still run
            _log.exception("the hook `waits` failed")

    def _begin_task(self, work: "Coroutine[Any, Any, None]", name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, turn: AgentTurn) -> v1.PromptResult:
        turn.session._running_prompt = turn._message_id
        try:
            outcome: Outcome = await maybe_await(self._agent.prompt(turn))
        finally:
            turn.session._running_prompt = None
        if isinstance(outcome, v1.PromptResult):
            return outcome
        if outcome is None or isinstance(outcome, v1.StopReason):
            return v1.PromptResult(outcome or v1.StopReason.END_TURN)
        raise TypeError(f"`prompt` returned {type(outcome).__name__}, not a StopReason, a PromptResult or None")

    def cancel(self, asked: v1.Cancel) -> None:
        """Cancel what runs in a session."""
        found = self._open.get(asked.session_id)
        if found is None:
            return
        if sys.version_info >= (3, 12):
            self._cancel_now(found)
        else:  # a prompt that came just before begins in the next step of the loop: let it be queued first
            asyncio.get_running_loop().call_soon(self._cancel_now, found)

    def _cancel_now(self, found: _Open) -> None:
        work = found.session._known_work
        own = work is not None and work.cancel_own()
        if found.turns.busy or found.ending is not None:
            found.turns.cancel()
            return
        if work is not None and not own and self._client.version == 1:  # which has no other way to cancel it
            work.cancel_background()
        if self._agent.does("cancel"):  # what an agent does by itself, between prompts
            self._begin_task(self._cancel(found.session), "cancel")

    async def _cancel(self, session: AgentSession) -> None:
        try:
            await maybe_await(self._agent.cancel(session))
        except Exception:  # a notification has no response for the error
            _log.exception("the hook `cancel` failed")

    def _find(self, session_id: str) -> _Open:
        self._check_ready()
        found = self._open.get(session_id)
        if found is None or found.ending is not None:
            raise RequestError(
                Code.RESOURCE_NOT_FOUND, "Resource not found", f"there is no open session `{session_id}`: open it first"
            )
        return found

    # Changes.

    async def set_mode(self, asked: v1.SetMode) -> "Then[v1.SetModeResult]":
        """Change the mode: `session/set_mode`."""
        session = self._find(asked.session_id).session
        changed = await self._choose_mode(session, asked.mode_id)
        return Then(v1.SetModeResult(), partial(_send_options, session, changed))

    async def _choose_mode(self, session: AgentSession, mode_id: str) -> bool:
        session.host.settings.check_mode(mode_id)
        await maybe_await(self._agent.set_mode(session, mode_id))
        return session.host.settings.choose_mode(mode_id)

    async def set_model(self, asked: v1.SetModel) -> "Then[v1.SetModelResult]":
        """Change the model, for older clients: `session/set_model`."""
        session = self._find(asked.session_id).session
        self._client._chooses_models = True
        changed = await self._choose_model(session, asked.model_id)
        return Then(v1.SetModelResult(), partial(_send_options, session, changed))

    async def _choose_model(self, session: AgentSession, model_id: str) -> bool:
        session.host.settings.check_model(model_id)
        await maybe_await(self._agent.set_model(session, model_id))
        return session.host.settings.choose_model(model_id)

    async def set_config_option(self, asked: v1.SetConfigOption) -> "Then[v1.SetConfigOptionResult]":
        """Change an option: `session/set_config_option`."""
        session = self._find(asked.session_id).session
        value = session.host.settings.meant(asked.config_id, asked.value)
        await maybe_await(self._agent.set_config_option(session, asked.config_id, value))
        mode_too = session.host.settings.choose_option(asked.config_id, value)
        shown = session.host.settings.shown(self._client.shows_booleans)
        return Then(v1.SetConfigOptionResult(shown), partial(_send_mode, session, mode_too))

    # Lists and ends.

    async def list(self, asked: v1.ListSessions) -> v1.ListSessionsResult:
        """List the sessions: `session/list`."""
        self._check_ready()
        found: v1.ListSessionsResult | Iterable[v1.SessionInfo] = await maybe_await(self._agent.list_sessions(asked))
        if isinstance(found, v1.ListSessionsResult):
            return found
        if asked.cursor is not None:  # all of them are on one page, so no cursor was ever given
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"there is no page `{asked.cursor}`")
        return v1.ListSessionsResult([info for info in found if asked.cwd in (None, info.cwd)])

    async def close(self, asked: v1.CloseSession) -> v1.CloseSessionResult:
        """Close a session: `session/close`."""
        self._find(asked.session_id)
        await self._end(asked.session_id)
        return v1.CloseSessionResult()

    async def delete(self, asked: v1.DeleteSession) -> v1.DeleteSessionResult:
        """Delete a session for good: `session/delete`."""
        self._check_ready()
        await self._end(asked.session_id)
        await maybe_await(self._agent.delete_session(asked.session_id))
        return v1.DeleteSessionResult()

    async def end(self) -> None:
        """Open nothing more, and close all sessions: the client is gone, or we are being stopped.

        A hook that opens a session may still run. Call this again when none does.
        """
        self._over = True
        for task in self._tasks:
            task.cancel()
        for found in tuple(self._open.values()):
            _ = self._begin_end(found)
        endings, self._endings = self._endings, set()  # each is waited for once, also one that takes too long
        await wait_for_ends(tuple(endings), "a session")

    async def _end(self, session_id: str) -> None:
        found = self._open.get(session_id)
        if found is not None:
            await asyncio.shield(self._begin_end(found))

    def _begin_end(self, found: _Open) -> "asyncio.Task[None]":
        if found.ending is None:
            # A task of its own: the request may be cancelled before it is done, and what the session holds must be released.
            name = f"close {found.session.id}"
            found.ending = asyncio.get_running_loop().create_task(self._close(found), name=name)
            self._endings.add(found.ending)
            found.ending.add_done_callback(self._endings.discard)
        return found.ending

    async def _close(self, found: _Open) -> None:
        try:
            await found.turns.cancel_and_wait()
            if found.session._known_work is not None:
                await found.session._known_work.end()
            await maybe_await(self._agent.close_session(found.session))
        finally:
            close_session(found.session)
            if self._open.get(found.session.id) is found:
                del self._open[found.session.id]


def _stopping() -> RequestError:
    return RequestError(Code.INTERNAL_ERROR, "Internal error", "the agent is ending and opens no more sessions")


def _new_id() -> str:
    return os.urandom(16).hex()


def _send_options(session: AgentSession, changed: bool) -> None:
    if changed and not session.closed:
        _ = session.send_options()


def _send_mode(session: AgentSession, changed: bool) -> None:
    if changed and session.modes is not None and not session.closed:
        _ = session.update(v1.CurrentModeUpdate(session.modes.current_mode_id))
