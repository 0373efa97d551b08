"""What a screen shows, folded from a session's updates. Pure: no I/O, no clock, no event loop; equal updates give equal transcripts.

Rules of the fold:

1. Entries stand in the order in which they first appeared and are never moved. An update about one changes it in place.
2. A piece of a message goes to the message with its `message_id`, wherever that stands. Without an id it goes to the last entry if
   that is a message or thought of the same kind; otherwise, and with an id not seen before, it starts a new message.
3. A tool call is one entry per id, whatever came first: an announcement, a patch or a permission request. A call that is
   announced again while it runs is the same call, now better described. One that is announced again after it finished is a new call
   in a later turn that took the id again (some agents count from one in each turn), and gets an entry of its own.
4. A limit drops the oldest entries. A call that is not finished is still known by its id until its turn ends: a permission request may
   name nothing but the id. What else comes for a dropped entry starts a new one.
5. What has no place on the screen (kinds from tomorrow, messages between sessions, child sessions) is counted, and the last of it kept.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UnsetType

from antiphon.protocol.base import Unknown
from antiphon.protocol.v1.content import ContentBlock, TextBlock
from antiphon.protocol.v1.settings import (
    AvailableCommandsUpdate,
    Command,
    ConfigOption,
    ConfigOptionUpdate,
    CurrentModelUpdate,
    CurrentModeUpdate,
)
from antiphon.protocol.v1.tools import ToolCall, ToolCallPatch, ToolCallUpdate
from antiphon.protocol.v1.updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CompactionSummaryChunk,
    CompactionUpdate,
    MessageChunk,
    NoticeUpdate,
    Plan,
    PlanContent,
    PlanEntry,
    PlanRemoved,
    PlanStatus,
    PlanUpdate,
    SessionInfoUpdate,
    UsageUpdate,
    UserMessageChunk,
)
from antiphon.transcript.entries import (
    NO_MESSAGE,
    CallEntry,
    CompactionEntry,
    Entry,
    Message,
    NoticeEntry,
    Speaker,
    Thought,
    lines_of,
)

if TYPE_CHECKING:
    from antiphon.protocol.v1.updates import Update

__all__ = ["CallEntry", "CompactionEntry", "Entry", "Message", "NoticeEntry", "Thought", "Transcript", "fold"]

CALLS_KEPT: Final = 1000
"""Calls that are known by their ids though a limit has dropped their entries, and that are not finished."""

UNSHOWN_KEPT: Final = 100
"""Updates without a place that are kept to be looked at. A peer from tomorrow may send any number; all are counted."""

_MARKS: Final = {PlanStatus.PENDING: " ", PlanStatus.IN_PROGRESS: "~", PlanStatus.COMPLETED: "x"}

_TextEntry: TypeAlias = Message | Thought


class Transcript:
    """What a session shows so far. `apply` takes an update and returns the entry it changed.

    `limit`: the most entries that are kept, 0 for none, None for all of them.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.dropped = 0
        """Entries that were dropped because of the limit. The first in `entries` has this number as its `key`."""
        self.entries: list[Entry] = []
        self.plan: list[PlanEntry] = []
        """The session's one plan, as in the stable protocol."""
        self.plans: dict[str, PlanContent] = {}
        """Plans by id, for agents that have several."""
        self.usage: UsageUpdate | None = None
        self.mode: str | None = None
        self.model: str | None = None
        self.commands: list[Command] = []
        self.config_options: list[ConfigOption] = []
        self.title: str | None = None
        self.updated_at: str | None = None
        self.unshown_count = 0
        self.unshown: deque[Update] = deque(maxlen=UNSHOWN_KEPT)
        self._by_message_id: dict[tuple[type, str], _TextEntry] = {}
        self._calls: dict[str, CallEntry] = {}
        self._compactions: dict[str, CompactionEntry] = {}
        self._current: _TextEntry = NO_MESSAGE  # where the next piece may go
        self._echo: tuple[Message, list[ContentBlock]] | None = None

    @classmethod
    def of(cls, entries: Sequence[Entry], settings: "Transcript | None" = None) -> "Transcript":
        """A transcript that begins with entries of another one, which are final; its settings are those of `settings`."""
        made = cls() if settings is None else settings._copied()
        made.entries = list(entries)
        made.dropped = entries[0].key if entries else 0
        return made

    def _copied(self) -> "Transcript":
        made = Transcript(self.limit)
        made.plan, made.plans, made.usage, made.mode, made.model = (
            self.plan,
            self.plans,
            self.usage,
            self.mode,
            self.model,
        )
        made.commands, made.config_options = self.commands, self.config_options
        made.title, made.updated_at = self.title, self.updated_at
        return made

    def apply(self, update: "Update") -> Entry | None:
        """Take one update. Returns the entry to draw again, or `None` if it changed no entry (but perhaps the state)."""
        # The fast road: the next piece of plain text. Nearly every update of a turn is one.
        entry = self._current
        if (
            type(update) is entry.open_to
            and type(content := update.content) is TextBlock
            and content.annotations is entry.note
            and (update.message_id is None or update.message_id == entry.message_id)
        ):
            entry.tail.append(content.text)
            return entry
        # By its own type: `isinstance` takes ten times as long where the type is another one, as it nearly always is here.
        if type(update) is ToolCallUpdate:
            return self._patched(update)
        if type(update) is ToolCall:
            return self._announced(update)
        if type(update) is AgentMessageChunk or isinstance(update, MessageChunk):
            return self._add_chunk(update)
        return self._entered(update)

    def asked(self, patch: ToolCallPatch) -> CallEntry:
        """Take the call that a permission request is about; it may be the first message about it."""
        return self._patched(patch)

    def call(self, id: str) -> CallEntry | None:
        """The call of this id; if there were several, the last."""
        return self._calls.get(id)

    def add_prompt(self, prompt: Sequence[ContentBlock]) -> Message:
        """Enter a prompt of the user. Agents that repeat it in the turn do not make it appear twice."""
        message = Message(self._next_key, "user", None)
        for block in prompt:
            message.add(block)
        self._enter(message)
        self._echo = (message, message.blocks)
        return message

    def turn_ended(self) -> None:
        """End the current message: what comes next does not continue it, unless its `message_id` is the same."""
        self._current.close()
        self._echo = None
        if self.dropped:
            self._calls = {id: call for id, call in self._calls.items() if call.key >= self.dropped}

    def plain(self) -> str:
        """Everything in plain lines, for scripts and tests."""
        lines = [line for entry in self.entries for line in lines_of(entry)]
        lines += [f"({_MARKS[step.status.meaning]}) {step.content}" for step in self.plan]
        return "\n".join(lines)

    # Entries.

    @property
    def _next_key(self) -> int:
        return self.dropped + len(self.entries)

    def _enter(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._current.close()
        if self.limit is not None:
            while len(self.entries) > self.limit:
                self._drop(self.entries.pop(0))

    def _drop(self, entry: Entry) -> None:
        self.dropped += 1
        if isinstance(entry, CompactionEntry):
            self._compactions.pop(entry.id, None)
        elif isinstance(entry, Message | Thought) and entry.message_id is not None:
            for kind in (UserMessageChunk, AgentMessageChunk, AgentThoughtChunk):
                if self._by_message_id.get((kind, entry.message_id)) is entry:
                    del self._by_message_id[kind, entry.message_id]
        elif isinstance(entry, CallEntry) and (entry.finished or len(self._calls) > CALLS_KEPT):
            self._forget(entry)

    def _forget(self, call: CallEntry) -> None:
        if self._calls.get(call.id) is call:
            del self._calls[call.id]

    def _add_chunk(self, chunk: MessageChunk) -> Entry:
        if type(chunk) is UserMessageChunk and (message := self._echoed(chunk)) is not None:
            return message
        kind, message_id = type(chunk), chunk.message_id
        if message_id is not None:
            entry = self._by_message_id.get((kind, message_id))
        else:
            entry = self._current if kind is self._current.open_to else None
        if entry is None:
            entry = self._started(chunk)
        entry.add(chunk.content)
        return entry

    def _started(self, chunk: MessageChunk) -> _TextEntry:
        key, message_id = self._next_key, chunk.message_id
        entry: _TextEntry
        if type(chunk) is AgentThoughtChunk:
            entry = Thought(key, message_id)
        else:
            speaker: Speaker = "agent" if type(chunk) is AgentMessageChunk else "user"
            entry = Message(key, speaker, message_id)
        self._enter(entry)
        if self.entries:  # else it was dropped at once
            self._current, entry.open_to = entry, type(chunk)
            if message_id is not None:
                self._by_message_id[type(chunk), message_id] = entry
        return entry

    def _echoed(self, chunk: UserMessageChunk) -> Message | None:
        """The message that this chunk repeats, if it repeats the next part of the prompt."""
        if self._echo is None:
            return None
        message, rest = self._echo
        head, content = rest[0] if rest else None, chunk.content
        if isinstance(head, TextBlock) and isinstance(content, TextBlock) and head.text.startswith(content.text):
            left = head.text[len(content.text) :]
            rest[:1] = [TextBlock(text=left)] if left else []
        elif head is not None and head == content:
            del rest[0]
        else:
            self._echo = None
            return None
        if chunk.message_id is not None and message.message_id is None:
            message.message_id = chunk.message_id
            self._by_message_id[UserMessageChunk, chunk.message_id] = message
        return message

    def _entered(self, update: "Update") -> Entry | None:
        match update:
            case ToolCallPatch():  # of a permission request
                return self._patched(update)
            case NoticeUpdate():
                notice = NoticeEntry(self._next_key, update)
                self._enter(notice)
                return notice
            case CompactionUpdate():
                compaction = self._compaction(update.compaction_id)
                compaction.patch(update)
                return compaction
            case CompactionSummaryChunk():
                compaction = self._compaction(update.compaction_id)
                compaction.add(update.content)
                return compaction
            case _:
                self._noted(update)
                return None

    def _announced(self, call: ToolCall) -> CallEntry:
        known = self._calls.get(call.tool_call_id)
        if known is not None and known.announced and known.finished:
            known = None
        entry = known or self._new_call(call.tool_call_id)
        entry.announce(call)
        return entry

    def _patched(self, patch: ToolCallPatch) -> CallEntry:
        entry = self._calls.get(patch.tool_call_id) or self._new_call(patch.tool_call_id)
        entry.patch(patch)
        if entry.key < self.dropped and entry.finished:
            self._forget(entry)
        return entry

    def _new_call(self, id: str) -> CallEntry:
        entry = self._calls[id] = CallEntry(self._next_key, id)
        self._enter(entry)
        return entry

    def _compaction(self, id: str) -> CompactionEntry:
        entry = self._compactions.get(id)
        if entry is None:
            entry = self._compactions[id] = CompactionEntry(self._next_key, id)
            self._enter(entry)  # which may drop it at once
        return entry

    # State.

    def _noted(self, update: "Update") -> None:
        match update:
            case Plan(entries=entries):
                self.plan = entries
            case PlanUpdate(plan=plan):
                self.plans[_plan_id(plan)] = plan
            case PlanRemoved(plan_id=plan_id):
                self.plans.pop(plan_id, None)
            case UsageUpdate():
                self.usage = update
            case CurrentModeUpdate(current_mode_id=mode):
                self.mode = mode
            case CurrentModelUpdate(current_model_id=model):
                self.model = model
            case AvailableCommandsUpdate(available_commands=commands):
                self.commands = commands
            case ConfigOptionUpdate(config_options=options):
                self.config_options = options
            case SessionInfoUpdate(title=title, updated_at=updated_at):
                self.title = self.title if isinstance(title, UnsetType) else title
                self.updated_at = self.updated_at if isinstance(updated_at, UnsetType) else updated_at
            case _:
                self.unshown_count += 1
                self.unshown.append(update)


def _plan_id(plan: PlanContent) -> str:
    if isinstance(plan, Unknown):
        return str(plan.fields.get("planId", plan.kind))
    return plan.plan_id


def fold(updates: "Iterable[Update]") -> Transcript:
    """The transcript of these updates."""
    transcript = Transcript()
    for update in updates:
        transcript.apply(update)
    return transcript
