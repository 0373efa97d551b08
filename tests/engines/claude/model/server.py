"""The part of the Messages API that Claude Code uses, on loopback.

Answers are distinguished by their request: of the main thread, a sub-agent, or the program for its own ends (a title, a summary).
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tests.engines.claude.model.asked import Asked, Kind
from tests.engines.claude.model.events import events_of, message_of, named
from tests.engines.claude.model.steps import Answer, Fail, Header, Step, Text
from tests.engines.model.server import Connection, Queued
from tests.engines.model.server import Model as AnyModel
from tests.engines.model.server import listening as serving

__all__ = ["Model", "listening"]


class Model(AnyModel[Asked, Step]):
    """Listens on a port of its own."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(Handler, port)
        self.aside: list[Asked] = []
        """Requests of sub-agents and of the program itself."""
        self._aside: dict[Kind, deque[Queued[Step, Asked]]] = {"agent": deque(), "side": deque()}

    def agent_answers(self, *steps: Step) -> None:
        """The answer to the next request of a sub-agent."""
        self._aside["agent"].append(steps)

    def side_answers(self, *steps: Step) -> None:
        """The answer to the next thing that the program wants to know for itself."""
        self._aside["side"].append(steps)

    def kept(self, asked: Asked) -> tuple[list[Asked], deque[Queued[Step, Asked]]]:
        return super().kept(asked) if asked.kind == "main" else (self.aside, self._aside[asked.kind])

    def take(self, asked: Asked) -> Answer:
        return named(super().take(asked))

    def echo(self, asked: Asked) -> Answer:
        return (Text(f"echo: {asked.prompt}" if asked.is_prompt else "Done."),)


class Handler(Connection):
    """One connection."""

    server: Model

    def do_HEAD(self) -> None:
        self.json({})

    def do_GET(self) -> None:
        self.server.others.append(self.path)
        self.json({"data": [], "has_more": False})

    def do_POST(self) -> None:
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, self.body())
        if asked.counts:
            self.server.others.append(self.path)
            return self.json({"input_tokens": len(asked.everything) // 4})
        if not self.path.startswith("/v1/messages"):
            self.server.others.append(self.path)
            return self.json({"type": "error", "error": {"type": "not_found_error", "message": "no such thing"}}, 404)
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
                return self.json(error, step.status, step.headers)
        if not asked.body.get("stream"):
            return self.json(message_of(answer, asked.model))
        headers = [(step.name, step.value) for step in answer if isinstance(step, Header)]
        return self.stream(events_of(answer, asked.model), headers)


@contextmanager
def listening(port: int = 0) -> Iterator[Model]:
    """A model that listens until the block is left."""
    with serving(Model(port)) as model:
        yield model
