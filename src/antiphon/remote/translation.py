"""A client of version 2 with a gateway: the translator of an agent of version 1, which here is sent more than such an agent knows.

A gateway numbers the events of its sessions, and sends when a turn begins and ends, that of any client. From that the client gets

1. the state of a session, also of work that another client has begun, and of work that went on while the client was away;
2. the response to its prompt when the prompt is stored, and not when that can be guessed. Prompts that wait are held by the gateway;
3. messages whose ids are the same live, after a lost connection and in every replay: that of a prompt is the name of its turn, that of a
   message without an id comes from the number of its first event.

A server that numbers nothing is treated as any other agent of version 1.
"""

from collections.abc import Callable
from secrets import token_hex
from typing import Final, Literal, cast

import msgspec
from msgspec import Raw

from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.base import BAD_INPUT, Json, JsonObject, Unknown, encode
from antiphon.protocol.exchange import ErrorMessage, Id, NotificationMessage, RequestFailure
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.translate.base import CANCEL_REQUEST, OpenRequest, request_key, requested_id
from antiphon.protocol.translate.v1_session import text_of
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from antiphon.protocol.translate.v2_session import (
    AgentChunk,
    AgentPiece,
    HeldPrompt,
    V2ClientSession,
    idle,
    stop_reason,
)
from antiphon.protocol.translate.v2_updates import UnnamedMessage, UpdatesToV2
from antiphon.protocol.translate.values import content as c
from antiphon.protocol.v1 import methods as m1
from antiphon.protocol.v2 import methods as m2
from antiphon.remote.sessions import ATTACH, MAX_NAME

__all__ = ["NumberedTranslator"]

MAX_ID: Final = 1024
"""Characters of the id of a session, which is remembered here before a server has seen it."""

MAX_ECHO: Final = 64 * 1024
"""Characters of a prompt that are kept to know it again. What an agent repeats of a longer one is shown."""

_OWN: Final = "antiphon"
"""The key of the gateway in `_meta`."""


class _Place(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    number: int = 0
    time: float = 0.0


class _PlaceMeta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    antiphon: _Place


class NumberedChunk(AgentChunk, forbid_unknown_fields=True, rename="camel", gc=False):
    """A piece of text, with the number of its event or without."""

    meta: _PlaceMeta | None = msgspec.field(default=None, name="_meta")


class _TurnEvent(msgspec.Struct, rename="camel"):
    """A turn that begins or ends."""

    session_id: str
    turn: str = ""
    prompt: str = ""
    result: Raw | None = None
    error: Raw | None = None


class _RequestEvent(msgspec.Struct, rename="camel"):
    """A request of the agent that waits for people, or is answered."""

    session_id: str
    request: str = ""


class _SessionEvent(msgspec.Struct, rename="camel"):
    """An event that only a client with numbers knows what to do with."""

    session_id: str


class _AttachSession(msgspec.Struct, rename="camel"):
    session_id: str


class _AttachedSession(msgspec.Struct):
    turn: str | None = None
    requests: list[str] = []
    settings: v1.ResumeSessionResult = v1.ResumeSessionResult()
    commands: list[v1.Command] | None = None


_OF_OPEN_SESSIONS: Final = frozenset({m1.PROMPT.name, m1.SET_CONFIG_OPTION.name})
"""Requests that a session which the client has closed does not take."""

_ATTACH: Final = Call(ATTACH, _AttachSession, _AttachedSession)
_TURN_STARTED: Final = Notice("_antiphon/session/turn_started", _TurnEvent)
_TURN_ENDED: Final = Notice("_antiphon/session/turn_ended", _TurnEvent)
_REQUESTED: Final = Notice("_antiphon/session/requested", _RequestEvent)
_RESOLVED: Final = Notice("_antiphon/session/resolved", _RequestEvent)
_UNSEEN: Final = tuple(Notice(f"_antiphon/session/{name}", _SessionEvent) for name in ("moved", "queue", "unreadable"))


class _NumberedUpdates(UpdatesToV2):
    """The updates of a session whose messages are named by the numbers of events."""

    number = 0
    """The number of the event that is being sent; 0 if it has none."""

    def new_id(self, kind: str) -> str:
        return f"{kind}-{self.number}" if self.number else super().new_id(kind)

    def has_begun(self, kind: str, id: str) -> bool:
        """Whether a piece of a message can be sent as it is: in a replay the message has to be cleared before the first."""
        return not self.replaying or (kind, id) in self._cleared

    def _user(self, chunk: v1.UserMessageChunk) -> None:
        self._chunk("user", chunk)


class _NumberedSession(V2ClientSession):
    """A session whose turns the gateway reports."""

    def __init__(self, id: str, updates: _NumberedUpdates) -> None:
        super().__init__(id, updates)
        self.numbered = updates
        self.turn = ""
        """The turn that runs; empty if none does."""
        self.waiting: set[str] = set()
        """The requests of the agent that wait for people."""
        self.sent: dict[str, HeldPrompt] = {}
        """The prompts of this client that have not ended, by their names."""
        self.named: UnnamedMessage | None = None
        """The last message of the stream that had an id."""
        self.echo = ""
        """What of the prompt of the turn the agent has not repeated; some repeat it."""

    @property
    def state(self) -> v2.ForegroundState:
        if not self.turn:
            return v2.ForegroundState.IDLE
        return v2.ForegroundState.REQUIRES_ACTION if self.waiting else v2.ForegroundState.RUNNING


class NumberedTranslator(V2ClientTranslator):
    """Joins a client of version 2 to a gateway, or to any other server of version 1."""

    chunks = NumberedChunk

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._numbered = False
        self.agent_notices |= {
            _TURN_STARTED.name: (_TURN_STARTED, self._turn_started),
            _TURN_ENDED.name: (_TURN_ENDED, self._turn_ended),
            _REQUESTED.name: (_REQUESTED, self._requested),
            _RESOLVED.name: (_RESOLVED, self._resolved),
            **{notice.name: (notice, lambda event: None) for notice in _UNSEEN},
        }
        for call, ask in (
            (m1.REQUEST_PERMISSION, self._questions.permission),
            (m1.CREATE_ELICITATION, self._questions.elicitation),
        ):
            self.agent_handlers[call.name] = (call, self._with_state(ask))
        self.client_handlers[m2.DELETE_SESSION.name] = (m2.DELETE_SESSION, self._delete)

    # The handshake.

    def _hello(self, asked: v2.Initialize) -> v1.Initialize:
        """The numbers are for this translator. The client itself cannot ask for them: they would be those of version 1."""
        hello = super()._hello(asked)
        return msgspec.structs.replace(hello, meta={**(hello.meta or {}), _OWN: {"numbers": True}})

    def _introduction(self, result: v1.InitializeResult, asked: v2.Initialize) -> v2.InitializeResult:
        self._first = Raw(encode(result))  # for a handshake that is repeated, at a server that refuses a second one
        about = (result.meta or {}).get(_OWN)
        self._numbered = isinstance(about, dict) and about.get("numbers") is True
        found = super()._introduction(result, asked)
        if not self._numbered or not isinstance(about, dict):
            return found
        methods = about.get("methods")
        kept = [name for name in methods if name != ATTACH] if isinstance(methods, list) else []
        meta = {**(result.meta or {}), _OWN: {**about, "numbers": False, "merged": False, "methods": kept}}
        able, session = found.capabilities, found.capabilities.session
        if session is not None and session.mcp is not None:  # a gateway starts no programs for its clients
            session = msgspec.structs.replace(session, mcp=msgspec.structs.replace(session.mcp, stdio=None))
        return msgspec.structs.replace(found, meta=meta, capabilities=msgspec.structs.replace(able, session=session))

    def answer_client(self, id: Id, result: object) -> None:
        """Answer a request of the client. The number after which the events of a session begin is not for it."""
        if isinstance(result, v2.NewSessionResult | v2.ForkSessionResult | v2.ResumeSessionResult):
            result = msgspec.structs.replace(result, meta=_without_own(result.meta))
        super().answer_client(id, result)

    def client_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the client."""
        try:
            self._check_request(method, _session_in(params))
        except RequestError as error:
            self.to_client.append(ErrorMessage(id, error.code, error.message, error.data))
        else:
            super().client_request(id, method, params)

    def _check_request(self, method: str, session_id: str) -> None:
        """Refuse what no server is to see.

        Raises:
            RequestError: why it is refused.
        """
        if method == ATTACH:
            wrong = "a client of version 2 resumes a session to follow it"
            raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", wrong)
        if len(session_id) > MAX_ID:
            raise RequestError.invalid_params(f"the id of a session has more than {MAX_ID} characters")
        if self._numbered and method in _OF_OPEN_SESSIONS and session_id in self._closed:
            raise RequestError(Code.RESOURCE_NOT_FOUND, "Session not found", {"sessionId": session_id})

    # Sessions.

    def _begin(self, session_id: str, emit: Callable[[object], None], cwd: str) -> V2ClientSession:
        if not self._numbered:
            return super()._begin(session_id, emit, cwd)
        return _NumberedSession(session_id, _NumberedUpdates(session_id, emit, self.report, cwd))

    def _numbered_session(self, session_id: str) -> _NumberedSession | None:
        """Return a session that is open here; None for one that the client has closed."""
        if session_id in self._closed:
            return None
        found = self._session(session_id)
        return found if isinstance(found, _NumberedSession) else None

    def _resume(self, id: Id, asked: v2.ResumeSession) -> None:
        if not self._numbered:
            super()._resume(id, asked)
            return
        known = self._sessions.get(asked.session_id)
        asked = msgspec.structs.replace(asked, meta=_without_own(asked.meta))
        if isinstance(asked.replay_from, Unknown):
            super()._resume(id, asked)  # refuses it
        elif asked.replay_from is not None:
            self._replay(id, asked, known)
        else:
            self._follow(id, asked, known)

    def _replay(self, id: Id, asked: v2.ResumeSession, known: V2ClientSession | None) -> None:
        """Load a session. Its turns are among the events that come: what runs is known when all of them have come."""
        if isinstance(known, _NumberedSession):
            known.turn = ""
            known.waiting.clear()
        self._reopen(id, asked, known, loads=True)

    def _follow(self, id: Id, asked: v2.ResumeSession, known: V2ClientSession | None) -> None:
        """Follow a session from now on."""

        def attached(result: _AttachedSession) -> None:
            session = self._session(asked.session_id, asked.cwd)
            if isinstance(session, _NumberedSession):
                session.turn = result.turn or ""
                session.waiting = set(result.requests)
            settings = result.settings
            session.updates.close_message()
            session.updates.set_settings(settings.config_options, settings.modes, settings.models)
            session.updates.send(v2.StateUpdate(state=session.state))
            commands = c.commands_to_v2(result.commands or [])
            opened = v2.ResumeSessionResult(config_options=session.updates.options, available_commands=commands)
            self.answer_client(id, opened)

        def failed(failure: RequestFailure) -> None:
            if failure.code == Code.RESOURCE_NOT_FOUND:  # one that only the agent has: the gateway loads it
                self._replay(id, asked, known)
            else:
                self._fail(id, failure, asked.session_id)

        self.ask_agent(id, _ATTACH, _AttachSession(asked.session_id), attached, failed)

    def _delete(self, id: Id, asked: v2.DeleteSession) -> None:
        def deleted(result: v1.DeleteSessionResult) -> None:
            self._forget(asked.session_id)
            self.answer_client(id, result)

        self.ask_agent(id, m1.DELETE_SESSION, asked, deleted)

    def _forget(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if session is None:
            return
        if isinstance(session, _NumberedSession) and session.turn:
            session.turn = ""
            session.end(idle(v2.StopReason.CANCELLED))
        super()._forget(session_id)

    # Prompts.

    def _prompt(self, id: Id, asked: v2.Prompt) -> None:
        if not self._numbered:
            super()._prompt(id, asked)
            return
        is_known = asked.session_id in self._sessions
        self._check_prompt(asked)
        if request_key(id) in self._prompts:
            return  # the first one keeps its response
        session = cast("_NumberedSession", self._session(asked.session_id))
        name, meta = _named(asked.meta)
        if name in session.sent:
            raise RequestError.invalid_params("a prompt with this name has not ended")
        prompt = session.sent[name] = HeldPrompt(id, [], None)
        self._prompts[request_key(id)] = session, prompt
        blocks = [c.block_to_v1(block, self.report) for block in asked.prompt]

        def ended(result: Raw) -> None:
            session.sent.pop(name, None)
            if prompt.inserted:
                self._turn_answered(session, prompt.message_id, result)
            else:
                failed(RequestFailure(Code.REQUEST_CANCELLED, "Request cancelled"))

        def failed(failure: RequestFailure) -> None:
            session.sent.pop(name, None)
            if prompt.inserted:
                self._turn_failed(session, prompt.message_id, failure)
                return
            self._prompts.pop(request_key(id), None)
            self._fail(id, failure, asked.session_id)
            if not is_known and failure.code == Code.RESOURCE_NOT_FOUND:
                self._sessions.pop(asked.session_id, None)

        request = OpenRequest(None, 0, m1.PROMPT.name, ended, failed, own=True)
        self.of_client.forward(request, v1.Prompt(session_id=asked.session_id, prompt=blocks, meta=meta))
        prompt.request = request.new

    def _cancel(self, asked: v2.Cancel) -> None:
        if self._numbered:
            self.notify_agent(m1.CANCEL, asked)  # which ends prompts that wait, and requests to people, too
        else:
            super()._cancel(asked)

    def client_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the client. A prompt that the gateway holds can be cancelled alone."""
        if len(_session_in(params)) > MAX_ID:
            return
        if self._numbered and method == CANCEL_REQUEST:
            found = self._prompts.get(requested_id(params))
            if found is not None:
                self.to_agent.append(NotificationMessage(CANCEL_REQUEST, {"requestId": found[1].request}))
                return
        super().client_notification(method, params)

    # What the gateway reports.

    def _turn_started(self, event: _TurnEvent) -> None:
        session = self._numbered_session(event.session_id)
        if session is None:
            return
        session.updates.close_message()
        session.turn, session.echo = event.turn, ""
        session.waiting.clear()
        if not session.opening:
            session.updates.send(v2.StateUpdate(state=session.state))
        prompt = session.sent.get(event.prompt)
        if prompt is not None and not prompt.inserted:
            prompt.inserted, prompt.message_id = True, event.turn
            self._prompts.pop(request_key(prompt.id), None)
            self.answer_client(prompt.id, v2.PromptResult(message_id=event.turn))

    def _turn_ended(self, event: _TurnEvent) -> None:
        session = self._numbered_session(event.session_id)
        if session is None:
            return
        if event.result is not None:
            self._turn_answered(session, event.turn, event.result)
        else:
            self._turn_failed(session, event.turn, _failure_in(event.error))

    def _turn_answered(self, session: _NumberedSession, turn: str, raw: Raw) -> None:
        """The agent has answered a prompt. What makes no sense ends the work too."""
        try:
            result = m1.PROMPT.decode_result(raw)
        except RemoteProtocolError as error:
            self._turn_failed(session, turn, RequestFailure(Code.INTERNAL_ERROR, "Internal error", error.sentence))
        else:
            self._turn_over(session, turn, *stop_reason(result), usage=result.usage)

    def _turn_failed(self, session: _NumberedSession, turn: str, failure: RequestFailure) -> None:
        if failure.code == Code.REQUEST_CANCELLED:
            self._turn_over(session, turn, v2.StopReason.CANCELLED)
        else:
            error = v2.Failure(code=failure.code, message=failure.message, data=failure.data)
            self._turn_over(session, turn, v2.StopReason.ERROR, error=error)

    def _turn_over(
        self,
        session: V2ClientSession,
        turn: str = "",
        reason: v2.StopReason = v2.StopReason.END_TURN,
        meta: JsonObject | None = None,
        *,
        error: v2.Failure | None = None,
        usage: v1.Usage | None = None,
    ) -> None:
        """The work of a turn has ended; once, though both the response to its prompt and an event may say so."""
        if not isinstance(session, _NumberedSession):
            super()._turn_over(session)
            return
        if not turn or session.turn != turn:
            return
        session.updates.close_message()
        session.turn = ""
        session.waiting.clear()
        if not session.opening:
            session.end(idle(reason, error=error, usage=usage, meta=_without_own(meta)))

    def _requested(self, event: _RequestEvent) -> None:
        self._wait_for(event.session_id, event.request)

    def _resolved(self, event: _RequestEvent) -> None:
        session = self._numbered_session(event.session_id)
        if session is None:
            return
        before = session.state
        session.waiting.discard(event.request)
        if session.state is not before and not session.opening:
            session.updates.send(v2.StateUpdate(state=session.state))

    def _wait_for(self, session_id: str, request: str) -> None:
        session = self._numbered_session(session_id)
        if session is None or not request:
            return
        before = session.state
        session.waiting.add(request)
        if session.state is not before and not session.opening:
            session.updates.send(v2.StateUpdate(state=session.state))

    def _with_state(self, ask: Callable[[Id, Json], None]) -> Callable[[Id, Json], None]:
        """Return what asks the client, after it was sent that the session requires action."""

        def asked(id: Id, params: Json) -> None:
            meta = getattr(params, "meta", None)
            about = meta.get(_OWN) if self._numbered and isinstance(meta, dict) else None
            session_id = getattr(params, "session_id", None)
            if isinstance(about, dict) and isinstance(session_id, str):
                self._wait_for(session_id, str(about.get("request", "")))
            ask(id, params)

        return asked

    # Updates.

    def agent_chunk(self, chunk: NumberedChunk) -> Literal[True] | bytes | None:  # type: ignore[override]
        """Take a piece of text. True: it is to be forwarded as it came; bytes: with these params; None: it goes the general way."""
        if not self._numbered:
            return super().agent_chunk(chunk) if chunk.meta is None else None
        session = self._sessions.get(chunk.session_id)
        if not isinstance(session, _NumberedSession) or session.silent:
            return None
        update = chunk.update
        kind = "agent" if type(update) is AgentPiece else "thought"
        if update.message_id is None:
            found = session.updates.open
            return None if found is None or found.kind != kind else found.params(update.content.text)
        if not session.numbered.has_begun(kind, update.message_id):
            return None
        session.updates.open, found = None, session.named
        if found is None or found.id != update.message_id or found.kind != kind:
            found = session.named = UnnamedMessage(chunk.session_id, kind, update.message_id)
        return found.params(update.content.text)

    def agent_update(self, params: v1.SessionUpdate) -> None:
        """Take an update of the agent, or a prompt of any client."""
        session = self._numbered_session(params.session_id) if self._numbered else None
        if session is None:
            super().agent_update(params)
            return
        session.numbered.number = _number_in(params.meta)
        update = params.update
        if isinstance(update, v1.UserMessageChunk) and self._is_echo(session, update):
            return
        super().agent_update(msgspec.structs.replace(params, meta=_without_own(params.meta)))

    def _is_echo(self, session: _NumberedSession, chunk: v1.UserMessageChunk) -> bool:
        """Whether the agent repeats the prompt of the turn, which every client was sent by the gateway."""
        text = text_of([chunk.content])
        about = (chunk.meta or {}).get(_OWN)
        if isinstance(about, dict) and "turn" in about:
            session.echo = (session.echo + text) if len(session.echo) + len(text) <= MAX_ECHO else ""
            return False
        if not text or not session.echo.startswith(text):
            return False
        session.echo = session.echo[len(text) :]
        return True


class _Scope(msgspec.Struct, rename="camel"):
    session_id: str = ""


def _session_in(params: Raw) -> str:
    """Return the session that params name; empty if they name none."""
    try:
        return msgspec.json.decode(params, type=_Scope).session_id
    except BAD_INPUT:
        return ""


def _failure_in(error: Raw | None) -> RequestFailure:
    """Return the error with which a turn has ended."""
    try:
        return msgspec.json.decode(error or b"null", type=RequestFailure)
    except BAD_INPUT:
        return RequestFailure(Code.INTERNAL_ERROR, "Internal error")


def _number_in(meta: JsonObject | None) -> int:
    about = meta.get(_OWN) if meta is not None else None
    number = about.get("number") if isinstance(about, dict) else None
    return number if isinstance(number, int) else 0


def _without_own(meta: JsonObject | None) -> JsonObject | None:
    """Return `_meta` without what is between this translator and the gateway."""
    return None if meta is None else {key: value for key, value in meta.items() if key != _OWN} or None


def _named(meta: JsonObject | None) -> tuple[str, JsonObject]:
    """Return the name of a prompt, which the client may have given to it, and `_meta` with it."""
    own = (meta or {}).get(_OWN)
    given = own if isinstance(own, dict) else {}
    name = given.get("prompt")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        name = token_hex(8)
    return name, {**(meta or {}), _OWN: {**given, "prompt": name}}
