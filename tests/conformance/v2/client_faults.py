"""For every requirement for clients of version 2 a fault: a change on the wire between the check and a correct client."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from antiphon.traffic.entries import Direction
from tests.conformance.client_faults import messages as messages_v1
from tests.conformance.client_faults import rules as rules_v1
from tests.conformance.client_faults.client_faults import (
    Answers,
    Faults,
    Message,
    Wanted,
    answers,
    as_error,
    as_result,
    asks,
    dies,
    ends_with,
    fails_with,
    keeps_silent,
    key,
    misses,
    received,
    sends,
    updates,
    with_params,
    with_result,
)  # fmt: skip
from tests.conformance.client_faults.handshake import FAULTS as HANDSHAKE_V1
from tests.conformance.client_faults.handshake import Holds, Leaves, answered, without
from tests.conformance.client_faults.messages import allows, has_no_id, id_is, is_stray, message_begins
from tests.conformance.client_faults.rules import BLOCKS, about, adds, again, selects
from tests.conformance.client_memory import HANG_UP, SHORT, Broken, Fault
from tests.conformance.v2.correct_client import INFO

BARE: Message = {"session": {}}
PROMPT = "session/prompt"


def has(name: str, value: object) -> Wanted:
    """A response of the agent with this in its result."""
    return lambda message: answered(message).get(name) == value


def permits(call: str) -> Wanted:
    """A permission request for this tool call."""
    return lambda message: asks("session/request_permission")(message) and _subject(message).get("toolCallId") == call


def _subject(message: Message) -> Message:
    subject = message["params"].get("subject") or {}
    return subject.get("toolCall") or {}


def permission(**fields: object) -> Wanted:
    return lambda message: asks("session/request_permission", **fields)(message)


def subject(kind: str) -> Wanted:
    def wanted(message: Message) -> bool:
        asked = asks("session/request_permission")(message)
        return asked and (message["params"].get("subject") or {}).get("type") == kind

    return wanted


def state(name: str, **fields: object) -> Wanted:
    return updates(sessionUpdate="state_update", state=name, **fields)


class Watches(Fault):
    """Knows the states of a session, and which of its prompts are open, were answered or echoed."""

    def __init__(self) -> None:
        self.opening: set[bytes] = set()
        self.resumed = False
        self.states: list[str] = []
        self.early = False
        """Whether it was running before its id was known, and was not idle since."""
        self.open: dict[bytes, str] = {}
        self.echoes = 0
        self.ended = False
        """Whether it was idle since the last message of the user."""
        self.inserted = 0

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if not isinstance(message, dict):
            yield message
        elif direction is Direction.C2A:
            if message.get("method") == "session/new":
                self.opening.add(key(message))
            self.resumed = self.resumed or message.get("method") == "session/resume"
            if message.get("method") == PROMPT:
                self.open[key(message)] = ""
            yield from self.replacements(message)
        else:
            wrong = self.sees(message)
            self._note(message)
            if wrong is None:
                yield message
            elif wrong:
                yield HANG_UP

    def _note(self, message: Message) -> None:
        if "method" not in message and key(message) in self.opening:
            self.opening.discard(key(message))
        elif "method" not in message and key(message) in self.open:
            del self.open[key(message)]
            self.inserted += 1
        elif updates(sessionUpdate="user_message")(message):
            self.echoes += 1
            self.ended = False
        elif updates(sessionUpdate="state_update")(message):
            now = message["params"]["update"]["state"]
            self.states.append(now)
            self.ended = self.ended or now == "idle"
            self.early = now != "idle" and (self.early or bool(self.opening))

    def is_answer(self, message: Message) -> bool:
        return "method" not in message and key(message) in self.open

    def replacements(self, message: Message) -> Iterable[Any]:
        """What the client sends in place of a message."""
        yield message

    def sees(self, message: Message) -> bool | None:
        """What becomes of a message of the agent: the client leaves (True), never receives it (False), or receives it (None)."""
        return None


def watches(wanted: Callable[[Watches, Message], bool], *, leaves: bool = True) -> Broken:
    class Made(Watches):
        def sees(self, message: Message) -> bool | None:
            return leaves if wanted(self, message) else None

    return Broken(Made) if leaves else Broken(Made, options=SHORT)


class CancelsRequests(Watches):
    """Cancels a prompt that is not answered at once."""

    def replacements(self, message: Message) -> Iterable[Any]:
        yield message
        if (
            message.get("method") == PROMPT
            and len(self.open) == 1
            and self.inserted
            and self.states[-1:] == ["running"]
        ):
            params = {"requestId": message["id"]}
            yield {"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}


class BareAgent(Fault):
    """Is wrong only towards an agent that offers sessions and nothing else."""

    def __init__(self, method: str, change: Callable[[Message], Iterable[Any]], offered: Message = BARE) -> None:
        self.method = method
        self.change = change
        self.offered = offered
        self.bare = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C:
            self.bare = self.bare or answered(message).get("capabilities") == self.offered
        elif self.bare and message.get("method") == self.method:
            yield from self.change(message)
            return
        yield message


def to_bare(method: str, **params: object) -> Broken:
    def changed(message: Message) -> Iterable[Any]:
        message["params"].update(params)
        yield message

    return Broken(lambda: BareAgent(method, changed))


def overreaches(method: str) -> Broken:
    def more(message: Message) -> Iterable[Any]:
        yield message
        yield about(method)(message)

    return Broken(lambda: BareAgent(PROMPT, more))


class UsesSessions(Fault):
    """Lists the sessions of an agent that has none."""

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C and answered(message).get("capabilities") == {}:
            message["result"]["capabilities"] = BARE
        yield message


class ListsNothing(Fault):
    """Lists the sessions of an agent that has none, in place of leaving."""

    def __init__(self) -> None:
        self.none = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C and answered(message).get("capabilities") == {}:
            message["result"]["capabilities"] = BARE
            self.none = True
        elif direction is Direction.C2A and self.none and message.get("method") == "session/new":
            message["method"], message["params"] = "session/list", {}
        yield message


class Resumes(Leaves):
    """Leaves when it has asked for an earlier session, with its history or without."""

    def __init__(self, *, history: bool) -> None:
        super().__init__("session/resume", after=True)
        self.history = history

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        mine = isinstance(message, dict) and ("replayFrom" in (message.get("params") or {})) is self.history
        return super().__call__(direction, message) if mine else iter([message])


class AllowsAfterCancel(Answers):
    """Says yes to what was open when the work was cancelled."""

    def __init__(self) -> None:
        super().__init__(permits("p-1"), selects("yes"))
        self.cancelled = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and message.get("method") == "session/cancel":
            self.cancelled = True
        if direction is Direction.C2A and not self.cancelled:
            return iter([message])
        return super().__call__(direction, message)


class Loops(Fault):
    """Asks for a session again and again when it has to log in first."""

    def __init__(self) -> None:
        self.wanted = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C:
            self.wanted = self.wanted or bool(answered(message).get("authMethods", [])[1:])
        elif message.get("method") == "session/new" and self.wanted:
            self.wanted = False
            for number in range(4):
                yield {**message, "id": f"again-{number}"}
        yield message


class LeavesAfterLogin(Leaves):
    """Does not ask for its session again."""

    def __init__(self) -> None:
        super().__init__("session/new")
        self.logged_in = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        self.logged_in = self.logged_in or (direction is Direction.C2A and message.get("method") == "auth/login")
        return super().__call__(direction, message) if self.logged_in else iter([message])


class NoBatchError(Fault):
    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C or message.get("id", 0) is not None:
            yield message


def hello_again(message: Message) -> Message:
    params = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
    return {"jsonrpc": "2.0", "id": "hello-again", "method": "initialize", "params": params}


def version_two(message: Message) -> None:
    message["result"]["protocolVersion"] = 2


def accepts_refusal(message: Message) -> None:
    del message["error"]
    message["result"] = {"protocolVersion": 2, "info": INFO, "capabilities": BARE}


def no_more(message: Message) -> None:
    message["result"]["nextCursor"] = None


def another_page(message: Message) -> None:
    if message["params"].get("cursor"):
        message["params"]["cursor"] = "2"


def first_of(kind: str, **fields: object) -> Wanted:
    return updates(sessionUpdate=kind, **fields)


HELLO: Faults = {
    "prompt.comes": Broken(lambda: Leaves(PROMPT)),
    "hello.capabilities": sends("initialize", without("capabilities")),
    "session.folder": HANDSHAKE_V1["session.folder"],
    "ends.well": HANDSHAKE_V1["ends.well"],
    "hello.other-version": received(has("protocolVersion", 99), version_two),
    "hello.refused": received(fails_with("no such version"), accepts_refusal),
    "hello.no-sessions": Broken(UsesSessions),
    "hello.bare-agent": dies(has("capabilities", BARE)),
    "hello.null-markers": dies(lambda message: answered(message).get("capabilities", {}).get("auth", 0) is None),
    "tolerates.introduction": dies(has("antiphonTomorrow", "yes")),
    "tolerates.session": dies(has("antiphonTomorrow", [{}])),
    "tolerates.malformed": dies(has("authMethods", "none")),
    "auth.no-loop": Broken(Loops),
    "auth.again": Broken(LeavesAfterLogin),
    "errors.session": HANDSHAKE_V1["errors.session"],
    "errors.session-status": HANDSHAKE_V1["errors.session-status"],
    "ends.agent-gone": Broken(Holds, options=replace(SHORT, limit=3.0)),  # played with all scenarios at once
}

TURNS: Faults = {
    "turn.answer": watches(lambda seen, message: seen.is_answer(message) and "result" in message),
    "state.requires-action": dies(state("requires_action")),
    "state.repeated": watches(lambda seen, message: state("running")(message) and seen.states[-2:] == ["running", "running"]),
    "state.unknown": dies(state("_antiphon_waiting")),
    "state.background": dies(lambda message: state("running")(message) and bool(message["params"]["update"].get("background"))),
    "state.early": watches(lambda seen, message: seen.early and seen.is_answer(message)),
    "turn.idle-of-others": watches(
        lambda seen, message: state("idle")(message) and bool(seen.open) and not seen.echoes and not seen.resumed
    ),
    "turn.answer-last": watches(lambda seen, message: seen.is_answer(message) and bool(seen.echoes) and seen.ended, leaves=False),
    "turn.no-reason": watches(lambda seen, message: state("idle")(message) and "stopReason" not in message["params"]["update"]
                              and seen.states[-1:] == ["running"], leaves=False),
    "turn.unknown-reason": misses(state("idle", stopReason="_antiphon_tomorrow")),
    "errors.turn": misses(state("idle", error={"code": -32603, "message": "the model is not there"})),
    "errors.turn-status": ends_with(state("idle", error={"code": -32603, "message": "the model is not there"}), 0),
    "errors.prompt": misses(fails_with("this cannot be taken")),
    "errors.prompt-status": ends_with(fails_with("this cannot be taken"), 0),
    "turn.second": Broken(lambda: Leaves(PROMPT, 2)),
    "prompt.held": Broken(CancelsRequests),
    "prompt.held-end": watches(lambda seen, message: state("idle")(message) and bool(seen.open) and bool(seen.inserted)),
    "turn.stays": dies(asks("elicitation/create", message="Which?")),
    "requests.answered": keeps_silent(asks("elicitation/create", message="Which?")),
}  # fmt: skip

UPDATES: Faults = {
    "updates.messages": dies(messages_v1.shows("audio")),
    "updates.interleaved": dies(first_of("agent_thought_chunk", messageId="i-1")),
    "updates.upserts": dies(first_of("agent_thought", messageId="r-2")),
    "updates.tool-calls": dies(first_of("tool_call_update", toolCallId="c-2")),
    "updates.call-content": dies(first_of("tool_call_content_chunk")),
    "updates.diffs": dies(first_of("tool_call_update", toolCallId="d-1")),
    "updates.terminals": dies(first_of("terminal_output_chunk")),
    "updates.plan": dies(lambda message: first_of("plan_update")(message) and message["params"]["update"]["plan"]["planId"] == "p-2"),
    "updates.commands": dies(first_of("available_commands_update")),
    "updates.session": dies(first_of("session_info_update", title=None)),
    "updates.notices": dies(first_of("notice")),
    "updates.compaction": dies(first_of("compaction_update")),
    "updates.early": dies(updates(messageId="early")),
    "updates.unknown-kind": dies(first_of("antiphon_tomorrow")),
    "updates.unknown-content": dies(messages_v1.shows("_antiphon_hologram")),
    "updates.unknown-words": dies(updates(kind="_antiphon_sing")),
    "updates.more-fields": dies(updates(timestamp=5)),
    "updates.malformed": dies(updates(toolCallId="b-1")),
    "updates.unknown-terminal": dies(updates(toolCallId="u-1")),
    "updates.other-session": dies(asks("session/update", sessionId="antiphon-somebody-else")),
    "updates.late": ends_with(updates(title="Later"), 1),
    **{id: messages_v1.FAULTS[id] for id in ("lines.pieces", "lines.together", "lines.unicode", "noise.lines", "noise.objects")},
    "lines.burst": dies(message_begins("999 ")),
    "lines.large": dies(message_begins("large ")),
    "lines.huge": dies(message_begins("huge ")),
    "noise.stray": dies(is_stray),
    "noise.no-id": dies(has_no_id),
}  # fmt: skip

QUESTIONS: Faults = {
    "permission.outcome": answers(permits("p-1"), as_error),
    "permission.unannounced": answers(permits("p-unannounced"), as_error),
    "permission.command": answers(subject("command"), as_error),
    "permission.no-subject": answers(permission(title="Go on?"), as_error),
    "permission.unknown-subject": answers(subject("_antiphon_dance"), as_error),
    "permission.same-kind": answers(permits("p-twins"), as_error),
    "permission.unknown-kind": answers(permits("p-strange"), as_error),
    "permission.many": answers(permits("p-many-2"), as_error),
    "permission.malformed": answers(permission(subject={"type": "tool_call"}), as_result({"outcome": {"outcome": "cancelled"}})),
    "permission.refuses": answers(permits("p-1"), allows),
    "permission.cancelled": keeps_silent(permission(title="Never mind?")),
    "cancel.told": Broken(lambda: Leaves("session/cancel")),
    "cancel.notification": sends("session/cancel", lambda message: message.update(id="cancel-1")),
    "cancel.waits": Broken(lambda: Leaves("session/cancel", after=True)),
    "cancel.updates": dies(updates(toolCallId="late")),
    "cancel.one-call": sends("tool_call/cancel", with_params(toolCallId="fixed")),
    "cancel.one-call-goes-on": dies(updates(toolCallId="loose", status="cancelled")),
    "elicitation.form": answers(asks("elicitation/create", message="Who?"), with_result(action="accept", content={})),
    "elicitation.unknown-field": answers(asks("elicitation/create", message="Which?"), with_result(action="_perhaps")),
    "elicitation.url": answers(asks("elicitation/create", mode="url"), as_error),
    "elicitation.unknown-mode": answers(asks("elicitation/create", mode="_antiphon_sing"), as_result({"action": "accept"})),
    "requests.ids": keeps_silent(id_is(0)),
    "requests.unknown": answers(asks("antiphon/unknown_method"), as_error),
    "requests.extension": keeps_silent(asks("_antiphon.example/own_method")),
    "requests.removed": answers(asks("fs/read_text_file"), as_error),
    "requests.notification": dies(asks("antiphon/unknown_notice")),
    "requests.invalid": answers(permission(sessionId=7), as_result({"outcome": {"outcome": "cancelled"}})),
    "requests.many": keeps_silent(asks("_antiphon/fence", text="burst 49")),
    "requests.cancelled": keeps_silent(asks("_antiphon/fence", text="slow")),
    "requests.cancel-unknown": dies(asks("$/cancel_request", requestId="antiphon-no-such-request")),
    "batch.refused": Broken(NoBatchError),
    "batch.survived": dies(lambda message: isinstance(message, list)),
}  # fmt: skip

SESSIONS: Faults = {
    "sessions.load": Broken(lambda: Resumes(history=True)),
    "sessions.resume": Broken(lambda: Resumes(history=False)),
    "resume.old-reason": ends_with(state("idle", stopReason="error", error={"code": -32603, "message": "it failed yesterday"}), 1),
    "resume.running": watches(lambda seen, message: state("idle")(message) and bool(seen.open) and seen.resumed and not seen.echoes),
    "sessions.list": ends_with(lambda message: "nextCursor" in answered(message), 1),
    "sessions.cursor": sends("session/list", another_page),
    "sessions.empty-cursor": received(has("nextCursor", ""), no_more),
    "sessions.close": sends("session/close", with_params(sessionId="nobody")),
    "sessions.close-unknown": ends_with(fails_with("there is no such session"), 1),
    "sessions.delete": sends("session/delete", with_params(sessionId="nobody")),
    "sessions.option": sends("session/set_config_option", with_params(value="short")),
}  # fmt: skip

SAME_RULES = (
    "wire.utf8", "wire.json", "wire.no-batch", "rpc.version", "rpc.shape", "rpc.id", "rpc.id-unique", "rpc.answer-id",
    "rpc.answer-known", "rpc.answer-to-notification", "rpc.error-object", "rpc.error-code", "rpc.error-message",
    "schema.method", "schema.draft", "schema.unknown-field", "init.first", "init.waits", "config.offered", "path.absolute",
)  # fmt: skip
"""Rules of both versions, which a client breaks in the same way."""

STDIO: Message = {"type": "stdio", "name": "a", "command": "/bin/true"}
HTTP: Message = {"type": "http", "name": "a", "url": "http://localhost"}

RULES: Faults = {
    **{id: rules_v1.FAULTS[id] for id in SAME_RULES},
    "schema.params": sends("initialize", without("info")),
    "schema.result": answers(asks("elicitation/create", message="Which?"), with_result(_meta=7)),
    "schema.removed": adds(PROMPT, about("session/set_mode", modeId="m")),
    "schema.own-words": sends(PROMPT, with_params(prompt=[{"type": "text", "text": "hello"}, {"type": "song", "tune": "a"}])),
    "init.once": adds(PROMPT, hello_again),
    "auth.offered": sends("auth/login", with_params(methodId="antiphon-terminal")),
    "permission.option": answers(permits("p-twins"), selects("another")),
    "capability.sessions": Broken(ListsNothing, options=SHORT),
    "capability.delete": overreaches("session/delete"),
    "capability.image": to_bare(PROMPT, prompt=[BLOCKS["image"]]),
    "capability.audio": to_bare(PROMPT, prompt=[BLOCKS["audio"]]),
    "capability.embedded-context": to_bare(PROMPT, prompt=[BLOCKS["resource"]]),
    "capability.mcp-stdio": to_bare("session/new", mcpServers=[STDIO]),
    "capability.mcp-http": to_bare("session/new", mcpServers=[HTTP]),
    "capability.additional-directories": to_bare("session/new", additionalDirectories=["/"]),
    "session.id": adds("session/set_config_option", again(sessionId="nobody")),
    "prompt.not-empty": to_bare(PROMPT, prompt=[]),
    "cancel.offered": adds("tool_call/cancel", again(toolCallId="fixed"), after=True),
    "cancel.permission": Broken(AllowsAfterCancel),
}  # fmt: skip

FAULTS: Faults = {**HELLO, **TURNS, **UPDATES, **QUESTIONS, **SESSIONS, **RULES}
