"""The things a screen shows one below the other. They are changed in place as updates come in; `transcript` decides how.

`key` is an entry's place in the transcript. Entries are never moved, and only the oldest are dropped where the transcript has a limit.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, DecodeError, UnsetType, json, structs

from antiphon.protocol.base import JsonObject
from antiphon.protocol.extension import KEY, kept_in
from antiphon.protocol.v1.content import Annotations, ContentBlock, TextBlock
from antiphon.protocol.v1.tools import (
    ContentItem,
    ToolCall,
    ToolCallPatch,
    ToolCallUpdate,
    ToolContent,
    ToolKind,
    ToolLocation,
    ToolStatus,
)
from antiphon.protocol.v1.updates import (
    CompactionStatus,
    CompactionUpdate,
    MessageChunk,
    NoticeSeverity,
    NoticeUpdate,
)

__all__ = ["CallEntry", "CompactionEntry", "Entry", "Message", "NoticeEntry", "Speaker", "Thought"]

Speaker: TypeAlias = Literal["user", "agent"]

# Read from here and not from their classes: for each tool call that is much of the time that it costs.
PENDING: Final = ToolStatus.PENDING
COMPLETED: Final = ToolStatus.COMPLETED
FAILED: Final = ToolStatus.FAILED
OTHER: Final = ToolKind.OTHER


class JoinedContent:
    """Content that comes in pieces. Text is joined when it is read, so that n pieces cost n steps and not n²."""

    __slots__ = ("_blocks", "note", "open_to", "tail")

    def __init__(self) -> None:
        self._blocks: list[ContentBlock] = []
        self.tail: list[str] = []
        """The text after the last of the blocks, in pieces. `Transcript.apply` puts the next one here by itself."""
        self.note: Annotations | None = None
        """The annotations that all of this text has."""
        self.open_to: type[MessageChunk] | None = None
        """The kind of update that goes on with this text though it names no message, as long as nothing stands behind it."""

    def add(self, block: ContentBlock) -> None:
        """Put a piece at the end. Text joins the text before it unless its annotations differ."""
        if not isinstance(block, TextBlock):
            self._close_text()
            self._blocks.append(block)
            return
        if self.note != block.annotations:
            self._close_text()
            self.note = block.annotations
        self.tail.append(block.text)

    def replace(self, blocks: "list[ContentBlock] | None") -> None:
        """Forget what was written; this is all there is."""
        self._blocks, self.tail, self.note = [], [], None
        for block in blocks or ():
            self.add(block)

    @property
    def text(self) -> str:
        """The text alone, without the pictures and resources between."""
        tail = self._joined()
        if not self._blocks:
            return tail
        return "".join([block.text for block in self._blocks if isinstance(block, TextBlock)]) + tail

    @property
    def blocks(self) -> list[ContentBlock]:
        """Everything in order, text in as few blocks as possible."""
        tail, blocks = self._joined(), self._blocks or ()
        return [*blocks, TextBlock(text=tail, annotations=self.note)] if tail else [*blocks]

    def close(self) -> None:
        """Take no more pieces that name no message, and join the text: thousands of pieces would each have their own place in memory."""
        self.open_to = None
        if len(self.tail) > 1:
            # In a new list: another thread may be at work in `_joined`, and puts its result into the list that it has seen.
            self.tail = ["".join(self.tail)]

    def _joined(self) -> str:
        pieces, count = self.tail, len(self.tail)
        if count > 1:
            # Of those that were there when we looked: another thread may read while the loop's adds the next.
            pieces[:count] = ["".join(pieces[:count])]
        return pieces[0] if pieces else ""

    def _close_text(self) -> None:
        if tail := self._joined():
            self._blocks.append(TextBlock(text=tail, annotations=self.note))
        self.tail, self.note = [], None


class Message(JoinedContent):
    """A message of the user or the agent."""

    __slots__ = ("key", "message_id", "speaker")

    def __init__(self, key: int, speaker: Speaker, message_id: str | None) -> None:
        JoinedContent.__init__(self)  # half the time of `super()`, and one of these comes with every tool call
        self.key = key
        self.speaker = speaker
        self.message_id = message_id


NO_MESSAGE: Final = Message(-1, "agent", None)
"""A message that is in no transcript and open to nothing."""


class Thought(JoinedContent):
    """What the agent thought."""

    __slots__ = ("key", "message_id")

    def __init__(self, key: int, message_id: str | None) -> None:
        super().__init__()
        self.key = key
        self.message_id = message_id


class CallEntry:
    """A tool call in its current state, whichever message it came from: an announcement, a patch, a permission request."""

    __slots__ = (
        "announced", "cancelled", "content", "denied", "denied_because", "id", "key", "kind", "locations", "name", "raw_input", "raw_output", "status", "title",
    )  # fmt: skip

    def __init__(self, key: int, id: str) -> None:
        self.key = key
        self.id = id
        self.title = ""
        self.kind = OTHER
        self.status = PENDING
        self.name: str | None = None
        self.content: list[ToolContent] = []
        self.locations: list[ToolLocation] = []
        self.raw_input: Any = UNSET
        self.raw_output: Any = UNSET
        self.denied = False
        """Whether the agent reports that the call failed because it was not allowed (`_meta.antiphon.denied`, as our own agent marks it)."""
        self.denied_because = ""
        """Why a policy denied it; empty if a person did."""
        self.cancelled = False
        """Whether an agent of version 2 reports that it was cancelled. In version 1 that is a failed call."""
        self.announced = False
        """Whether a `tool_call` came; before that we know the call from a patch or a question alone."""

    @property
    def finished(self) -> bool:
        """Whether it completed or failed."""
        status = self.status
        return status is COMPLETED or status is FAILED or status.meaning in (COMPLETED, FAILED)

    @property
    def label(self) -> str:
        """A title to show in any case."""
        return self.title or self.name or str(self.kind)

    def announce(self, call: ToolCall) -> None:
        """Take a `tool_call`. A second one adds, never removes: a field at its default leaves what is known."""
        self.announced = True
        self.title = call.title or self.title
        kind = call.tool_kind if call.kind is OTHER and call.tool_kind is not None else call.kind
        if kind is not OTHER:
            self.kind = kind
        if call.status is not PENDING and call.status != PENDING:
            self.status = call.status
        self.name = call.name if call.name is not None else self.name
        self.content = call.content or self.content
        self.locations = call.locations or self.locations
        self._take_rest(call)

    def patch(self, patch: ToolCallPatch) -> None:
        """Take what changed: an absent field stays as it was, `None` clears it, lists are replaced whole."""
        if patch.title is not UNSET:
            self.title = patch.title or ""
        kind = patch.tool_kind if patch.kind is UNSET else patch.kind
        if kind is not UNSET:
            self.kind = OTHER if kind is None else kind
        # A call always has a status, so there is nothing to clear it to: a finished call must not seem to run again.
        if patch.status is not UNSET and patch.status is not None:
            self.status = patch.status
        if patch.name is not UNSET:
            self.name = patch.name
        if not isinstance(patch.content, UnsetType):
            self.content = patch.content or []
        if not isinstance(patch.locations, UnsetType):
            self.locations = patch.locations or []
        self._take_rest(patch)

    def known(self, patch: ToolCallPatch) -> ToolCallPatch:
        """The patch, with the fields it leaves out filled in from earlier messages."""
        facts: dict[str, Any] = {
            "title": self.title or UNSET,
            "kind": self.kind if self.kind is not OTHER else UNSET,
            "status": self.status,
            "name": self.name or UNSET,
            "content": self.content or UNSET,
            "locations": self.locations or UNSET,
            "raw_input": _streamed(self.content) if self.raw_input is UNSET else self.raw_input,
        }
        return structs.replace(patch, **{name: value for name, value in facts.items() if getattr(patch, name) is UNSET})

    def _take_rest(self, update: ToolCall | ToolCallPatch) -> None:
        raw_input = update.input if update.raw_input is UNSET else update.raw_input
        raw_output = update.raw_output
        if raw_output is UNSET and update.output is not UNSET:
            if (content := _content_in(update.output)) is None:
                raw_output = update.output
            else:
                self.content = content
        if update.meta:
            self._take_meta(update.meta)
        if raw_input is not UNSET:
            self.raw_input = raw_input
        if raw_output is not UNSET:
            self.raw_output = raw_output

    def _take_meta(self, meta: JsonObject) -> None:
        if isinstance(ours := meta.get("antiphon"), dict) and ours.get("denied") is True:
            self.denied = True
            self.denied_because = why if isinstance(why := ours.get("why"), str) else self.denied_because
        if KEY in meta and kept_in(meta).get("status") == "cancelled":
            self.cancelled = True


def _content_in(output: Any) -> list[ToolContent] | None:
    """The content of a call that was sent as its `output`, as one known dialect does; None if `output` is anything else."""
    if (
        not isinstance(output, list)
        or not output
        or not all(isinstance(each, dict) and "type" in each for each in output)
    ):
        return None
    from antiphon.protocol.v1 import methods as m  # late: few need it

    params = {"sessionId": "", "update": {"kind": "tool_call_update", "toolCallId": "", "output": output}}
    update = m.SESSION_UPDATE.read_params(json.encode(params)).value.update
    content = update.content if isinstance(update, ToolCallUpdate) else None
    return content if isinstance(content, list) else None


def _streamed(content: list[ToolContent]) -> Any:
    """The input of a call that was sent as its content: one text that is a whole JSON object."""
    if len(content) != 1 or not isinstance(content[0], ContentItem) or not isinstance(content[0].content, TextBlock):
        return UNSET
    try:
        return json.decode(content[0].content.text, type=dict[str, Any])
    except DecodeError:
        return UNSET


class NoticeEntry:
    """Something the user should know that belongs to no message."""

    __slots__ = ("description", "key", "severity", "title")

    def __init__(self, key: int, notice: NoticeUpdate) -> None:
        self.key = key
        self.severity: NoticeSeverity = notice.severity
        self.title = notice.title
        self.description = notice.description


class CompactionEntry(JoinedContent):
    """The context was shortened; what is written is the summary."""

    __slots__ = ("error", "id", "key", "status")

    def __init__(self, key: int, id: str) -> None:
        super().__init__()
        self.key = key
        self.id = id
        self.status = CompactionStatus.IN_PROGRESS
        self.error: str | None = None

    def patch(self, update: CompactionUpdate) -> None:
        """Take what changed: an absent field stays as it was, `None` clears it."""
        self.status = update.status
        if not isinstance(update.summary, UnsetType):
            self.replace(update.summary)
        if not isinstance(update.error, UnsetType):
            self.error = update.error


Entry: TypeAlias = Message | Thought | CallEntry | NoticeEntry | CompactionEntry


def lines_of(entry: Entry) -> Iterator[str]:
    """An entry in plain lines, for scripts and tests."""
    match entry:
        case Message(speaker=speaker):
            for line in _shown(entry).splitlines():
                yield f"> {line}" if speaker == "user" else line
        case Thought():
            yield from (f"… {line}" for line in _shown(entry).splitlines())
        case CallEntry():
            yield f"[{entry.status}] {entry.label}"
        case NoticeEntry():
            yield f"! {entry.severity}: {entry.title}" + (f": {entry.description}" if entry.description else "")
        case CompactionEntry():
            yield f"~ compaction {entry.status}" + (f": {entry.error}" if entry.error else "")
            yield from (f"~ {line}" for line in _shown(entry).splitlines())


def _shown(content: JoinedContent) -> str:
    """Text as it is, anything else as a word in brackets where it stands."""
    words = (block.text if isinstance(block, TextBlock) else f"[{_kind(block)}]" for block in content.blocks)
    return "".join(words)


def _kind(block: ContentBlock) -> str:
    return str(getattr(block, "kind", None) or type(block).__struct_config__.tag)  # type: ignore[union-attr]
