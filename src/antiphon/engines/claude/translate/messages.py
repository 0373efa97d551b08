"""Messages: `stream_event`, `assistant` and `user` lines of the main thread, streamed text, and sub-agents."""

from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.bounded import Recent, tally, trim
from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.calls import AGENTS, PLAN_TOOLS, SHELLS, ClaudeCalls, ClaudePlan
from antiphon.engines.claude.translate.content import content_of, unframed
from antiphon.engines.claude.translate.results import result_of
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT, JsonObject
from antiphon.protocol.base import Unknown as UnknownPart

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from antiphon.engines.claude.translate.events import ClaudeEvent

    _Kind = type[v1.AgentMessageChunk] | type[v1.AgentThoughtChunk]

__all__ = ["ClaudeMessages", "Streamed", "Subagents", "is_launch", "report"]

NO_CONTENT: Final = "(no content)"
"""The text of older CLIs where a local command printed nothing."""

INTERRUPTED: Final = "[Request interrupted by user"
"""How the CLI reports an interrupt to the model, as a message of the user."""

MOST_OPEN: Final = 256
"""Sub-agents that are followed at once, and calls about the plan that wait for their results."""


class _Lane:
    """One thread of messages as it is streamed: the main one, or a sub-agent's."""

    __slots__ = ("streamed", "tools")

    def __init__(self) -> None:
        self.streamed = Streamed()
        self.tools: dict[int, str] = {}


class ClaudeMessages:
    """The messages of a session, and what of them is reported already."""

    def __init__(self, cwd: str, *, terminals: bool, mirror: bool, replay: bool, unknown: "Counter[str]") -> None:
        self.calls = ClaudeCalls(cwd, terminals=terminals, mirror=mirror)
        self.plan = ClaudePlan()
        self.last: wire.Assistant | None = None
        """The last message of the main model in this turn."""
        self.answered = False
        """Whether any text of this turn is reported."""
        self._cwd = cwd
        self._replay = replay
        self._unknown = unknown
        self._subagents = Subagents()
        self._main = _Lane()
        self._lanes: dict[str, _Lane] = {}
        self._planned: dict[str, tuple[str, JsonObject]] = {}
        self._held_error: wire.Assistant | None = None
        self._seen: Recent[str] = Recent()

    # The stream.

    def stream(self, line: wire.StreamEvent) -> "Sequence[ClaudeEvent]":
        """Translate an event of the model's stream that is no delta."""
        event, parent = line.event, line.parent_tool_use_id
        lane = self._lane(parent)
        if type(event) is wire.MessageStart:
            lane.tools.clear()
            lane.streamed.start(event.message.id if event.message else None)
        elif type(event) is wire.BlockStart:
            return self._block_start(lane, event, parent)
        elif type(event) is UnknownPart:
            tally(self._unknown, f"event/{event.kind}")
        return ()

    def delta(self, event: wire.BlockDelta, parent: str | None) -> "Sequence[ClaudeEvent]":
        """Translate a piece of text, of thinking or of a tool's input."""
        delta, text = event.delta, ""
        kind: _Kind = v1.AgentMessageChunk
        if type(delta) is wire.TextDelta:
            text = delta.text
        elif type(delta) is wire.ThinkingDelta:
            kind, text = v1.AgentThoughtChunk, delta.thinking
        elif type(delta) is wire.InputDelta:
            call = self.calls.get(self._lane(parent).tools.get(event.index))
            return tuple(self.calls.more_input(call, delta.partial_json)) if call is not None else ()
        elif type(delta) is UnknownPart:
            tally(self._unknown, f"delta/{delta.kind}")
        if not text or parent is not None:
            return ()
        self.answered = True
        return (self._main.streamed.add(event.index, kind, text),)

    def _block_start(self, lane: _Lane, event: wire.BlockStart, parent: str | None) -> "Sequence[ClaudeEvent]":
        block = event.content_block
        lane.streamed.begin(event.index)
        lane.tools.pop(event.index, None)
        if isinstance(block, wire.ToolUseBlock | wire.ServerToolUseBlock):
            lane.tools[event.index] = block.id
            if block.name not in PLAN_TOOLS:
                return tuple(self.calls.begin(block.id, block.name, parent))
        elif parent is None and isinstance(block, wire.ClaudeTextBlock) and block.text:
            self.answered = True
            return (lane.streamed.add(event.index, v1.AgentMessageChunk, block.text),)
        return ()

    def _lane(self, parent: str | None) -> _Lane:
        if parent is None:
            return self._main
        lane = self._lanes.setdefault(parent, _Lane())
        trim(self._lanes, MOST_OPEN)
        return lane

    # Whole messages.

    def assistant(self, line: wire.Assistant) -> "Iterator[ClaudeEvent]":
        """A message, or a block of one."""
        if line.uuid is not None:
            if line.uuid in self._seen:
                return
            self._seen.add(line.uuid)
        parent = line.parent_tool_use_id
        if parent is None:
            yield from self.release_error()
            self.last = line
            if (line.is_api_error_message or line.error is not None) and not self._replay:
                self._held_error = line  # the turn's end shows whether it is an error or the model's last message
                return
        for block in line.message.blocks:
            yield from self._block(line, block, parent)

    def release_error(self, send: bool = True) -> "Iterator[ClaudeEvent]":
        """Report an error that the CLI wrote as a message, or drop it because the turn reports it as an error."""
        line, self._held_error = self._held_error, None
        if line is not None and send:
            for block in line.message.blocks:
                yield from self._block(line, block, None)

    def _block(self, line: wire.Assistant, block: wire.Block, parent: str | None) -> "Iterator[ClaudeEvent]":
        match block:
            case wire.ClaudeTextBlock(text=text):
                yield from self._text(line, text, parent)
            case wire.ThinkingBlock(thinking=text):
                yield from self._thinking(line, text, parent)
            case (
                wire.ToolUseBlock(id=id, name=name, input=input)
                | wire.ServerToolUseBlock(id=id, name=name, input=input)
            ):
                yield from self._call(id, name, input, parent)
            case wire.ToolResultBlock():  # older CLIs send results here
                yield from self._result(block, None, parent)
            case UnknownPart(kind=kind) if kind.endswith("_tool_result"):
                yield from self._server_result(block, parent)
            case UnknownPart(kind=kind):
                tally(self._unknown, f"block/{kind}")
            case _:
                pass

    def _text(self, line: wire.Assistant, text: str, parent: str | None) -> "Iterator[ClaudeEvent]":
        if parent is not None:
            yield from self._folded(parent, text, thought=False)
            return
        if text == NO_CONTENT and line.message.id != self._main.streamed.message_id:
            return
        if rest := self._main.streamed.rest(line.message.id, v1.AgentMessageChunk, text):
            yield from self.add_message(rest, line.message.id or line.uuid)

    def add_message(self, text: str, message_id: str | None) -> "Iterator[ClaudeEvent]":
        """Report text that was not streamed."""
        self.answered = True
        yield v1.AgentMessageChunk(content=v1.TextBlock(text=text), message_id=message_id)

    def _thinking(self, line: wire.Assistant, text: str, parent: str | None) -> "Iterator[ClaudeEvent]":
        if parent is not None:
            yield from self._folded(parent, text, thought=True)
        elif rest := self._main.streamed.rest(line.message.id, v1.AgentThoughtChunk, text):
            yield v1.AgentThoughtChunk(content=v1.TextBlock(text=rest), message_id=line.message.id or line.uuid)

    def _folded(self, parent: str, text: str, *, thought: bool) -> "Iterator[ClaudeEvent]":
        call = self.calls.get(parent)
        if call is not None and text.strip():
            yield self.calls.update_content(call, self._subagents.add_text(parent, text, thought=thought))

    def _call(self, id: str, name: str, input: "JsonObject", parent: str | None) -> "Iterator[ClaudeEvent]":
        if name in PLAN_TOOLS:
            self._planned[id] = (name, input)
            trim(self._planned, MOST_OPEN)
        else:
            yield from self.calls.complete_input(id, name, input, parent)

    # Results, and messages of the user.

    def user(self, line: wire.User) -> "Iterator[ClaudeEvent]":
        """Results of tools. Text is the user's own in a history alone; live, the client knows it already."""
        parent, blocks = line.parent_tool_use_id, line.message.blocks
        results = [block for block in blocks if isinstance(block, wire.ToolResultBlock)]
        for result in results:
            yield from self._result(result, line.tool_use_result if len(results) == 1 else None, parent)
        foreign = line.origin is not None and line.origin.get("kind") not in (None, "human")
        if self._replay and parent is None and not (line.is_synthetic or line.is_replay or foreign):
            for block in blocks:
                yield from self._users(block, line.uuid)

    def _users(self, block: wire.Block, id: str | None) -> "Iterator[ClaudeEvent]":
        match block:
            case wire.ClaudeTextBlock(text=text) if text and not text.startswith(INTERRUPTED):
                yield v1.UserMessageChunk(content=v1.TextBlock(text=text), message_id=id)
            case wire.ClaudeImageBlock() | wire.DocumentBlock():
                for item in content_of(msgspec.to_builtins(block)):
                    if isinstance(item, v1.ContentItem):
                        yield v1.UserMessageChunk(content=item.content, message_id=id)
            case _:
                pass

    def _result(self, block: wire.ToolResultBlock, structured: object, parent: str | None) -> "Iterator[ClaudeEvent]":
        id = block.tool_use_id
        planned = self._planned.pop(id, None)
        if planned is not None:
            if parent is None:  # a sub-agent's plan is its own
                yield from self.plan.apply(*planned, structured, block.is_error is True)
            return
        if self.calls.is_over(id):
            return
        call = self.calls.get(id)
        result = result_of(call.name if call else "", call.input if call else {}, block, structured, self._cwd)
        if call is None:
            yield from self.calls.unannounced(id, result, parent)
        elif call.name in AGENTS:
            if is_launch(structured) and not result.failed and not self._replay:
                call.background = True
                return
            yield from self.close(background=True, below=id)
            content = [] if is_launch(structured) else result.content
            yield from self.calls.finish(call, result, self._subagents.final_content(id, content))
            self._lanes.pop(id, None)
        else:
            call.background = (
                call.name in SHELLS and isinstance(structured, dict) and bool(structured.get("backgroundTaskId"))
            )
            yield from self.calls.finish(call, result)

    def _server_result(self, block: UnknownPart, parent: str | None) -> "Iterator[ClaudeEvent]":
        """Report the result of a tool at the model's side."""
        try:
            fields = block.fields
        except BAD_INPUT:
            tally(self._unknown, f"block/{block.kind}")
            return
        id, content = fields.get("tool_use_id"), fields.get("content")
        if isinstance(id, str) and self.calls.get(id) is not None:
            failed = isinstance(content, dict) and str(content.get("type", "")).endswith("_error")
            yield from self._result(wire.ToolResultBlock(tool_use_id=id, is_error=failed), content, parent)

    # Tasks.

    def task_started(self, line: wire.TaskStarted) -> "Sequence[ClaudeEvent]":
        """Note a sub-agent or a slow command that runs on its own."""
        self._subagents.started(line)
        return ()

    def task_over(self, line: wire.TaskNotification) -> "Iterator[ClaudeEvent]":
        """Report the end of a task. If its call waited for it, the call ends too."""
        id = self._subagents.call_of(line)
        self._subagents.ended(line.task_id)
        if id is None:
            return
        call = self.calls.get(id)
        if call is None:
            yield from self.calls.background_exit(id, line.summary)
        elif call.background:
            yield from self.close(background=True, below=id)
            content = self._subagents.final_content(id, report(line.summary))
            yield self.calls.finish_task(call, line.status != "completed", content)
            self._lanes.pop(id, None)

    def close(self, *, background: bool, below: str | None = None) -> "Iterator[ClaudeEvent]":
        """Close the calls that get no result any more."""
        for call in self.calls.left_open(background=background, below=below):
            yield self.calls.close(call, self._subagents.final_content(call.id, []))
            self._lanes.pop(call.id, None)


# Streamed text, remembered so that the whole message, which follows, does not repeat it.

KEPT_MESSAGES: Final = 8
"""Messages whose streamed text is remembered. The whole follows each block at once, so one would nearly do."""


class _Stretch:
    """One block of text or thought, as far as it was streamed."""

    __slots__ = ("index", "kind", "pieces")

    def __init__(self, kind: "_Kind", index: int) -> None:
        self.kind = kind
        self.index = index
        self.pieces: list[str] = []


class Streamed:
    """The streamed text of one thread: the main one, or a sub-agent's."""

    def __init__(self) -> None:
        self.message_id: str | None = None
        self._stretches: dict[str | None, list[_Stretch]] = {}
        self._open: dict[int, _Stretch] = {}

    def start(self, message_id: str | None) -> None:
        """A message begins."""
        self.message_id = message_id
        self._open.clear()
        self._stretches.pop(message_id, None)
        self._stretches[message_id] = []
        while len(self._stretches) > KEPT_MESSAGES:
            del self._stretches[next(iter(self._stretches))]

    def begin(self, index: int) -> None:
        """A block begins: what follows under this number is not more of an earlier one."""
        self._open.pop(index, None)

    def add(self, index: int, kind: "_Kind", text: str) -> v1.AgentMessageChunk | v1.AgentThoughtChunk:
        """Remember a piece of a block, and return it as an update."""
        stretch = self._open.get(index)
        if stretch is None or stretch.kind != kind:
            stretch = self._open[index] = _Stretch(kind, index)
            self._stretches.setdefault(self.message_id, []).append(stretch)
        stretch.pieces.append(text)
        return kind(content=v1.TextBlock(text=text), message_id=self.message_id)

    def rest(self, message_id: str | None, kind: "_Kind", text: str) -> str:
        """Return the part of this whole block that was not streamed."""
        stretches = self._stretches.get(message_id) or self._stretches.get(None) or []
        stretch = next((each for each in stretches if each.kind == kind), None)
        if stretch is None:
            return text
        result = "".join(stretch.pieces)
        stretches.remove(stretch)
        if self._open.get(stretch.index) is stretch:
            del self._open[stretch.index]
        if text.startswith(result):
            return text[len(result) :]
        if (
            result.startswith(text) and text
        ):  # an old stream does not mark the end of a block: the rest belongs to the next one
            stretch.pieces = [result[len(text) :]]
            stretches.insert(0, stretch)
        return ""


# Sub-agents: their messages are shown in the call that started them, and that call ends when they do.

MAX_FOLDED: Final = 20_000
"""Characters of a sub-agent's messages that its call shows. All of it is sent again with each piece, so it must stay small."""


class Subagents:
    """The messages of each sub-agent, and which task belongs to which call."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._call_of: dict[str, str] = {}

    def started(self, task: "wire.TaskStarted") -> None:
        """A task begins: later lines may name the task alone."""
        if task.tool_use_id is not None:
            self._call_of[task.task_id] = task.tool_use_id
            trim(self._call_of)

    def call_of(self, task: "wire.TaskNotification | wire.TaskUpdated | wire.TaskProgress") -> str | None:
        """The call that started a task."""
        return getattr(task, "tool_use_id", None) or self._call_of.get(task.task_id)

    def ended(self, task_id: str) -> None:
        """Forget a task that ended."""
        self._call_of.pop(task_id, None)

    def add_text(self, call_id: str, text: str, *, thought: bool = False) -> "list[v1.ToolContent]":
        """Add a message, and return all of them as content of the call."""
        if thought:
            text = "\n".join(f"> {line}" for line in text.strip().splitlines())
        before = self._texts.get(call_id, "")
        value = f"{before}\n\n{text}" if before else text
        self._texts[call_id] = value if len(value) <= MAX_FOLDED else f"…{value[1 - MAX_FOLDED :]}"
        return _content(self._texts[call_id])

    def final_content(self, call_id: str, report: "list[v1.ToolContent]") -> "list[v1.ToolContent]":
        """Return what its call shows at the end: all messages, and the report unless it is the last message."""
        value = self._texts.pop(call_id, "")
        if not value:
            return report
        last = _plain(_text(report))
        return _content(value) if not last or _plain(value).endswith(last) else [*_content(value), *report]


def is_launch(structured: object) -> bool:
    """Whether a result only reports that a sub-agent runs in the background."""
    return isinstance(structured, dict) and (
        structured.get("status") == "async_launched" or structured.get("isAsync") is True
    )


def report(text: str | None) -> "list[v1.ToolContent]":
    """Return the report of a task as content."""
    value = unframed(text or "")
    return _content(value) if value else []


def _content(text: str) -> "list[v1.ToolContent]":
    return [v1.ContentItem(content=v1.TextBlock(text=text))]


def _plain(text: str) -> str:
    """Text in which the CLI may have changed the white space."""
    return " ".join(text.split())


def _text(content: "list[v1.ToolContent]") -> str:
    texts = [
        item.content.text
        for item in content
        if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)
    ]
    return "\n".join(texts).strip()
