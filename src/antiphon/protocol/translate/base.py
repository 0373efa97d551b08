"""What both translators share: requests that wait for their response on the other side, and what goes out."""

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw

from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol.base import BAD_INPUT, Json, JsonObject
from antiphon.protocol.exchange import (
    ErrorMessage,
    Id,
    Loss,
    Message,
    NotificationMessage,
    RequestFailure,
    RequestMessage,
    ResultMessage,
)
from antiphon.protocol.methods import AnyCall, AnyNotice, Call, Notice

__all__ = [
    "CANCEL_REQUEST", "MAX_OPEN_REQUESTS", "OWN", "NoticeHandlers", "OpenRequest", "OpenRequests", "RequestHandlers", "Translator",
    "request_key", "requested_id",
]  # fmt: skip

MAX_OPEN_REQUESTS: Final = 10_000
"""Requests of one side that may wait for their response. The next one is refused."""

CANCEL_REQUEST: Final = "$/cancel_request"

P = TypeVar("P")
R = TypeVar("R")


RequestHandlers: TypeAlias = dict[str, tuple[AnyCall, Callable[[Id, Json], None]]]
NoticeHandlers: TypeAlias = dict[str, tuple[AnyNotice, Callable[[Json], None]]]
OnResult = Callable[[Raw], None]
OnError = Callable[[RequestFailure], None]


class OpenRequest(msgspec.Struct, gc=False):
    """A request that was forwarded and waits for its response."""

    id: Id
    """Its id on the side that sent it; None where the translator sent it by itself."""
    new: int
    """Its id on the side that answers it."""
    method: str
    on_result: OnResult
    on_error: OnError
    own: bool = False
    """Whether the translator sent it by itself."""


class OpenRequests:
    """The requests of one side that wait for a response of the other."""

    def __init__(self, out: Callable[[Message], None], back: Callable[[Message], None]) -> None:
        self.out = out
        self.back = back
        self.by_new: dict[int, OpenRequest] = {}
        self.by_id: dict[Id, OpenRequest] = {}
        self._last = 0

    def forward(self, request: OpenRequest, params: object) -> None:
        """Forward a request under a new id."""
        self._last += 1
        request.new = self._last
        self.by_new[request.new] = request
        if not request.own:
            self.by_id[request_key(request.id)] = request
        self.out(RequestMessage(request.new, request.method, params))

    def take(self, new: Id) -> OpenRequest | None:
        """Take the request that a response is for."""
        found = self.by_new.pop(new, None) if isinstance(new, int) and not isinstance(new, bool) else None
        if found is not None and not found.own:
            self.by_id.pop(request_key(found.id), None)
        return found


class Translator:
    """One client and one agent that speak different versions. Subclasses have the handlers.

    `clock` returns seconds that only grow. What goes out is in `to_client` and `to_agent`; `losses` has what could not be carried.
    The caller takes all three after every call, calls `settle` when it has nothing more to give for now, and `expire` at `deadline`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.to_client: list[Message] = []
        self.to_agent: list[Message] = []
        self.losses: list[Loss] = []
        self.due: dict[object, tuple[float, Callable[[], None]]] = {}
        """What is done at a time unless something else happens before."""
        self.beside_update: JsonObject = {}
        """The `_meta` beside the update that is being translated, for what is made of it."""
        self.transparent = False
        """Whether both sides turned out to speak the same version: from now on everything is forwarded as it is."""
        self.client_handlers: RequestHandlers = {}
        """The requests of the client that are not forwarded as they are, with their handlers."""
        self.client_notices: NoticeHandlers = {}
        self.agent_handlers: RequestHandlers = {}
        self.agent_notices: NoticeHandlers = {}
        self.of_client = OpenRequests(self.send_to_agent, self.send_to_client)
        self.of_agent = OpenRequests(self.send_to_client, self.send_to_agent)

    def send_to_agent(self, message: Message) -> None:
        """Send a message to the agent."""
        self.to_agent.append(message)

    def send_to_client(self, message: Message) -> None:
        """Send a message to the client."""
        self.to_client.append(message)

    # For subclasses.

    def report(self, what: str, reason: str) -> None:
        """Report that something was carried in another form."""
        self.losses.append(Loss(what, reason))

    def ask_agent(
        self, id: Id, call: Call[P, R], params: P, on_result: Callable[[R], None], on_error: OnError | None = None
    ) -> None:
        """Forward a request of the client, with the handler of its typed result."""
        self._ask(self.of_client, id, call, params, on_result, on_error)

    def ask_client(
        self, id: Id, call: Call[P, R], params: P, on_result: Callable[[R], None], on_error: OnError | None = None
    ) -> None:
        """Forward a request of the agent, with the handler of its typed result."""
        self._ask(self.of_agent, id, call, params, on_result, on_error)

    def _ask(
        self,
        side: OpenRequests,
        id: Id,
        call: Call[P, R],
        params: P,
        on_result: Callable[[R], None],
        on_error: OnError | None,
    ) -> None:
        def fail(failure: RequestFailure) -> None:
            side.back(ErrorMessage(id, failure.code, failure.message, failure.data))

        def read(raw: Raw) -> None:
            try:
                result = call.decode_result(raw)
            except RemoteProtocolError as error:
                (on_error or fail)(RequestFailure(Code.INTERNAL_ERROR, "Internal error", error.sentence))
                return
            on_result(result)

        own = id is OWN
        side.forward(OpenRequest(id, 0, call.name, read, on_error or fail, own), params)

    def answer_client(self, id: Id, result: object) -> None:
        """Answer a request of the client."""
        self.to_client.append(ResultMessage(id, result))

    def answer_agent(self, id: Id, result: object) -> None:
        """Answer a request of the agent."""
        self.to_agent.append(ResultMessage(id, result))

    def notify_client(self, notice: Notice[P], params: P) -> None:
        """Send a notification to the client."""
        self.to_client.append(NotificationMessage(notice.name, params))

    def notify_agent(self, notice: Notice[P], params: P) -> None:
        """Send a notification to the agent."""
        self.to_agent.append(NotificationMessage(notice.name, params))

    # Messages of the client.

    def client_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the client."""
        self._request(self.of_client, self.client_handlers, id, method, params)

    def client_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the client."""
        if method == CANCEL_REQUEST:
            self._cancel_request(self.of_client, params)
        else:
            self._notification(self.to_agent, self.client_notices, method, params)

    def client_response(self, id: Id, result: Raw | None, failure: RequestFailure | None) -> bool:
        """Take a response of the client. False: nothing waits for it."""
        return self._response(self.of_agent, id, result, failure)

    # Messages of the agent.

    def agent_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the agent."""
        self._request(self.of_agent, self.agent_handlers, id, method, params)

    def agent_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the agent."""
        if method == CANCEL_REQUEST:
            cancelled = self._cancel_request(self.of_agent, params)
            if cancelled is not None:
                self.request_cancelled(cancelled)
        else:
            self._notification(self.to_client, self.agent_notices, method, params)

    def agent_response(self, id: Id, result: Raw | None, failure: RequestFailure | None) -> bool:
        """Take a response of the agent. False: nothing waits for it."""
        return self._response(self.of_client, id, result, failure)

    # The rest of an adapter's calls.

    def settle(self) -> None:
        """Send what was collected while more could come."""

    @property
    def deadline(self) -> float | None:
        """When `expire` is to be called, by the clock; None if nothing waits for a time."""
        return min((at for at, _ in self.due.values()), default=None) if self.due else None

    def expire(self) -> None:
        """Do what is due."""
        now = self.clock()
        for key, (at, act) in tuple(self.due.items()):
            if at <= now and self.due.pop(key, None) is not None:
                act()

    def agent_lost(self) -> None:
        """Answer what the agent will not answer any more: it is gone."""
        self.settle()
        for request in tuple(self.of_client.by_new.values()):
            self.of_client.take(request.new)
            request.on_error(RequestFailure(Code.INTERNAL_ERROR, "Internal error", "the agent is gone"))

    def _request(
        self,
        side: OpenRequests,
        handlers: RequestHandlers,
        id: Id,
        method: str,
        params: Raw,
    ) -> None:
        if request_key(id) in side.by_id:  # a second one with the same id gets no response: that would end the first
            self.losses.append(Loss(method, "its id is that of a request that is open"))
            return
        if len(side.by_new) >= MAX_OPEN_REQUESTS:
            wrong = f"more than {MAX_OPEN_REQUESTS} requests wait for their response"
            side.back(ErrorMessage(id, Code.INTERNAL_ERROR, "Internal error", wrong))
            return
        found = handlers.get(method)
        try:
            if found is not None:
                found[1](id, found[0].decode_params(params))
                return
        except RequestError as error:
            data: Json = UNSET if error.data is None else error.data
            side.back(ErrorMessage(id, error.code, error.message, data))
            return

        def answer(raw: Raw) -> None:
            side.back(ResultMessage(id, raw))

        def fail(failure: RequestFailure) -> None:
            side.back(ErrorMessage(id, failure.code, failure.message, failure.data))

        side.forward(OpenRequest(id, 0, method, answer, fail), params)

    def _notification(
        self,
        out: list[Message],
        handlers: NoticeHandlers,
        method: str,
        params: Raw,
    ) -> None:
        found = handlers.get(method)
        if found is None:
            out.append(NotificationMessage(method, params))
            return
        try:
            value = found[0].decode_params(params)
        except RequestError as error:
            self.losses.append(Loss(method, f"it makes no sense: {error.reason}", refused=True))
            return
        found[1](value)

    def _response(self, side: OpenRequests, id: Id, result: Raw | None, failure: RequestFailure | None) -> bool:
        request = side.take(id)
        if request is None:
            return False
        if failure is not None:
            request.on_error(failure)
        else:
            request.on_result(Raw(b"null") if result is None else result)
        return True

    def _cancel_request(self, side: OpenRequests, params: Raw) -> Id | None:
        """Forward the cancellation of a request that is open. Returns its key."""
        request = side.by_id.get(requested_id(params))
        if request is None:
            return None
        side.out(NotificationMessage(CANCEL_REQUEST, {"requestId": request.new}))
        return request_key(request.id)

    def request_cancelled(self, id: Id) -> None:
        """The agent cancelled one of its requests; the client has been sent that."""


OWN: Final = object()
"""The id of a request that the translator sends by itself."""


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: int | float | str | bool | None


def request_key(id: Id) -> Id:
    """Return an id so that `1` and `"1"` and `True` are different keys."""
    return (float if isinstance(id, float) else bool, id) if isinstance(id, bool | float) else id


def requested_id(params: Raw) -> Id:
    """Return the key of the request that `$/cancel_request` names; that of none if it names none."""
    try:
        return request_key(msgspec.json.decode(params, type=_Cancelled).request_id)
    except BAD_INPUT:
        return OWN
