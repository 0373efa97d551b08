"""Questions to the user: may I, which one, what is, please look at this page."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from antiphon.agent.forms import misfits
from antiphon.agent.permission import OPTIONS, QUESTION, Permission
from antiphon.agent.stage import Stage
from antiphon.errors import AcpError, NotSupported, RemoteProtocolError
from antiphon.protocol import v1
from antiphon.protocol.timeouts import NO_TIMEOUT
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.protocol.timeouts import Timeout

    Answers = dict[str, v1.ContentValue]

__all__ = ["Asking", "Visit"]

_NONE_OF_THESE = v1.PermissionOption("_none_of_these", "None of these", v1.PermissionOptionKind.REJECT_ONCE)


class Visit:
    """A page that the user was asked to open; true if they agreed. Say when it has served its purpose."""

    def __init__(self, stage: Stage, id: str, agreed: bool) -> None:
        self._stage = stage
        self._id = id
        self._agreed = agreed

    def __bool__(self) -> bool:
        return self._agreed

    async def complete(self) -> None:
        """The user is done there: the client may stop waiting."""
        await self._stage.session.client.connection.notify(m.COMPLETE_ELICITATION, v1.CompleteElicitation(self._id))


class Asking(Stage):
    """The verbs that wait for the user. A question is withdrawn when the turn ends."""

    async def ask_permission(
        self,
        call: v1.ToolCallPatch,
        options: Sequence[v1.PermissionOption] = OPTIONS,
        *,
        timeout: "Timeout" = NO_TIMEOUT,
    ) -> Permission:
        """Ask whether a tool call may run. `call.permitted()` does it for a call that is shown.

        Raises:
            RequestTimeout: there was no answer within `timeout` seconds; by default it is waited for without a limit.
        """
        question = v1.RequestPermission(self.session.id, call, list(options))
        answer = await self.request(m.REQUEST_PERMISSION, question, timeout=timeout)
        return Permission(answer.outcome, options)

    async def ask(
        self,
        message: str,
        form: v1.Form | None = None,
        *,
        about: str | None = None,
        timeout: "Timeout" = NO_TIMEOUT,
        **fields: v1.Property,
    ) -> "Answers | None":
        """Ask the user to fill in a form; None if they would rather not. `about` is the id of a tool call.

        A field without a default has to be filled in; give a `form` for anything finer.

        Raises:
            NotSupported: the client shows no forms.
            RequestTimeout: there was no answer within `timeout` seconds; by default it is waited for without a limit.
            RemoteProtocolError: its answers do not fit the form.
        """
        if not self.session.client.shows_forms:
            raise NotSupported(
                "the client shows no forms", hint="look at `session.client.shows_forms`; `choose` works without"
            )
        if form is None:
            required = [name for name, field in fields.items() if getattr(field, "default", None) is None]
            form = v1.Form(properties=fields, required=required or None)
        question = v1.FormElicitation(
            message=message, requested_schema=form, session_id=self.session.id, tool_call_id=about
        )
        answer = await self.request(m.CREATE_ELICITATION, question, timeout=timeout)
        if not isinstance(answer, v1.Accepted):
            return None
        answers = answer.content or {}
        if wrong := list(misfits(answers, form)):
            raise RemoteProtocolError(f"the client's answers do not fit the form: {', '.join(wrong)}")
        return answers

    async def choose(
        self, message: str, choices: "Mapping[str, str] | Sequence[str]", *, timeout: "Timeout" = NO_TIMEOUT
    ) -> str | None:
        """Ask the user to pick one; None if they would rather not. A client without forms shows it like a question for permission."""
        titles = choices if isinstance(choices, Mapping) else {choice: choice for choice in choices}
        if self.session.client.shows_forms:
            field = v1.StringProperty(
                title=message, one_of=[v1.EnumOption(key, title) for key, title in titles.items()]
            )
            try:
                answers = await self.ask(message, timeout=timeout, choice=field)
            except RemoteProtocolError:  # none of the choices was chosen
                answers = None
            picked = None if answers is None else answers.get("choice")
        else:
            picked = await self._choose_by_permission(message, titles, timeout)
        return picked if isinstance(picked, str) and picked in titles else None

    async def _choose_by_permission(self, message: str, titles: Mapping[str, str], timeout: "Timeout") -> str | None:
        once = v1.PermissionOptionKind.ALLOW_ONCE
        options = [v1.PermissionOption(key, title, once) for key, title in titles.items()]
        id = self.next_id("question")
        status = v1.ToolStatus.FAILED
        call = v1.ToolCallPatch(id, title=message, kind=v1.ToolKind.OTHER)
        question = v1.RequestPermission(self.session.id, call, [*options, _NONE_OF_THESE], meta=QUESTION)
        try:
            await self.update(v1.ToolCall(id, message))
            answer = (await self.request(m.REQUEST_PERMISSION, question, timeout=timeout)).outcome
            # By its id alone: all choices are of one kind, so a client that answers with the kind has chosen none of them.
            picked = answer.option_id if isinstance(answer, v1.Selected) and answer.option_id in titles else None
            if picked is not None:
                status = v1.ToolStatus.COMPLETED
        finally:
            with suppress(AcpError):  # the turn may be over, or the client gone
                # Not awaited: this may be a cancelled task, and a slow client must not hold it up.
                _ = self.update(v1.ToolCallUpdate(id, status=status))
        return picked

    async def visit(
        self, message: str, url: str, *, about: str | None = None, timeout: "Timeout" = NO_TIMEOUT
    ) -> Visit:
        """Ask the user to open a page. What they do there, we have to find out by ourselves; then call `complete`.

        Raises:
            NotSupported: the client opens no pages.
        """
        if not self.session.client.opens_pages:
            raise NotSupported(
                "the client opens no pages", hint="look at `session.client.opens_pages`, or say the address"
            )
        id = f"{self.session.id}-{self.next_id('page')}"
        question = v1.UrlElicitation(
            message=message, url=url, elicitation_id=id, session_id=self.session.id, tool_call_id=about
        )
        answer = await self.request(m.CREATE_ELICITATION, question, timeout=timeout)
        return Visit(self, id, isinstance(answer, v1.Accepted))
