"""For every requirement for agents of version 2 a fault: a change on the wire, or an agent that does one thing wrong."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from antiphon.traffic.entries import Direction
from tests.conformance.faults.messages import notifies
from tests.conformance.faults.one_message import UNKNOWN_USER, asks, change_reply, leave, lose_reply, refuse, say_after
from tests.conformance.faults.wire_faults import Change
from tests.conformance.memory import Fault, Message
from tests.conformance.v2.correct_agent import CorrectAgent
from tests.conformance.v2.faulty_agents import (
    EagerKitchen,
    LateKitchen,
    OneSession,
    StoppingKitchen,
    StubbornKitchen,
    Uncancellable,
    cooks,
)

Maker = Callable[[], Fault]
FENCE = "_antiphon/fence"
PROMPT, NEW, RESUME, CLOSE = "session/prompt", "session/new", "session/resume", "session/close"


class FaultRow(NamedTuple):
    """Where a fault is at work, and what it is."""

    scenario: str
    fault: Maker | None = None
    agent: type[CorrectAgent] = CorrectAgent
    more: tuple[str, ...] = ()
    """Other scenarios that are needed to show it."""


def reply(method: str, change: Change, nth: int = 0) -> Maker:
    """Change the answers to a method: all of them, or the nth."""

    def made() -> Fault:
        seen = 0

        def change_one(message: Message) -> None:
            nonlocal seen
            seen += 1
            if nth in (0, seen):
                change(message)

        return change_reply(asks(method), change_one)()

    return made


def error(code: int, nth: int = 0, **data: Any) -> Change:
    def change(message: Message) -> None:
        message.pop("result", None)
        message["error"] = {"code": code, "message": "Not today", **({"data": data} if data else {})}

    return change


def result(value: Any) -> Change:
    def change(message: Message) -> None:
        message.pop("error", None)
        message["result"] = value

    return change


def put(*path: Any, to: Any) -> Change:
    """Set something inside of a message."""

    def change(message: Message) -> None:
        place: Any = message
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to

    return change


def take(*path: Any) -> Change:
    """Take something out of a message."""

    def change(message: Message) -> None:
        place: Any = message
        for name in path[:-1]:
            place = place[name]
        place.pop(path[-1], None)

    return change


def sent(wanted: Callable[[Message], bool], change: Change | None, nth: int = 0) -> Maker:
    """Change what the agent sends by itself, or lose it: all that is wanted, or the nth."""

    def made() -> Fault:
        seen = 0

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            nonlocal seen
            if direction is Direction.A2C and isinstance(message, dict) and "method" in message and wanted(message):
                seen += 1
                if nth in (0, seen):
                    if change is None:
                        return
                    change(message)
            yield message

        return fault

    return made


def kind(name: str, **fields: Any) -> Callable[[Message], bool]:
    """Whether a message is an update of that kind, with those fields."""

    def is_it(message: Message) -> bool:
        update = message.get("params", {}).get("update", {})
        return update.get("sessionUpdate") == name and all(update.get(key) == value for key, value in fields.items())

    return is_it


def update(name: str, change: Change | None, nth: int = 0, **fields: Any) -> Maker:
    def inside(message: Message) -> None:
        assert change is not None
        change(message["params"]["update"])

    return sent(kind(name, **fields), None if change is None else inside, nth)


def while_open(method: str, wanted: Callable[[Message], bool], change: Change | None) -> Maker:
    """Change what is sent, or lose it, while a request of that kind has no answer."""

    def made() -> Fault:
        open_ids: set[Any] = set()

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if isinstance(message, dict):
                if direction is Direction.C2A and message.get("method") == method:
                    open_ids.add(message["id"])
                elif direction is Direction.A2C and "method" not in message:
                    open_ids.discard(message.get("id"))
                elif direction is Direction.A2C and open_ids and wanted(message):
                    if change is None:
                        return
                    change(message)
            yield message

        return fault

    return made


def beside(make: Callable[[str], Any], method: str = PROMPT, *, late: bool = True) -> Maker:
    """Send something of one's own, once, after the first answer to a method, or before it."""

    def made() -> Fault:
        asked: dict[Any, str] = {}
        done = False

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            nonlocal done
            if direction is Direction.C2A and isinstance(message, dict) and message.get("method") == method:
                asked[message["id"]] = message["params"].get("sessionId", "")
            mine = direction is Direction.A2C and isinstance(message, dict) and message.get("id") in asked
            if mine and "method" not in message and not done:
                done = True
                own = make(asked[message["id"]])
                yield from [message, own] if late else [own, message]
            else:
                yield message

        return fault

    return made


def update_message(session: str, name: str, **fields: Any) -> Message:
    params = {"sessionId": session, "update": {"sessionUpdate": name, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(session: str) -> Message:
    return update_message(session, "agent_message_chunk", messageId="more", content={"type": "text", "text": "More"})


def odd(**message: Any) -> Callable[[str], Message]:
    return lambda session: {"jsonrpc": "2.0", **message}


def late_end() -> Fault:
    """The end of what was cancelled comes late, and with another reason."""
    held: list[Message] = []

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C and kind("state_update", stopReason="cancelled")(message):
            message["params"]["update"]["stopReason"] = "end_turn"
            held.append(message)
            return
        yield message
        if direction is Direction.A2C and "method" not in message:
            yield from held
            held.clear()

    return fault


def swapped() -> Fault:
    """The answer to the first prompt comes after that to the second."""
    prompts: list[Any] = []
    held: list[Message] = []

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and message.get("method") == PROMPT:
            prompts.append(message["id"])
        if direction is Direction.A2C and "method" not in message and message["id"] in prompts[:1]:
            held.append(message)
            return
        yield message
        if direction is Direction.A2C and message.get("id") in prompts[1:2]:
            yield from held
            held.clear()

    return fault


def replayed_in_pieces(message: Message) -> None:
    shown = message["params"]["update"]
    shown["sessionUpdate"], shown["content"] = "agent_message_chunk", shown["content"][0]


def doubled(message: Message) -> None:
    message["result"]["authMethods"] *= 2


def same_option(message: Message) -> None:
    for one in message["params"]["options"]:
        one["optionId"] = "yes"


def only_one(message: Message) -> None:
    if "result" in message:
        message["result"]["configOptions"] = message["result"]["configOptions"][:1]


def not_set(message: Message) -> None:
    if "result" in message:
        option = message["result"]["configOptions"][0]
        option["currentValue"] = "long" if option["currentValue"] == "short" else "short"


def _otherwise_refused(message: Message) -> None:
    if "error" in message:
        message["error"]["code"] = -32603


def prefixed(shown: Message) -> None:
    for one in shown.get("content", []):
        if one["type"] == "diff":
            one["patch"]["text"] = one["patch"]["text"].replace("+++ ", "+++ b", 1)


def in_place(name: str, to: Any) -> Change:
    def change(shown: Message) -> None:
        for one in shown.get("locations", []):
            one[name] = to

    return change


UNKNOWN_SESSION = asks(PROMPT, lambda params: params.get("sessionId") == "antiphon-no-such-session")
LATER = asks("initialize", lambda params: params.get("protocolVersion") == 99 and "name" in params.get("info", {}))
LATER_ODD = asks("initialize", lambda params: params.get("protocolVersion") == 99 and "words" in params.get("info", {}))
ZERO = asks("initialize", lambda params: params.get("protocolVersion") == 0)
NO_REPLAY = asks(RESUME, lambda params: "replayFrom" not in params)
HELLO: Message = {"protocolVersion": 2, "info": {"name": "kitchen", "version": "2"}, "capabilities": {"session": {}}}
QUESTION = {"id": "q", "method": "_x/ask", "params": {}}
FORM = {"mode": "url", "message": "?", "elicitationId": "e", "url": "https://example.com"}
TERMINAL = {"type": "terminal", "methodId": "tty", "name": "Terminal"}


def twice_asked() -> Fault:
    """Two questions with one id."""
    first = beside(odd(**QUESTION))()
    second = beside(odd(**QUESTION))()

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        for one in first(direction, message):
            yield from second(direction, one)

    return fault


RULES = {
    "rpc.answered": FaultRow("methods", lose_reply(asks("session/list"))),
    "process.stays": FaultRow("prompt", leave(asks(PROMPT))),
    "wire.utf8": FaultRow("prompt", beside(lambda session: b'"\xff"')),
    "wire.json": FaultRow("prompt", beside(lambda session: b"Thinking...")),
    "wire.no-batch": FaultRow("prompt", beside(lambda session: [{"jsonrpc": "2.0", "method": "_x"}])),
    "rpc.version": FaultRow("prompt", sent(kind("agent_message_chunk"), take("jsonrpc"))),
    "rpc.shape": FaultRow("prompt", beside(odd())),
    "rpc.id": FaultRow("prompt", beside(odd(**{**QUESTION, "id": None}))),
    "rpc.id-unique": FaultRow("prompt", twice_asked),
    "rpc.answer-id": FaultRow("prompt", beside(odd(result={}))),
    "rpc.answer-known": FaultRow("prompt", beside(odd(id="unknown", result={}))),
    "rpc.answer-to-notification": FaultRow("bare-client", beside(lambda session: UNKNOWN_USER)),
    "rpc.error-object": FaultRow("prompt", reply(FENCE, put("error", "code", to="odd"))),
    "rpc.error-code": FaultRow("prompt", reply(FENCE, put("error", "code", to=404))),
    "rpc.error-message": FaultRow("prompt", reply(FENCE, put("error", "message", to="Not\nfound"))),
    "schema.params": FaultRow("permission", sent(lambda one: "title" in one["params"], put("params", "title", to=7))),
    "schema.result": FaultRow("prompt", reply(NEW, put("result", "configOptions", to=None))),
    "schema.update": FaultRow("prompt", update("agent_message_chunk", take("messageId"))),
    "schema.method": FaultRow("prompt", beside(odd(method="x/drain", params={}))),
    "schema.removed": FaultRow(
        "prompt", beside(odd(id="q", method="fs/read_text_file", params={"sessionId": "s", "path": "/antiphon-nothing"}))
    ),
    "schema.own-words": FaultRow("tools", update("tool_call_update", put("kind", to="sing"))),
    "schema.draft": FaultRow("prompt", beside(odd(method="auth/status_update", params={"state": "unknown"}))),
    "schema.unknown-field": FaultRow("prompt", update("agent_message_chunk", put("timestamp", to=1))),
    "init.speaks-after": FaultRow("prompt", say_after(asks("initialize"), odd(method="_x/news")(""))),
    "auth.ids": FaultRow("prompt", reply("initialize", doubled)),
    "session.refused": FaultRow("session-unknown", change_reply(UNKNOWN_SESSION, result({"messageId": "m"}))),
    "session.unique": FaultRow("content", agent=OneSession, more=("prompt",)),
    "permission.options": FaultRow("permission", sent(lambda one: "options" in one["params"], same_option)),
    "config.current": FaultRow("prompt", reply(NEW, put("result", "configOptions", 0, "currentValue", to="middle"))),
    "config.complete": FaultRow("options", reply("session/set_config_option", only_one)),
    "init.version": FaultRow("version-none", change_reply(ZERO, result(HELLO))),
    "init.refused": FaultRow("version-none", change_reply(ZERO, take("error", "data"))),
    "capability.elicitation-form": FaultRow(
        "bare-client",
        beside(
            lambda session: odd(id="q", method="elicitation/create", params={
                "sessionId": session, "mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}},
            })("")
        ),
    ),
    "capability.elicitation-url": FaultRow(
        "bare-client",
        beside(lambda session: odd(id="q", method="elicitation/create", params={"sessionId": session, **FORM})("")),
    ),
    "capability.terminal-auth": FaultRow("bare-client", reply("initialize", put("result", "authMethods", to=[TERMINAL]))),
    "resume.state": FaultRow("resume-open", while_open(RESUME, kind("state_update"), None)),
    "resume.no-history": FaultRow("resume", lambda: _before_resume()),
    "resume.cleared": FaultRow("resume-open", while_open(RESUME, kind("agent_message"), replayed_in_pieces)),
    "close.ends": FaultRow("close", while_open(CLOSE, kind("state_update"), None)),
    "close.quiet": FaultRow("close", beside(chunk, CLOSE)),
    "prompt.message-id": FaultRow("prompt", lambda: _first_id()),
    "prompt.echo": FaultRow("prompt", update("user_message", None)),
    "prompt.refused": FaultRow(
        "content-unknown",
        beside(lambda session: update_message(session, "user_message_chunk", messageId="u", content={"type": "text", "text": "say"}), late=False),
    ),
    "cancel.covers": FaultRow("cancel-later", lambda: second_prompt(-32800)()),
    "state.running": FaultRow("prompt", update("state_update", None, state="running")),
    "state.stop-reason": FaultRow("prompt", update("state_update", take("stopReason"), state="idle")),
    "state.error": FaultRow("prompt", update("state_update", put("stopReason", to="error"), state="idle")),
    "cancel.stop-reason": FaultRow("cancel", late_end),
    "cancel.unasked": FaultRow("prompt", update("state_update", put("stopReason", to="cancelled"), state="idle")),
    "state.background": FaultRow("cancel-item", update("state_update", take("background"), 3)),
    "call.ends": FaultRow("tools", update("tool_call_update", put("status", to="in_progress"))),
    "call.titled": FaultRow("tools", update("tool_call_update", take("title"))),
    "terminal.reused": FaultRow("cancel-item", lambda: _reuses()),
    "diff.changes": FaultRow("tools", update("tool_call_update", prefixed)),
    "cancel.refused": FaultRow("cancel-item", reply("terminal/cancel", error(-32601))),
    "permission.choice": FaultRow("permission", sent(lambda one: "options" in one["params"], put("params", "options", to=[]))),
    "command.names": FaultRow("prompt", reply(NEW, put("result", "availableCommands", 0, "name", to="make plan"))),
    "config.values": FaultRow("prompt", reply(NEW, put("result", "configOptions", 0, "options", 1, "value", to="short"))),
    "path.absolute": FaultRow("tools", update("tool_call_update", in_place("path", "here"))),
    "path.line": FaultRow("tools", update("tool_call_update", in_place("line", 0))),
}  # fmt: skip


def _before_resume() -> Fault:
    """A message of the past comes although no history was wanted."""
    due: list[str] = []

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and NO_REPLAY(message):
            due.append(message["params"]["sessionId"])
        elif direction is Direction.A2C and due:
            yield chunk(due.pop())
        yield message

    return fault


def _first_id() -> Fault:
    """All prompts are answered with the id of the first."""
    first: list[str] = []

    def change(message: Message) -> None:
        first.append(message["result"]["messageId"])
        message["result"]["messageId"] = first[0]

    return change_reply(asks(PROMPT), change)()


def _reuses() -> Fault:
    """A terminal that has exited runs another command."""

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        yield message
        if direction is Direction.A2C and kind("terminal_update", exitStatus={"signal": "TERM"})(message):
            params = message["params"]
            yield update_message(
                params["sessionId"], "terminal_update", terminalId=params["update"]["terminalId"], command="pwd"
            )

    return fault


def second_prompt(code: int) -> Maker:
    """The second prompt is refused."""

    def made() -> Fault:
        seen = 0

        def is_second(line: Any) -> bool:
            nonlocal seen
            seen += asks(PROMPT)(line)
            return seen == 2 and asks(PROMPT)(line)

        return refuse(is_second, code)()

    return made


def reason(word: str, nth: int = 0) -> Maker:
    """Another reason why the work stopped."""
    return update("state_update", put("stopReason", to=word), nth, state="idle")


SCENARIOS = {
    "version.later": FaultRow("version-later", refuse(LATER, -32602)),
    "version.later-shape": FaultRow("version-later", refuse(LATER_ODD, -32602)),
    "version.none": FaultRow("version-none", change_reply(ZERO, error(-32602))),
    "version.none-again": FaultRow("version-none", refuse(asks("initialize", lambda params: params["protocolVersion"] == 2))),
    "init.again": FaultRow("initialize-again", reply("initialize", error(-32600), 2)),
    "init.again-failed": FaultRow("initialize-again", refuse(asks(NEW))),
    "init.early": FaultRow("initialize-first", reply(NEW, error(-32603))),
    "init.lenient": FaultRow("initialize-lenient", refuse(asks("initialize"), -32602)),
    "auth.both": FaultRow("login", refuse(asks("auth/logout"), -32601)),
    "bare.null": FaultRow("null-client", refuse(asks(PROMPT))),
    "bare.works": FaultRow("bare-client", refuse(asks(PROMPT))),
    "methods.sessions": FaultRow("methods", refuse(asks("session/list"), -32601)),
    "close.unknown": FaultRow("methods", refuse(asks(CLOSE), -32002)),
    "methods.removed": FaultRow("methods-unknown", reply("session/load", error(-32602))),
    "methods.unknown": FaultRow("methods-unknown", reply("_antiphon/unknown", error(-32603))),
    "request.cancelled": FaultRow("cancel-request", lose_reply(asks("session/list"))),
    "request.cancel-unknown": FaultRow("cancel-request", say_after(notifies("$/cancel_request"))),
    "batch.refused": FaultRow("batch", lambda: _no_error()),
    "batch.survived": FaultRow("batch", leave(lambda line: isinstance(line, list))),
    "malformed.refused": FaultRow("malformed", reply(PROMPT, error(-32603))),
    "session.mcp-unknown": FaultRow("session-servers", reply(NEW, error(-32603))),
    "session.not-found": FaultRow("session-unknown", reply(PROMPT, error(-32002))),
    "resume.replay": FaultRow("resume", while_open(RESUME, kind("user_message"), None)),
    "resume.ids": FaultRow("resume", while_open(RESUME, kind("user_message"), put("params", "update", "messageId", to="other"))),
    "resume.works": FaultRow("resume", second_prompt(-32603)),
    "resume.open": FaultRow("resume-open", refuse(asks(RESUME))),
    "resume.cursor": FaultRow("resume-cursor", reply(RESUME, error(-32603))),
    "close.cancels": FaultRow("close", reason("end_turn")),
    "close.held": FaultRow("close-held", reply(PROMPT, error(-32603), 2)),
    "close.gone": FaultRow("close", reply(PROMPT, result({"messageId": "m"}), 2)),
    "prompt.inserted": FaultRow("prompt", refuse(asks(PROMPT))),
    "turn.idle": FaultRow("prompt", update("state_update", None, state="idle")),
    "turn.reason": FaultRow("prompt", reason("refusal")),
    "turn.again": FaultRow("prompt", second_prompt(-32603)),
    "prompt.early": FaultRow("prompt-early", agent=cooks(LateKitchen)),
    "prompt.order": FaultRow("prompt-order", swapped),
    "content.baseline": FaultRow("content", refuse(asks(PROMPT))),
    "content.refused": FaultRow("content-unknown", reply(PROMPT, error(-32603))),
    "content.not-inserted": FaultRow(
        "content-unknown", beside(lambda session: update_message(session, "user_message", messageId="u", content=[]))
    ),
    "cancel.confirmed": FaultRow("cancel", update("state_update", None, state="idle")),
    "cancel.last": FaultRow("cancel", lambda: _after_idle()),
    "cancel.next": FaultRow("cancel", reason("refusal", 2)),
    "cancel.nothing": FaultRow("cancel-idle", reason("refusal")),
    "cancel.later": FaultRow("cancel-later", second_prompt(-32800)),
    "cancel.held": FaultRow("cancel-held", lose_reply(lambda line: asks(PROMPT)(line) and "say" in str(line))),
    "cancel.asking": FaultRow("cancel-asking", agent=cooks(StubbornKitchen)),
    "cancel.asking-request": FaultRow("cancel-asking", sent(lambda one: one["method"] == "$/cancel_request", None)),
    "cancel.background": FaultRow("cancel-background", agent=cooks(StoppingKitchen)),
    "cancel.asking-next": FaultRow("cancel-asking", reason("refusal", 2)),
    "permission.state": FaultRow("permission", lambda: _idle_while_asking()),
    "permission.goes-on": FaultRow("permission", lambda: _silent_after_answer()),
    "permission.unknown": FaultRow("permission-unknown", agent=cooks(EagerKitchen)),
    "form.unknown": FaultRow("form", update("state_update", None, state="idle")),
    "options.set": FaultRow("options", reply("session/set_config_option", not_set)),
    "options.unchanged": FaultRow("options", reply(RESUME, put("result", "configOptions", 0, "currentValue", to="long"))),
    "options.refused": FaultRow("options", reply("session/set_config_option", _otherwise_refused)),
    "tools.reported": FaultRow("tools", update("tool_call_update", None)),
    "item.ends": FaultRow("cancel-item", agent=Uncancellable),
}  # fmt: skip


def _no_error() -> Fault:
    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A or message.get("id", 0) is not None:
            yield message

    return fault


def _after_idle() -> Fault:
    """Something comes after the end of work that was cancelled."""

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        yield message
        if direction is Direction.A2C and kind("state_update", stopReason="cancelled")(message):
            yield chunk(message["params"]["sessionId"])

    return fault


def _idle_while_asking() -> Fault:
    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        yield message
        if direction is Direction.A2C and message.get("method") == "session/request_permission":
            yield update_message(message["params"]["sessionId"], "state_update", state="idle", stopReason="end_turn")

    return fault


def _silent_after_answer() -> Fault:
    answered = False

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        nonlocal answered
        answered = answered or (direction is Direction.C2A and "outcome" in str(message.get("result")))
        if not (answered and direction is Direction.A2C and kind("state_update")(message)):
            yield message

    return fault


FAULTS = {**RULES, **SCENARIOS}
