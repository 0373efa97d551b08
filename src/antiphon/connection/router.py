"""Which handler takes which method. Typed on both sides: a handler gets the params' type and returns the result's."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar

from msgspec import Raw

from antiphon.errors import LocalProtocolError
from antiphon.protocol.methods import AnyCall, AnyNotice, Call, Notice

__all__ = ["Router", "Then"]

P = TypeVar("P")
R = TypeVar("R")

CallEntry = tuple[AnyCall, Callable[[Any], object]]
NoticeEntry = tuple[AnyNotice, Callable[[Any], None]]


class Then(Generic[R]):
    """A request's result, and what to do as soon as the response has left. What `after` sends cannot overtake the response."""

    __slots__ = ("after", "result")

    def __init__(self, result: R, after: Callable[[], None]) -> None:
        self.result = result
        self.after = after


class Router:
    """A table of handlers.

    A notification's handler is a plain `def`: it cannot wait, so it can neither reorder nor deadlock. A request's handler may
    be `def` (answered on the spot) or `async def` (a task of its own).
    """

    def __init__(self) -> None:
        self.calls: dict[str, CallEntry] = {}
        """Method → its call and handler, also under its older names."""
        self.notices: dict[str, NoticeEntry] = {}
        """Method → its notice and handler."""
        self.other_request: Callable[[str, Raw], Awaitable[object]] | None = None
        """Takes requests that have no handler (extension methods); without it they get -32601."""
        self.other_notice: Callable[[str, Raw], None] | None = None
        """Takes notifications that have no handler; without it they are reported."""

    def on_notice(self, notice: Notice[P], handler: Callable[[P], None]) -> None:
        """Handle a notification, in wire order."""
        if not isinstance(notice, Notice):
            raise LocalProtocolError(f"`{notice.name}` is a request: use on_request")
        if iscoroutinefunction(handler):
            raise LocalProtocolError(
                f"the handler of `{notice.name}` must be a plain `def`: to wait, iterate over a stream"
            )
        self.notices[notice.name] = (notice, handler)
        for name in notice.aliases:
            self.notices.setdefault(name, (notice, handler))

    def on_request(self, call: Call[P, R], handler: Callable[[P], R | Then[R] | Awaitable[R | Then[R]]]) -> None:
        """Answer a request with what `handler` returns; raise `RequestError` in it to refuse."""
        if not isinstance(call, Call):
            raise LocalProtocolError(f"`{call.name}` is a notification: use on_notice")
        self.calls[call.name] = (call, handler)
        for name in call.aliases:
            self.calls.setdefault(name, (call, handler))

    def notice(self, method: str, params: Raw) -> tuple[str, ...] | None:
        """Hand a notification to its handler: the rules it took to read it, or None if there is no handler.

        Raises:
            RequestError: the params make no sense.
        """
        found = self.notices.get(method)
        if found is None:
            if self.other_notice is None:
                return None
            self.other_notice(method, params)
            return ()
        notice, handler = found
        reading = notice.read_params(params)
        handler(reading.value)
        return reading.rules
