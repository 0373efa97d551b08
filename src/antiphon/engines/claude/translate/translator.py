"""The way in: a line of the CLI, and what it comes to. One per session, since text, calls and plans go over many lines."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate import news
from antiphon.engines.claude.translate.compaction import Compaction
from antiphon.engines.claude.translate.conversation import NOTHING_SAID, Talk
from antiphon.engines.claude.translate.endings import end_of
from antiphon.engines.claude.translate.notices import notices_of
from antiphon.engines.claude.translate.usage import Gauge
from antiphon.engines.recent import Recent, tally
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from antiphon.engines.claude.translate.news import News

__all__ = ["Translator"]


class Translator:
    """Never raises on what the CLI says, and tells nothing twice."""

    def __init__(self, cwd: str, *, terminals: bool = False, mirror: bool = False, replay: bool = False) -> None:
        self.unknown: Counter[str] = Counter()
        """What was ignored, by sort."""
        self._talk = Talk(cwd, terminals=terminals, mirror=mirror, replay=replay, unknown=self.unknown)
        self._gauge = Gauge()
        self._compaction = Compaction()
        self._limit: wire.RateLimitInfo | None = None
        self._session_id: str | None = None
        self._noticed: Recent[News] = Recent()
        self._by_type: dict[type, Callable[[Any], Iterable[News]]] = {
            wire.StreamEvent: self._stream,
            wire.Assistant: self._assistant,
            wire.User: self._user,
            wire.Result: self._result,
            wire.Init: self._init,
            wire.Status: self._status,
            wire.CompactBoundary: self._boundary,
            wire.Reset: self._reset,
            wire.TaskStarted: self._talk.task_started,
            wire.TaskNotification: self._talk.task_over,
            wire.LocalCommandOutput: lambda line: self._talk.say(line.content, line.uuid) if line.content else (),
            wire.TitleChanged: lambda line: (news.Titled(line.title),) if line.title else (),
            wire.CommandsChanged: lambda line: (news.CommandsChanged(line.commands),),
            wire.FellBack: self._fell_back,
            wire.RateLimit: self._rate_limit,
            wire.Unknown: self._ignore,
            wire.Garbled: self._ignore,
        }

    def feed(self, line: wire.Line) -> "Sequence[News]":
        """What a line comes to, in order."""
        told = self._by_type.get(type(line), notices_of)(line)
        return told if isinstance(told, tuple) else tuple(told)

    def patch_of(self, request: wire.CanUseTool) -> v1.ToolCallPatch:
        """What a question about a call shows."""
        id = request.tool_use_id or f"{request.tool_name}-without-id"
        return self._talk.calls.asked(id, request.tool_name, request.input)

    def allowed(self, tool_use_id: str) -> "Sequence[News]":
        """The call was asked about, and it may run."""
        return tuple(self._talk.calls.runs(tool_use_id))

    def close_open(self, *, background: bool = False) -> "Sequence[News]":
        """The turn is over: calls that got no result failed. With `background` (the process is gone) also those that outlive turns."""
        return tuple(self._talk.close(background=background))

    def _ignore(self, line: "wire.Unknown | wire.Garbled") -> "Sequence[News]":
        if isinstance(line, wire.Garbled):
            tally(self.unknown, "garbled")
        else:
            tally(self.unknown, f"{line.type}/{line.subtype}" if line.subtype else line.type)
        return ()

    def _stream(self, line: wire.StreamEvent) -> "Sequence[News]":
        told = self._talk.stream(line)
        if line.parent_tool_use_id is None:
            event = line.event
            if type(event) is wire.MessageStart:
                self._gauge.message(event.message)
            elif type(event) is wire.MessageDelta:
                return (*told, *self._gauge.written(event.usage))
        return told

    def _assistant(self, line: wire.Assistant) -> "Iterator[News]":
        if line.parent_tool_use_id is None:
            self._gauge.message(line.message)
        yield from self._talk.assistant(line)

    def _user(self, line: wire.User) -> "Iterator[News]":
        if line.is_synthetic and line.parent_tool_use_id is None:
            texts = [block.text for block in line.message.blocks if isinstance(block, wire.TextBlock)]
            yield from self._compaction.summary("\n".join(texts))
        yield from self._talk.user(line)

    def _result(self, line: wire.Result) -> "Iterator[News]":
        yield from self._compaction.over()
        yield from self._talk.close(background=False)
        end = end_of(line, self._talk.last, self._limit)
        yield from self._talk.release_held(tell=end.error is None and end.stop_reason != v1.StopReason.CANCELLED)
        if (
            end.stop_reason == v1.StopReason.END_TURN
            and not self._talk.said
            and line.result
            and line.result != NOTHING_SAID
        ):
            yield from self._talk.say(line.result, line.uuid)
        yield from self._gauge.turn(line)
        self._talk.last, self._talk.said = None, False
        yield news.TurnEnded(
            end,
            tuple(line.user_message_uuids or ([line.user_message_uuid] if line.user_message_uuid else ())),
            line.origin,
        )

    def _init(self, line: wire.Init) -> "Iterator[News]":
        # `conversation_reset` names an id that no file has, and older CLIs do not say it; this line has the real one.
        if line.session_id is not None:
            if self._session_id not in (None, line.session_id):
                yield from self._reset(line)
                yield news.ConversationReset(line.session_id)
            self._session_id = line.session_id
        yield news.Started(line.model, line.permission_mode, line.capabilities)
        yield from self._once(notices_of(line))

    def _reset(self, _: "wire.Reset | wire.Init") -> "Iterator[News]":
        yield from self._talk.plan.clear()
        yield from self._gauge.cleared()

    def _status(self, line: wire.Status) -> "Iterator[News]":
        if line.permission_mode is not None:
            yield news.ModeChanged(line.permission_mode)
        yield from self._compaction.status(line)

    def _boundary(self, line: wire.CompactBoundary) -> "Iterator[News]":
        yield from self._compaction.boundary(line)
        yield from self._gauge.compacted(line.compact_metadata.post_tokens)

    def _fell_back(self, line: wire.FellBack) -> "Iterator[News]":
        yield from notices_of(line)
        if line.fallback_model is not None and line.scope != "local":
            yield news.ModelChanged(line.fallback_model)

    def _rate_limit(self, line: wire.RateLimit) -> "Iterator[News]":
        self._limit = line.rate_limit_info
        yield from self._once(notices_of(line))

    def _once(self, told: "Iterable[News]") -> "Iterator[News]":
        """Lines that come with every turn would say the same each time."""
        for each in told:
            if each not in self._noticed:
                self._noticed.add(each)
                yield each
