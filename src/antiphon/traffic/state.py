"""What has happened so far between a client and an agent, as far as rules need it. Knows nothing about right and wrong."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from antiphon.traffic.entries import Direction, Entry, JsonObject, as_object, as_text, objects_in, texts_in

if TYPE_CHECKING:
    from antiphon.traffic.schema import Look

__all__ = [
    "BRINGS_A_NEW_ONE",
    "CROSSING_SECONDS",
    "HISTORY",
    "SECOND",
    "Pairs",
    "TrackedCall",
    "TrackedSession",
    "TrackedTurn",
    "TrafficState",
    "choices_of",
    "id_shown",
    "is_id",
    "is_malformed",
]

# --- requests and responses: ids are compared as JSON, so `1`, `1.0` and `"1"` are three ids

Key = tuple[Direction, str, object]


class Pairs:
    """The open requests of both sides."""

    def __init__(self) -> None:
        self._open: dict[Key, Entry] = {}

    def request_of(self, entry: Entry) -> Entry | None:
        """The open request of the other side that this response is for."""
        return self._open.get(_key(entry.dir.other, entry)) if entry.is_response else None

    def duplicate_of(self, entry: Entry) -> Entry | None:
        """The open request of the same side that has the id of this one."""
        return self._open.get(_key(entry.dir, entry)) if entry.is_request else None

    def similar_to(self, entry: Entry) -> Entry | None:
        """The open request of the other side whose id only looks like that of this response: `1` and `"1"`."""
        id = entry.msg.get("id")
        looks: list[object] = []
        if isinstance(id, str) and len(id) < 20:
            looks = [int(id)] if id.isdecimal() else []
        elif isinstance(id, int | float) and abs(id) < 2**64:
            looks = [str(id), str(int(id)), int(id), float(id)]
        found = (self._open.get((entry.dir.other, type(one).__name__, one)) for one in looks)
        return next((one for one in found if one is not None), None)

    def add(self, entry: Entry) -> Entry | None:
        """Add a message; returns the request that it responds to, if it does."""
        if entry.is_request:
            self._open[_key(entry.dir, entry)] = entry
        elif entry.is_response:
            return self._open.pop(_key(entry.dir.other, entry), None)
        return None

    @property
    def open(self) -> list[Entry]:
        """Requests without a response so far, in the order in which they were sent."""
        return sorted(self._open.values(), key=lambda entry: entry.number)


def _key(direction: Direction, entry: Entry) -> Key:
    """Python takes 1, 1.0 and True for the same key, so the type is part of it. Lists and objects are not ids: all are one."""
    id = entry.msg.get("id")
    return direction, type(id).__name__, id if isinstance(id, str | int | float) else None


# --- sessions: how they began, open turns, tool calls, settings

CROSSING_SECONDS = 0.5
"""What a side sends may cross a cancellation on its way. After so long it has not."""

HISTORY = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"}
)
"""The updates that are history: they belong to a turn, or to the replay of one."""


@dataclass(slots=True)
class TrackedCall:
    """A tool call as of its last update."""

    turn: int
    status: str
    announced: bool


@dataclass(slots=True)
class TrackedTurn:
    """A prompt that is not answered yet."""

    prompt: Entry
    number: int
    updates_sent: int = 0
    cancelled: Entry | None = None
    waiting: set[int] = field(default_factory=set)
    """The numbers of the agent's requests that were open when it was cancelled."""
    interrupted: bool = False
    """Whether the client has cancelled a permission request of it, cancelled a request or closed the session."""
    noticed: bool = False
    """Whether the agent has shown that it had read the cancellation."""
    overlapped: bool = False
    """Whether it and another prompt of the session were open at once: the agent may have refused one for the other, or waited."""


@dataclass(slots=True)
class TrackedSession:
    """One session, as far as the traffic shows."""

    id: str
    how: str
    """The method that opened it."""
    live: bool = False
    """Whether a response has opened it."""
    opening: Entry | None = None
    """The request that opens it, until its response."""
    replayed: bool = False
    """Whether it was loaded and not prompted since."""
    modes: list[str] | None = None
    options: dict[str, JsonObject] | None = None
    turns: list[TrackedTurn] = field(default_factory=list)
    calls: dict[str, TrackedCall] = field(default_factory=dict)
    current: dict[str, TrackedCall] = field(default_factory=dict)
    """Calls that had an update in this turn, or in this replay."""
    number: int = 0
    """How many turns and replays there have been: the same tool call id may come again in another."""
    last_cancel: int = 0

    option_key: ClassVar[str] = "id"
    """The field with the id of an option."""

    def open_again(self, opening: Entry) -> None:
        """A request opens it, though it may be open already."""
        self.how, self.opening = opening.method or "", opening
        self.count_on()

    def take_opening(self, opening: Entry, result: JsonObject) -> None:
        """The request that opens it was answered."""
        self.opening = None
        self.replayed = opening.method == "session/load"
        self.take_settings(result)

    def end_prompt(self, prompt: Entry, answer: Entry) -> None:
        """A prompt was answered."""
        self.turns = [turn for turn in self.turns if turn.prompt is not prompt]

    def note_cancel(self, cancel: Entry) -> None:
        """The client has cancelled what it does."""
        self.last_cancel = cancel.number

    def note_close(self, close: Entry) -> None:
        """The client closes it, or deletes it."""
        self.mark_interrupted()

    def note_answered(self, asked: Entry) -> None:
        """The agent has answered some request, so it has read all that came before that."""

    def begin(self, prompt: Entry) -> None:
        self.count_on()
        self.turns.append(TrackedTurn(prompt, self.number))
        running = [turn for turn in self.turns if turn.cancelled is None]
        for turn in running if len(running) > 1 else ():
            turn.overlapped = True

    def count_on(self) -> None:
        """Another turn begins, or another replay."""
        self.number += 1
        self.replayed = False
        self.current = {}

    def note_activity(self) -> None:
        """The user has seen something of every turn that is open."""
        for turn in self.turns:
            turn.updates_sent += 1

    def mark_interrupted(self) -> None:
        for turn in self.turns:
            turn.interrupted = True

    def turn_of(self, prompt: Entry | None) -> TrackedTurn | None:
        return next((turn for turn in self.turns if turn.prompt is prompt), None)

    def take_settings(self, source: JsonObject) -> None:
        """Take over the modes and the options of a response or an update."""
        modes = as_object(source.get("modes"))
        if modes:
            self.modes = texts_in(modes.get("availableModes"), "id")
        if isinstance(source.get("configOptions"), list):
            listed = objects_in(source["configOptions"])
            self.options = {one[self.option_key]: one for one in listed if isinstance(one.get(self.option_key), str)}

    def add_update(self, update: JsonObject, entry: Entry) -> None:
        kind = as_text(update.get("sessionUpdate"))
        if kind == "config_option_update":
            self.take_settings(update)
        if kind == "plan" or (kind in HISTORY and kind != "user_message_chunk"):
            self.note_activity()
        if kind in ("tool_call", "tool_call_update"):
            self.name_call(update, announced=kind == "tool_call")

    def add_question(self, params: JsonObject) -> None:
        """The user is asked for permission."""
        self.name_call(as_object(params.get("toolCall")), announced=False)

    def name_call(self, call: JsonObject, *, announced: bool) -> None:
        """A tool call was named, by an update or by a permission request."""
        id, status = as_text(call.get("toolCallId")), as_text(call.get("status"))
        if id is None:
            return
        known = self.calls.get(id)
        if known is None or (announced and known.turn != self.number):
            self.calls[id] = self.current[id] = TrackedCall(self.number, status or "pending", announced)
        else:
            known.status = status or known.status
            known.announced = known.announced or announced


def choices_of(option: JsonObject) -> list[str]:
    """The values of a select option, those in groups too."""
    found = objects_in(option.get("options"))
    grouped = [one for group in found for one in objects_in(group.get("options"))]
    return texts_in([*found, *grouped], "value")


BRINGS_A_NEW_ONE = ("session/new", "session/fork")
BRINGS_AN_OLD_ONE = ("session/load", "session/resume")

SECOND = 2
"""The version whose messages and rules are others than those of the first; all that there is not counts as the first."""


class TrafficState:
    """The state after each message: `begin` before the rules see it, `add` after."""

    def __init__(self) -> None:
        self.pairs = Pairs()
        self.request: Entry | None = None
        """The request that the present message responds to."""
        self.lines: Counter[Direction] = Counter()
        self.initialize: Entry | None = None
        self.initialized: Entry | None = None
        """The response to `initialize`, when it came."""
        self.client: JsonObject = {}
        """The client's capabilities, as it sent them."""
        self.agent: JsonObject = {}
        """The agent's capabilities, as it sent them."""
        self.auth_methods: list[str] = []
        self.version: int | None = None
        """The version that was agreed on."""
        self.speaks = 1
        """The version whose rules apply to the present line. `initialize` names it, and its answer settles it."""
        self.sessions: dict[str, TrackedSession] = {}
        self.named: set[str] = set()
        """The session ids that the client has sent or received."""
        self.opened: set[str] = set()
        """The session ids that were opened at some time, or are being opened."""
        self.closed: set[str] = set()
        """The session ids that were closed or deleted, and not opened again."""
        self.terminals: dict[str, str] = {}
        """The terminals that the client made and the agent has not released → the session of each."""
        self.released: set[str] = set()
        self.malformed: Counter[Direction] = Counter()
        """How many lines of each side were no message: the responses to them cannot be correct."""
        self.batches: Counter[Direction] = Counter()
        self.malformed_ids: set[tuple[Direction, str]] = set()
        self.looked: tuple[Entry | None, Look | None] = None, None
        """The message that was checked against the schema last, and the result: more than one rule needs it."""
        self._offers: dict[tuple[str, str], bool] = {}
        self._cancelled: list[TrackedTurn] = []
        self._once: set[tuple[object, ...]] = set()

    def begin(self, entry: Entry) -> None:
        """Find out what a message is about, before the rules see it."""
        self.request = self.pairs.request_of(entry)
        if entry.method == "initialize" and entry.dir is Direction.C2A:
            self.speaks = SECOND if _is_second(entry.params) else 1
        elif self.request is not None and self.request.method == "initialize":
            answered = as_object(entry.msg.get("result"))
            if answered:
                self.speaks = SECOND if _version(answered) == SECOND else 1
            elif self.version is not None:
                self.speaks = SECOND if self.version == SECOND else 1

    def offers(self, asking: str, capability: str) -> bool:
        """Whether the other side offers what one side would ask for: `session.notices` is an object, or true."""
        key = asking, capability
        if key not in self._offers:
            found: object = self.client if asking == "agent" else self.agent
            for name in capability.split("."):
                found = as_object(found).get(name)
            self._offers[key] = isinstance(found, dict) or (found is True and self.speaks != SECOND)
        return self._offers[key]

    def first_time(self, *what: object) -> bool:
        """Whether this is reported for the first time on this connection."""
        if what in self._once:
            return False
        self._once.add(what)
        return True

    def session(self, entry: Entry | None) -> TrackedSession | None:
        """The session that a request or a notification names, if it is one that we know."""
        id = entry.params.get("sessionId") if entry is not None else None
        return self.sessions.get(id) if isinstance(id, str) else None

    def add(self, entry: Entry) -> None:
        """Take note of a line."""
        self.lines[entry.dir] += 1
        if is_malformed(entry):
            self._add_malformed(entry)
        if self.pairs.duplicate_of(entry) is not None:
            self.malformed_ids.add((entry.dir, id_shown(entry.msg)))  # both may be answered, and only one will be found
        asked = self.pairs.add(entry)
        if entry.method is not None:
            (self._add_client_message if entry.dir is Direction.C2A else self._add_agent_message)(entry)
        elif asked is not None:
            (self._add_client_response if entry.dir is Direction.C2A else self._add_agent_response)(entry, asked)

    def _add_malformed(self, entry: Entry) -> None:
        self.malformed[entry.dir] += 1
        if isinstance(entry.msg, list):
            self.batches[entry.dir] += 1
        for one in objects_in(entry.msg if isinstance(entry.msg, list) else [entry.msg]):
            if isinstance(one.get("id"), str | int | float):
                self.malformed_ids.add((entry.dir, id_shown(one)))

    def _add_client_message(self, entry: Entry) -> None:
        id = as_text(entry.params.get("sessionId"))
        if entry.method == "initialize" and self.initialized is None:
            self.initialize = entry
            self._offers.clear()
            self.client = self._capabilities(entry.params, "clientCapabilities")
        elif entry.method == "$/cancel_request":
            for session in self.sessions.values():
                session.mark_interrupted()
        if id is None:
            return
        self.named.add(id)
        if entry.method in BRINGS_AN_OLD_ONE and entry.is_request:
            session = self._tracked(id, entry.method)
            session.open_again(entry)
            self.opened.add(id)
            self.closed.discard(id)
        elif (known := self.sessions.get(id)) is None:
            return
        elif entry.method == "session/prompt" and entry.is_request:
            known.begin(entry)
        elif entry.method == "session/cancel":
            self._cancel(known, entry)
        elif entry.method in ("session/close", "session/delete"):
            known.note_close(entry)

    def _tracked(self, id: str, how: str) -> TrackedSession:
        """The session of that id; a new one where there is none."""
        if id not in self.sessions:
            from antiphon.traffic.state_v2 import StateSession

            self.sessions[id] = (StateSession if self.speaks == SECOND else TrackedSession)(id, how)
        return self.sessions[id]

    def _capabilities(self, message: JsonObject, name: str) -> JsonObject:
        return as_object(message.get("capabilities" if self.speaks == SECOND else name))

    def _cancel(self, session: TrackedSession, entry: Entry) -> None:
        session.note_cancel(entry)
        mine = {
            one.number
            for one in self.pairs.open
            if one.dir is Direction.A2C and one.params.get("sessionId") == session.id
        }
        for turn in session.turns:
            if turn.cancelled is None:
                turn.cancelled, turn.waiting = entry, set(mine)
                self._cancelled.append(turn)

    def _add_agent_message(self, entry: Entry) -> None:
        session = self.session(entry) or self._early_session(entry)
        if session is not None and entry.method in ("session/request_permission", "elicitation/create"):
            session.note_activity()
        if entry.method == "session/update":
            update = as_object(entry.params.get("update"))
            if session is not None:
                session.add_update(update, entry)
            if update.get("sessionUpdate") == "subagent_update" and isinstance(update.get("sessionId"), str):
                self.named.add(update["sessionId"])  # this is how the client learns of it
        elif entry.method == "session/request_permission" and session is not None:
            session.add_question(entry.params)
        elif entry.method == "terminal/release" and isinstance(id := entry.params.get("terminalId"), str):
            self.terminals.pop(id, None)
            self.released.add(id)

    def _early_session(self, entry: Entry) -> TrackedSession | None:
        """A session that is named before its answer, which version 2 allows while one is being made."""
        id = as_text(entry.params.get("sessionId"))
        if self.speaks != SECOND or id is None or id in self.closed:
            return None
        making = any(one.method in BRINGS_A_NEW_ONE and one.dir is Direction.C2A for one in self.pairs.open)
        return self._tracked(id, "session/new") if making else None

    def _add_client_response(self, entry: Entry, asked: Entry) -> None:
        session = self.session(asked)
        result = as_object(entry.msg.get("result"))
        if session is not None:
            for turn in session.turns:
                turn.noticed = turn.noticed or turn.waiting == {asked.number}
                turn.waiting.discard(asked.number)
            if as_object(result.get("outcome")).get("outcome") == "cancelled" or result.get("action") == "cancel":
                session.mark_interrupted()
        if asked.method == "terminal/create":
            id = as_text(result.get("terminalId"))
            if id is not None:
                self.released.discard(id)
                self.terminals[id] = as_text(asked.params.get("sessionId")) or ""

    def _add_agent_response(self, entry: Entry, asked: Entry) -> None:
        result = as_object(entry.msg.get("result"))
        failed = "error" in entry.msg
        session = self.session(asked)
        if asked.method == "initialize" and not failed:
            self._add_initialize_result(entry, asked, result)
        elif asked.method in BRINGS_A_NEW_ONE and isinstance(id := result.get("sessionId"), str):
            self.named.add(id)
            self.opened.add(id)
            self.closed.discard(id)
            if self.speaks != SECOND:
                self.sessions.pop(id, None)
            made = self._tracked(id, asked.method)
            made.live = True
            made.take_settings(result)
        elif asked.method == "session/list":
            self.named.update(texts_in(result.get("sessions"), "sessionId"))
        elif session is not None:
            self._add_session_result(session, entry, asked, result, failed)
        for known in self.sessions.values() if self.speaks == SECOND else ():
            known.note_answered(asked)
        for turn in self._cancelled:
            turn.noticed = turn.noticed or (turn.cancelled is not None and turn.cancelled.number < asked.number)

    def _add_initialize_result(self, entry: Entry, asked: Entry, result: JsonObject) -> None:
        self.initialize, self.initialized = asked, entry
        self._offers.clear()
        self.client = self._capabilities(asked.params, "clientCapabilities")
        self.agent = self._capabilities(result, "agentCapabilities")
        self.auth_methods = texts_in(result.get("authMethods"), "methodId" if self.speaks == SECOND else "id")
        self.version = _version(result)

    def _add_session_result(
        self, session: TrackedSession, entry: Entry, asked: Entry, result: JsonObject, failed: bool
    ) -> None:
        if asked is session.opening:
            session.take_opening(asked, result)
            session.live = session.live or not failed
            if not session.live:
                del self.sessions[session.id]
                self.opened.discard(session.id)
        elif asked.method == "session/prompt":
            session.end_prompt(asked, entry)
            self._cancelled = [turn for turn in self._cancelled if turn.prompt is not asked]
        elif asked.method == "session/set_config_option":
            session.take_settings(result)
        elif asked.method in ("session/close", "session/delete") and not failed:
            self.sessions.pop(session.id, None)
            self.closed.add(session.id)


def is_malformed(entry: Entry) -> bool:
    """Whether a line is not a message that could be answered properly."""
    msg = entry.msg
    if not isinstance(msg, dict) or msg.get("jsonrpc") != "2.0":
        return True
    if "params" in msg and not isinstance(msg["params"], dict):
        return True
    if entry.method is not None:
        return "result" in msg or "error" in msg or ("id" in msg and not is_id(msg["id"]))
    return not entry.is_response or ("result" in msg and "error" in msg)


def id_shown(message: JsonObject) -> str:
    """The id of a message as a text, in which `1` and `"1"` are the same. Python writes no numbers of thousands of digits."""
    id = message.get("id")
    return hex(id) if isinstance(id, int) and abs(id) > 2**64 else str(id)


def is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_second(params: JsonObject) -> bool:
    """Whether `initialize` is one of version 2: it asks for it, or in its form for one that there is not."""
    version = _version(params)
    return version == SECOND or (version != 1 and "info" in params)


def _version(message: JsonObject) -> int | None:
    version = message.get("protocolVersion")
    return version if isinstance(version, int) and not isinstance(version, bool) else None
