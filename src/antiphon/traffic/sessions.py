"""The sessions of a conversation: how they began, the turns that are open, the tool calls that were told, what can be set."""

from dataclasses import dataclass, field
from typing import Any

from antiphon.traffic.entries import Entry
from antiphon.traffic.values import as_object, as_text, objects_in, texts_in

__all__ = ["HISTORY", "Call", "Session", "Turn", "choices_of"]

HISTORY = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"}
)
"""The updates that tell what was said and done: they belong to a turn, or to the replay of one."""


@dataclass(slots=True)
class Call:
    """A tool call as it was told last."""

    turn: int
    status: str
    announced: bool


@dataclass(slots=True)
class Turn:
    """A prompt that is not answered yet."""

    prompt: Entry
    number: int
    said: int = 0
    cancelled: Entry | None = None
    waiting: set[int] = field(default_factory=set)
    """The numbers of the agent's questions that were open when it was cancelled."""
    dismissed: bool = False
    """Whether the client has dismissed a question of it, cancelled a request or closed the session."""
    noticed: bool = False
    """Whether the agent has shown that it had read the cancellation."""
    overlapped: bool = False
    """Whether it and another prompt of the session were open at once: the agent may have refused one for the other, or waited."""


@dataclass(slots=True)
class Session:
    """One session, as far as the conversation tells."""

    id: str
    how: str
    """The method that brought it."""
    live: bool = False
    """Whether an answer has brought it."""
    opening: Entry | None = None
    """The request that brings it, until it is answered."""
    replayed: bool = False
    """Whether it was loaded and nobody has prompted since."""
    modes: list[str] | None = None
    options: dict[str, dict[str, Any]] | None = None
    turns: list[Turn] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    current: dict[str, Call] = field(default_factory=dict)
    """Those of the calls that were told in this turn, or in this replay."""
    number: int = 0
    """How many turns and replays there have been: the same tool call id may come again in another."""
    last_cancel: int = 0

    def begin(self, prompt: Entry) -> None:
        self.count_on()
        self.turns.append(Turn(prompt, self.number))
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
            turn.said += 1

    def dismiss(self) -> None:
        for turn in self.turns:
            turn.dismissed = True

    def turn_of(self, prompt: Entry | None) -> Turn | None:
        return next((turn for turn in self.turns if turn.prompt is prompt), None)

    def settle(self, said: dict[str, Any]) -> None:
        """Take over the modes and the options that an answer or an update brings."""
        modes = as_object(said.get("modes"))
        if modes:
            self.modes = texts_in(modes.get("availableModes"), "id")
        if isinstance(said.get("configOptions"), list):
            self.options = {
                one["id"]: one for one in objects_in(said["configOptions"]) if isinstance(one.get("id"), str)
            }

    def hear(self, update: dict[str, Any]) -> None:
        kind = as_text(update.get("sessionUpdate"))
        if kind == "config_option_update":
            self.settle(update)
        if kind == "plan" or (kind in HISTORY and kind != "user_message_chunk"):
            self.note_activity()
        if kind in ("tool_call", "tool_call_update"):
            self.name_call(update, announced=kind == "tool_call")

    def name_call(self, call: dict[str, Any], *, announced: bool) -> None:
        """A tool call was named, by an update or by a question for permission."""
        id, status = as_text(call.get("toolCallId")), as_text(call.get("status"))
        if id is None:
            return
        known = self.calls.get(id)
        if known is None or (announced and known.turn != self.number):
            self.calls[id] = self.current[id] = Call(self.number, status or "pending", announced)
        else:
            known.status = status or known.status
            known.announced = known.announced or announced


def choices_of(option: dict[str, Any]) -> list[str]:
    """The values of a select option, those in groups too."""
    found = objects_in(option.get("options"))
    grouped = [one for group in found for one in objects_in(group.get("options"))]
    return texts_in([*found, *grouped], "value")
