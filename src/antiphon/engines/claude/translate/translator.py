"""`ClaudeTranslator`: from lines of the CLI to updates and events. One per session, since messages, calls and plans go over many lines."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from antiphon.engines.bounded import Recent, tally, tokens
from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.events import (
    ClaudeTurnEnded,
    CliStarted,
    CommandsChanged,
    ConversationReset,
    ModeChanged,
    ModelChanged,
    TitleChanged,
    cost_of,
    end_of,
)
from antiphon.engines.claude.translate.messages import NO_CONTENT, ClaudeMessages
from antiphon.engines.claude.translate.notices import notices_of
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from antiphon.engines.claude.translate.events import ClaudeEvent

__all__ = ["ClaudeCompaction", "ClaudeTranslator", "ClaudeUsageMeter"]


class ClaudeTranslator:
    """Translates the lines of one session. It never raises on what the CLI sends, and reports nothing twice."""

    @property
    def used_tokens(self) -> int:
        """The tokens of the last request to the model, also before the size of the context is known."""
        return self._usage.used

    def __init__(self, cwd: str, *, terminals: bool = False, mirror: bool = False, replay: bool = False) -> None:
        self.unknown: Counter[str] = Counter()
        """How many lines of each unknown type were ignored."""
        self._messages = ClaudeMessages(cwd, terminals=terminals, mirror=mirror, replay=replay, unknown=self.unknown)
        self._usage = ClaudeUsageMeter()
        self._compaction = ClaudeCompaction()
        self._limit: wire.RateLimitInfo | None = None
        self._session_id: str | None = None
        self._noticed: Recent[ClaudeEvent] = Recent()
        self._by_type: dict[type, Callable[[Any], Iterable[ClaudeEvent]]] = {
            wire.StreamEvent: self.stream,
            wire.Assistant: self._assistant,
            wire.User: self._user,
            wire.ResultLine: self._result,
            wire.Init: self._init,
            wire.Status: self._status,
            wire.CompactBoundary: self._boundary,
            wire.Reset: self._reset,
            wire.TaskStarted: self._messages.task_started,
            wire.TaskNotification: self._messages.task_over,
            wire.LocalCommandOutput: lambda line: (
                self._messages.add_message(line.content, line.uuid) if line.content else ()
            ),
            wire.TitleLine: lambda line: (TitleChanged(line.title),) if line.title else (),
            wire.CommandsLine: lambda line: (CommandsChanged(line.commands),),
            wire.FallbackLine: self._fallback,
            wire.RateLimit: self._rate_limit,
            wire.UnknownLine: self._ignore,
            wire.GarbledLine: self._ignore,
        }

    def feed(self, line: wire.Line) -> "Sequence[ClaudeEvent]":
        """Return what a line becomes, in order."""
        events = self._by_type.get(type(line), notices_of)(line)
        return events if isinstance(events, tuple) else tuple(events)

    def patch_of(self, request: wire.CanUseTool) -> v1.ToolCallPatch:
        """Return what a permission request shows of its call."""
        id = request.tool_use_id or f"{request.tool_name}-without-id"
        return self._messages.calls.permission_patch(id, request.tool_name, request.input)

    def allowed(self, tool_use_id: str) -> "Sequence[ClaudeEvent]":
        """Report that the user allowed a call, and it runs."""
        return tuple(self._messages.calls.run(tool_use_id))

    def close_open(self, *, background: bool = False) -> "Sequence[ClaudeEvent]":
        """Close the calls without a result at the end of a turn. With `background` (the process ended) also those that outlive turns."""
        return tuple(self._messages.close(background=background))

    def _ignore(self, line: "wire.UnknownLine | wire.GarbledLine") -> "Sequence[ClaudeEvent]":
        if isinstance(line, wire.GarbledLine):
            tally(self.unknown, "garbled")
        else:
            tally(self.unknown, f"{line.type}/{line.subtype}" if line.subtype else line.type)
        return ()

    def stream(self, line: wire.StreamEvent) -> "Sequence[ClaudeEvent]":
        """Return what an event of the model's stream becomes: nearly all lines are one."""
        event, parent = line.event, line.parent_tool_use_id
        if type(event) is wire.BlockDelta:
            return self._messages.delta(event, parent)
        events = self._messages.stream(line)
        if parent is None:
            if type(event) is wire.MessageStart:
                self._usage.message(event.message)
            elif type(event) is wire.MessageDelta:
                return (*events, *self._usage.written(event.usage))
        return events

    def _assistant(self, line: wire.Assistant) -> "Iterator[ClaudeEvent]":
        if line.parent_tool_use_id is None:
            self._usage.message(line.message)
        yield from self._messages.assistant(line)

    def _user(self, line: wire.User) -> "Iterator[ClaudeEvent]":
        if line.is_synthetic and line.parent_tool_use_id is None:
            texts = [block.text for block in line.message.blocks if isinstance(block, wire.ClaudeTextBlock)]
            yield from self._compaction.summary("\n".join(texts))
        yield from self._messages.user(line)

    def _result(self, line: wire.ResultLine) -> "Iterator[ClaudeEvent]":
        yield from self._compaction.over()
        yield from self._messages.close(background=False)
        end = end_of(line, self._messages.last, self._limit)
        yield from self._messages.release_error(send=end.error is None and end.stop_reason != v1.StopReason.CANCELLED)
        if (
            end.stop_reason == v1.StopReason.END_TURN
            and not self._messages.answered
            and line.result
            and line.result != NO_CONTENT
        ):
            yield from self._messages.add_message(line.result, line.uuid)
        yield from self._usage.turn(line)
        self._messages.last, self._messages.answered = None, False
        yield ClaudeTurnEnded(
            end,
            tuple(line.user_message_uuids or ([line.user_message_uuid] if line.user_message_uuid else ())),
            line.origin,
        )

    def _init(self, line: wire.Init) -> "Iterator[ClaudeEvent]":
        # `conversation_reset` names an id that no file has, and older CLIs do not send it; this line has the real one.
        if line.session_id is not None:
            if self._session_id not in (None, line.session_id):
                yield from self._reset(line)
                yield ConversationReset(line.session_id)
            self._session_id = line.session_id
        yield CliStarted(line.model, line.permission_mode, line.capabilities)
        yield from self._once(notices_of(line))

    def _reset(self, _: "wire.Reset | wire.Init") -> "Iterator[ClaudeEvent]":
        yield from self._messages.plan.clear()
        yield from self._usage.cleared()

    def _status(self, line: wire.Status) -> "Iterator[ClaudeEvent]":
        if line.permission_mode is not None:
            yield ModeChanged(line.permission_mode)
        yield from self._compaction.status(line)

    def _boundary(self, line: wire.CompactBoundary) -> "Iterator[ClaudeEvent]":
        yield from self._compaction.boundary(line)
        yield from self._usage.compacted(line.compact_metadata.post_tokens)

    def _fallback(self, line: wire.FallbackLine) -> "Iterator[ClaudeEvent]":
        yield from notices_of(line)
        if line.fallback_model is not None and line.scope != "local":
            yield ModelChanged(line.fallback_model)

    def _rate_limit(self, line: wire.RateLimit) -> "Iterator[ClaudeEvent]":
        self._limit = line.rate_limit_info
        yield from self._once(notices_of(line))

    def _once(self, events: "Iterable[ClaudeEvent]") -> "Iterator[ClaudeEvent]":
        """Pass each notice on once: some lines come with every turn."""
        for each in events:
            if each not in self._noticed:
                self._noticed.add(each)
                yield each


# How full the context is and what the session has cost, reported when it changes.

SYNTHETIC = "<synthetic>"
"""The model's name on messages that the CLI made up; they used nothing."""


class ClaudeUsageMeter:
    """The usage of a session. Only results have the size of the context window, so nothing is reported before the first one."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._prompt: wire.ClaudeUsage | None = None
        self._used = 0
        self._size = 0
        self._cost: v1.Cost | None = None
        self._sent: v1.UsageUpdate | None = None

    @property
    def used(self) -> int:
        """The tokens of the last request."""
        return tokens(self._used)

    def message(self, message: "wire.ClaudeMessage | None") -> None:
        """Note a message of the main thread that began. It is reported when it is complete."""
        if message is None or message.usage is None or message.model == SYNTHETIC:
            return
        self._model = message.model or self._model
        self._prompt = message.usage
        self._used = message.usage.context or self._used

    def written(self, usage: "wire.ClaudeUsage | None") -> "Sequence[v1.UsageUpdate]":
        """Report a complete message. Older servers repeat only the number of output tokens."""
        if usage is None:
            return ()
        before = self._prompt
        if usage.input_tokens is None and before is not None:
            self._used = max(before.context - (before.output_tokens or 0) + (usage.output_tokens or 0), 0)
        else:
            self._used = usage.context or self._used
        return self._changed()

    def cleared(self) -> "Sequence[v1.UsageUpdate]":
        """Report an empty context, because the session starts again."""
        self._used = 0
        return self._changed()

    def compacted(self, tokens: int | None) -> "Sequence[v1.UsageUpdate]":
        """Report the size of a compacted context."""
        if not tokens or tokens < 0:
            return ()
        self._used = tokens
        return self._changed()

    def turn(self, result: "wire.ResultLine") -> "Sequence[v1.UsageUpdate]":
        """Report a turn that ended: the size of the window and the cost are known."""
        self._size = self._window(result) or self._size
        self._cost = cost_of(result) or self._cost
        return self._changed()

    def _window(self, result: "wire.ResultLine") -> int:
        sizes = {model: usage.context_window for model, usage in result.model_usage.items() if usage.context_window > 0}
        if not sizes:
            return 0
        ours = [size for model, size in sizes.items() if self._model is not None and model.startswith(self._model)]
        return max(ours or sizes.values())

    def _changed(self) -> "Sequence[v1.UsageUpdate]":
        if not self._size:
            return ()
        update = v1.UsageUpdate(used=tokens(self._used), size=tokens(self._size), cost=self._cost)
        if update == self._sent:
            return ()
        self._sent = update
        return (update,)


# Compaction: `status` reports that it starts and how it went, `compact_boundary` that it is done.


class ClaudeCompaction:
    """The compactions of a session, one after the other."""

    def __init__(self) -> None:
        self._count = 0
        self._open: str | None = None
        self._done: str | None = None
        """The compaction whose summary may still come."""

    def status(self, status: "wire.Status") -> "Iterator[v1.CompactionUpdate]":
        """Report that a compaction starts, or how it ended."""
        if status.status == "compacting":
            if self._open is None:
                yield self._begin(status.uuid)
        elif self._open is not None and status.compact_result == "failed":
            id, self._open = self._open, None
            error = status.compact_error or "Compacting failed"
            yield v1.CompactionUpdate(compaction_id=id, status=v1.CompactionStatus.FAILED, error=error)
        elif self._open is not None and status.compact_result is not None:
            yield self._finish(self._open)

    def boundary(self, boundary: "wire.CompactBoundary") -> "Iterator[v1.CompactionUpdate]":
        """Report that the session continues with a summary."""
        if self._open is None and self._done is None:
            self._begin(boundary.uuid)
        if self._open is not None:
            yield self._finish(self._open)

    def summary(self, text: str) -> "Iterator[v1.CompactionSummaryChunk]":
        """Report the summary: the first note for the model after a boundary."""
        if self._done is not None and text:
            id, self._done = self._done, None
            yield v1.CompactionSummaryChunk(compaction_id=id, content=v1.TextBlock(text=text))

    def over(self) -> "Iterator[v1.CompactionUpdate]":
        """Cancel a compaction that is open when the turn ends."""
        self._done = None
        if self._open is not None:
            id, self._open = self._open, None
            yield v1.CompactionUpdate(compaction_id=id, status=v1.CompactionStatus.CANCELLED)

    def _begin(self, id: str | None) -> v1.CompactionUpdate:
        self._count += 1
        self._open, self._done = id or f"compaction-{self._count}", None
        return v1.CompactionUpdate(compaction_id=self._open, status=v1.CompactionStatus.IN_PROGRESS)

    def _finish(self, id: str) -> v1.CompactionUpdate:
        self._open, self._done = None, id
        return v1.CompactionUpdate(compaction_id=id, status=v1.CompactionStatus.COMPLETED)
