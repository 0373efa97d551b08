"""Requests of an agent of version 1 to the user, for a client of version 2: permission requests and elicitations."""

from collections.abc import Callable

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.base import Unknown, encode
from antiphon.protocol.exchange import ErrorMessage, Id, NotificationMessage, RequestFailure
from antiphon.protocol.translate.base import Translator, request_key
from antiphon.protocol.translate.v2_session import V2ClientSession
from antiphon.protocol.v2 import methods as m2

__all__ = ["V2Questions"]


class V2Questions:
    """The open requests of the agent to the user. While one is open in a turn, the session requires action."""

    def __init__(self, translator: Translator, began: Callable[[str], V2ClientSession | None]) -> None:
        self._translator = translator
        self._began = began
        """Returns a session whose agent shows that it works on its prompt; None if the client has closed it."""

    def end_all(self, session: V2ClientSession) -> None:
        """Answer the open permission requests of a cancelled turn, and cancel them at the client. What it answers later is ignored."""
        for id, answered in tuple(session.questions.items()):
            request = self._translator.of_agent.by_id.get(id)
            if answered or id in session.aside or request is None or request.method != m2.REQUEST_PERMISSION.name:
                continue
            session.questions[id] = True
            self._translator.answer_agent(request.id, v1.PermissionResult(outcome=v1.Cancelled()))
            self._translator.to_client.append(NotificationMessage(m2.CANCEL_REQUEST.name, {"requestId": request.new}))

    def permission(self, id: Id, asked: v1.RequestPermission) -> None:
        session = self._began(asked.session_id)
        if session is None:
            self._translator.report("session/request_permission", "its session is closed")
            self._translator.answer_agent(id, v1.PermissionResult(outcome=v1.Cancelled()))
            return
        known = session.updates.calls.get(asked.tool_call.tool_call_id)
        call = session.updates.patch(asked.tool_call)
        named = asked.tool_call.title
        title = (named if isinstance(named, str) else known) or "Permission required"
        params = v2.RequestPermission(
            session_id=asked.session_id,
            title=title,
            subject=v2.ToolCallSubject(tool_call=_plain(call)),
            options=asked.options,
            meta=asked.meta,
        )

        def answered(result: v2.PermissionResult) -> None:
            if self._question_ends(session, id):
                outcome = result.outcome
                if isinstance(outcome, Unknown):
                    self._translator.report("session/request_permission", f"version 1 has no outcome `{outcome.kind}`")
                    outcome = v1.Cancelled()
                self._translator.answer_agent(id, v1.PermissionResult(outcome=outcome, meta=result.meta))

        def failed(failure: RequestFailure) -> None:
            if self._question_ends(session, id):
                if failure.code == Code.REQUEST_CANCELLED:
                    self._translator.answer_agent(id, v1.PermissionResult(outcome=v1.Cancelled()))
                else:
                    self._translator.to_agent.append(ErrorMessage(id, failure.code, failure.message, failure.data))

        if session.is_background(asked.tool_call.tool_call_id):
            session.aside.add(request_key(id))
        self._question_begins(session, id)
        self._translator.ask_client(id, m2.REQUEST_PERMISSION, params, answered, failed)

    def _question_begins(self, session: V2ClientSession, id: Id) -> None:
        before = session.state
        session.questions[request_key(id)] = False
        if session.state is not before:
            session.show_state()

    def _question_ends(self, session: V2ClientSession, id: Id) -> bool:
        """Note the response to a question. False: it was answered for the client before."""
        before = session.state
        late = session.questions.pop(request_key(id), True)
        session.aside.discard(request_key(id))
        if session.state is not before:
            session.show_state()
        return not late

    def elicitation(self, id: Id, asked: v1.CreateElicitation) -> None:
        if isinstance(asked, Unknown):
            raise RequestError.invalid_params(f"the client has no elicitation of mode `{asked.kind}`")
        if isinstance(asked.request_id, int | str):
            named = (
                self._translator.of_client.by_new.get(asked.request_id) if isinstance(asked.request_id, int) else None
            )
            if named is None or named.own:
                raise RequestError.invalid_params("`requestId` names a request that is not open")
            asked = msgspec.structs.replace(asked, request_id=named.id)
        shown = _shown(asked)
        session = None
        if asked.session_id is not None:
            session = self._began(asked.session_id)
            if session is None:
                self._translator.report("elicitation/create", "its session is closed")
                self._translator.answer_agent(id, v1.Dismissed())
                return
            self._question_begins(session, id)

        def answered(result: v2.CreateElicitationResult) -> None:
            if session is not None:
                self._question_ends(session, id)
            known = not isinstance(result, Unknown)
            self._translator.answer_agent(id, result if known else v1.Dismissed())

        def failed(failure: RequestFailure) -> None:
            if session is not None:
                self._question_ends(session, id)
            self._translator.to_agent.append(ErrorMessage(id, failure.code, failure.message, failure.data))

        self._translator.ask_client(id, m2.CREATE_ELICITATION, shown, answered, failed)


def _shown(asked: v1.FormElicitation | v1.UrlElicitation) -> v2.CreateElicitation:
    """A question in version 2: the same on the wire, but that a form without fields has to say so."""
    written = encode(asked)
    if isinstance(asked, v1.FormElicitation) and not asked.requested_schema.properties:
        fields = msgspec.json.decode(written)
        fields["requestedSchema"]["properties"] = {}
        written = encode(fields)
    return m2.CREATE_ELICITATION.decode_params(written)


def _plain(call: v2.ToolCallUpdate) -> v2.ToolCallPatch:
    """A tool call as it stands in a permission request, without the tag of an update."""
    return v2.ToolCallPatch(**{name: getattr(call, name) for name in call.__struct_fields__})
