"""Requests of an agent of version 2 to the user, for a client of version 1: permission requests and elicitations."""

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET

from antiphon.errors import Code, RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.base import Unknown, encode
from antiphon.protocol.exchange import ErrorMessage, Id, RequestFailure
from antiphon.protocol.translate.base import Translator, request_key
from antiphon.protocol.translate.v1_session import V1ClientSession
from antiphon.protocol.v1 import methods as m1

__all__ = ["PERMISSION_GRACE", "V1Questions"]

PERMISSION_GRACE: Final = 1.0
"""Seconds that a client has for its response to a permission request that the agent has cancelled, before it is given for it."""


class V1Questions:
    """The open requests of the agent to the user."""

    def __init__(self, translator: Translator, session_of: Callable[[str], V1ClientSession | None]) -> None:
        self._translator = translator
        self._session_of = session_of
        """Returns a session; None if the client has closed it."""
        self._permissions: dict[Id, Callable[[], None]] = {}
        """Permission requests that the client has not answered, by their id at the agent, with what ends them."""
        self._unnamed = 0

    def permission(self, id: Id, asked: v2.RequestPermission) -> None:
        translator = self._translator
        translator.settle()
        session = self._session_of(asked.session_id)
        if session is None:
            translator.report("session/request_permission", "its session is closed")
            translator.answer_agent(id, v2.PermissionResult(outcome=v2.Cancelled()))
            return
        call = self._subject(session, asked)
        translator.settle()
        options = []
        for option in asked.options:
            if not option.kind.known:
                self._translator.report(
                    "session/request_permission", f"version 1 has no option kind `{option.kind.value}`"
                )
            options.append(msgspec.structs.replace(option, kind=option.kind.meaning))

        key = request_key(id)

        def done() -> None:
            self._permissions.pop(key, None)
            self._translator.due.pop(("permission", key), None)
            self._give_back(session, call, asked)

        def answered(result: v2.PermissionResult) -> None:
            if key in self._permissions:
                done()
                self._translator.answer_agent(id, result)

        def failed(failure: RequestFailure) -> None:
            if key not in self._permissions:
                return
            done()
            if failure.code == Code.REQUEST_CANCELLED:
                self._translator.answer_agent(id, v2.PermissionResult(outcome=v2.Cancelled()))
            else:
                self._translator.to_agent.append(ErrorMessage(id, failure.code, failure.message, failure.data))

        self._permissions[key] = done
        params = v1.RequestPermission(session_id=asked.session_id, tool_call=call, options=options, meta=asked.meta)
        self._translator.ask_client(id, m1.REQUEST_PERMISSION, params, answered, failed)

    @staticmethod
    def _give_back(session: V1ClientSession, shown: v1.ToolCallPatch, asked: v2.RequestPermission) -> None:
        """Show a tool call again as it is, which the client was shown with the title and the description of the question."""
        call = session.updates.calls.get(shown.tool_call_id)
        if call is None or (call.shown_title == asked.title and not asked.description):
            return
        content = session.updates.content_of(call) if asked.description and not call.forgotten else UNSET
        title = call.shown_title if call.shown_title != asked.title else UNSET
        session.updates.send(v1.ToolCallUpdate(tool_call_id=call.id, title=title, content=content))

    def _subject(self, session: V1ClientSession, asked: v2.RequestPermission) -> v1.ToolCallPatch:
        """What is asked about, as a tool call."""
        described: list[v1.ToolContent] = []
        if asked.description:
            described.append(v1.ContentItem(content=v1.TextBlock(text=asked.description)))
        subject = asked.subject
        if isinstance(subject, v2.ToolCallSubject):
            session.updates.tool_call(subject.tool_call)
            call = session.updates.calls[subject.tool_call.tool_call_id]
            patch = session.updates.patch(call, subject.tool_call)
            content = [*described, *patch.content] if described and isinstance(patch.content, list) else described
            return msgspec.structs.replace(patch, title=asked.title, content=content or patch.content)
        self._unnamed += 1
        unnamed = f"permission-{self._unnamed}"
        if isinstance(subject, v2.CommandSubject):
            known = session.updates.calls.get(subject.tool_call_id) if subject.tool_call_id is not None else None
            return v1.ToolCallPatch(
                tool_call_id=subject.tool_call_id or unnamed,
                title=asked.title,
                kind=v1.ToolKind.EXECUTE,
                status=v1.ToolStatus.PENDING if known is None else UNSET,
                raw_input={"command": subject.command, "cwd": subject.cwd},
                content=described or UNSET,
            )
        if isinstance(subject, Unknown):
            self._translator.report("session/request_permission", f"version 1 has no subject `{subject.kind}`")
        return v1.ToolCallPatch(
            tool_call_id=unnamed, title=asked.title, kind=v1.ToolKind.OTHER, content=described or UNSET
        )

    def elicitation(self, id: Id, asked: v2.CreateElicitation) -> None:
        if isinstance(asked, Unknown):
            raise RequestError.invalid_params(f"the client has no elicitation of mode `{asked.kind}`")
        if asked.session_id is not None and self._session_of(asked.session_id) is None:
            self._translator.report("elicitation/create", "its session is closed")
            self._translator.answer_agent(id, v2.Dismissed())
            return
        if isinstance(asked.request_id, int | str):
            named = (
                self._translator.of_client.by_new.get(asked.request_id) if isinstance(asked.request_id, int) else None
            )
            if named is None or named.own:
                raise RequestError.invalid_params("`requestId` names a request that is not open")
            asked = msgspec.structs.replace(asked, request_id=named.id)
        shown = m1.CREATE_ELICITATION.decode_params(encode(asked))  # the same on the wire
        self._translator.ask_client(
            id, m1.CREATE_ELICITATION, shown, lambda result: self._translator.answer_agent(id, result)
        )

    def cancelled(self, id: Id) -> None:
        """The agent cancelled a request. A permission request is answered for a client that leaves it open."""
        done = self._permissions.get(id)
        if done is not None:
            at = self._translator.clock() + PERMISSION_GRACE
            self._translator.due.setdefault(("permission", id), (at, partial(self._give_up, id, done)))

    def _give_up(self, id: Id, done: Callable[[], None]) -> None:
        """Answer a permission request that the agent cancelled and the client left open."""
        request = self._translator.of_agent.by_id.get(id)
        done()
        if request is not None:
            self._translator.answer_agent(request.id, v2.PermissionResult(outcome=v2.Cancelled()))
