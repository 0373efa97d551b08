"""`CodexTranslator`: from notifications about one thread to updates and events, in order. Pure: no I/O but what is injected."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from antiphon.engines.bounded import Recent, tally
from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.calls import CallDescription, CodexCall, CodexCalls
from antiphon.engines.codex.translate.commands import (
    CommandCalls,
    command_line,
    kind_of_command,
    places_of_command,
    shell_line,
)
from antiphon.engines.codex.translate.events import REPORTS, CodexEvent, end_of, message_of, note_on, retry, text_notice
from antiphon.engines.codex.translate.file_changes import FileChangeCalls, Reader, show_changes
from antiphon.engines.codex.translate.messages import (
    CodexCompaction,
    CodexLimits,
    CodexMessages,
    CodexUsageMeter,
    plan_of,
)
from antiphon.engines.codex.translate.tools import (
    TOOLS,
    ToolItem,
    block_of_input,
    json_text,
    mcp_name,
    outcome_of,
    show,
)
from antiphon.engines.events import EngineNotice, TitleChanged, TurnEnded
from antiphon.engines.labels import one_line, prose, shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, Unknown
from antiphon.text import exact, fenced

__all__ = ["Approvals", "CodexTranslator", "ItemTranslator"]

_IGNORED: Final = frozenset({
    "account/gatewayOAuth/changed", "account/login/completed", "account/rateLimits/updated", "account/updated", "app/list/updated",
    "command/exec/outputDelta", "externalAgentConfig/import/completed", "externalAgentConfig/import/progress", "fs/changed",
    "fuzzyFileSearch/sessionCompleted", "fuzzyFileSearch/sessionUpdated", "hook/started", "item/autoApprovalReview/started",
    "item/fileChange/outputDelta", "item/reasoning/summaryPartAdded", "mcpServer/event/stream/notification", "process/exited",
    "process/outputDelta", "project/changed", "remoteControl/status/changed", "serverRequest/resolved", "skills/changed",
    "thread/archived", "thread/attachment/updated", "thread/closed", "thread/deleted", "thread/environment/connected",
    "thread/environment/disconnected", "thread/goal/cleared", "thread/prediction/updated", "thread/project/updated",
    "thread/queue/changed", "thread/readState/changed", "thread/realtime/closed", "thread/realtime/error",
    "thread/realtime/item/completed", "thread/realtime/item/started", "thread/realtime/item/transcript/delta",
    "thread/realtime/itemAdded", "thread/realtime/outputAudio/delta", "thread/realtime/sdp", "thread/realtime/started",
    "thread/realtime/transcript/delta", "thread/realtime/transcript/done", "thread/reverted", "thread/started",
    "thread/status/changed", "thread/unarchived", "turn/diff/updated", "turn/moderationMetadata", "windowsSandbox/setupCompleted",
})  # fmt: skip
"""Known methods that are used elsewhere, reported better by others, or about what no session of ours does."""


class CodexTranslator:
    """Translates one thread. `read` returns the text of a file before it is changed; `unknown` counts unknown methods and items."""

    def __init__(self, cwd: str, *, terminals: bool = False, mirror: bool = False, read: Reader | None = None) -> None:
        self.unknown: Counter[str] = Counter()
        self._calls = CodexCalls()
        self._messages = CodexMessages()
        self._changes = FileChangeCalls(self._calls, cwd, read)
        self._approvals = Approvals(self._calls, cwd, read)
        self._compaction = CodexCompaction()
        self._commands = commands = CommandCalls(self._calls, cwd, terminals=terminals, mirror=mirror)
        self._items = ItemTranslator(
            cwd, self._calls, self._messages, commands, self._changes, self._compaction, self.unknown
        )
        self._gauge = CodexUsageMeter()
        self._limits = CodexLimits()
        self._last_error: wire.TurnError | None = None
        self._goal = wire.Goal()
        self._ended: Recent[str] = Recent()
        self._handlers: dict[str, Callable[[Any], Iterable[CodexEvent]]] = {
            "item/agentMessage/delta": self._message_delta,
            "item/plan/delta": self._message_delta,
            "item/reasoning/summaryTextDelta": self._summary,
            "item/reasoning/textDelta": self._thinking,
            "item/commandExecution/outputDelta": lambda params: commands.printed(params.item_id, params.delta),
            "item/commandExecution/terminalInteraction": lambda params: commands.typed(params.item_id, params.stdin),
            "item/fileChange/patchUpdated": lambda params: self._changes.updated(params.item_id, params.changes),
            "item/mcpToolCall/progress": self._progress,
            "item/started": lambda params: self._items.started(params.item),
            "item/completed": lambda params: self._items.completed(params.item, replay=False),
            "turn/started": self._turn_started,
            "turn/completed": self._turn_completed,
            "turn/plan/updated": lambda params: (plan_of(params),),
            "thread/compacted": lambda params: self._compaction.compacted(params.turn_id),
            "thread/name/updated": self._named,
            "thread/settings/updated": lambda params: (params.thread_settings,),
            "thread/tokenUsage/updated": self._tokens,
            "thread/goal/updated": self._goal_updated,
            "account/rateLimits/updated": self._limited,
            "error": self._error,
        }

    def handles(self, method: str) -> bool:
        """Whether a notification method is known."""
        return method in self._handlers or method in REPORTS or method in _IGNORED

    def feed(self, method: str, params: "wire.Notification | wire.UnreadParams") -> Sequence[CodexEvent]:
        """Translate one notification about this thread or about no thread in particular."""
        handler = self._handlers.get(method)
        if handler is not None and type(params) is not wire.UnreadParams:
            events = handler(params)
            return events if isinstance(events, tuple) else tuple(events)
        report = REPORTS.get(method)
        if report is not None and type(params) is not wire.UnreadParams:
            return tuple(report(params))
        if method not in _IGNORED:
            tally(self.unknown, method)
        return ()

    def item(self, item: wire.Item, *, replay: bool = True) -> Sequence[CodexEvent]:
        """Translate a complete item, as in a history. Prompts of the user are only reported in histories."""
        return tuple(self._items.completed(item, replay=replay))

    def turns(self, turns: Iterable[wire.CodexTurn]) -> Iterator[CodexEvent]:
        """Translate a whole history into the same updates as when it happened."""
        for turn in turns:
            self._turn_began()
            for item in turn.items:
                # Histories have the text before a retry and do not mark the retry.
                if isinstance(item, wire.AgentMessage | wire.Reasoning):
                    self._messages.retried()
                else:
                    self._messages.answered()
                yield from self._items.completed(item, replay=True)
            yield from self._calls.close(lasting=True)
            if turn.status == "failed" and turn.error is not None:
                yield text_notice(message_of(turn.error), v1.NoticeSeverity.ERROR)
        self._turn_began()

    def patch_of(self, params: "wire.Request | wire.UnreadParams") -> v1.ToolCallPatch | None:
        """Return what a permission request shows of its call, which waits from now on; None if it is about no known call."""
        return self._approvals.patch_of(params)

    def allowed(self, item_id: str) -> Sequence[CodexEvent]:
        """Report that the user allowed a call, and it runs."""
        call = self._calls.get(item_id)
        if call is not None and call.description.name == "Bash":
            call.lasting = True  # its process is not reported before its end
        return tuple(self._calls.runs(item_id))

    def close_open(self) -> Sequence[CodexEvent]:
        """Close everything that is open, because the process or the session ended."""
        events = (*self._calls.close(lasting=True), *self._compaction.over(interrupted=True))
        self._changes.forget()
        self._commands.forget()
        return events

    @property
    def has_ending(self) -> bool:
        """Whether the end of a command that was cancelled is still to come."""
        return self._calls.has_ending

    def forget_ends(self) -> None:
        """Report no end of a cancelled call any more."""
        self._calls.forget_ends()

    # Pieces of items.

    def _message_delta(self, params: wire.Delta) -> Iterable[CodexEvent]:
        return self._messages.add_text(params.item_id, params.delta)

    def _summary(self, params: wire.PartDelta) -> Iterable[CodexEvent]:
        return self._messages.add_thought(params.item_id, params.delta, "summary", params.summary_index)

    def _thinking(self, params: wire.PartDelta) -> Iterable[CodexEvent]:
        return self._messages.add_thought(params.item_id, params.delta, "content", params.content_index)

    def _progress(self, params: wire.Progress) -> Iterator[CodexEvent]:
        if params.message and self._calls.get(params.item_id) is not None:
            item = v1.ContentItem(content=v1.TextBlock(text=params.message))
            yield v1.ToolCallUpdate(tool_call_id=params.item_id, content=[item])

    # Turns.

    def _turn_began(self) -> None:
        self._messages.turn_began()
        self._compaction.turn_began()
        self._last_error = None

    def _turn_started(self, _: wire.TurnNotification) -> Iterable[CodexEvent]:
        self._turn_began()
        return ()

    def _turn_completed(self, params: wire.TurnNotification) -> Iterator[CodexEvent]:
        turn = params.turn
        if turn.id in self._ended:
            return
        self._ended.add(turn.id)
        for item in turn.items:  # the last messages, in case they were missed
            if isinstance(item, wire.AgentMessage):
                yield from self._messages.message_completed(item)
        interrupted = turn.status == "interrupted"
        yield from self._calls.close(lasting=interrupted)
        yield from self._compaction.over(interrupted=interrupted)
        self._changes.forget()
        self._commands.forget()
        end = end_of(turn, self._last_error, self._gauge.usage, self._limits.resets_at())
        note = note_on(end, turn.error or self._last_error)
        if note is not None:
            yield note
        self._last_error = None
        yield TurnEnded(end, (turn.id,))

    def _error(self, params: wire.ErrorNotification) -> Iterator[CodexEvent]:
        if params.will_retry:
            self._messages.retried()
            yield retry(params.error)
        else:
            self._last_error = params.error

    # The thread.

    def _named(self, params: wire.NameUpdated) -> Iterator[CodexEvent]:
        if params.thread_name:
            yield TitleChanged(params.thread_name)

    def _tokens(self, params: wire.TokensUpdated) -> Iterable[CodexEvent]:
        before = self._gauge.total
        events = self._gauge.tokens(params.token_usage)
        if self._gauge.total != before:  # a broken stream is reported too, but counts nothing
            self._messages.answered()
        return events

    def _limited(self, params: wire.RateLimitsUpdated) -> Iterable[CodexEvent]:
        self._limits.updated(params.rate_limits)
        return ()

    def _goal_updated(self, params: wire.GoalUpdated) -> Iterable[CodexEvent]:
        goal, self._goal = self._goal, params.goal
        return REPORTS["thread/goal/updated"](params) if goal != params.goal else ()


# Each kind of item with its translation, when it starts and when it is complete.


class ItemTranslator:
    """Translates the items of one thread."""

    def __init__(
        self,
        cwd: str,
        calls: CodexCalls,
        messages: CodexMessages,
        commands: CommandCalls,
        changes: FileChangeCalls,
        compaction: CodexCompaction,
        unknown: "Counter[str]",
    ) -> None:
        self._cwd = cwd
        self._calls = calls
        self._unknown = unknown
        self._starts: dict[type, Callable[[Any], Iterable[CodexEvent]]] = {
            wire.AgentMessage: messages.started,
            wire.ProposedPlan: messages.started,
            wire.Reasoning: messages.started,
            wire.CommandExecution: commands.started,
            wire.FileChange: changes.started,
            wire.ContextCompaction: lambda item: compaction.started(item.id),
            wire.EnteredReviewMode: _review_start,
            wire.FunctionCallOutput: _nothing,  # it is complete already
            **dict.fromkeys(TOOLS.keys() - {wire.FunctionCallOutput}, self._call_start),
        }
        self._ends: dict[type, Callable[[Any], Iterable[CodexEvent]]] = {
            wire.AgentMessage: messages.message_completed,
            wire.ProposedPlan: messages.message_completed,
            wire.Reasoning: messages.reasoning_completed,
            wire.FileChange: changes.completed,
            wire.ContextCompaction: lambda item: compaction.completed(item.id),
            wire.ExitedReviewMode: messages.reviewed,
            wire.HookPrompt: _hooks,
            wire.UserMessage: _nothing,  # the client sent it
            wire.EnteredReviewMode: _nothing,
            wire.CommandExecution: lambda item: commands.completed(item, replay=False),
            **dict.fromkeys(TOOLS, self._call_end),
            Unknown: self._strange,
        }
        self._replays: dict[type, Callable[[Any], Iterable[CodexEvent]]] = {
            wire.UserMessage: _user,
            wire.EnteredReviewMode: _review_start,
            wire.CommandExecution: lambda item: commands.completed(item, replay=True),
        }

    def started(self, item: wire.Item) -> Iterable[CodexEvent]:
        """An item begins."""
        return self._starts.get(type(item), _nothing)(item)

    def completed(self, item: wire.Item, *, replay: bool) -> Iterable[CodexEvent]:
        """An item is complete, now or in a history."""
        handler = self._replays.get(type(item)) if replay else None
        return (handler or self._ends.get(type(item), _nothing))(item)

    def _call_start(self, item: ToolItem) -> Iterable[CodexEvent]:
        return self._calls.begin(CodexCall(item.id, show(item, self._cwd)))

    def _call_end(self, item: ToolItem) -> Iterable[CodexEvent]:
        if isinstance(item, wire.FunctionCallOutput) and self._calls.is_known(item.id):
            return ()  # the call has an item of its own
        return self._calls.finish(CodexCall(item.id, show(item, self._cwd)), outcome_of(item))

    def _strange(self, item: Unknown) -> Iterable[CodexEvent]:
        tally(self._unknown, f"item {item.kind}")
        return ()


def _nothing(_: object) -> Iterable[CodexEvent]:
    return ()


def _review_start(item: wire.EnteredReviewMode) -> Iterable[CodexEvent]:
    return (EngineNotice("A review begins", item.review or None),)


def _user(item: wire.UserMessage) -> Iterator[CodexEvent]:
    for piece in item.content:
        block = block_of_input(piece)
        if block is not None:
            yield v1.UserMessageChunk(content=block, message_id=item.id)


def _hooks(item: wire.HookPrompt) -> Iterator[CodexEvent]:
    text = "\n".join(fragment.text for fragment in item.fragments if fragment.text)
    if text:
        yield EngineNotice("A hook sent to the model", text)


# What a permission request shows of a call: the command or the diff, and the reason.

_OLD_TYPES: Final = {"list_files": "listFiles"}
_QUOTED: Final = re.compile(r'[^"]*"([^"]+)"[^"]*')
"""Exactly one name in quotes."""


class Approvals:
    """Permission requests about the calls of one thread."""

    def __init__(self, calls: CodexCalls, cwd: str, read: Callable[[str], str | None] | None) -> None:
        self._calls = calls
        self._cwd = cwd
        self._read = read

    def patch_of(self, params: wire.Request | wire.UnreadParams) -> v1.ToolCallPatch | None:
        """Return the call as the permission request shows it, which waits from now on; None if no known call is meant."""
        match params:
            case wire.CommandApproval():
                id, description = params.item_id, self._command(params)
            case wire.FileApproval() if (call := self._calls.get(params.item_id)) is not None:
                content = _reasoned(params.reason, call.description.content)
                id, description = call.id, msgspec.structs.replace(call.description, content=content)
            case wire.ExecApproval():
                id, description = params.call_id, self._old_command(params)
            case wire.ApplyPatchApproval():
                id, description = params.call_id, self._old_changes(params)
            case wire.McpElicitation() if (call := self._tool(params)) is not None:
                id, description = call.id, _show_tool(call, params)
            case _:
                return None
        self._calls.ask(id)
        return v1.ToolCallPatch(
            tool_call_id=id,
            title=description.title,
            kind=description.kind,
            status=v1.ToolStatus.PENDING,
            name=description.name if description.name else UNSET,
            content=description.content,
            locations=description.locations,
            raw_input=description.raw_input,
        )

    def _command(self, params: wire.CommandApproval) -> CallDescription:
        call = self._calls.get(params.item_id)
        actions = params.command_actions or []
        if params.command:
            description = _show_command(command_line(params.command), actions, params.cwd or self._cwd, params.reason)
        elif call is not None:
            line = call.description.raw_input.get("command", "") if isinstance(call.description.raw_input, dict) else ""
            content = _reasoned(params.reason, [shown_text(fenced(exact(line), "sh"))] if line else [])
            description = msgspec.structs.replace(call.description, content=content, meta=None)
        else:
            description = _show_command("", actions, params.cwd or self._cwd, params.reason)
        network = params.network_approval_context
        if network is not None and network.host:
            where = f"{network.protocol}://{network.host}" if network.protocol else network.host
            description = msgspec.structs.replace(description, title=one_line(f"Network access to {where}"))
        return description

    def _old_command(self, params: wire.ExecApproval) -> CallDescription:
        actions = [
            wire.CommandAction(type=_OLD_TYPES.get(part.type, part.type), command=part.cmd, path=part.path)
            for part in params.parsed_cmd
        ]
        return _show_command(shell_line(params.command), actions, params.cwd or self._cwd, params.reason)

    def _old_changes(self, params: wire.ApplyPatchApproval) -> CallDescription:
        changes = [
            wire.FileUpdate(
                path=path,
                kind=wire.UpdateKind(type=change.type, move_path=change.move_path),
                diff=change.unified_diff if change.type == "update" else change.content,
            )
            for path, change in params.file_changes.items()
        ]
        description = show_changes(changes, self._cwd, self._read or _no_text)
        return msgspec.structs.replace(description, content=_reasoned(params.reason, description.content))

    def _tool(self, params: wire.McpElicitation) -> CodexCall | None:
        """Return the call that a request for a tool is about. The request has no id of it, but the server, the tool and the arguments.

        A call of another tool is never returned: clients decide by the name, and would allow the one for the other.
        """
        named = _QUOTED.fullmatch(params.message)
        if named is None or not params.is_for_tool:
            return None
        name, arguments = mcp_name(params.server_name, named[1]), (params.meta or {}).get("tool_params")
        matches = [
            call
            for call in reversed(self._calls.all_open())
            if call.description.name == name and (call.description.raw_input or {}) == (arguments or {})
        ]
        if len({call.description.title for call in matches}) != 1:  # `a__b` of one server may be `b` of another
            return None
        return next((call for call in matches if not call.asked), matches[0])


def _show_command(line: str, actions: list[wire.CommandAction], cwd: str, reason: str | None) -> CallDescription:
    return CallDescription(
        title=one_line(line) or "Run a command",
        kind=kind_of_command(actions),
        name="Bash",
        raw_input={"command": line, "cwd": cwd},
        locations=places_of_command(actions, cwd),
        content=_reasoned(reason, [shown_text(fenced(exact(line), "sh"))] if line else []),
    )


def _reasoned(reason: str | None, content: list[v1.ToolContent]) -> list[v1.ToolContent]:
    return [shown_text(prose(reason)), *content] if reason and reason.strip() else content


def _show_tool(call: CodexCall, params: wire.McpElicitation) -> CallDescription:
    described, arguments = ((params.meta or {}).get(name) for name in ("tool_description", "tool_params"))
    content: list[v1.ToolContent] = [shown_text(fenced(exact(json_text(arguments)), "json"))] if arguments else []
    return msgspec.structs.replace(
        call.description, content=_reasoned(described if isinstance(described, str) else None, content)
    )


def _no_text(_: str) -> None:
    """Read no file."""
