"""A model on loopback that says what the test tells it to: the part of the Messages API that Claude Code uses.

Answers are queued, one for each request, and told apart by who asks: the conversation, a sub-agent, or the program for its own ends (a
title, a summary). Who asks for more than was queued is echoed. Everything that was asked is kept.
"""

import asyncio
import json
import select
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

from tests.engines.claude.model.asked import Asked, Kind
from tests.engines.claude.model.events import Hold, events_of, message_of, named
from tests.engines.claude.model.steps import PATIENCE, Answer, Fail, Gate, Header, Json, Step, Text

__all__ = ["Chooser", "Model", "listening"]

Chooser: TypeAlias = Callable[[Asked], Answer | None]
"""Chooses the answer to a request; None leaves it to the next."""


class Model(ThreadingHTTPServer):
    """Listens on a port of its own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.asked: list[Asked] = []
        """Requests of the conversation, in the order in which they came."""
        self.aside: list[Asked] = []
        """Requests of sub-agents and of the program itself."""
        self.others: list[str] = []
        """Paths of whatever else was asked for."""
        self.choose: Chooser | None = None
        """Asked before the queue, for whoever wants to answer by the request."""
        self.otherwise: Answer | None = None
        """The answer to all for which none is queued, instead of an echo."""
        self._queues: dict[Kind, deque[Answer | Callable[[Asked], Answer]]] = {
            "main": deque(),
            "agent": deque(),
            "side": deque(),
        }
        self._changed = threading.Condition()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answers(self, *steps: Step) -> None:
        """The answer to the next request of the conversation."""
        self._queues["main"].append(steps)

    def answers_by(self, choose: Callable[[Asked], Answer]) -> None:
        """The same, where the answer depends on what is asked."""
        self._queues["main"].append(choose)

    def agent_answers(self, *steps: Step) -> None:
        """The answer to the next request of a sub-agent."""
        self._queues["agent"].append(steps)

    def side_answers(self, *steps: Step) -> None:
        """The answer to the next thing that the program wants to know for itself."""
        self._queues["side"].append(steps)

    def handle_error(self, request: object, client_address: object) -> None:
        """A program that hangs up is no error; anything else is shown as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def last(self) -> Asked:
        """The last request of the conversation."""
        return self.asked[-1]

    async def was_asked(self, times: int) -> Asked:
        """Wait until the conversation has asked so often."""

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: len(self.asked) >= times, PATIENCE)

        assert await asyncio.to_thread(wait), f"asked {len(self.asked)} times, not {times}"
        return self.asked[times - 1]

    def take(self, asked: Asked) -> Answer:
        """Keep the request, find its answer."""
        kind = asked.kind
        with self._changed:
            (self.asked if kind == "main" else self.aside).append(asked)
            self._changed.notify_all()
            answer = self.choose(asked) if self.choose is not None else None
            if answer is None and self._queues[kind]:
                queued = self._queues[kind].popleft()
                answer = queued(asked) if callable(queued) else queued
        return named(answer or (self.otherwise if kind == "main" else None) or _echo(asked))


def _echo(asked: Asked) -> Answer:
    return (Text(f"echo: {asked.prompt}" if asked.is_prompt else "Done."),)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: stderr belongs to the tests."""

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self.server.others.append(self.path)
        self._json({"data": [], "has_more": False})

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        if asked.counts:
            self.server.others.append(self.path)
            return self._json({"input_tokens": len(asked.everything) // 4})
        if not self.path.startswith("/v1/messages"):
            self.server.others.append(self.path)
            return self._json({"type": "error", "error": {"type": "not_found_error", "message": "no such thing"}}, 404)
        answer = self.server.take(asked)
        try:
            self._answer(asked, answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        return None

    def _answer(self, asked: Asked, answer: Answer) -> None:
        for step in answer:
            if isinstance(step, Fail):
                error = {"type": "error", "error": {"type": step.kind, "message": step.message}}
                return self._json(error, step.status, dict(step.headers))
        if not asked.body.get("stream"):
            return self._json(message_of(answer, asked.model))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        for step in answer:
            if isinstance(step, Header):
                self.send_header(step.name, step.value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        buffer: list[bytes] = []
        for part in events_of(answer, asked.model):
            if not isinstance(part, Hold):
                buffer.append(b"event: %s\ndata: %s\n\n" % (part["type"].encode(), json.dumps(part).encode()))
                if len(buffer) < BATCH:
                    continue
            self._send(b"".join(buffer))
            buffer.clear()
            if isinstance(part, Hold) and (part.wait is None or not self._hold(part.wait.gate)):
                return self._die()
        return self._send(b"".join(buffer))

    def _hold(self, gate: Gate) -> bool:
        """Wait at the gate; False if the program hung up."""
        gate.reached.set()
        for _ in range(int(PATIENCE / TICK)):
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

    def _send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _json(self, answer: Json, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self._send(data)


BATCH = 64
"""Events sent at once: small enough to stream, large enough that ten thousand do not take a second."""
TICK = 0.02
"""Seconds between two looks at whether the program is still there."""


@contextmanager
def listening(port: int = 0) -> Iterator[Model]:
    """A model that listens until the block is left."""
    with Model(port) as model:
        thread = threading.Thread(target=model.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()
