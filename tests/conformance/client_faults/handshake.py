"""Faults of the introduction, of signing in, of sessions and of endings."""

from collections.abc import Iterable
from typing import Any

from antiphon.conformance.suites.client.authentication import METHODS
from antiphon.conformance.suites.client.updates import SIGN_INS
from antiphon.traffic.entries import Direction
from tests.conformance.client_faults.client_faults import (
    Faults,
    Message,
    asks,
    dies,
    ends_with,
    fails_with,
    key,
    misses,
    received,
    sends,
    updates,
    with_params,
)  # fmt: skip
from tests.conformance.client_memory import HANG_UP, SHORT, Broken, Fault


def without(name: str) -> Any:
    def change(message: Message) -> None:
        del message["params"][name]

    return change


def answered(message: Any) -> dict[str, Any]:
    result = message.get("result") if isinstance(message, dict) else None
    return result if isinstance(result, dict) else {}


class Unwell(Fault):
    """Ends with a status that is not 0."""

    status = 1


class Holds(Fault):
    """Does not notice that its agent has left."""

    stays_open = True


class Leaves(Fault):
    """Leaves in place of asking something, or right after it."""

    def __init__(self, method: str, times: int = 1, *, after: bool = False) -> None:
        self.method = method
        self.times = times
        self.after = after

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and message.get("method") == self.method:
            self.times -= 1
            if not self.times:
                if self.after:
                    yield message
                yield HANG_UP
                return
        yield message


class Early(Fault):
    """Leaves when an update comes before its session has an id."""

    def __init__(self) -> None:
        self.opening: bytes | None = None

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and message.get("method") == "session/new":
            self.opening = key(message)
        elif direction is Direction.A2C and isinstance(message, dict):
            if "method" not in message and key(message) == self.opening:
                self.opening = None
            elif message.get("method") == "session/update" and self.opening is not None:
                yield HANG_UP
                return
        yield message


class Loops(Fault):
    """Asks for a session again and again when it has to sign in first."""

    def __init__(self) -> None:
        self.wanted = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C:
            self.wanted = self.wanted or answered(message).get("authMethods") == METHODS
        elif message.get("method") == "session/new" and self.wanted:
            self.wanted = False
            for number in range(4):
                yield {**message, "id": f"again-{number}"}
        yield message


class LeavesAfterSigningIn(Leaves):
    """Does not ask for its session again."""

    def __init__(self) -> None:
        super().__init__("session/new")
        self.signed_in = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        self.signed_in = self.signed_in or (direction is Direction.C2A and message.get("method") == "authenticate")
        return super().__call__(direction, message) if self.signed_in else iter([message])


def another_page(message: Message) -> None:
    if message["params"].get("cursor"):
        message["params"]["cursor"] = "2"


def version_one(message: Message) -> None:
    message["result"]["protocolVersion"] = 1


FAULTS: Faults = {
    "prompt.comes": Broken(lambda: Leaves("session/prompt")),
    "hello.version": sends("initialize", with_params(protocolVersion=0)),
    "hello.capabilities": sends("initialize", without("clientCapabilities")),
    "hello.info": sends("initialize", without("clientInfo")),
    "hello.other-version": received(lambda message: answered(message).get("protocolVersion") == 99, version_one),
    "hello.bare-agent": dies(lambda message: answered(message) == {"protocolVersion": 1}),
    "session.folder": sends("session/new", with_params(cwd="/antiphon/is/not/here")),
    "tolerates.introduction": dies(lambda message: answered(message).get("antiphonTomorrow") == "yes"),
    "tolerates.sign-ins": dies(lambda message: answered(message).get("authMethods") == SIGN_INS),
    "tolerates.session": dies(lambda message: "models" in answered(message)),
    "ends.well": Broken(Unwell),
    "ends.agent-gone": Broken(Holds, options=SHORT),
    "errors.session": misses(fails_with("there is no room")),
    "errors.session-status": ends_with(fails_with("there is no room"), 0),
    "errors.prompt": misses(fails_with("the model is not there")),
    "errors.prompt-status": ends_with(fails_with("the model is not there"), 0),
    "turn.unknown-reason": misses(lambda message: answered(message).get("stopReason") == "antiphon_tomorrow"),
    "turn.stays": dies(asks("terminal/output", terminalId="antiphon-nobody")),
    "turn.second": Broken(lambda: Leaves("session/prompt", 2)),
    "updates.early": Broken(Early),
    "updates.late": ends_with(updates(title="Later"), 1),
    "auth.no-loop": Broken(Loops),
    "auth.again": Broken(LeavesAfterSigningIn),
    "cancel.told": Broken(lambda: Leaves("session/cancel")),
    "cancel.notification": sends("session/cancel", lambda message: message.update(id="cancel-1")),
    "cancel.waits": Broken(lambda: Leaves("session/cancel", after=True)),
    "cancel.updates": dies(updates(toolCallId="late")),
    "sessions.load": Broken(lambda: Leaves("session/load", after=True)),
    "sessions.resume": Broken(lambda: Leaves("session/resume", after=True)),
    "sessions.list": ends_with(lambda message: "nextCursor" in answered(message), 1),
    "sessions.cursor": sends("session/list", another_page),
    "sessions.close": sends("session/close", with_params(sessionId="nobody")),
    "sessions.delete": sends("session/delete", with_params(sessionId="nobody")),
    "sessions.mode": sends("session/set_mode", with_params(modeId="ask")),
    "sessions.option": sends("session/set_config_option", with_params(value="short")),
}
