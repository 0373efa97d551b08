"""What has happened so far in a session of version 2, as far as rules need it. Knows nothing about right and wrong.

The session says what it does: `running`, `requires_action` or `idle`. A prompt is answered when it is inserted, with the id of its
message; everything after that, the end of the work too, is an update.
"""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from antiphon.traffic.entries import Entry, JsonObject, as_object, as_text, objects_in
from antiphon.traffic.state import TrackedSession

__all__ = [
    "ACTIVITY",
    "FINAL",
    "MESSAGES",
    "SessionCall",
    "SessionPrompt",
    "SessionTerminal",
    "StateSession",
    "WorkItem",
    "background_in",
]

FINAL = frozenset({"completed", "failed", "cancelled"})
"""Statuses with which a tool call has ended."""

MESSAGES = {
    "user_message": "user", "user_message_chunk": "user",
    "agent_message": "agent", "agent_message_chunk": "agent",
    "agent_thought": "thought", "agent_thought_chunk": "thought",
}  # fmt: skip
"""The updates that are about a message → the kind of message. Ids are unique in each kind."""

ACTIVITY = frozenset(
    {kind for kind, of in MESSAGES.items() if of != "user"}
    | {"tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk", "plan_update"}
)
"""Updates that show that the agent does something."""


class WorkItem(NamedTuple):
    """Something that runs in the background: a terminal or a tool call, by its id."""

    type: str
    id: str


@dataclass(slots=True)
class SessionPrompt:
    """A prompt of the session."""

    sent: Entry
    message: str | None = None
    """The id of its message, once its answer had it."""
    suspect: str | None = None
    """The id of a message that came while it was the only open prompt, and has its content."""


@dataclass(slots=True)
class SessionCall:
    """A tool call as its updates left it."""

    status: str = "pending"
    titled: bool = False
    can_cancel: bool = False


@dataclass(slots=True)
class SessionTerminal:
    """A terminal of the agent as its updates left it."""

    command: str | None = None
    exited: bool = False
    can_cancel: bool = False


@dataclass(slots=True)
class StateSession(TrackedSession):
    """One session of version 2."""

    option_key: ClassVar[str] = "configId"

    state: str = "idle"
    """The last state that was reported; a new session is idle."""
    worked: bool = False
    """Whether it has reported since the last idle that it works."""
    active: int = 0
    """Updates since the last idle that show that something was done."""
    prompts: list[SessionPrompt] = field(default_factory=list)
    """Prompts that are not answered."""
    inserted: dict[str, Entry] = field(default_factory=dict)
    """Messages of prompts that were inserted since the last idle → the answer."""
    fresh: bool = False
    """Whether a prompt was inserted while it was idle, and no state was reported since."""
    messages: set[tuple[str, str]] = field(default_factory=set)
    """All messages that were seen, by kind and id."""
    prompt_ids: set[str] = field(default_factory=set)
    """The ids that prompts were answered with."""
    items: dict[str, SessionCall] = field(default_factory=dict)
    """Tool calls by id."""
    shells: dict[str, SessionTerminal] = field(default_factory=dict)
    """Terminals by id."""
    background: frozenset[WorkItem] | None = None
    """What runs in the background, by the last report; None as long as there was none."""
    cancel: Entry | None = None
    """The cancellation of the present work."""
    noticed: bool = False
    """Whether the agent has shown that it had read the cancellation."""
    closing: Entry | None = None
    """The request that closes it."""
    was_known: bool = False
    """Whether it was open on this connection before it was resumed."""
    reported: bool = False
    """Whether its state was reported since it began to be resumed."""
    cleared: set[tuple[str, str]] = field(default_factory=set)
    """Messages that were cleared, or new, since it began to be resumed."""

    @property
    def is_working(self) -> bool:
        return self.state != "idle"

    @property
    def replays(self) -> bool:
        """Whether it is being resumed with its history."""
        return self.opening is not None and as_object(self.opening.params.get("replayFrom")) != {}

    def open_again(self, opening: Entry) -> None:
        TrackedSession.open_again(self, opening)
        self.was_known, self.reported, self.cleared = self.live, False, set()

    def take_opening(self, opening: Entry, result: JsonObject) -> None:
        TrackedSession.take_opening(self, opening, result)
        self.replayed = False

    # Prompts.

    def begin(self, prompt: Entry) -> None:
        TrackedSession.begin(self, prompt)
        self.prompts.append(SessionPrompt(prompt))

    def end_prompt(self, prompt: Entry, answer: Entry) -> None:
        TrackedSession.end_prompt(self, prompt, answer)
        self.prompts = [one for one in self.prompts if one.sent is not prompt]
        id = as_text(as_object(answer.msg.get("result")).get("messageId"))
        if id is not None:
            self._insert(id)
            self.inserted[id] = answer
            self.prompt_ids.add(id)

    def prompt_of(self, sent: Entry | None) -> SessionPrompt | None:
        return next((one for one in self.prompts if one.sent is sent), None)

    def _insert(self, id: str) -> None:
        """A message of the user was inserted: its answer or its echo came, whichever is first."""
        if not self.is_working and ("user", id) not in self.messages and id not in self.prompt_ids:
            self.fresh = True

    # Cancellation and the end.

    def note_cancel(self, cancel: Entry) -> None:
        TrackedSession.note_cancel(self, cancel)
        if self.is_working and self.cancel is None:
            self.cancel, self.noticed = cancel, False

    def note_close(self, close: Entry) -> None:
        TrackedSession.note_close(self, close)
        self.closing = close

    def note_answered(self, asked: Entry) -> None:
        if self.cancel is not None and self.cancel.number < asked.number:
            self.noticed = True

    # Updates.

    def add_update(self, update: JsonObject, entry: Entry) -> None:
        kind = as_text(update.get("sessionUpdate"))
        if kind in ACTIVITY:
            self.active += 1
            self.note_activity()
        if kind == "state_update":
            self._tell(update)
        elif kind in MESSAGES:
            self._add_message(MESSAGES[kind], update)
        elif kind == "tool_call_update":
            self.name_call(update, announced=True)
        elif kind == "terminal_update":
            self._name_terminal(update)
        elif kind == "config_option_update":
            self.take_settings(update)

    def _tell(self, update: JsonObject) -> None:
        self.state, self.reported, self.fresh = as_text(update.get("state")) or "", True, False
        self.worked = self.worked or self.is_working
        listed = update.get("background")
        if isinstance(listed, list):
            self.background = frozenset(background_in(listed))
        if not self.is_working:
            self.worked, self.active, self.cancel, self.noticed = False, 0, None, False
            self.inserted.clear()

    def _add_message(self, kind: str, update: JsonObject) -> None:
        id = as_text(update.get("messageId"))
        if id is None:
            return
        if "content" in update and not update["sessionUpdate"].endswith("_chunk"):
            self.cleared.add((kind, id))
        if (kind, id) not in self.messages:
            self.cleared.add((kind, id))
            if kind == "user" and self.opening is None:
                self._insert(id)
                if len(self.prompts) == 1 and id not in self.prompt_ids:
                    self._suspect(self.prompts[0], id, update)
        self.messages.add((kind, id))

    def _suspect(self, prompt: SessionPrompt, id: str, update: JsonObject) -> None:
        content, sent = update.get("content"), prompt.sent.params.get("prompt")
        first = sent[:1] if isinstance(sent, list) else sent
        if content == sent or [content] == first:
            prompt.suspect = id

    def add_question(self, params: JsonObject) -> None:
        self.active += 1
        subject = as_object(params.get("subject"))
        if subject.get("type") == "tool_call":
            self.name_call(as_object(subject.get("toolCall")), announced=True)

    def name_call(self, call: JsonObject, *, announced: bool) -> None:
        id = as_text(call.get("toolCallId"))
        if id is None:
            return
        known = self.items.setdefault(id, SessionCall())
        if "status" in call:
            known.status = as_text(call["status"]) or "pending"
        known.titled = known.titled or bool(call.get("title"))
        if "capabilities" in call:
            known.can_cancel = _can_cancel(call)

    def _name_terminal(self, update: JsonObject) -> None:
        id = as_text(update.get("terminalId"))
        if id is None:
            return
        known = self.shells.setdefault(id, SessionTerminal())
        if "command" in update:
            known.command = as_text(update["command"])
        if "exitStatus" in update:
            known.exited = isinstance(update["exitStatus"], dict)
        if "capabilities" in update:
            known.can_cancel = _can_cancel(update)

    # Work in the background.

    def is_known(self, item: WorkItem) -> bool:
        """Whether something that is listed was announced, as far as one can know."""
        if item.type == "tool_call":
            return item.id in self.items
        return item.type != "terminal" or item.id in self.shells

    def has_ended(self, item: WorkItem) -> bool:
        """Whether something has come to its end, as far as one can know."""
        if item.type == "tool_call":
            return self.items.get(item.id, SessionCall("completed")).status in FINAL
        return item.type != "terminal" or self.shells.get(item.id, SessionTerminal(exited=True)).exited


def background_in(listed: object) -> list[WorkItem]:
    """What a list of background work names."""
    names = {"tool_call": "toolCallId", "terminal": "terminalId"}
    return [
        WorkItem(one["type"], id)
        for one in objects_in(listed)
        if isinstance(one.get("type"), str) and (id := as_text(one.get(names.get(one["type"], "")))) is not None
    ]


def _can_cancel(update: JsonObject) -> bool:
    return isinstance(as_object(update.get("capabilities")).get("cancel"), dict)
