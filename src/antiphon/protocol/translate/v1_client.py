"""A client of version 1 with an agent of version 2: the translator plays the agent of the one and the client of the other."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec import Raw, UnsetType

from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.exchange import ErrorMessage, Id, Loss, NotificationMessage, RequestFailure
from antiphon.protocol.translate.base import (
    CANCEL_REQUEST,
    OWN,
    OpenRequest,
    Translator,
    request_key,
    requested_id,
)
from antiphon.protocol.translate.extension import ClientExtension
from antiphon.protocol.translate.tables import BoundedTable
from antiphon.protocol.translate.v1_questions import V1Questions
from antiphon.protocol.translate.v1_session import (
    SentPrompt,
    TextChunk,
    V1ClientSession,
    system_prompt_to_v2,
    text_of,
    version_of,
)
from antiphon.protocol.translate.v1_settings import V1Settings
from antiphon.protocol.translate.v1_updates import KEPT, UpdatesToV1
from antiphon.protocol.translate.values import content as c
from antiphon.protocol.translate.values import handshake
from antiphon.protocol.v1 import methods as m1
from antiphon.protocol.v2 import methods as m2

__all__ = ["MAX_EARLY", "V1ClientTranslator"]

MAX_EARLY: Final = 1_000
"""Updates kept for sessions whose `session/new` is not answered yet. More are reported and not sent."""

MAX_PROMPTS: Final = 1_000
"""Prompts of one session that may wait for their end. The next one is refused."""

NEXT_WORK: Final = 2.0
"""Seconds after which a prompt counts as ended whose work seems to be over: by an idle that came before its response, or that ended work
which the client had cancelled before it. Until then the agent may begin to work on it."""

_OWN_KINDS: Final = frozenset((v2.StateUpdate, v2.UserMessageChunk, v2.UserMessageUpdate))
"""Updates that are about prompts, and so about more than what is shown."""

_Words = v2.StopReason

_GONE: Final = frozenset(
    one.name
    for one in (
        m1.READ_TEXT_FILE, m1.WRITE_TEXT_FILE, m1.CREATE_TERMINAL, m1.TERMINAL_OUTPUT, m1.WAIT_FOR_EXIT, m1.KILL_TERMINAL,
        m1.RELEASE_TERMINAL,
    )
)  # fmt: skip
"""What a client of version 2 does not have. The client behind us may have it, and has not offered it to this agent."""


class V1ClientTranslator(Translator):
    """Joins a client of version 1 to an agent of version 2."""

    chunks = TextChunk
    """What `agent_chunk` takes."""
    updates = v2.SessionUpdate
    """What `agent_update` takes."""
    update_method = m2.SESSION_UPDATE.name

    def __init__(self, clock: Callable[[], float], *, extended: bool = False) -> None:
        super().__init__(clock)
        self._asked = v1.Initialize(protocol_version=1)
        self._able = v2.AgentCapabilities()
        self._sessions: BoundedTable[str, V1ClientSession] = BoundedTable(spares=lambda session: bool(session.prompts))
        self._early: dict[str, list[v2.Update]] = {}
        self._early_count = 0
        self._opening = 0
        """Requests for new sessions that are not answered: updates may come before their response."""
        self._closed: BoundedTable[str, None] = BoundedTable()
        self._questions = V1Questions(self, lambda id: None if id in self._closed else self._session_of(id))
        self._stale: dict[int, UpdatesToV1] = {}
        """Sessions with content that was not sent yet."""
        settings = V1Settings(self, self._session_of)
        self.client_handlers = {
            m1.INITIALIZE.name: (m1.INITIALIZE, self._initialize),
            m1.AUTHENTICATE.name: (m1.AUTHENTICATE, self._authenticate),
            m1.LOGOUT.name: (m1.LOGOUT, self._logout),
            m1.NEW_SESSION.name: (m1.NEW_SESSION, self._new),
            m1.LOAD_SESSION.name: (m1.LOAD_SESSION, self._load),
            m1.RESUME_SESSION.name: (m1.RESUME_SESSION, self._resume),
            m1.FORK_SESSION.name: (m1.FORK_SESSION, self._fork),
            m1.LIST_SESSIONS.name: (m1.LIST_SESSIONS, self._list),
            m1.CLOSE_SESSION.name: (m1.CLOSE_SESSION, self._close),
            m1.PROMPT.name: (m1.PROMPT, self._prompt),
            m1.SET_MODE.name: (m1.SET_MODE, settings.set_mode),
            m1.SET_MODEL.name: (m1.SET_MODEL, settings.set_model),
            m1.SET_CONFIG_OPTION.name: (m1.SET_CONFIG_OPTION, settings.set_option),
        }
        self.client_notices = {m1.CANCEL.name: (m1.CANCEL, self._cancel)}
        self.agent_handlers = {
            m2.REQUEST_PERMISSION.name: (m2.REQUEST_PERMISSION, self._questions.permission),
            m2.CREATE_ELICITATION.name: (m2.CREATE_ELICITATION, self._questions.elicitation),
        }
        self.agent_notices = {m2.SESSION_UPDATE.name: (m2.SESSION_UPDATE, self.agent_update)}
        self._extension = ClientExtension(self, self._sessions.get) if extended else None
        """For a client of our SDK, which has more of version 2 than version 1 has."""

    def agent_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the agent."""
        if method in _GONE:
            wrong = "a client of version 2 has no files and terminals"
            self.to_agent.append(ErrorMessage(id, Code.METHOD_NOT_FOUND, "Method not found", wrong))
        else:
            super().agent_request(id, method, params)

    # The stream.

    def agent_chunk(self, chunk: TextChunk) -> Literal[True] | None:
        """Take a piece of text. True: it is to be forwarded as it came; None: it goes the general way."""
        session = self._sessions.get(chunk.session_id)
        if session is None:
            return None
        updates, update = session.updates, chunk.update
        if updates.stale:
            return None
        id = update.message_id
        log = updates.messages.get((update.kind, id))
        if log is None or log.shown_as != id:
            return None
        log.add_text(update.content.text)
        return True

    # The handshake.

    def _initialize(self, id: Id, asked: v1.Initialize) -> None:
        self._asked = asked

        def answered(raw: Raw) -> None:
            self._initialized(id, asked, raw)

        request = OpenRequest(id, 0, m2.INITIALIZE.name, answered, lambda failure: self.fail_client(id, failure))
        self.of_client.forward(request, handshake.initialize_to_v2(asked))

    def _initialized(self, id: Id, asked: v1.Initialize, raw: Raw) -> None:
        """The number decides before the shape: an agent that answers 1, or 2 in the shape of 1, is one of version 1."""
        version, named = version_of(raw)
        if version == 2 and named:
            try:
                result = m2.INITIALIZE.decode_result(raw)
            except RemoteProtocolError as error:
                self.fail_client(id, RequestFailure(Code.INTERNAL_ERROR, "Internal error", error.sentence))
                return
            able = asked.client_capabilities
            if able.terminal or able.fs.read_text_file or able.fs.write_text_file:
                self.report("initialize", "an agent of version 2 uses no files and terminals of its client")
            self._able = result.capabilities
            self.answer_client(id, handshake.result_to_v1(result, asked, self.report))
        elif version in (1, 2):
            # It has seen neither what the client can do nor its name: the handshake is repeated in its own version.
            def again(result: Raw) -> None:
                self.answer_client(id, result)
                self.transparent = True

            def refused(failure: RequestFailure) -> None:
                self.report("initialize", f"the agent takes no second handshake: {failure.message}")
                again(raw)

            request = OpenRequest(OWN, 0, m1.INITIALIZE.name, again, refused, own=True)
            self.of_client.forward(request, msgspec.structs.replace(asked, protocol_version=1))
        else:
            wrong = f"the agent answered with version {version!r} of ACP"
            self.to_client.append(ErrorMessage(id, Code.INTERNAL_ERROR, "Internal error", wrong))

    def fail_client(self, id: Id, failure: RequestFailure) -> None:
        """Answer a request of the client with an error."""
        self.to_client.append(ErrorMessage(id, failure.code, failure.message, failure.data))

    def _authenticate(self, id: Id, asked: v1.Authenticate) -> None:
        self.ask_agent(
            id,
            m2.LOGIN,
            v2.AuthLogin(method_id=asked.method_id, meta=asked.meta),
            lambda result: self.answer_client(id, v1.AuthenticateResult(meta=result.meta)),
        )

    def _logout(self, id: Id, asked: v1.Logout) -> None:
        self.ask_agent(id, m2.LOGOUT, asked, lambda result: self.answer_client(id, result))

    # Sessions.

    def _servers(self, servers: "list[v1.McpServer]") -> "list[v2.McpServer]":
        able = self._able.session
        if able is None:
            raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", "the agent has no sessions")
        return handshake.servers_to_v2(servers, able.mcp)

    def _new(self, id: Id, asked: v1.NewSession) -> None:
        params = v2.NewSession(
            cwd=asked.cwd,
            additional_directories=asked.additional_directories,
            mcp_servers=self._servers(asked.mcp_servers),
            system_prompt=system_prompt_to_v2(asked.system_prompt),
            meta=asked.meta,
        )
        self._opening += 1

        def opened(result: v2.NewSessionResult) -> None:
            self._opening -= 1
            session = self._open(result.session_id, asked.cwd, self._sessions.get(result.session_id))
            session.updates.set_options(result.config_options)
            options, modes = self._settings(session)
            self.answer_client(
                id,
                v1.NewSessionResult(
                    session_id=result.session_id, modes=modes, config_options=options, meta=result.meta
                ),
            )
            self._opened(session, result.available_commands)

        def failed(failure: RequestFailure) -> None:
            self._opening -= 1
            self.fail_client(id, failure)

        self.ask_agent(id, m2.NEW_SESSION, params, opened, failed)

    def _fork(self, id: Id, asked: v1.ForkSession) -> None:
        params = v2.ForkSession(
            session_id=asked.session_id,
            cwd=asked.cwd,
            additional_directories=asked.additional_directories,
            mcp_servers=self._servers(asked.mcp_servers),
            system_prompt=system_prompt_to_v2(asked.system_prompt),
            meta=asked.meta,
        )

        def opened(result: v2.ForkSessionResult) -> None:
            session = self._open(result.session_id, asked.cwd, self._sessions.get(result.session_id))
            session.updates.set_options(result.config_options)
            options, modes = self._settings(session)
            self.answer_client(
                id,
                v1.ForkSessionResult(
                    session_id=result.session_id, modes=modes, config_options=options, meta=result.meta
                ),
            )
            self._opened(session, result.available_commands)

        self.ask_agent(id, m2.FORK_SESSION, params, opened)

    def _load(self, id: Id, asked: v1.LoadSession) -> None:
        self._reopen(id, asked, v2.ReplayFromStart(), v1.LoadSessionResult)

    def _resume(self, id: Id, asked: v1.ResumeSession) -> None:
        self._reopen(id, asked, None, v1.ResumeSessionResult)

    def _reopen(
        self,
        id: Id,
        asked: v1.LoadSession | v1.ResumeSession,
        replay_from: v2.ReplayFromStart | None,
        answer: type[v1.LoadSessionResult] | type[v1.ResumeSessionResult],
    ) -> None:
        params = v2.ResumeSession(
            session_id=asked.session_id,
            cwd=asked.cwd,
            additional_directories=asked.additional_directories,
            mcp_servers=self._servers(asked.mcp_servers),
            replay_from=replay_from,
            system_prompt=system_prompt_to_v2(asked.system_prompt),
            meta=asked.meta,
        )
        before = self._sessions.get(asked.session_id)
        # The client expects all of the history, so nothing counts as sent already. What runs goes on.
        session = self._open(asked.session_id, asked.cwd, before if replay_from is None else None)
        if before is not None and session is not before:
            session.go_on_from(before)
        session.replaying = replay_from is not None

        def opened(result: v2.ResumeSessionResult) -> None:
            session.updates.settle()
            self._end_work(session)
            session.updates.set_options(result.config_options)
            options, modes = self._settings(session)
            self.answer_client(id, answer(modes=modes, config_options=options, meta=result.meta))
            self._opened(session, result.available_commands)

        def failed(failure: RequestFailure) -> None:
            session.updates.settle()
            self._end_work(session)
            if before is None:
                self._sessions.pop(asked.session_id, None)
            elif session is not before:  # what was shown before is still what the client shows
                before.go_on_from(session)
                self._sessions[asked.session_id] = before
            self.fail_client(id, failure)

        self.ask_agent(id, m2.RESUME_SESSION, params, opened, failed)

    def _open(self, session_id: str, cwd: str, known: V1ClientSession | None = None) -> V1ClientSession:
        if known is not None:
            known.updates.cwd = cwd
            return known

        def emit(update: object) -> None:
            params = {"sessionId": session_id, "update": update}
            self.to_client.append(NotificationMessage(m1.SESSION_UPDATE.name, params))

        self._closed.pop(session_id, None)
        updates = UpdatesToV1(emit, self.report, self._asked.client_capabilities, cwd, self._stale)
        if self._extension is not None:
            updates.cancellable = self._extension.watch(session_id)
        return self._sessions.add(session_id, V1ClientSession(session_id, updates))

    def _session_of(self, session_id: str) -> V1ClientSession:
        """The session, which the agent knows of even if it was not opened here."""
        return self._sessions.get(session_id) or self._open(session_id, "")

    def request_cancelled(self, id: Id) -> None:
        """The agent cancelled one of its requests."""
        self._questions.cancelled(id)

    def _settings(self, session: V1ClientSession) -> "tuple[list[v1.ConfigOption] | None, v1.ModeState | None]":
        mode = session.updates.mode
        return session.updates.options_to_v1() or None, None if mode is None else c.modes_of(mode)

    def _opened(self, session: V1ClientSession, commands: "list[v2.AvailableCommand]") -> None:
        """Send what belongs after the response: the commands, and what came before it."""
        if commands:
            session.updates.update(v2.AvailableCommandsUpdate(available_commands=commands))
        early = self._early.pop(session.id, [])
        self._early_count -= len(early)
        for update in early:
            self.agent_update(v2.SessionUpdate(session_id=session.id, update=update))
        if not self._opening:
            self._forget_early()

    def _forget_early(self) -> None:
        """Updates of sessions that were never opened here, such as child sessions."""
        for session_id, updates in self._early.items():
            for update in updates:
                self._unopened(session_id, update)
        self._early.clear()
        self._early_count = 0

    def _list(self, id: Id, asked: v1.ListSessions) -> None:
        def listed(result: v2.ListSessionsResult) -> None:
            self.answer_client(id, handshake.sessions_to_v1(result))

        self.ask_agent(id, m2.LIST_SESSIONS, asked, listed)

    def _close(self, id: Id, asked: v1.CloseSession) -> None:
        def closed(result: v2.CloseSessionResult) -> None:
            session = self._sessions.pop(asked.session_id, None)
            self._closed.add(asked.session_id, None)
            if session is not None:
                session.updates.settle()
                self._end(session, session.prompts, None, cancelled=True)
            self.answer_client(id, result)

        def failed(failure: RequestFailure) -> None:
            if (
                failure.code == Code.RESOURCE_NOT_FOUND
            ):  # what the agent does not know is closed, as far as a client can tell
                closed(v2.CloseSessionResult())
            else:
                self.fail_client(id, failure)

        self.ask_agent(id, m2.CLOSE_SESSION, asked, closed, failed)

    # Prompts.

    def _prompt(self, id: Id, asked: v1.Prompt) -> None:
        session = self._session_of(asked.session_id)  # the agent knows best whether there is such a session
        self._sessions.renew(asked.session_id)
        if len(session.prompts) >= MAX_PROMPTS:
            raise RequestError(Code.INTERNAL_ERROR, "Internal error", f"more than {MAX_PROMPTS} prompts wait")
        number, meta = (None, asked.meta) if self._extension is None else self._extension.taken_from(asked.meta)
        prompt = SentPrompt(id, asked.prompt, number)
        prompt.begins, prompt.follows = not session.busy, session.cancelling
        session.prompts.append(prompt)
        blocks = [c.block_to_v2(block) for block in asked.prompt]
        params = v2.Prompt(session_id=asked.session_id, prompt=blocks, meta=meta)

        def inserted(result: v2.PromptResult) -> None:
            self._inserted(session, prompt, result.message_id)

        def failed(failure: RequestFailure) -> None:
            if prompt not in session.prompts:
                return
            session.prompts.remove(prompt)
            if failure.code == Code.REQUEST_CANCELLED:
                self.answer_client(id, v1.PromptResult(stop_reason=v1.StopReason.CANCELLED))
            else:
                self.fail_client(id, failure)

        self.ask_agent(id, m2.PROMPT, params, inserted, failed)

    def _inserted(self, session: V1ClientSession, prompt: SentPrompt, message_id: str) -> None:
        session.own_messages.add(message_id, None)
        if prompt not in session.prompts:
            return
        prompt.message_id = message_id
        if self._extension is not None and prompt.number is not None:
            self._extension.inserted(session.id, prompt.number, message_id)
        ended = session.echoed.pop(message_id, None)
        if ended is not None:  # all of its work was done before this response
            self._end(session, [prompt], ended, cancelled=prompt.cancelled)
        elif prompt.ended is not None and not session.busy:  # so it may have been
            self._end_later(session)

    def _end_later(self, session: V1ClientSession) -> None:
        """End the prompts whose work may be over, unless the agent goes on to work."""
        self.due["end", session.id] = self.clock() + NEXT_WORK, partial(self._end_over, session.id)

    def _end_over(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        for prompt in session.inserted if session is not None and not session.busy else ():
            if session is not None and prompt.ended is not None:
                self._end(session, [prompt], prompt.ended)

    def _end(
        self,
        session: V1ClientSession,
        prompts: "list[SentPrompt]",
        idle: v2.StateUpdate | None,
        *,
        cancelled: bool = False,
    ) -> None:
        """Answer prompts whose work has ended."""
        for prompt in list(prompts):
            session.prompts.remove(prompt)
            reason = idle.stop_reason if idle is not None else None
            if reason is _Words.ERROR:
                failure = idle.error if idle is not None else None
                if failure is None:
                    failure = v2.Failure(code=Code.INTERNAL_ERROR, message="Internal error")
                self.to_client.append(ErrorMessage(prompt.id, failure.code, failure.message, failure.data))
                continue
            meta = idle.meta if idle is not None else None
            if reason is None:
                stop = v1.StopReason.CANCELLED if cancelled or prompt.cancelled else v1.StopReason.END_TURN
            elif reason.known:
                stop = v1.StopReason(reason.value)
            else:
                self.report("state_update", f"version 1 has no stop reason `{reason.value}`")
                stop, meta = v1.StopReason.END_TURN, {**(meta or {}), KEPT: {"stopReason": reason.value}}
            usage = idle.usage if idle is not None else None
            self.answer_client(prompt.id, v1.PromptResult(stop_reason=stop, usage=usage, meta=meta))

    def _cancel(self, asked: v1.Cancel) -> None:
        self.notify_agent(m2.CANCEL, asked)
        session = self._sessions.get(asked.session_id)
        if session is None:
            return
        session.cancelling = session.busy or bool(session.prompts)
        for prompt in session.prompts:
            prompt.follows = False
            if prompt.echo is None or session.echoed.get(prompt.echo) is None:  # else its work had ended before
                prompt.cancelled = True
        if not session.busy:  # the agent owes no idle for work that it has not begun
            self._end(session, session.inserted, None, cancelled=True)

    def client_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the client. A prompt that was inserted is no request any more: its work is cancelled instead."""
        if method == CANCEL_REQUEST and (found := self._inserted_prompt(requested_id(params))) is not None:
            session, prompt = found
            if session.prompts == [prompt]:
                self._cancel(v1.Cancel(session_id=session.id))
            else:
                self.losses.append(Loss(method, "version 2 cannot cancel one of several prompts", refused=True))
            return
        super().client_notification(method, params)

    def _inserted_prompt(self, id: Id) -> tuple[V1ClientSession, SentPrompt] | None:
        for session in self._sessions.values():
            for prompt in session.inserted:
                if request_key(prompt.id) == id:
                    return session, prompt
        return None

    # Updates.

    def agent_update(self, params: v2.SessionUpdate) -> None:
        """Take an update of the agent."""
        session = self._sessions.get(params.session_id)
        update = params.update
        if session is None:
            if self._opening and self._early_count < MAX_EARLY:
                self._early.setdefault(params.session_id, []).append(update)
                self._early_count += 1
            else:
                self._unopened(params.session_id, update)
            return
        if type(update) not in _OWN_KINDS:  # nearly all of a stream
            session.updates.update(update)
            return
        if isinstance(update, v2.StateUpdate):
            session.updates.settle()
            self._state(session, update)
        elif isinstance(update, v2.UserMessageChunk):
            if not self._is_own(session, update.message_id, [update.content]):
                session.updates.settle()
                session.updates.chunk("user", update)
        elif isinstance(update, v2.UserMessageUpdate):
            content = None if isinstance(update.content, UnsetType) else update.content
            if not self._is_own(session, update.message_id, content):
                session.updates.settle()
                session.updates.message("user", update)

    def _unopened(self, session_id: str, update: v2.Update) -> None:
        self.losses.append(Loss(c.kind_of(update), f"session `{session_id:.80}` is not open here"))

    def _is_own(self, session: V1ClientSession, message_id: str, content: "list[v2.ContentBlock] | None") -> bool:
        """Whether a user message is one that the client sent, which it shows already."""
        if message_id in session.own_messages:
            return not session.replaying
        if session.replaying:
            return False
        waiting = next((prompt for prompt in session.prompts if prompt.message_id is None), None)
        if waiting is None:
            return False
        if message_id not in session.echoed:
            session.echoed.add(message_id, None)
        if content is None or text_of(waiting.content).startswith(text_of(content)):
            session.own_messages.add(message_id, None)
            waiting.echo = message_id
            return True
        return False

    def _state(self, session: V1ClientSession, update: v2.StateUpdate) -> None:
        if self._extension is not None:
            self._extension.state(session.id, update)
        elif update.background:
            self.report("state_update", "version 1 does not show background work")
        if update.state is not v2.ForegroundState.IDLE:
            if not update.state.known:
                self.report("state_update", f"version 1 has no state `{update.state.value:.80}`")
            session.busy = True
            self.due.pop(("end", session.id), None)
            for prompt in session.prompts:
                prompt.ended = None
            return
        if not session.busy:
            return  # a repetition
        session.busy = False
        for message_id, ended in session.echoed.items():
            if ended is None:
                session.echoed[message_id] = update
        session.ended = update
        if not session.replaying:
            self._end_work(session)

    def _end_work(self, session: V1ClientSession) -> None:
        """Answer the prompts whose work has ended. During a replay that waits: a history may have states of its own."""
        session.replaying = False
        ended, session.ended = session.ended, None
        if ended is None or session.busy:
            return
        over = session.inserted
        for prompt in session.prompts:
            if prompt.message_id is None and prompt.echo is None and prompt.begins:
                prompt.ended = ended  # it may have been inserted, and its response may be late
        if session.cancelling and ended.stop_reason in (None, _Words.CANCELLED):
            # A prompt that came after the cancellation is not covered by it: its work follows.
            over = [prompt for prompt in over if not prompt.follows]
            for prompt in session.prompts:
                if prompt.follows and (prompt.message_id is not None or prompt.echo is not None):
                    prompt.ended = ended
                    session.echoed.pop(prompt.echo or "", None)
                    self._end_later(session)
        session.cancelling = False
        for prompt in session.prompts:
            prompt.follows = False
        if ended.stop_reason is _Words.ERROR and not session.prompts and self._extension is None:
            about = "" if ended.error is None else f": {ended.error.message:.200}"
            self.report("state_update", f"work that no prompt waits for has failed{about}")
        self._end(session, over, ended)

    # What waits.

    def settle(self) -> None:
        """Send what was collected of tool calls."""
        while self._stale:
            self._stale.popitem()[1].settle()

    def agent_lost(self) -> None:
        """Answer what the agent will not answer any more: requests, and prompts whose work does not end."""
        super().agent_lost()
        for session in self._sessions.values():
            gone = v2.Failure(code=Code.INTERNAL_ERROR, message="Internal error", data="the agent is gone")
            ended = v2.StateUpdate(state=v2.ForegroundState.IDLE, stop_reason=_Words.ERROR, error=gone)
            self._end(session, session.prompts, ended)
