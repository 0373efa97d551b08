"""The part of the Responses API that Codex uses, on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.engines.codex.model.asked import Asked
from tests.engines.codex.model.events import events_of
from tests.engines.codex.model.steps import Answer, Fail, Step
from tests.engines.model.server import Connection, listening
from tests.engines.model.server import Model as AnyModel
from tests.engines.model.steps import Header, Text

__all__ = ["Model", "serving"]


class Model(AnyModel[Asked, Step]):
    """Listens on a port of its own."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(Handler, port)

    def echo(self, asked: Asked) -> Answer:
        return (Text(f"echo: {asked.prompt}" if asked.is_prompt else "Done."),)


class Handler(Connection):
    """One connection."""

    server: Model

    def do_GET(self) -> None:
        self.server.others.append(self.path)
        # Codex asks OpenAI for a WebSocket first. 426: not here, take the usual way at once.
        status = 426 if self.headers.get("Upgrade") else 404
        self.json({"error": {"message": "no such thing", "type": "invalid_request_error"}}, status)

    def do_POST(self) -> None:
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, self.body())
        if not self.path.partition("?")[0].endswith("/responses"):
            self.server.others.append(self.path)
            return self.json({"error": {"message": "no such thing", "type": "invalid_request_error"}}, 404)
        answer = self.server.take(asked)
        try:
            self._answer(asked, answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        return None

    def _answer(self, asked: Asked, answer: Answer) -> None:
        for step in answer:
            if isinstance(step, Fail):
                error = {"type": step.kind, "code": step.code, "message": step.message, "param": None, **step.more}
                return self.json({"error": error}, step.status, step.headers)
        headers = [(step.name, step.value) for step in answer if isinstance(step, Header)]
        return self.stream(events_of(answer, asked.model), headers)


@contextmanager
def serving(port: int = 0) -> Iterator[Model]:
    """A model that listens until the block is left."""
    with listening(Model(port)) as model:
        yield model
