"""Sessions as they are sent live and as an engine sends them later: the same things, cut and described otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.duet.history import catch_up, events
from antiphon.protocol import v1
from antiphon.transcript.transcript import CallEntry, Message, Thought, fold

__all__ = [
    "Call",
    "RecordedTurn",
    "Say",
    "agent",
    "call",
    "done",
    "given",
    "live",
    "looks",
    "prompted",
    "shown",
    "theirs",
    "thought",
    "updates_of",
    "user",
]  # fmt: skip


def user(words: str, id: str | None = None) -> v1.UserMessageChunk:
    return v1.UserMessageChunk(content=v1.TextBlock(text=words), message_id=id)


def agent(words: str, id: str | None = None) -> v1.AgentMessageChunk:
    return v1.AgentMessageChunk(content=v1.TextBlock(text=words), message_id=id)


def thought(words: str, id: str | None = None) -> v1.AgentThoughtChunk:
    return v1.AgentThoughtChunk(content=v1.TextBlock(text=words), message_id=id)


def call(id: str = "c", title: str = "Read", **more: Any) -> v1.ToolCall:
    return v1.ToolCall(tool_call_id=id, title=title, **more)


def done(id: str = "c", output: str = "do re mi", **more: Any) -> v1.ToolCallUpdate:
    content: list[v1.ToolContent] = [v1.ContentItem(content=v1.TextBlock(text=output))]
    more.setdefault("status", v1.ToolStatus.COMPLETED)
    return v1.ToolCallUpdate(tool_call_id=id, content=content, **more)


def prompted(text: str, **more: Any) -> events.PromptEvent:
    return events.PromptEvent(events.now(), [v1.TextBlock(text=text)], "m", **more)


def given(text: str, engine: str = "claude", **more: Any) -> events.GivenEvent:
    return events.GivenEvent(events.now(), engine, text, **more)


def ended(engine: str = "claude", stop_reason: str = "end_turn") -> events.EndEvent:
    return events.EndEvent(events.now(), engine, stop_reason)


def shown(*updates: v1.Update, engine: str = "claude") -> list[events.Event]:
    return [events.update_event(update, engine) for update in updates]


@dataclass(frozen=True)
class Say:
    """A message or a thought."""

    text: str
    id: str | None = None
    thought: bool = False

    def live(self, size: int) -> list[v1.Update]:
        replay = thought if self.thought else agent
        return [replay(self.text[start : start + size], self.id) for start in range(0, len(self.text), size)]

    def later(self) -> list[v1.Update]:
        return [(thought if self.thought else agent)(self.text, self.id)]


@dataclass(frozen=True)
class Call:
    """A tool that was used."""

    id: str
    title: str = "Read song.txt"
    output: str = "do re mi"
    failed: bool = False

    def live(self, size: int) -> list[v1.Update]:
        named = v1.ToolCallUpdate(
            tool_call_id=self.id, title=self.title, status=v1.ToolStatus.IN_PROGRESS, raw_input={"size": 1}
        )
        return [call(self.id, "Use a tool"), named, *self._end()]

    def later(self) -> list[v1.Update]:
        return [call(self.id, self.title, status=v1.ToolStatus.IN_PROGRESS, raw_input={"size": 1}), *self._end()]

    def _end(self) -> list[v1.Update]:
        return [done(self.id, self.output, status=v1.ToolStatus.FAILED if self.failed else v1.ToolStatus.COMPLETED)]


@dataclass(frozen=True)
class RecordedTurn:
    """A turn."""

    prompt: str
    things: tuple[Say | Call, ...]


def live(turns: Sequence[RecordedTurn], size: int = 3, engine: str = "claude") -> list[events.Event]:
    """The events that we keep while it happens."""
    found: list[events.Event] = []
    for turn in turns:
        found += [prompted(turn.prompt), given(turn.prompt, engine)]
        for thing in turn.things:
            found += shown(*thing.live(size), engine=engine)
        found.append(ended(engine))
    return found


def theirs(turns: Sequence[RecordedTurn]) -> list[v1.Update]:
    """What the engine sends later."""
    found: list[v1.Update] = []
    for number, turn in enumerate(turns):
        found.append(user(turn.prompt, f"u{number}"))
        for thing in turn.things:
            found += thing.later()
    return found


def updates_of(kept: Sequence[events.Event], engine: str = "claude") -> list[v1.Update]:
    """What a client was shown of an engine, with what it was given as the user's words."""
    found: list[v1.Update] = []
    for number, event in enumerate(kept):
        if isinstance(event, events.GivenEvent) and event.engine == engine:
            found.append(user(event.text, f"given {number}"))
        found += events.HistoryView([event]).updates(engine)
    return found


def looks(updates: Sequence[v1.Update]) -> list[Any]:
    """Texts, and calls with how they stand and what came of them, in their order."""
    found: list[Any] = []
    for entry in fold(updates).entries:
        match entry:
            case Message():
                found.append((entry.speaker, entry.text))
            case Thought():
                found.append(("thought", entry.text))
            case CallEntry():
                found.append((entry.id, entry.title, entry.status, entry.content, entry.raw_input, entry.raw_output))
            case _:
                pass
    return found


def missed_updates(ours: Sequence[events.Event], theirs: Sequence[v1.Update], engine: str) -> list[v1.Update]:
    """What an engine's own history has beyond these events."""
    return catch_up.missed_updates(events.HistoryView(ours), theirs, engine)


def ends_of_open_calls(ours: Sequence[events.Event], engine: str | None = None) -> list[v1.Update]:
    """The ends of the calls that these events leave open."""
    return catch_up.ends_of_open_calls(events.HistoryView(ours), engine)
