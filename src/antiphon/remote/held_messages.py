"""What a client has sent and no server has: it is kept in the order in which the client sent it, whatever connection it was sent on."""

import asyncio
from bisect import insort
from collections.abc import Callable
from typing import NamedTuple

from antiphon.remote.sessions import EditorRequest

__all__ = ["HeldMessage", "HeldMessages"]


class HeldMessage(NamedTuple):
    """A message that waits for a connection."""

    order: int
    """Its place among all that the client sent."""
    frame: bytes
    session_id: str | None
    request: EditorRequest | None = None
    """The request that it is; None for a notification."""
    cancels: tuple[EditorRequest, ...] = ()
    """The prompts that a cancellation is for. It is not sent when all of them have ended."""


class HeldMessages:
    """The messages that wait for a connection, first those that the client sent first.

    A request waits for `timeout` seconds; `expire` is called when they are over.
    """

    def __init__(self, timeout: float, expire: Callable[[EditorRequest], None]) -> None:
        self._timeout = timeout
        self._expire = expire
        self._messages: list[HeldMessage] = []
        self._timers: dict[EditorRequest, asyncio.TimerHandle] = {}
        self._last = 0

    def __bool__(self) -> bool:
        return bool(self._messages)

    @property
    def size(self) -> int:
        """The bytes of what waits."""
        return sum(len(message.frame) for message in self._messages)

    def next_place(self) -> int:
        """Return the place of a message that the client sends now."""
        self._last += 1
        return self._last

    def hold(self, message: HeldMessage) -> None:
        """Keep a notification, once."""
        if message not in self._messages:
            self._put(message)

    def hold_request(self, request: EditorRequest, *, again: bool = False) -> None:
        """Keep a request, also one that was sent on a connection which was lost: at the place that it had.

        `again`: nothing was done with it, so it waits no longer than it would have before it was sent.
        """
        loop = asyncio.get_running_loop()
        if not again or not request.deadline:
            request.deadline = loop.time() + self._timeout
        request.generation = 0
        self._put(HeldMessage(request.order, request.frame, request.session_id, request))
        self._timers[request] = loop.call_at(request.deadline, self._expire, request)

    def _put(self, message: HeldMessage) -> None:
        insort(self._messages, message, key=lambda each: each.order)

    def take(self, fits: Callable[[HeldMessage], bool]) -> HeldMessage | None:
        """Remove and return the first message that fits; None if there is none."""
        for place, message in enumerate(self._messages):
            if fits(message):
                del self._messages[place]
                if message.request is not None:
                    self._stop_timer(message.request)
                return message
        return None

    def remove(self, request: EditorRequest) -> None:
        """Keep a request no more: it has its response."""
        if self._stop_timer(request):
            self._messages = [each for each in self._messages if each.request is not request]

    def _stop_timer(self, request: EditorRequest) -> bool:
        timer = self._timers.pop(request, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def close(self) -> None:
        """Stop waiting."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
