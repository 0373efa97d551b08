"""A client of version 2 with an agent of version 1: the translator plays the agent of the one and the client of the other."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from msgspec import Raw

from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.base import JsonObject, Unknown
from antiphon.protocol.exchange import ErrorMessage, Id, Loss, NotificationMessage, RequestFailure
from antiphon.protocol.extension import KEY
from antiphon.protocol.translate.base import OWN, Translator, request_key, requested_id
from antiphon.protocol.translate.extension import AgentExtension
from antiphon.protocol.translate.tables import BoundedTable
from antiphon.protocol.translate.v2_injection import PromptInjection
from antiphon.protocol.translate.v2_questions import V2Questions
from antiphon.protocol.translate.v2_session import (
    AgentChunk,
    AgentPiece,
    HeldPrompt,
    V2ClientSession,
    V2Settings,
    about_session,
    idle,
    stop_reason,
    system_prompt_to_v1,
)
from antiphon.protocol.translate.v2_updates import UpdatesToV2
from antiphon.protocol.translate.values import content as c
from antiphon.protocol.translate.values import handshake
from antiphon.protocol.v1 import methods as m1
from antiphon.protocol.v2 import methods as m2

__all__ = [
    "CLOSE_TIMEOUT", "INSERT_DELAY", "MAX_HELD", "V2ClientTranslator",
]  # fmt: skip

INSERT_DELAY: Final = 0.3
"""Seconds after which a prompt counts as inserted, if the agent of version 1 shows no sign of life and no error before."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that an agent without `session/close` has to end the turn of a session that is closed."""

MAX_HELD: Final = 100
"""Prompts of a session that wait for the one before. The next one is refused."""


_REMOVED: Final = frozenset(m1.BY_NAME) - frozenset(m2.BY_NAME)
"""Methods of version 1 that version 2 has no more."""


class V2ClientTranslator(Translator):
    """Joins a client of version 2 to an agent of version 1."""

    chunks = AgentChunk
    """What `agent_chunk` takes."""
    updates = v1.SessionUpdate
    """What `agent_update` takes."""
    update_method = m1.SESSION_UPDATE.name

    def __init__(self, clock: Callable[[], float], first: Raw | None = None, *, extended: bool = False) -> None:
        super().__init__(clock)
        self._first = first
        """What the agent answered to a handshake of version 2, where it had been sent one."""
        self._agent = v1.InitializeResult(protocol_version=1)
        self._sessions: BoundedTable[str, V2ClientSession] = BoundedTable(spares=lambda session: session.has_prompts)
        self._closed: BoundedTable[str, None] = BoundedTable()
        self._questions = V2Questions(self, self._began)
        self._injection = PromptInjection(self, self._show_inserted, self._refuse_one, self._go_on)
        self._prompts: dict[Id, tuple[V2ClientSession, HeldPrompt]] = {}
        """Prompts that are not answered, by their id."""
        self.client_handlers = {
            m2.INITIALIZE.name: (m2.INITIALIZE, self._initialize),
            m2.LOGIN.name: (m2.LOGIN, self._login),
            m2.LOGOUT.name: (m2.LOGOUT, self._logout),
            m2.NEW_SESSION.name: (m2.NEW_SESSION, self._new),
            m2.RESUME_SESSION.name: (m2.RESUME_SESSION, self._resume),
            m2.FORK_SESSION.name: (m2.FORK_SESSION, self._fork),
            m2.LIST_SESSIONS.name: (m2.LIST_SESSIONS, self._list),
            m2.CLOSE_SESSION.name: (m2.CLOSE_SESSION, self._close),
            m2.PROMPT.name: (m2.PROMPT, self._prompt),
            m2.SET_CONFIG_OPTION.name: (m2.SET_CONFIG_OPTION, V2Settings(self, self._session, self._fail).set_option),
            m2.CANCEL_TOOL_CALL.name: (m2.CANCEL_TOOL_CALL, self._cancel_part),
            m2.CANCEL_TERMINAL.name: (m2.CANCEL_TERMINAL, self._cancel_part),
        }
        self.client_notices = {m2.CANCEL.name: (m2.CANCEL, self._cancel)}
        unserved = (
            m1.READ_TEXT_FILE,
            m1.WRITE_TEXT_FILE,
            m1.CREATE_TERMINAL,
            m1.TERMINAL_OUTPUT,
            m1.WAIT_FOR_EXIT,
            m1.KILL_TERMINAL,
            m1.RELEASE_TERMINAL,
        )
        self.agent_handlers = {
            m1.REQUEST_PERMISSION.name: (m1.REQUEST_PERMISSION, self._questions.permission),
            m1.CREATE_ELICITATION.name: (m1.CREATE_ELICITATION, self._questions.elicitation),
            **{call.name: (call, partial(self._unserved, call.name)) for call in unserved},
        }
        self.agent_notices = {m1.SESSION_UPDATE.name: (m1.SESSION_UPDATE, self.agent_update)}
        self._extension = AgentExtension(self, self._sessions.get) if extended else None
        """For an agent of our SDK, which has more of version 2 than version 1 has."""

    # The stream.

    def agent_chunk(self, chunk: AgentChunk) -> Literal[True] | bytes | None:
        """Take a piece of text. True: it is to be forwarded as it came; bytes: with these params; None: it goes the general way."""
        session = self._sessions.get(chunk.session_id)
        if session is None or session.opening or session.active is None or not session.active.inserted:
            return None
        update = chunk.update
        open_message = session.updates.open
        if update.message_id is not None:
            if open_message is not None:
                session.updates.open = None
            return True
        kind = "agent" if type(update) is AgentPiece else "thought"
        if open_message is None or open_message.kind != kind:
            return None
        return open_message.params(update.content.text)

    # The handshake.

    def _initialize(self, id: Id, asked: v2.Initialize) -> None:
        if asked.protocol_version < 2:  # it is repeated, and a connection keeps its version
            data = {"requested": asked.protocol_version, "supported": [2]}
            self._refuse(
                "initialize", Code.UNSUPPORTED_VERSION, "Unsupported protocol version", "version 2 is spoken", data
            )

        def initialized(result: v1.InitializeResult) -> None:
            self._agent = result
            self.answer_client(id, self._introduction(result, asked))

        def failed(failure: RequestFailure) -> None:
            if self._first is None:
                self._fail(id, failure)
                return
            self.report("initialize", f"the agent takes no second handshake: {failure.message}")
            try:
                first = m1.INITIALIZE.decode_result(self._first)
            except RemoteProtocolError:
                self._fail(id, failure)
            else:
                initialized(first)

        self.ask_agent(id, m1.INITIALIZE, self._hello(asked), initialized, failed)

    def _hello(self, asked: v2.Initialize) -> v1.Initialize:
        return handshake.initialize_to_v1(asked)

    def _introduction(self, result: v1.InitializeResult, asked: v2.Initialize) -> v2.InitializeResult:
        return handshake.result_to_v2(result, asked, self.report)

    def client_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the client. A handshake for a newer version is read as far as it can be."""
        if method in _REMOVED:
            wrong = "version 2 of ACP has no such method"
            self.to_client.append(ErrorMessage(id, Code.METHOD_NOT_FOUND, "Method not found", wrong))
            return
        super().client_request(id, method, handshake.readable(params) if method == m2.INITIALIZE.name else params)

    def _login(self, id: Id, asked: v2.AuthLogin) -> None:
        self.ask_agent(
            id,
            m1.AUTHENTICATE,
            v1.Authenticate(method_id=asked.method_id, meta=asked.meta),
            lambda result: self.answer_client(id, v2.AuthLoginResult(meta=result.meta)),
        )

    def _logout(self, id: Id, asked: v2.Logout) -> None:
        if self._agent.agent_capabilities.auth.logout is None:
            self._refuse("auth/logout", Code.METHOD_NOT_FOUND, "Method not found", "the agent cannot sign out")
        self.ask_agent(id, m1.LOGOUT, asked, lambda result: self.answer_client(id, result))

    def _fail(self, id: Id, failure: RequestFailure, session_id: str | None = None) -> None:
        """Answer a request of the client with an error of the agent."""
        found = failure if session_id is None else about_session(failure, session_id)
        self.to_client.append(ErrorMessage(id, found.code, found.message, found.data))

    def _refuse(self, what: str, code: int, message: str, reason: str, data: object = None) -> None:
        """Refuse a request, and report it.

        Raises:
            RequestError: always.
        """
        self.losses.append(Loss(what, reason, refused=True))
        raise RequestError(code, message, reason if data is None else data)

    # Sessions.

    def _session(self, session_id: str, cwd: str = "") -> V2ClientSession:
        found = self._sessions.get(session_id)
        if found is None:
            self._closed.pop(session_id, None)

            def emit(update: object) -> None:
                params = {"sessionId": session_id, "update": update, **self.beside_update}
                self.to_client.append(NotificationMessage(m2.SESSION_UPDATE.name, params))

            found = self._sessions.add(session_id, self._begin(session_id, emit, cwd))
        if cwd:
            found.updates.cwd = cwd
        return found

    def _begin(self, session_id: str, emit: Callable[[object], None], cwd: str) -> V2ClientSession:
        return V2ClientSession(session_id, UpdatesToV2(session_id, emit, self.report, cwd))

    def _new(self, id: Id, asked: v2.NewSession) -> None:
        params = v1.NewSession(
            cwd=asked.cwd,
            mcp_servers=handshake.servers_to_v1(asked.mcp_servers),
            additional_directories=asked.additional_directories,
            system_prompt=system_prompt_to_v1(asked.system_prompt, self.report),
            meta=asked.meta,
        )

        self.ask_agent(id, m1.NEW_SESSION, params, partial(self._opened, id, asked.cwd, v2.NewSessionResult))

    def _opened(
        self,
        id: Id,
        cwd: str,
        answer: "type[v2.NewSessionResult | v2.ForkSessionResult]",
        result: v1.NewSessionResult | v1.ForkSessionResult,
    ) -> None:
        session = self._session(result.session_id, cwd)
        session.updates.set_settings(result.config_options, result.modes, result.models)
        self.answer_client(
            id, answer(session_id=result.session_id, config_options=session.updates.options, meta=result.meta)
        )

    def _fork(self, id: Id, asked: v2.ForkSession) -> None:
        params = v1.ForkSession(
            session_id=asked.session_id,
            cwd=asked.cwd,
            mcp_servers=handshake.servers_to_v1(asked.mcp_servers),
            additional_directories=asked.additional_directories,
            system_prompt=system_prompt_to_v1(asked.system_prompt, self.report),
            meta=asked.meta,
        )

        self.ask_agent(id, m1.FORK_SESSION, params, partial(self._opened, id, asked.cwd, v2.ForkSessionResult))

    def _resume(self, id: Id, asked: v2.ResumeSession) -> None:
        able = self._agent.agent_capabilities
        replay = asked.replay_from
        if isinstance(replay, Unknown):
            self._refuse("session/resume", Code.INVALID_PARAMS, "Invalid params", f"no replay from `{replay.kind}`")
        if replay is not None and not able.load_session:
            wrong = "the agent cannot replay a history"
            self._refuse("session/resume", Code.INVALID_PARAMS, "Invalid params", wrong)
        known = self._sessions.get(asked.session_id)
        resumes = able.session_capabilities.resume is not None
        if replay is None and not resumes and (known is not None or not able.load_session):
            if known is None:
                missing = {"sessionId": asked.session_id}
                wrong = "the agent cannot open earlier sessions"
                self._refuse("session/resume", Code.RESOURCE_NOT_FOUND, "Session not found", wrong, missing)
            elif known is not None:
                self._resumed(id, known, None)
            return
        self._reopen(id, asked, known, loads=replay is not None or not resumes)

    def _reopen(self, id: Id, asked: v2.ResumeSession, known: V2ClientSession | None, *, loads: bool) -> None:
        session = self._session(asked.session_id, asked.cwd)
        session.opening += 1
        session.silent = asked.replay_from is None
        if loads:
            session.updates.begin_replay()
        elif known is None:
            session.updates.begin_after_unknown(f"{int(self.clock() * 1000):x}")

        def opened(result: v1.LoadSessionResult | v1.ResumeSessionResult) -> None:
            session.opening -= 1
            session.updates.end_replay()
            session.silent, session.prompted = False, True
            session.updates.set_settings(result.config_options, result.modes, result.models)
            self._resumed(id, session, result.meta)

        def failed(failure: RequestFailure) -> None:
            session.opening -= 1
            session.updates.end_replay()
            session.silent = False
            if known is None:
                self._sessions.pop(asked.session_id, None)
            elif failure.code == Code.RESOURCE_NOT_FOUND and not known.prompted:
                self._resumed(id, known, None)  # open, and not stored: agents of version 1 store what was prompted
                return
            self._fail(id, failure, asked.session_id)

        servers = handshake.servers_to_v1(asked.mcp_servers)
        system = system_prompt_to_v1(asked.system_prompt, self.report)
        if loads:
            load = v1.LoadSession(
                session_id=asked.session_id,
                cwd=asked.cwd,
                mcp_servers=servers,
                additional_directories=asked.additional_directories,
                system_prompt=system,
                meta=asked.meta,
            )
            self.ask_agent(id, m1.LOAD_SESSION, load, opened, failed)
        else:
            resume = v1.ResumeSession(
                session_id=asked.session_id,
                cwd=asked.cwd,
                mcp_servers=servers,
                additional_directories=asked.additional_directories,
                system_prompt=system,
                meta=asked.meta,
            )
            self.ask_agent(id, m1.RESUME_SESSION, resume, opened, failed)

    def _resumed(self, id: Id, session: V2ClientSession, meta: JsonObject | None) -> None:
        """Send the state, and then the response."""
        session.show_state()
        self.answer_client(id, v2.ResumeSessionResult(config_options=session.updates.options, meta=meta))

    def _list(self, id: Id, asked: v2.ListSessions) -> None:
        if self._agent.agent_capabilities.session_capabilities.list is None:
            self.report("session/list", "the agent lists no sessions: those of this connection are listed")
            known = [
                v2.SessionInfo(session_id=each.id, cwd=each.updates.cwd, title=each.updates.title)
                for each in self._sessions.values()
                if each.updates.cwd and asked.cwd in (None, each.updates.cwd)
            ]
            self.answer_client(id, v2.ListSessionsResult(sessions=known))
            return

        def listed(result: v1.ListSessionsResult) -> None:
            self.answer_client(id, handshake.sessions_to_v2(result))

        self.ask_agent(id, m1.LIST_SESSIONS, asked, listed)

    def _close(self, id: Id, asked: v2.CloseSession) -> None:
        session = self._sessions.get(asked.session_id)
        if session is not None:
            self._refuse_held(session)
        if self._agent.agent_capabilities.session_capabilities.close is not None:

            def closed(result: v1.CloseSessionResult) -> None:
                self._forget(asked.session_id)
                self.answer_client(id, result)

            def failed(failure: RequestFailure) -> None:
                if failure.code == Code.RESOURCE_NOT_FOUND:  # there is nothing to close: in version 2 that is a success
                    closed(v1.CloseSessionResult())
                else:
                    self._fail(id, failure)

            self.ask_agent(id, m1.CLOSE_SESSION, asked, closed, failed)
            return
        if session is None or session.active is None:
            self._forget(asked.session_id)
            self.answer_client(id, v2.CloseSessionResult())
            return
        self._cancel(v2.Cancel(session_id=asked.session_id))
        session.closing.append(id)
        self.due["close", session.id] = (
            self.clock() + CLOSE_TIMEOUT,
            partial(self._over, session, idle(v2.StopReason.CANCELLED)),
        )

    def _forget(self, session_id: str) -> None:
        """End what a session still does, and take nothing of it from now on."""
        session = self._sessions.pop(session_id, None)
        self._closed.add(session_id, None)
        for what in ("insert", "close"):
            self.due.pop((what, session_id), None)
        if session is not None:
            self._refuse_held(session)
            if session.active is not None:
                session.active.cancelled = True
                self._insert(session)
            if session.state is not v2.ForegroundState.IDLE:
                session.active, session.working = None, False
                session.end(idle(v2.StopReason.CANCELLED))

    # Prompts.

    def _check_prompt(self, asked: v2.Prompt) -> None:
        unknown = next((block for block in asked.prompt if isinstance(block, Unknown)), None)
        if unknown is not None:
            wrong = f"the agent takes no content of type `{unknown.kind}`"
            self._refuse("session/prompt", Code.INVALID_PARAMS, "Invalid params", wrong)
        if not asked.prompt:
            raise RequestError.invalid_params("a prompt has at least one block")

    def _prompt(self, id: Id, asked: v2.Prompt) -> None:
        self._check_prompt(asked)
        session = self._session(asked.session_id)
        self._sessions.renew(asked.session_id)
        if len(session.held) >= MAX_HELD:
            wrong = f"more than {MAX_HELD} prompts wait"
            self._refuse("session/prompt", Code.INTERNAL_ERROR, "Internal error", wrong)
        if request_key(id) in self._prompts:
            return  # the first one keeps its response
        prompt = HeldPrompt(id, asked.prompt, asked.meta)
        self._prompts[request_key(id)] = session, prompt
        session.held.append(prompt)
        if session.active is None:
            self._next(session)
        elif self._injection.is_possible(self._agent, session):
            self._injection.offer(session, prompt, self._named(session, prompt.meta))

    def _go_on(self, session: V2ClientSession) -> None:
        """The agent has answered whether it takes a prompt into its turn."""
        if session.active is None:
            self._next(session)

    def _next(self, session: V2ClientSession) -> None:
        """Send the next prompt to the agent: one at a time."""
        if not session.held or session.held[0].offered or session.closing:
            return
        prompt = session.active = session.held.popleft()
        self.due["insert", session.id] = self.clock() + INSERT_DELAY, partial(self._insert, session)
        blocks = [c.block_to_v1(block, self.report) for block in prompt.content]
        params = v1.Prompt(session_id=session.id, prompt=blocks, meta=self._named(session, prompt.meta))

        def ended(result: v1.PromptResult) -> None:
            if session.active is prompt:
                self._insert(session)
                reason, meta = stop_reason(result)
                self._over(session, idle(reason, usage=result.usage, meta=meta))

        def failed(failure: RequestFailure) -> None:
            if session.active is not prompt:
                return
            if not prompt.inserted and not prompt.cancelled:
                session.active = None
                self.due.pop(("insert", session.id), None)
                self._prompts.pop(request_key(prompt.id), None)
                self._fail(prompt.id, failure, session.id)
                self._turn_over(session)
                return
            self._insert(session)
            if prompt.cancelled or failure.code == Code.REQUEST_CANCELLED:
                self._over(session, idle(v2.StopReason.CANCELLED))
            else:
                error = v2.Failure(code=failure.code, message=failure.message, data=failure.data)
                self._over(session, idle(v2.StopReason.ERROR, error=error))

        self.ask_agent(OWN, m1.PROMPT, params, ended, failed)

    def _named(self, session: V2ClientSession, meta: JsonObject | None) -> JsonObject | None:
        """The `_meta` of a prompt, for an agent of our SDK with the id that it will have as a message."""
        return (
            meta if self._extension is None else {**(meta or {}), KEY: {"messageId": session.updates.next_id("user")}}
        )

    def _insert(self, session: V2ClientSession) -> None:
        """The agent works on the prompt: its message, the state, its response, in this order."""
        prompt = session.active
        if prompt is None or prompt.inserted:
            return
        self.due.pop(("insert", session.id), None)
        self._show_inserted(session, prompt, begins=True)

    def _show_inserted(self, session: V2ClientSession, prompt: HeldPrompt, *, begins: bool = False) -> None:
        prompt.inserted = session.prompted = True
        prompt.message_id = session.updates.new_id("user")
        session.updates.close_message()
        session.updates.send(v2.UserMessageUpdate(message_id=prompt.message_id, content=prompt.content))
        if begins:
            session.show_state()
        self._prompts.pop(request_key(prompt.id), None)
        self.answer_client(prompt.id, v2.PromptResult(message_id=prompt.message_id))

    def _began(self, session_id: str) -> V2ClientSession | None:
        """The session, in which the agent shows that it works on its prompt; None for one that the client has closed."""
        if session_id in self._closed:
            return None
        session = self._session(session_id)
        self._insert(session)
        return session

    def _over(self, session: V2ClientSession, ended: v2.StateUpdate) -> None:
        session.updates.close_message()
        session.active = None
        session.end(ended)
        self._turn_over(session)

    def _turn_over(self, session: V2ClientSession) -> None:
        if session.closing:
            self._forget(session.id)
            for id in session.closing:
                self.answer_client(id, v2.CloseSessionResult())
        else:
            self._next(session)

    def _refuse_one(self, session: V2ClientSession, prompt: HeldPrompt) -> None:
        session.held.remove(prompt)
        self._prompts.pop(request_key(prompt.id), None)
        self.to_client.append(ErrorMessage(prompt.id, Code.REQUEST_CANCELLED, "Request cancelled"))

    def _refuse_held(self, session: V2ClientSession) -> None:
        for prompt in tuple(session.held):
            self._refuse_one(session, prompt)

    def _cancel(self, asked: v2.Cancel) -> None:
        session = self._sessions.get(asked.session_id)
        if session is not None:
            for prompt in tuple(session.held):
                self._injection.cancel(session, prompt)
            if session.active is not None:
                session.active.cancelled = True
        self.notify_agent(m1.CANCEL, asked)
        if session is not None:
            self._questions.end_all(session)

    def client_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the client. A prompt that is held can be cancelled alone; one that was sent cannot, in version 1."""
        if method == m2.CANCEL_REQUEST.name:
            id = requested_id(params)
            found = self._prompts.get(id)
            if found is not None:
                session, prompt = found
                if prompt in session.held:
                    self._injection.cancel(session, prompt)
                return
        super().client_notification(method, params)

    def _cancel_part(self, id: Id, asked: v2.CancelToolCall | v2.CancelTerminal) -> None:
        if self._extension is not None:
            self._extension.cancel(id, asked)
            return
        self._refuse(
            "tool_call/cancel",
            Code.INVALID_PARAMS,
            "Invalid params",
            "an agent of version 1 cannot cancel a part of its work",
        )

    # Updates.

    def agent_update(self, params: v1.SessionUpdate) -> None:
        """Take an update of the agent."""
        self.beside_update = {} if params.meta is None else {"_meta": params.meta}
        try:
            self._update(params)
        finally:
            self.beside_update = {}

    def _update(self, params: v1.SessionUpdate) -> None:
        if params.session_id in self._closed:
            self.losses.append(Loss(c.kind_of(params.update), "its session is closed"))
            return
        session = self._session(params.session_id)
        if session.active is not None and not session.active.inserted and not session.opening:
            self._insert(session)
        update, active = params.update, session.active
        if (
            session.silent
            and active is None
            and not isinstance(update, v1.SettingsUpdate)
            and not (isinstance(update, v1.ToolCallUpdate) and session.is_background(update.tool_call_id))
        ):
            # A history that was not asked for. Where the agent replays though it must not, the places of its messages are known.
            if session.updates.replaying:
                session.updates.pass_over(update)
            return
        if (
            active is not None
            and isinstance(update, v1.UserMessageChunk)
            and not session.opening
            and active.is_echo(update)
        ):
            if update.message_id is not None:
                session.updates.name_user(update.message_id, active.message_id)
            return
        session.updates.update(update)

    # Requests of the agent.

    def _unserved(self, method: str, id: Id, asked: object) -> None:
        wrong = "a client of version 2 has no files and terminals"
        self._refuse(method, Code.METHOD_NOT_FOUND, "Method not found", wrong)

    def agent_lost(self) -> None:
        """Answer what the agent will not answer any more."""
        for session in self._sessions.values():
            while session.held:
                prompt = session.held.popleft()
                self._prompts.pop(request_key(prompt.id), None)
                wrong = "the agent is gone"
                self.to_client.append(ErrorMessage(prompt.id, Code.INTERNAL_ERROR, "Internal error", wrong))
        super().agent_lost()
