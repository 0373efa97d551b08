"""What our SDKs use of version 2 beyond version 1, in the messages of `protocol.extension`: an agent behind a translator, a client before one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from antiphon.errors import RequestError
from antiphon.protocol import v2
from antiphon.protocol.base import Json, JsonObject
from antiphon.protocol.exchange import Id, Loss, NotificationMessage
from antiphon.protocol.extension import (
    CANCEL_METHODS,
    INSERTED,
    KEY,
    MAX_WORK,
    TERMINAL,
    TOOL_CALL,
    UPDATE,
    InsertedPrompt,
    OpenWork,
    kept_in,
)
from antiphon.protocol.methods import Notice
from antiphon.protocol.translate.base import Translator
from antiphon.protocol.translate.tables import BoundedTable
from antiphon.protocol.translate.values.content import kind_of
from antiphon.protocol.v2 import methods as m2

if TYPE_CHECKING:
    from antiphon.protocol.translate.v1_session import V1ClientSession
    from antiphon.protocol.translate.v2_session import V2ClientSession

__all__ = ["AgentExtension", "CancellableWork", "ClientExtension", "has_only_capabilities"]

_Capabilities = v2.ToolCallCapabilities | v2.TerminalCapabilities | None | UnsetType


class AgentExtension:
    """The messages of an agent of our SDK, for a client of version 2: states, background work, calls that can be cancelled alone."""

    def __init__(self, translator: Translator, session_of: "Callable[[str], V2ClientSession | None]") -> None:
        self._translator = translator
        self._session_of = session_of
        translator.agent_notices[UPDATE.name] = (Notice(UPDATE.name, v2.SessionUpdate), self._update)

    def _update(self, params: v2.SessionUpdate) -> None:
        session, update = self._session_of(params.session_id), params.update
        if session is None:
            self._lose(update, "its session is not open")
            return
        match update:
            case v2.StateUpdate():
                self._state(session, update)
            case v2.ToolCallUpdate(tool_call_id=id, capabilities=capabilities):
                _offer(session, OpenWork(TOOL_CALL, id), capabilities)
                session.updates.send(v2.ToolCallUpdate(tool_call_id=id, capabilities=capabilities))
            case v2.TerminalUpdate(terminal_id=id, capabilities=terminal_capabilities):
                _offer(session, OpenWork(TERMINAL, id), terminal_capabilities)
                session.updates.send(v2.TerminalUpdate(terminal_id=id, capabilities=terminal_capabilities))
            case _:
                self._lose(update, "it belongs into `session/update`")

    def _lose(self, update: v2.Update, reason: str) -> None:
        self._translator.losses.append(Loss(kind_of(update), reason))

    def _state(self, session: "V2ClientSession", update: v2.StateUpdate) -> None:
        """The agent works by itself, or does so no longer, or its background work is another. Its prompts are not counted here."""
        idle = v2.ForegroundState.IDLE
        if update.background is not None:
            session.background = update.background[:MAX_WORK]
            if len(update.background) > MAX_WORK:
                self._translator.report("state_update", f"more than {MAX_WORK} pieces of background work")
        before = session.state
        session.working = update.state is not idle
        if before is not idle and session.state is idle:
            ended, session.ended = session.ended, None
            if ended is None or ended.stop_reason is v2.StopReason.END_TURN:
                ended = v2.StateUpdate(state=idle, stop_reason=update.stop_reason, error=update.error)
            session.end(ended)
        else:
            session.show_state()

    def cancel(self, id: Id, asked: v2.CancelToolCall | v2.CancelTerminal) -> None:
        """Have the agent cancel one piece of its work.

        Raises:
            RequestError: -32602, it is not offered.
        """
        answer: object
        if isinstance(asked, v2.CancelToolCall):
            work, answer = OpenWork(TOOL_CALL, asked.tool_call_id), v2.CancelToolCallResult()
        else:
            work, answer = OpenWork(TERMINAL, asked.terminal_id), v2.CancelTerminalResult()
        session = self._session_of(asked.session_id)
        if session is None or work not in session.cancellable:
            raise RequestError.invalid_params(f"there is no {work.kind} `{work.id:.80}` that can be cancelled")
        call, member = CANCEL_METHODS[work.kind]
        params = {"sessionId": session.id, member: work.id}
        self._translator.ask_agent(id, call, params, lambda _: self._translator.answer_client(id, answer))


def _offer(session: "V2ClientSession", work: OpenWork, capabilities: _Capabilities) -> None:
    """Note whether a piece of work can be cancelled alone."""
    if _is_offered(capabilities):
        session.cancellable.add(work, None)
    else:
        session.cancellable.pop(work, None)


def _is_offered(capabilities: _Capabilities) -> bool:
    return not isinstance(capabilities, UnsetType) and capabilities is not None and capabilities.cancel is not None


def has_only_capabilities(patch: v2.ToolCallPatch) -> bool:
    """Whether a change of a tool call has nothing that version 1 knows."""
    fields = (getattr(patch, name) for name in patch.__struct_fields__ if name not in ("tool_call_id", "capabilities"))
    return all(field is UNSET for field in fields)


class CancellableWork:
    """The work of one session that a client may cancel alone. `send` is called with a piece of it, and whether it still can be."""

    def __init__(self, send: Callable[[OpenWork, bool], None]) -> None:
        self.offered: BoundedTable[OpenWork, None] = BoundedTable()
        self._send = send

    def note(self, work: OpenWork, capabilities: _Capabilities, *, over: bool) -> None:
        """Take a change of a tool call or a terminal. What is over cannot be cancelled, whatever it offered."""
        known = work in self.offered
        offered = not over and (known if isinstance(capabilities, UnsetType) else _is_offered(capabilities))
        if offered is known:
            return
        if offered:
            self.offered.add(work, None)
        else:
            self.offered.pop(work)
        self._send(work, offered)


class ClientExtension:
    """The messages of a client of our SDK, with an agent of version 2."""

    def __init__(self, translator: Translator, session_of: "Callable[[str], V1ClientSession | None]") -> None:
        self._translator = translator
        self._session_of = session_of
        for kind, (call, _) in CANCEL_METHODS.items():
            translator.client_handlers[call.name] = (call, self._cancel_handler(kind))

    def state(self, session_id: str, update: v2.StateUpdate) -> None:
        """Send a state to the client, as it is."""
        self._update(session_id, update)

    def watch(self, session_id: str) -> CancellableWork:
        """Return the work of a session that the client may cancel, whose changes it is sent."""

        def send(work: OpenWork, offered: bool) -> None:
            member = CANCEL_METHODS[work.kind][1]
            capabilities: JsonObject = {"cancel": {}} if offered else {}
            update = {"sessionUpdate": f"{work.kind}_update", member: work.id, "capabilities": capabilities}
            self._update(session_id, update)

        return CancellableWork(send)

    def _update(self, session_id: str, update: object) -> None:
        params = {"sessionId": session_id, "update": update}
        self._translator.to_client.append(NotificationMessage(UPDATE.name, params))

    def taken_from(self, meta: JsonObject | None) -> tuple[int | None, JsonObject | None]:
        """Return the number that the client gave to a prompt, and the rest of `_meta`."""
        number = kept_in(meta).get("prompt")
        if meta is None or not isinstance(number, int):
            return None, meta
        return number, {key: value for key, value in meta.items() if key != KEY} or None

    def inserted(self, session_id: str, number: int, message_id: str) -> None:
        """Send the client the id that its prompt has as a message."""
        self._translator.notify_client(INSERTED, InsertedPrompt(session_id, number, message_id))

    def _cancel_handler(self, kind: str) -> Callable[[Id, Json], None]:
        member = CANCEL_METHODS[kind][1]

        def cancel(id: Id, asked: Json) -> None:
            session_id, work = str(asked.get("sessionId")), OpenWork(kind, str(asked.get(member)))
            session = self._session_of(session_id)
            offered = session.updates.cancellable if session is not None else None
            if offered is None or work not in offered.offered:  # version 2 forbids the request then
                raise RequestError.invalid_params(f"the agent does not offer to cancel the {kind} `{work.id:.80}`")

            def answered(_: object) -> None:
                self._translator.answer_client(id, {})

            if kind == TOOL_CALL:
                tool_call = v2.CancelToolCall(session_id=session_id, tool_call_id=work.id)
                self._translator.ask_agent(id, m2.CANCEL_TOOL_CALL, tool_call, answered)
            else:
                terminal = v2.CancelTerminal(session_id=session_id, terminal_id=work.id)
                self._translator.ask_agent(id, m2.CANCEL_TERMINAL, terminal, answered)

        return cancel
