"""What the agent asks of us: permission, answers from the user, files, terminals. Routed only if there is somebody to do it."""

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from msgspec import structs

from antiphon.client.handlers import Elicitation, Elicited, Permission, PermissionAnswer, result_of
from antiphon.client.sessions import Sessions
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.client.files import Files
    from antiphon.client.terminals import Terminals

__all__ = ["Attachable", "Service"]

_CANCELLED: Final[PermissionAnswer] = v1.Cancelled()


@runtime_checkable
class Attachable(Protocol):
    """A handler that wants to know the sessions: where each works, and whether its turn is being cancelled.

    It is told before anything is asked of it. For permission it is the object whose method is the handler.
    """

    def attach(self, sessions: Sessions) -> None:
        """These are the sessions of the agent that will ask."""


class Service:
    """Answers the agent on behalf of the user."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        permission: Permission,
        elicitation: Elicitation | None,
        files: "Files | None",
        terminals: "Terminals | None",
    ) -> None:
        self.router = Router()
        self._sessions = sessions
        self._permission = permission
        self._elicitation = elicitation
        self.router.on_notice(m.SESSION_UPDATE, sessions.heard)
        self.router.on_request(m.REQUEST_PERMISSION, self._permit)
        self.router.on_request(m.CREATE_ELICITATION, self._elicit)
        self.router.on_notice(m.COMPLETE_ELICITATION, self._completed)
        for handler in (getattr(permission, "__self__", permission), files, terminals):
            if isinstance(handler, Attachable):
                handler.attach(sessions)
        if files is not None:
            self._serve_files(files)
        if terminals is not None:
            self._serve_terminals(terminals)

    def _serve_files(self, files: "Files") -> None:
        async def read(request: v1.ReadTextFile) -> v1.ReadTextFileResult:
            self._worked(request.session_id)
            return await files.read(self._sessions.roots(request.session_id), request)

        async def write(request: v1.WriteTextFile) -> v1.WriteTextFileResult:
            self._worked(request.session_id)
            return await files.write(self._sessions.roots(request.session_id), request)

        self.router.on_request(m.READ_TEXT_FILE, read)
        if files.can_write:
            self.router.on_request(m.WRITE_TEXT_FILE, write)

    def _serve_terminals(self, terminals: "Terminals") -> None:
        async def create(request: v1.CreateTerminal) -> v1.CreateTerminalResult:
            self._worked(request.session_id)
            return await terminals.create(self._sessions.roots(request.session_id), request)

        self.router.on_request(m.CREATE_TERMINAL, create)
        self.router.on_request(m.TERMINAL_OUTPUT, terminals.output)
        self.router.on_request(m.WAIT_FOR_EXIT, terminals.wait_for_exit)
        self.router.on_request(m.KILL_TERMINAL, terminals.kill)
        self.router.on_request(m.RELEASE_TERMINAL, terminals.release)

    def _worked(self, session_id: str | None) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session.hearing.worked()

    async def _permit(self, request: v1.RequestPermission) -> v1.PermissionResult:
        self._worked(request.session_id)
        if (session := self._sessions.get(request.session_id)) is not None:
            request = structs.replace(request, tool_call=session.hearing.asked(request.tool_call))
        answer = await self._sessions.ask(request.session_id, lambda: self._permission(request), _CANCELLED)
        return result_of(answer, request)

    async def _elicit(self, request: v1.CreateElicitation) -> v1.CreateElicitationResult:
        if isinstance(request, v1.FormElicitation | v1.UrlElicitation):
            self._worked(request.session_id)
        handlers = self._elicitation or Elicitation()
        answer: object
        match request:
            case v1.FormElicitation() if (form := handlers.form) is not None:
                answer = await self._sessions.ask(request.session_id, lambda: form(request), v1.Dismissed())
            case v1.UrlElicitation() if (url := handlers.url) is not None:
                answer = await self._sessions.ask(request.session_id, lambda: url(request), v1.Dismissed())
            case _:
                return v1.Declined()
        if not isinstance(answer, Elicited):
            raise TypeError(f"an elicitation handler returned {answer!r}, which is no answer")
        return answer

    def _completed(self, news: v1.CompleteElicitation) -> None:
        if self._elicitation is not None and self._elicitation.completed is not None:
            self._elicitation.completed(news.elicitation_id)
