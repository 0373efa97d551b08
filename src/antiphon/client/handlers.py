"""The agent's requests to the client, and the handlers of SDK users: permission, questions, sign-in, files, terminals.

Rule 1: an option is looked for by its id first, then by its kind. The order of the options means nothing.
Rule 2: an answer that is not understood is a rejection. An option of an unknown kind is chosen by its id alone: it may be anything.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Raw, json, structs

from antiphon.aio import background, maybe_await
from antiphon.client.updates import ClientSessions
from antiphon.connection.router import Router
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.extension import INSERTED, UPDATE
from antiphon.protocol.methods import check_extension
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind

if TYPE_CHECKING:
    from antiphon.client.files import Files
    from antiphon.client.terminals import Terminals

__all__ = [
    "Attachable",
    "ClientService",
    "Elicitation",
    "Elicited",
    "ExtensionHandler",
    "PermissionAnswer",
    "PermissionHandler",
    "SignInHandler",
    "allow_always",
    "allow_once",
    "outcome_of",
    "reject",
    "result_of",
]

T = TypeVar("T")

_log = logging.getLogger(__name__)

PermissionAnswer: TypeAlias = v1.PermissionOutcome | v1.PermissionResult | str | bool
"""An outcome (alone or in a result), the id or the kind of an option, or a bool."""
PermissionHandler: TypeAlias = Callable[[v1.RequestPermission], PermissionAnswer | Awaitable[PermissionAnswer]]

Elicited: TypeAlias = v1.Accepted | v1.Declined | v1.Dismissed
AskForm: TypeAlias = Callable[[v1.FormElicitation], Elicited | Awaitable[Elicited]]
AskUrl: TypeAlias = Callable[[v1.UrlElicitation], Elicited | Awaitable[Elicited]]

SignInHandler: TypeAlias = Callable[[Sequence[v1.AuthMethod]], str | None | Awaitable[str | None]]
"""Called with the agent's methods to sign in: returns the id of the one to use, or None to let the request fail."""


ExtensionHandler: TypeAlias = Callable[[Any], object]
"""Called with the params of an extension request or notification as plain JSON values; `def` or `async def`."""


@dataclass(frozen=True, slots=True)
class Elicitation:
    """Handlers of the agent's questions to the user. What is not given is not advertised, and declined if asked anyway."""

    form: AskForm | None = None
    url: AskUrl | None = None
    completed: Callable[[str], None] | None = None
    """Called with the `elicitation_id` when the user is done on a page."""


# Ready-made answers for permission.


def allow_once(request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Allow this call and no other. Where the agent offers no such option, reject."""
    return _chosen(request.options, (Kind.ALLOW_ONCE, *_REJECTING))


def allow_always(request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Allow this call and those like it; where the agent does not offer that, this one only."""
    return _chosen(request.options, (Kind.ALLOW_ALWAYS, Kind.ALLOW_ONCE, *_REJECTING))


def reject(request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Reject this call; where the agent does not offer that, all like it, else cancel the request."""
    return _chosen(request.options, _REJECTING)


_REJECTING: Final = (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS)


def result_of(answer: object, request: v1.RequestPermission) -> v1.PermissionResult:
    """Make the result to send from what a handler returned."""
    if isinstance(answer, v1.PermissionResult):
        return v1.PermissionResult(outcome_of(answer.outcome, request), meta=answer.meta)
    return v1.PermissionResult(outcome_of(answer, request))


def outcome_of(answer: object, request: v1.RequestPermission) -> v1.PermissionOutcome:
    """Make the outcome from what a handler returned."""
    match answer:
        case v1.Cancelled():
            return answer
        case bool():
            return allow_once(request) if answer else reject(request)
        case v1.Selected(option_id=wanted) | str(wanted):
            return _wanted(wanted, request)
        case _:
            _log.error("a permission handler returned %r, which is not an answer: rejected", answer)
            return reject(request)


def _wanted(wanted: str, request: v1.RequestPermission) -> v1.PermissionOutcome:
    wanted = wanted.value if isinstance(wanted, Kind) else wanted
    for option in request.options:
        if option.option_id == wanted:
            return v1.Selected(option.option_id)
    kind = Kind(wanted)
    if kind.known and isinstance(found := _chosen(request.options, (kind,)), v1.Selected):
        return found
    offered = ", ".join(f"`{option.option_id}`" for option in request.options)
    _log.error("a permission handler chose `%s`, but the options were %s: rejected", wanted, offered)
    return reject(request)


def _chosen(options: Sequence[v1.PermissionOption], kinds: Sequence[Kind]) -> v1.PermissionOutcome:
    """The first option of the first of these kinds that is offered at all."""
    for kind in kinds:
        for option in options:
            # An unknown kind is read as a rejection, but its meaning is not known, so it is not chosen.
            if option.kind.known and option.kind == kind:
                return v1.Selected(option.option_id)
    return v1.Cancelled()


# The agent's requests: permission, questions, files, terminals. Those without a handler are not routed.

_CANCELLED: Final[PermissionAnswer] = v1.Cancelled()


@runtime_checkable
class Attachable(Protocol):
    """A handler that needs the sessions: their directories, and whether a turn is being cancelled.

    `attach` is called before any request. For permission it is the object whose method is the handler.
    """

    def attach(self, sessions: ClientSessions) -> None:
        """Take the sessions of the agent that will send requests."""


class ClientService:
    """Handles the agent's requests for one client."""

    def __init__(
        self,
        sessions: ClientSessions,
        permission: PermissionHandler,
        elicitation: Elicitation | None,
        files: "Files | None",
        terminals: "Terminals | None",
        extensions: "Mapping[str, ExtensionHandler] | None" = None,
    ) -> None:
        self.router = Router()
        self._extensions = dict(extensions or {})
        if self._extensions:
            for method in self._extensions:
                check_extension(method)
            self.router.other_request = self._extension
            self.router.other_notice = self._extension_notice
        self._sessions = sessions
        self._permission = permission
        self._elicitation = elicitation
        self.router.on_notice(m.SESSION_UPDATE, sessions.receive)
        self.router.on_notice(UPDATE, sessions.follow_work)
        self.router.on_notice(INSERTED, sessions.note_inserted)
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
            self._note_work(request.session_id)
            return await files.read(self._sessions.roots(request.session_id), request)

        async def write(request: v1.WriteTextFile) -> v1.WriteTextFileResult:
            self._note_work(request.session_id)
            return await files.write(self._sessions.roots(request.session_id), request)

        self.router.on_request(m.READ_TEXT_FILE, read)
        if files.can_write:
            self.router.on_request(m.WRITE_TEXT_FILE, write)

    def _serve_terminals(self, terminals: "Terminals") -> None:
        async def create(request: v1.CreateTerminal) -> v1.CreateTerminalResult:
            self._note_work(request.session_id)
            return await terminals.create(self._sessions.roots(request.session_id), request)

        self.router.on_request(m.CREATE_TERMINAL, create)
        self.router.on_request(m.TERMINAL_OUTPUT, terminals.output)
        self.router.on_request(m.WAIT_FOR_EXIT, terminals.wait_for_exit)
        self.router.on_request(m.KILL_TERMINAL, terminals.kill)
        self.router.on_request(m.RELEASE_TERMINAL, terminals.release)

    def _note_work(self, session_id: str | None) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session._inbox.note_work()

    async def _permit(self, request: v1.RequestPermission) -> v1.PermissionResult:
        self._note_work(request.session_id)
        if (session := self._sessions.get(request.session_id)) is not None:
            request = structs.replace(request, tool_call=session._inbox.add_request(request.tool_call))
        answer = await self._sessions.ask(request.session_id, lambda: self._permission(request), _CANCELLED)
        return result_of(answer, request)

    async def _elicit(self, request: v1.CreateElicitation) -> v1.CreateElicitationResult:
        if isinstance(request, v1.FormElicitation | v1.UrlElicitation):
            self._note_work(request.session_id)
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
            raise TypeError(f"an elicitation handler returned {answer!r}, which is not an answer")
        return answer

    async def _extension(self, method: str, params: Raw) -> object:
        handler = self._extensions.get(method)
        if handler is None:
            raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        return await maybe_await(handler(json.decode(params)))

    def _extension_notice(self, method: str, params: Raw) -> None:
        if (handler := self._extensions.get(method)) is None:
            _log.debug("a notification `%s` has no handler", method)
        elif isawaitable(handling := handler(json.decode(params))):
            _ = background(_handled(method, handling))

    def _completed(self, params: v1.CompleteElicitation) -> None:
        if self._elicitation is not None and self._elicitation.completed is not None:
            self._elicitation.completed(params.elicitation_id)


async def _handled(method: str, handling: Awaitable[object]) -> None:
    try:
        await handling
    except Exception:  # a notification has no response for the error
        _log.exception("the handler of `%s` failed", method)
