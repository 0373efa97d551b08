"""Faults that break the rules of all traffic: what a client says besides, or instead."""

from collections.abc import Callable, Iterable
from typing import Any

from antiphon.traffic.entries import Direction
from tests.conformance.client_faults.client_faults import (
    Answers,
    ChangedOutput,
    Faults,
    Message,
    answers,
    asks,
    sends,
    updates,
    with_params,
)
from tests.conformance.client_faults.handshake import answered, without
from tests.conformance.client_faults.messages import permits
from tests.conformance.client_memory import Back, Broken, Fault

Made = Callable[[Message], Any]


class Adds(Fault):
    """Says something besides, before or after a message of its own; once in a session."""

    def __init__(self, method: str, made: Made, *, after: bool = False, bare: bool = False) -> None:
        self.method = method
        self.made = made
        self.after = after
        self.waits = bare
        """For an agent that offers nothing."""

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if self.waits and answered(message) == {"protocolVersion": 1}:
            self.waits = False
        if direction is Direction.C2A and message.get("method") == self.method and not self.waits:
            self.waits = True
            several = self.made(message)
            several = several if isinstance(several, list) else [several]
            yield from [message, *several] if self.after else [*several, message]
        else:
            yield message


class HelloAgain(Adds):
    """Introduces itself a second time, with the same words."""

    def __init__(self) -> None:
        super().__init__("session/new", lambda message: {**self.hello, "id": "hello-again"})
        self.hello: Message = {}

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and message.get("method") == "initialize":
            self.hello = message
        return super().__call__(direction, message)


class SaysToBare(ChangedOutput):
    """Changes what it says to an agent that offers nothing."""

    bare = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        self.bare = self.bare or (direction is Direction.A2C and answered(message) == {"protocolVersion": 1})
        return super().__call__(direction, message) if self.bare else iter([message])


class AnswersNotification(Fault):
    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        yield message
        if direction is Direction.A2C and updates(sessionUpdate="antiphon_tomorrow")(message):
            yield Back({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}})


def adds(method: str, made: Made, *, after: bool = False) -> Broken:
    return Broken(lambda: Adds(method, made, after=after))


def overreaches(method: str, **more: object) -> Broken:
    """Uses what an agent that offers nothing does not offer."""

    def made(message: Message) -> Message:
        return {"jsonrpc": "2.0", "id": "too-much", "method": method, "params": params(message)}

    def params(message: Message) -> Message:
        known = {"sessionId": message["params"]["sessionId"], "cwd": "/", "mcpServers": []}
        return {name: known[name] for name in more}

    return Broken(lambda: Adds("session/prompt", made, bare=True))


def to_bare(method: str, **params: object) -> Broken:
    return Broken(lambda: SaysToBare(method, with_params(**params)))


def own(message: Message) -> Message:
    """A request of its own."""
    return {"jsonrpc": "2.0", "id": "own", "method": "_antiphon/own", "params": {}}


def own_notification(message: Message) -> Message:
    """A notification of its own."""
    return {"jsonrpc": "2.0", "method": "_antiphon/own", "params": {}}


def again(**params: object) -> Made:
    """The same with another id, and with other params."""

    def made(message: Message) -> Message:
        return {**message, "id": "again", "params": {**message["params"], **params}}

    return made


def about(method: str, **params: object) -> Made:
    """A request about the session of the message."""

    def made(message: Message) -> Message:
        session = {"sessionId": message["params"]["sessionId"]}
        return {"jsonrpc": "2.0", "id": "about", "method": method, "params": {**session, **params}}

    return made


def no_version(message: Message) -> None:
    del message["jsonrpc"]


def with_error(**fields: object) -> Callable[[Message], None]:
    def change(message: Message) -> None:
        message["error"].update(fields)

    return change


def no_words(message: Message) -> None:
    del message["error"]["message"]


def selects(option: str) -> Callable[[Message], None]:
    def change(message: Message) -> None:
        message["result"] = {"outcome": {"outcome": "selected", "optionId": option}}

    return change


def wrong_result(message: Message) -> None:
    message["result"] = {"_meta": 7}


class AllowsAfterCancel(Answers):
    """Says yes to what was open when the turn was cancelled."""

    def __init__(self) -> None:
        super().__init__(permits("p-1"), selects("yes"))
        self.cancelled = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and message.get("method") == "session/cancel":
            self.cancelled = True
        if direction is Direction.C2A and not self.cancelled:
            return iter([message])
        return super().__call__(direction, message)


BLOCKS = {
    "image": {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    "resource": {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}},
}

FAULTS: Faults = {
    "wire.utf8": adds("session/prompt", lambda message: b'{"jsonrpc":"2.0","method":"_own","params":{"a":"\xff"}}'),
    "wire.json": adds("session/prompt", lambda message: b"sending a prompt"),
    "wire.no-batch": adds("session/prompt", lambda message: b'[{"jsonrpc":"2.0","method":"_own"}]'),
    "rpc.version": sends("session/prompt", no_version),
    "rpc.shape": adds("session/prompt", lambda message: {"jsonrpc": "2.0", "hello": 1}),
    "rpc.id": adds("session/prompt", lambda message: {**own(message), "id": 1.5}),
    "rpc.id-unique": adds("session/prompt", lambda message: [own(message), own(message)]),
    "rpc.answer-id": adds("session/prompt", lambda message: {"jsonrpc": "2.0", "result": {}}),
    "rpc.answer-known": adds("session/prompt", lambda message: {"jsonrpc": "2.0", "id": "nobody", "result": {}}),
    "rpc.answer-to-notification": Broken(AnswersNotification),
    "rpc.error-object": answers(asks("antiphon/unknown_method"), no_words),
    "rpc.error-code": answers(asks("_antiphon/fence", text="slow"), with_error(code=7)),
    "rpc.error-message": answers(asks("_antiphon/fence", text="slow"), with_error(message="Oh.\n  at line 1\n  at line 2")),
    "schema.params": sends("session/new", without("mcpServers")),
    "schema.result": answers(asks("fs/write_text_file", content="short"), wrong_result),
    "schema.method": adds("session/prompt", lambda message: {**own_notification(message), "method": "antiphon/own"}),
    "schema.removed": adds("session/prompt", about("session/set_model", modelId="m")),
    "schema.draft": adds("session/prompt", about("session/status")),
    "schema.unknown-field": sends("session/new", with_params(antiphonOwn=1)),
    "init.first": adds("initialize", own_notification),
    "init.once": Broken(HelloAgain),
    "init.waits": adds("initialize", own, after=True),
    "auth.offered": sends("authenticate", with_params(methodId="another")),
    "capability.load": overreaches("session/load", sessionId=True, cwd=True, mcpServers=True),
    "capability.list": overreaches("session/list"),
    "capability.resume": overreaches("session/resume", sessionId=True, cwd=True, mcpServers=True),
    "capability.close": overreaches("session/close", sessionId=True),
    "capability.delete": overreaches("session/delete", sessionId=True),
    "capability.fork": overreaches("session/fork", sessionId=True, cwd=True, mcpServers=True),
    "capability.logout": overreaches("logout"),
    "capability.image": to_bare("session/prompt", prompt=[BLOCKS["image"]]),
    "capability.audio": to_bare("session/prompt", prompt=[BLOCKS["audio"]]),
    "capability.embedded-context": to_bare("session/prompt", prompt=[BLOCKS["resource"]]),
    "capability.mcp-http": to_bare("session/new", mcpServers=[{"type": "http", "name": "a", "url": "http://localhost", "headers": []}]),
    "capability.mcp-sse": to_bare("session/new", mcpServers=[{"type": "sse", "name": "a", "url": "http://localhost", "headers": []}]),
    "capability.additional-directories": to_bare("session/new", additionalDirectories=["/"]),
    "session.id": adds("session/set_mode", again(sessionId="nobody")),
    "turn.one-at-a-time": Broken(lambda: Adds("session/prompt", again(), after=True, bare=True)),
    "prompt.not-empty": to_bare("session/prompt", prompt=[]),
    "permission.option": answers(permits("p-twins"), selects("another")),
    "cancel.permission": Broken(AllowsAfterCancel),
    "path.absolute": sends("session/list", with_params(cwd="not/absolute")),
    "mode.offered": adds("session/set_mode", again(modeId="another")),
    "config.offered": adds("session/set_config_option", again(value="another")),
}  # fmt: skip
