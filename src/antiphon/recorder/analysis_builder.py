"""Build the analysis of a recording message by message. Pure, and incremental: the analysis is right after every message.

Trusts nothing: recordings come from other tools too, hold several connections, end in the middle of a line, and are of peers that
do everything wrong.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from antiphon.recorder.analysis import (
    Analysis,
    MethodCount,
    PeerInfo,
    RecordedCall,
    RecordedConversation,
    RecordedDeviation,
    RecordedFailure,
    RecordedMessage,
    RecordedRequest,
    RecordedSession,
    RecordedTurn,
    RecordedWait,
    SlowSpan,
)
from antiphon.recorder.labels import (
    answer_label,
    clip,
    content_text,
    error_text,
    request_label,
    update_label,
)
from antiphon.traffic.checker import ALL_VERSIONS, Level, TrafficChecker, rules
from antiphon.traffic.entries import Direction, Entry, JsonObject, RecordingReader, as_object, as_text, entries_of
from antiphon.traffic.state import Pairs

__all__ = ["SLOW", "AnalysisBuilder", "TurnTracker", "analyse", "lasted"]

# --- turns: their tool calls, waits and silences

ENDED: Final = ("completed", "failed", "cancelled")
ECHOES: Final = ("user_message", "user_message_chunk", "state_update")
"""Updates that repeat what the client knows: with them the agent has not begun to answer."""

QUESTIONS: Final = {"session/request_permission": "permission", "elicitation/create": "elicitation"}
PROMPT: Final = 200
"""Letters that are kept of a prompt."""


def lasted(start: float, end: float) -> float:
    """Seconds between two times, as exact as recordings are. Clocks that go backwards give nothing."""
    return max(round(end - start, 6), 0.0)


@dataclass(slots=True)
class _Open:
    """A turn that goes on."""

    turn: RecordedTurn
    last: float
    asking: int = 0
    """Requests of the agent that are open: while there is one, a silence is not the agent's."""
    waits: int = 0
    waiting_since: float = 0.0
    chunked: set[str] = field(default_factory=set)
    message_id: str | None = None
    """The id of its prompt's message, in version 2: once it has one, it is inserted, and the next `idle` ends it."""


class TurnTracker:
    """The turns of one conversation; written into the analysis."""

    def __init__(self, analysis: Analysis, slow: float) -> None:
        self._analysis = analysis
        self._slow = slow
        self._open: dict[str, list[_Open]] = {}
        self._calls: dict[tuple[str, str], RecordedCall] = {}

    def number(self, session: str | None) -> int | None:
        """The turn that goes on in a session."""
        going = self._open.get(session) if session is not None else None
        return going[0].turn.number if going else None

    def begin(self, session: str, prompt: object, message: int, t: float) -> RecordedTurn:
        """A prompt was sent."""
        turn = RecordedTurn(len(self._analysis.turns) + 1, session, clip(content_text(prompt), PROMPT), message, t)
        self._analysis.turns.append(turn)
        self._open.setdefault(session, []).append(_Open(turn, t))
        return turn

    def insert(self, turn: RecordedTurn, message_id: str) -> None:
        """A prompt was inserted, by its answer in version 2."""
        going = self._open.get(turn.session, [])
        own = next((one for one in going if one.turn is turn), None)
        if own is not None:
            for one in going:
                if one is not own and one.message_id == message_id:  # its echo was taken for that of another prompt
                    one.message_id = own.message_id
            own.message_id = message_id

    def _echo(self, going: list[_Open], message_id: str | None) -> None:
        """A message of the user came before the answer to its prompt."""
        if message_id is not None and all(one.message_id != message_id for one in going):
            waiting = next((one for one in going if one.message_id is None), None)
            if waiting is not None:
                waiting.message_id = message_id

    def end(self, turn: RecordedTurn, t: float, stop_reason: str | None, error: str | None = None) -> None:
        """A turn has ended."""
        going = self._open.get(turn.session, [])
        for one in [one for one in going if one.turn is turn]:
            going.remove(one)
            if one.waits:  # no response came, and none has to any more
                turn.waited = round(turn.waited + lasted(one.waiting_since, t), 6)
        turn.end, turn.duration = t, lasted(turn.start, t)
        turn.stop_reason, turn.error = stop_reason, error

    def pass_time(self, session: str | None, name: str, message: int, t: float) -> None:
        """Something was sent in a session: note a long silence before it."""
        for one in self._open.get(session, ()) if session is not None else ():
            if one.asking == 0 and t - one.last >= self._slow:
                self._analysis.slow.append(SlowSpan(message, f"silence before {name}", lasted(one.last, t)))
            one.last = t

    def pass_time_quietly(self, session: str | None, t: float) -> None:
        """The client has responded: the time before it was not the agent's."""
        for one in self._open.get(session, ()) if session is not None else ():
            one.last = t

    def asked(self, session: str | None, more: int) -> None:
        """The agent has sent a request to the client (1), or got its response (-1)."""
        for one in self._open.get(session, ()) if session is not None else ():
            one.asking = max(one.asking + more, 0)

    # Updates.

    def update(self, session: str, update: JsonObject, message: int, t: float) -> RecordedCall | None:
        """Add an update of a session; returns the call that it is about."""
        kind = update.get("sessionUpdate")
        going = self._open.get(session)
        if going:
            turn = going[0].turn
            turn.updates += 1
            if turn.first_update is None and kind not in ECHOES:
                turn.first_update = lasted(turn.start, t)
            if kind in ("agent_message_chunk", "agent_message"):
                _count_text(going[0], update)
            elif kind in ("user_message", "user_message_chunk"):
                self._echo(going, as_text(update.get("messageId")))
            elif kind == "state_update" and update.get("state") == "idle":
                failure = update.get("error")
                for one in [one for one in going if one.message_id is not None]:
                    self.end(one.turn, t, as_text(update.get("stopReason")), error_text(failure) if failure else None)
        return self.call(session, update, message, t) if kind in ("tool_call", "tool_call_update") else None

    def call(self, session: str, call_update: JsonObject, message: int, t: float) -> RecordedCall | None:
        """Something about a tool call: updates, announcements and requests may each be the first to name it."""
        id = as_text(call_update.get("toolCallId"))
        if id is None:
            return None
        turn = self.number(session)
        call = self._calls.get((session, id))
        if call is not None and call.end is not None and turn != call.turn:
            if turn is None:  # a session that is replayed when it is loaded
                return call
            call = (
                call if call_update.get("sessionUpdate") == "tool_call_update" else None
            )  # ids are used again in later turns
        if call is None:
            call = self._calls[session, id] = RecordedCall(id, session, turn, message, t)
            self._analysis.calls.append(call)
            if turn is not None:
                self._analysis.turns[turn - 1].calls += 1
        title, kind, status = (
            as_text(call_update.get("title")),
            as_text(call_update.get("kind")),
            as_text(call_update.get("status")),
        )
        call.title = clip(title) if title else call.title
        call.kind = kind or call.kind
        call.status = status or call.status
        if status in ENDED and call.end is None:
            call.end, call.duration = t, lasted(call.start, t)
        return call

    # Requests.

    def ask(self, method: str, session: str | None, params: JsonObject, message: int, t: float) -> RecordedWait:
        """The user is asked."""
        call_update = as_object(params.get("toolCall") or as_object(params.get("subject")).get("toolCall"))
        call = self.call(session, call_update, message, t) if session is not None else None
        title = as_text(params.get("title")) or as_text(call_update.get("title")) or as_text(params.get("message"))
        wait = RecordedWait(message, session, self.number(session), QUESTIONS[method], t)
        wait.call = call.id if call else None
        wait.title = clip(title) if title else call.title if call else None
        self._analysis.waits.append(wait)
        for one in self._open.get(session, ())[:1] if session is not None else ():
            one.waiting_since = one.waiting_since if one.waits else t
            one.waits += 1
        return wait

    def answer(self, wait: RecordedWait, message: int, t: float, outcome: str) -> None:
        """The user has answered."""
        wait.answer, wait.end, wait.duration, wait.outcome = message, t, lasted(wait.start, t), outcome
        if wait.duration >= self._slow:
            self._analysis.slow.append(SlowSpan(message, f"{wait.kind}: {wait.title or '?'}", wait.duration))
        for one in self._open.get(wait.session, ()) if wait.session is not None else ():
            if one.turn.number == wait.turn and one.waits:
                one.waits -= 1
                if not one.waits:
                    one.turn.waited = round(one.turn.waited + lasted(one.waiting_since, t), 6)


def _count_text(one: _Open, update: JsonObject) -> None:
    """Count characters. A whole message that came in pieces before is not counted twice."""
    id = as_text(update.get("messageId"))
    content = update.get("content")
    if update.get("sessionUpdate") == "agent_message_chunk":
        if id is not None:
            one.chunked.add(id)
    elif id in one.chunked:
        return
    for block in content if isinstance(content, list) else (content,):
        if isinstance(block, dict) and isinstance(text := block.get("text"), str):
            one.turn.text += len(text)


SLOW: Final = 1.0
"""Seconds from which on a silence, a response or a wait counts as slow."""

SLOWEST: Final = 20
"""How many of the slow ones are listed."""

TIME_OF_DAY: Final = 1e8
"""A clock with a larger value counts from 1970 and not from the start of the recording."""

OPENING: Final = {"session/new": "new", "session/load": "load", "session/resume": "resume", "session/fork": "fork"}


@dataclass(slots=True)
class _OpenRequest:
    """A request, and what it means to the analysis."""

    request: RecordedRequest
    session: str | None
    turn: RecordedTurn | None = None
    wait: RecordedWait | None = None
    kinds: dict[str, str] | None = None
    """The kinds of a permission request's options, by their ids."""


class AnalysisBuilder:
    """Fed with every entry of a recording."""

    def __init__(self, file: str = "", *, judged: bool = True, slow: float = SLOW) -> None:
        self._analysis = Analysis(file)
        self._judging = judged
        self._slow = slow
        self._methods: dict[tuple[str, str, str], MethodCount] = {}
        self._begin: float | None = None
        self._last = 0.0
        self._noise = 0
        self._start(0)

    def _start(self, message: int) -> None:
        """A conversation begins: its ids, sessions and rules are its own."""
        self._conversation = RecordedConversation(message, judged=self._judging)
        self._pairs = Pairs()
        self._checker = TrafficChecker() if self._judging else None
        self._turns = TurnTracker(self._analysis, self._slow)
        self._open_requests: dict[int, _OpenRequest] = {}
        self._sessions: dict[str, RecordedSession] = {}
        self._initialize: _OpenRequest | None = None
        self._early: list[RecordedMessage] = []

    def add(self, entry: Entry) -> RecordedMessage:
        """Take note of the next message; how it is shown."""
        if self._begin is None:
            self._begin = entry.t if entry.t > TIME_OF_DAY else 0.0
            self._last = entry.t - self._begin
        t = round(entry.t - self._begin, 6)
        self._analysis.duration += max(t - self._last, 0.0)
        self._last = t
        shown = RecordedMessage(entry.number, entry.line, t, entry.dir.value, "noise", "", "", len(entry.raw))
        msg = entry.msg
        if entry.is_noise:
            self._noise += 1
            shown.name, shown.label = "no JSON", clip(entry.raw[:400].decode("utf-8", "replace"))
        elif type(msg) is not dict:
            shown.kind, shown.name = "batch" if type(msg) is list else "other", "batch" if type(msg) is list else "?"
            shown.label = clip(entry.raw[:400].decode("utf-8", "replace"))
        else:
            self._add_object(shown, entry, msg)
        if not self._analysis.conversations:
            self._begin_conversation(entry.number)
        self._measure(shown, entry)
        if self._checker is not None:
            self._check(self._checker, shown, entry)
        return shown

    def _begin_conversation(self, message: int) -> None:
        self._conversation.message = self._conversation.message or message
        self._analysis.conversations.append(self._conversation)

    def _add_object(self, shown: RecordedMessage, entry: Entry, msg: JsonObject) -> None:
        method = msg.get("method")
        if "id" in msg:
            shown.id = clip(msgspec.json.encode(msg["id"]).decode(), 40)
        if not isinstance(method, str):
            if entry.is_response:
                self._add_response(shown, entry, msg)
            else:
                shown.kind, shown.name = "other", "?"
                shown.label = clip(entry.raw[:400].decode("utf-8", "replace"))
            return
        params = as_object(msg.get("params"))
        shown.name, shown.session = method, as_text(params.get("sessionId"))
        if "id" in msg:
            shown.kind = "request"
            self._add_request(shown, entry, params)
        else:
            shown.kind = "notification"
            shown.turn = self._turns.number(shown.session)
            if method == "session/update" and entry.dir is Direction.A2C:
                self._add_update(shown, as_object(params.get("update")))
            else:
                self._turns.pass_time(shown.session, method, shown.message, shown.t)
                shown.label = request_label(method, params)

    # Requests.

    def _add_request(self, shown: RecordedMessage, entry: Entry, params: JsonObject) -> None:
        from_client = entry.dir is Direction.C2A
        if shown.name == "initialize" and from_client:
            self._meet(shown, params)
        self._pairs.add(entry)
        request = RecordedRequest(shown.message, shown.name, shown.dir, shown.t)
        self._analysis.requests.append(request)
        opened = self._open_requests[shown.message] = _OpenRequest(request, shown.session)
        if shown.name == "initialize" and from_client:
            self._initialize = opened
        shown.label = request_label(shown.name, params)
        session = shown.session
        if session is not None and from_client and shown.name == "session/prompt":
            opened.turn = self._turns.begin(session, params.get("prompt"), shown.message, shown.t)
            shown.turn = opened.turn.number
            return
        self._turns.pass_time(session, shown.name, shown.message, shown.t)
        shown.turn = self._turns.number(session)
        if not from_client:
            if shown.name in QUESTIONS:
                opened.wait = self._turns.ask(shown.name, session, params, shown.message, shown.t)
                opened.kinds = _kinds(params.get("options"))
                shown.label = opened.wait.title or shown.label
            self._turns.asked(session, 1)

    def _meet(self, shown: RecordedMessage, params: JsonObject) -> None:
        """The client sends `initialize`. A second time it is another conversation, unless it was refused before."""
        if self._initialize is not None and self._initialize.request.error is None:
            self._start(shown.message)
            self._begin_conversation(shown.message)
        self._conversation.client = _peer_info(params.get("clientInfo") or params.get("info"))
        self._analysis.client = self._conversation.client or self._analysis.client

    # Responses.

    def _add_response(self, shown: RecordedMessage, entry: Entry, msg: JsonObject) -> None:
        shown.kind = "answer"
        request = self._pairs.add(entry)
        opened = self._open_requests.pop(request.number, None) if request is not None else None
        method = opened.request.method if opened is not None else None
        shown.name = method or "?"
        shown.label = answer_label(method, msg)
        if "error" in msg:
            shown.error = True
            code = as_object(msg["error"]).get("code")
            known = code if isinstance(code, int) and not isinstance(code, bool) else None
            self._analysis.errors.append(RecordedFailure(shown.message, method, known, error_text(msg["error"])))
        if opened is None:
            return
        shown.session = opened.session
        self._note_response(opened, shown, msg)
        if opened.turn is not None:
            self._turns.pass_time(opened.session, "the end of the turn", shown.message, shown.t)
            shown.turn = opened.turn.number
            self._end_turn(opened.turn, shown, msg)
            return
        if entry.dir is Direction.C2A:
            self._turns.asked(opened.session, -1)
            self._turns.pass_time_quietly(opened.session, shown.t)
        shown.turn = self._turns.number(opened.session)
        if opened.wait is not None:
            outcome = _outcome(msg, opened.kinds or {})
            shown.label = outcome if "error" not in msg else shown.label
            self._turns.answer(opened.wait, shown.message, shown.t, outcome)
        elif method in OPENING and "result" in msg:
            id = as_text(as_object(msg["result"]).get("sessionId")) or opened.session
            if id is not None:
                self._know(id, OPENING[method], opened.request.message)
                shown.session = id
        elif opened is self._initialize and "result" in msg:
            self._agree(as_object(msg["result"]))

    def _note_response(self, opened: _OpenRequest, shown: RecordedMessage, msg: JsonObject) -> None:
        request = opened.request
        request.answer, request.end, request.duration = shown.message, shown.t, lasted(request.start, shown.t)
        if "error" in msg:
            request.error = error_text(msg["error"])
        if opened.turn is None and opened.wait is None and request.duration >= self._slow:
            self._analysis.slow.append(SlowSpan(shown.message, f"answer to {request.method}", request.duration))

    def _end_turn(self, turn: RecordedTurn, shown: RecordedMessage, msg: JsonObject) -> None:
        turn.answer = shown.message
        if "error" in msg:
            self._turns.end(turn, shown.t, None, error_text(msg["error"]))
            return
        self._know(turn.session, "seen", turn.message)
        if self._conversation.version in (None, 1) or "stopReason" in as_object(msg.get("result")):
            # Later versions only accept the prompt with it, and report in an update that they are idle again.
            self._turns.end(turn, shown.t, as_text(as_object(msg.get("result")).get("stopReason")))
        else:
            self._turns.insert(turn, as_text(as_object(msg.get("result")).get("messageId")) or "")

    def _agree(self, result: JsonObject) -> None:
        """The agent answers `initialize`, and names the version in use."""
        conversation = self._conversation
        conversation.agent = _peer_info(result.get("agentInfo") or result.get("info"))
        self._analysis.agent = conversation.agent or self._analysis.agent
        version = result.get("protocolVersion")
        conversation.version = version if isinstance(version, int) and not isinstance(version, bool) else None
        self._analysis.version = conversation.version
        if conversation.version not in (None, *ALL_VERSIONS):
            conversation.judged = False
            self._analysis.deviations = [one for one in self._analysis.deviations if one.message < conversation.message]
            self._analysis.advice = [one for one in self._analysis.advice if one.message < conversation.message]
            for shown in self._early:  # the rules that they broke are not theirs
                shown.deviations.clear()
                shown.advice.clear()

    # Updates.

    def _add_update(self, shown: RecordedMessage, update: JsonObject) -> None:
        kind = as_text(update.get("sessionUpdate"))
        shown.name = clip(kind, 60) if kind else "session/update"
        shown.label = update_label(update)
        if shown.session is None:
            return
        session = self._know(shown.session, "seen", shown.message)
        if kind == "session_info_update" and (title := as_text(update.get("title"))):
            session.title = clip(title)
        self._turns.pass_time(shown.session, shown.name, shown.message, shown.t)
        call = self._turns.update(shown.session, update, shown.message, shown.t)
        if call is not None and call.title and "title" not in update:  # the id means nothing to a reader
            status = as_text(update.get("status"))
            shown.label = clip(f"{call.title}: {status}" if status else call.title)

    def _know(self, id: str, how: str, message: int) -> RecordedSession:
        session = self._sessions.get(id)
        if session is None:
            session = self._sessions[id] = RecordedSession(id, how, message)
            self._analysis.sessions.append(session)
        elif session.how == "seen" and how != "seen":
            session.how, session.message = how, message
        return session

    def _measure(self, shown: RecordedMessage, entry: Entry) -> None:
        key = (shown.name, shown.dir, shown.kind)
        method = self._methods.get(key)
        if method is None:
            update = shown.kind == "notification" and entry.method == "session/update" != shown.name
            name = f"session/update {shown.name}" if update else shown.name
            method = self._methods[key] = MethodCount(name, shown.dir, shown.kind)
        method.count += 1
        method.bytes += shown.size
        method.largest = max(method.largest, shown.size)

    def _check(self, checker: TrafficChecker, shown: RecordedMessage, entry: Entry) -> None:
        for found in checker.check(entry):
            rule = rules(found.version)[found.rule]
            is_advice = rule.level is Level.ADVICE
            (shown.advice if is_advice else shown.deviations).append(clip(found.text))
            (self._analysis.advice if is_advice else self._analysis.deviations).append(
                RecordedDeviation(
                    rule.id, entry.number, entry.line, found.text, rule.level.value, rule.side.value, rule.link
                )
            )
        if (shown.deviations or shown.advice) and self._conversation.version is None:
            self._early.append(shown)

    @property
    def going(self) -> RecordedTurn | None:
        """The turn that began last, if it has not ended."""
        turn = self._analysis.turns[-1] if self._analysis.turns else None
        return turn if turn is not None and turn.end is None else None

    def analysis(self, reading: RecordingReader | None = None) -> Analysis:
        """The analysis so far; what was not understood is known to the caller, which has read the file."""
        analysis = self._analysis
        known = list(self._methods.values())
        analysis.methods = sorted(known, key=lambda method: (-method.bytes, method.method, method.dir))
        analysis.bytes.c2a = sum(method.bytes for method in known if method.dir == "c2a")
        analysis.bytes.a2c = sum(method.bytes for method in known if method.dir == "a2c")
        count = sum(method.count for method in known)
        analysis.messages = reading.messages if reading else count - self._noise
        analysis.undecodable = reading.undecodable if reading else self._noise
        analysis.skipped = reading.skipped if reading else 0
        analysis.duration = round(analysis.duration, 6)
        analysis.judged = self._judging and all(conversation.judged for conversation in analysis.conversations)
        analysis.slow = sorted(analysis.slow, key=lambda slow: (-slow.duration, slow.message))[:SLOWEST]
        analysis.unanswered = [request.message for request in analysis.requests if request.answer is None]
        return analysis


def analyse(
    lines: Iterable[bytes], file: str = "", *, judged: bool = True, slow: float = SLOW
) -> tuple[Analysis, list[RecordedMessage]]:
    """A whole recording: its content as data, and each of its messages as one line."""
    builder, reading = AnalysisBuilder(file, judged=judged, slow=slow), RecordingReader()
    shown = [builder.add(entry) for entry in entries_of(lines, reading)]
    return builder.analysis(reading), shown


def _peer_info(info: object) -> PeerInfo | None:
    found = as_object(info)
    name = as_text(found.get("name"))
    if name is None:
        return None
    title, version = as_text(found.get("title")), as_text(found.get("version"))
    return PeerInfo(clip(name, 80), clip(title, 80) if title else None, clip(version, 40) if version else None)


def _kinds(options: object) -> dict[str, str]:
    kinds = {}
    for option in options if isinstance(options, list) else ():
        id, kind = as_text(as_object(option).get("optionId")), as_text(as_object(option).get("kind"))
        if id is not None and kind is not None:
            kinds[id] = clip(kind, 40)
    return kinds


def _outcome(msg: JsonObject, kinds: dict[str, str]) -> str:
    if "error" in msg:
        return "error"
    result = as_object(msg.get("result"))
    outcome = as_object(result.get("outcome"))
    chosen = as_text(outcome.get("optionId"))
    if chosen is not None:
        return kinds.get(chosen) or clip(chosen, 40)
    return clip(as_text(outcome.get("outcome")) or as_text(result.get("action")) or "?", 40)
