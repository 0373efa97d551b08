"""A model on loopback that sends what a test wants. What its interface looks like is defined by those who build on it.

Answers are queued, one for each request. Who asks for more than was queued is echoed. Everything that was asked is kept.
"""

import asyncio
import json
import select
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Generic, TypeAlias, TypeVar

from tests.engines.model.steps import Gate, Json, Wait, wait_limit

__all__ = ["Connection", "Hold", "Model", "Part", "Queued", "listening"]

BATCH: Final = 64
"""Events sent at once: small enough to stream, large enough that ten thousand do not take a second."""
TICK: Final = 0.02
"""Seconds between two looks at whether the program is still there."""

Asked = TypeVar("Asked")
Step = TypeVar("Step")
M = TypeVar("M", bound="Model[Any, Any]")

Queued: TypeAlias = tuple[Step, ...] | Callable[[Asked], tuple[Step, ...]]
"""An answer, or who finds one."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Between two events: the sender has something to do. None: the line goes dead."""

    wait: Wait | None


Part: TypeAlias = Json | Hold


class Model(ThreadingHTTPServer, Generic[Asked, Step]):
    """Listens on a port of its own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler: "type[Connection]", port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.asked: list[Asked] = []
        """Requests in the order in which they came."""
        self.others: list[str] = []
        """Paths of whatever else was asked for."""
        self.choose: Callable[[Asked], tuple[Step, ...] | None] | None = None
        """Asked before the queue, for tests that answer by the request; None leaves it to the queue."""
        self.otherwise: tuple[Step, ...] | None = None
        """The answer to all for which none is queued, instead of an echo."""
        self._queue: deque[Queued[Step, Asked]] = deque()
        self._changed = threading.Condition()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answers(self, *steps: Step) -> None:
        """The answer to the next request."""
        self._queue.append(steps)

    def answers_by(self, choose: "Callable[[Asked], tuple[Step, ...]]") -> None:
        """The same, where the answer depends on what is asked."""
        self._queue.append(choose)

    @property
    def last(self) -> Asked:
        """The last request."""
        return self.asked[-1]

    async def was_asked(self, times: int) -> Asked:
        """Wait until it was asked so often."""

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: len(self.asked) >= times, wait_limit())

        assert await asyncio.to_thread(wait), f"asked {len(self.asked)} times, not {times}"
        return self.asked[times - 1]

    def take(self, asked: Asked) -> tuple[Step, ...]:
        """Keep the request, find its answer."""
        book, queue = self.kept(asked)
        with self._changed:
            book.append(asked)
            self._changed.notify_all()
            answer = self.choose(asked) if self.choose is not None else None
            if answer is None and queue:
                queued = queue.popleft()
                answer = queued(asked) if callable(queued) else queued
        return answer or (self.otherwise if book is self.asked else None) or self.echo(asked)

    def kept(self, asked: Asked) -> "tuple[list[Asked], deque[Queued[Step, Asked]]]":
        """Where a request is kept, and which answers are for it."""
        return self.asked, self._queue

    def echo(self, asked: Asked) -> tuple[Step, ...]:
        """The response to a request for more than was queued."""
        raise AssertionError(f"nothing is queued for {asked}")

    def handle_error(self, request: object, client_address: object) -> None:
        """A program that hangs up is not an error; anything else is shown as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Connection(BaseHTTPRequestHandler):
    """One connection to a model, with what all of them do."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: stderr belongs to the tests."""

    def body(self) -> Json:
        """What was posted."""
        found: Json = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        return found

    def stream(self, parts: Iterable[Part], headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send events, and stop at the gates between them."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        buffer: list[bytes] = []
        for part in parts:
            if not isinstance(part, Hold):
                buffer.append(b"event: %s\ndata: %s\n\n" % (part["type"].encode(), json.dumps(part).encode()))
                if len(buffer) < BATCH:
                    continue
            self.send(b"".join(buffer))
            buffer.clear()
            if isinstance(part, Hold) and (part.wait is None or not self._hold(part.wait.gate)):
                return self._die()
        return self.send(b"".join(buffer))

    def _hold(self, gate: Gate) -> bool:
        """Wait at the gate; False if the program hung up."""
        gate.reached.set()
        for _ in range(int(wait_limit() / TICK)):
            if gate.opened.wait(TICK):
                return True
            if self._was_left():
                gate.left.set()
                return False
        return False

    def _was_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except ConnectionError:
            return True

    def _die(self) -> None:
        with suppress(OSError):  # it may be dead already
            self.connection.shutdown(socket.SHUT_RDWR)

    def send(self, data: bytes) -> None:
        """Now."""
        self.wfile.write(data)
        self.wfile.flush()

    def json(self, answer: Json, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> None:
        """An answer in one piece."""
        data = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in (("Content-Type", "application/json"), *headers):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.send(data)


@contextmanager
def listening(model: M) -> Iterator[M]:
    """It listens until the block is left."""
    with model:
        thread = threading.Thread(target=model.serve_forever, args=(TICK,), daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()
