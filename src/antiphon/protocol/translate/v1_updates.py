"""Updates of an agent of version 2 as a client of version 1 shows them, for one session.

Version 1 has no upserts of messages, no terminals of the agent, one plan, and fewer words. What is sent depends on what was sent
before, so the session's tables are here: messages, tool calls, terminals, plans, options.
"""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET, UnsetType

from antiphon.protocol import v1, v2
from antiphon.protocol.base import Json, JsonObject, Unknown
from antiphon.protocol.extension import KEY, TERMINAL, TOOL_CALL, OpenWork
from antiphon.protocol.translate.extension import CancellableWork, has_only_capabilities
from antiphon.protocol.translate.tables import BoundedTable, MessageLog
from antiphon.protocol.translate.v1_known import MAX_SHOWN, MAX_TOOL_CONTENT, KnownTerminal, KnownToolCall
from antiphon.protocol.translate.values import content as c
from antiphon.protocol.translate.values.patches import diffs_to_v1

__all__ = ["KEPT", "UpdatesToV1"]

KEPT: Final = KEY
"""In `_meta`: words of version 2 that version 1 does not have, as they were."""

_STATUS: Final = {
    v2.ToolStatus.PENDING: v1.ToolStatus.PENDING,
    v2.ToolStatus.IN_PROGRESS: v1.ToolStatus.IN_PROGRESS,
    v2.ToolStatus.PAUSED: v1.ToolStatus.IN_PROGRESS,
    v2.ToolStatus.COMPLETED: v1.ToolStatus.COMPLETED,
    v2.ToolStatus.FAILED: v1.ToolStatus.FAILED,
    v2.ToolStatus.CANCELLED: v1.ToolStatus.FAILED,
}
_OVER: Final = (v2.ToolStatus.COMPLETED, v2.ToolStatus.FAILED, v2.ToolStatus.CANCELLED)
_SAME_STATUS: Final = {id(word): other for word, other in _STATUS.items() if word.value == other.value}
"""The words that both versions have, by the identity of the word."""
_PLAN_STATUS: Final = {
    v2.PlanStatus.PENDING: v1.PlanStatus.PENDING,
    v2.PlanStatus.IN_PROGRESS: v1.PlanStatus.IN_PROGRESS,
    v2.PlanStatus.COMPLETED: v1.PlanStatus.COMPLETED,
    v2.PlanStatus.CANCELLED: v1.PlanStatus.COMPLETED,
}
_CHUNKS: Final = {
    "user": v1.UserMessageChunk,
    "agent": v1.AgentMessageChunk,
    "thought": v1.AgentThoughtChunk,
}


class UpdatesToV1:
    """The updates of one session, in version 1. `emit` sends one, `report` reports what has no place there."""

    def __init__(
        self,
        emit: Callable[[object], None],
        report: c.Report,
        able: v1.ClientCapabilities,
        cwd: str,
        stale: "dict[int, UpdatesToV1]",
    ) -> None:
        self.send = emit
        """Sends an update of version 1 as it is."""
        self._report = report
        self._all_stale = stale
        self._able = able
        self.cwd = cwd
        meta = able.meta or {}
        self._terminal_deltas = meta.get("terminal_output_delta") is True
        self._terminal_meta = self._terminal_deltas or meta.get("terminal_output") is True
        session = able.session
        self._notices = session is not None and session.notices is not None
        self._compaction = session is not None and session.compaction is not None
        self._booleans = (
            session is not None and session.config_options is not None and session.config_options.boolean is not None
        )
        self.messages: BoundedTable[tuple[str, str], MessageLog] = BoundedTable()
        self.calls: BoundedTable[str, KnownToolCall] = BoundedTable()
        self.terminals: BoundedTable[str, KnownTerminal] = BoundedTable()
        self.plans: BoundedTable[str, list[v1.PlanEntry]] = BoundedTable(64)
        self.options: list[v2.ConfigOption] = []
        self.stale: dict[str | tuple[str], KnownToolCall | KnownTerminal] = {}
        """Tool calls with content that was not sent yet, by their ids, and terminals with output, by theirs in a tuple."""
        self._reported: set[str] = set()
        self._weight = 0
        """The characters of the content of all tool calls, about, and of some that are forgotten."""
        self._compactions: BoundedTable[str, None] = BoundedTable(64)
        self.cancellable: CancellableWork | None = None
        """For a client of our SDK: what it may cancel alone."""
        self._handlers: dict[type, Callable[[Json], None]] = {
            v2.AgentMessageChunk: self._agent_chunk,
            v2.AgentThoughtChunk: self._thought_chunk,
            v2.AgentMessageUpdate: self._agent_message,
            v2.AgentThoughtUpdate: self._thought,
            v2.ToolCallUpdate: self.tool_call,
            v2.ToolCallContentChunk: self._tool_content,
            v2.TerminalUpdate: self._terminal,
            v2.TerminalOutputChunk: self._terminal_output,
            v2.PlanUpdate: self._plan,
            v2.PlanRemoved: self._plan_removed,
            v2.AvailableCommandsUpdate: self._commands,
            v2.ConfigOptionUpdate: self._config,
            v2.SessionInfoUpdate: self._info,
            v2.UsageUpdate: self._usage,
            v2.NoticeUpdate: self._notice,
            v2.CompactionUpdate: self._compact,
            v2.CompactionSummaryChunk: self._compaction_chunk,
        }

    def update(self, update: v2.Update) -> None:
        """Send one update that is neither a state nor a message of the user."""
        if self.stale and not isinstance(update, v2.ToolCallContentChunk | v2.TerminalOutputChunk):
            self.settle()
        handler = self._handlers.get(type(update))
        if handler is not None:
            handler(update)
        else:
            self._report(c.kind_of(update), "version 1 has no such update")

    def _report_once(self, what: str, reason: str) -> None:
        """Report what comes with nearly every update of some agents once for a session."""
        if reason not in self._reported:
            self._reported.add(reason)
            self._report(what, reason)

    def settle(self) -> None:
        """Send what was collected of tool calls, whose content version 1 only replaces as a whole."""
        while self.stale:
            stale, self.stale = self.stale, {}
            for one in stale.values():
                if isinstance(one, KnownToolCall):
                    self.send(v1.ToolCallUpdate(tool_call_id=one.id, content=self.content_of(one)))
                    if not one.introduced:
                        self._introduce(one)
                elif one.call_id is not None:
                    self.send(v1.ToolCallUpdate(tool_call_id=one.call_id, meta=one.shown(deltas=self._terminal_deltas)))

    # Messages.

    def log_of(self, kind: str, message_id: str) -> MessageLog:
        """The log of a message, made at its first sight."""
        key = kind, message_id
        found = self.messages.get(key)
        if found is None:
            found = self.messages.add(key, MessageLog(message_id))
        return found

    def chunk(self, kind: str, chunk: v2.MessageChunk) -> None:
        """Send a piece of a message."""
        log = self.log_of(kind, chunk.message_id)
        block = c.block_to_v1(chunk.content, self._report)
        log.add(block)
        self.send(_CHUNKS[kind](content=block, message_id=log.shown_as, meta=chunk.meta))

    def message(self, kind: str, message: v2.MessageUpdate) -> None:
        """Send a message, or what it has beyond what was sent of it. One that became another is sent again, under a new id."""
        meta = message.meta if isinstance(message.meta, dict) else None
        if isinstance(message.content, UnsetType):
            if meta:
                self._report(kind, "the `_meta` of a message cannot be changed in version 1")
            return
        log = self.log_of(kind, message.message_id)
        blocks = [c.block_to_v1(block, self._report) for block in message.content or ()]
        rest = log.rest_of(blocks)
        if rest is None:
            changed = (
                "a message that was changed is sent again" if blocks else "what was sent of a message cannot be cleared"
            )
            self._report(kind, changed)
            log.clear()
            log.begin_again()
            rest = blocks
        for block in rest:
            log.add(block)
            self.send(_CHUNKS[kind](content=block, message_id=log.shown_as, meta=meta))

    def _agent_chunk(self, chunk: v2.AgentMessageChunk) -> None:
        self.chunk("agent", chunk)

    def _thought_chunk(self, chunk: v2.AgentThoughtChunk) -> None:
        self.chunk("thought", chunk)

    def _agent_message(self, message: v2.AgentMessageUpdate) -> None:
        self.message("agent", message)

    def _thought(self, message: v2.AgentThoughtUpdate) -> None:
        self.message("thought", message)

    # Tool calls.

    def tool_call(self, patch: v2.ToolCallPatch) -> None:
        """Send a tool call: as a new one at its first sight, later as a patch."""
        call = self.calls.get(patch.tool_call_id)
        again = call is not None and _is_whole(patch)  # a call that begins anew under its id
        first = call is None or again
        if call is None:
            call = self.calls.add(patch.tool_call_id, KnownToolCall(patch.tool_call_id))
        if not isinstance(patch.title, UnsetType):
            call.title = patch.title
        if not isinstance(patch.name, UnsetType):
            call.name = patch.name
        if not isinstance(patch.kind, UnsetType):
            call.kind = patch.kind or v2.ToolKind.OTHER
        if not isinstance(patch.content, UnsetType):
            self._set_content(call, patch.content or [])
        noted = self.cancellable
        if patch.capabilities is not UNSET or (noted is not None and noted.offered):
            self._note(call, patch)  # known when the update is read
        if first or noted is not None or patch.capabilities is UNSET or not has_only_capabilities(patch):
            self.send(self._first(call, patch) if first else self._later(call, patch))
        if not call.introduced:
            self._introduce(call)

    def _note(self, call: KnownToolCall, patch: v2.ToolCallPatch) -> None:
        """Note whether the client may cancel a call alone, or report that this one cannot."""
        if self.cancellable is None:
            self._look_at(patch.capabilities, "tool_call_update")
            return
        over = isinstance(patch.status, v2.ToolStatus) and patch.status.meaning in _OVER
        self.cancellable.note(OpenWork(TOOL_CALL, call.id), patch.capabilities, over=over)

    def _introduce(self, call: KnownToolCall) -> None:
        """Send what is known of the terminals of a tool call, in `_meta`, to a client that shows them."""
        call.introduced = True
        if not self._terminal_meta:
            return
        for terminal_id in call.terminals:
            terminal = self._terminal_of(terminal_id)
            info = {"terminal_id": terminal_id, "cwd": terminal.cwd or self.cwd}
            self.send(v1.ToolCallUpdate(tool_call_id=call.id, meta={"terminal_info": info}))
            terminal.unsent = None
            if terminal.text or terminal.exit is not None:
                self._terminal_changed(terminal)

    def _first(self, call: KnownToolCall, patch: v2.ToolCallPatch) -> v1.ToolCall:
        status, meta = self._status(patch)
        return v1.ToolCall(
            tool_call_id=call.id,
            title=call.shown_title,
            kind=self._kind(call.kind),
            status=v1.ToolStatus.PENDING if isinstance(status, UnsetType) else status,
            name=call.name,
            content=self.content_of(call),
            locations=_locations(patch.locations) or [],
            raw_input=UNSET if patch.raw_input is None else patch.raw_input,
            raw_output=UNSET if patch.raw_output is None else patch.raw_output,
            meta=meta,
        )

    def _later(self, call: KnownToolCall, patch: v2.ToolCallPatch) -> v1.ToolCallUpdate:
        status, meta = self._status(patch)
        renamed = not isinstance(patch.title, UnsetType) or (not call.title and not isinstance(patch.name, UnsetType))
        if patch.raw_input is None:
            self._report("tool_call_update", "`rawInput` cannot be cleared in version 1")
        if patch.raw_output is None:
            self._report("tool_call_update", "`rawOutput` cannot be cleared in version 1")
        return v1.ToolCallUpdate(
            tool_call_id=call.id,
            title=call.shown_title if renamed else UNSET,
            kind=UNSET if isinstance(patch.kind, UnsetType) else self._kind(call.kind),
            status=status,
            name=UNSET if patch.name is None else patch.name,
            content=UNSET if isinstance(patch.content, UnsetType) else self.content_of(call),
            locations=_locations(patch.locations),
            raw_input=UNSET if patch.raw_input is None else patch.raw_input,
            raw_output=UNSET if patch.raw_output is None else patch.raw_output,
            meta=meta,
        )

    def patch(self, call: KnownToolCall, patch: v2.ToolCallPatch) -> v1.ToolCallPatch:
        """Return a tool call as a permission request of version 1 shows it: what the patch has, and the content that is known."""
        found = self._later(call, patch)
        return v1.ToolCallPatch(
            tool_call_id=call.id,
            title=call.shown_title,
            kind=self._kind(call.kind),
            status=found.status,
            name=found.name,
            content=self.content_of(call) if call.content else found.content,
            locations=found.locations,
            raw_input=found.raw_input,
            raw_output=found.raw_output,
            meta=found.meta,
        )

    def _kind(self, kind: v2.ToolKind) -> v1.ToolKind:
        if not kind.known:
            self._report("tool_call_update", f"version 1 has no kind `{kind.value}`")
        return kind.meaning

    def _status(self, patch: v2.ToolCallPatch) -> "tuple[v1.ToolStatus | UnsetType, JsonObject | None]":
        meta = patch.meta if isinstance(patch.meta, dict) else None
        status = patch.status
        if isinstance(status, UnsetType):
            return UNSET, meta
        same = _SAME_STATUS.get(id(status))  # a word hashes by its meaning, which takes longer than all else here
        if same is not None:
            return same, meta
        status = status or v2.ToolStatus.PENDING
        found = _STATUS[status.meaning]
        if found.value != status.value:
            self._report("tool_call_update", f"version 1 has no status `{status.value}`")
            meta = {**(meta or {}), KEPT: {"status": status.value}}
        return found, meta

    def _set_content(self, call: KnownToolCall, items: "list[v2.ToolContent]") -> None:
        self._weight -= call.clear()
        call.refused = call.forgotten = False
        if self.stale:
            self.stale.pop(call.id, None)
        for item in items:
            if not self._add_content(call, item):
                break
        if self._weight > MAX_SHOWN:
            self._forget_content(call)

    def _add_content(self, call: KnownToolCall, item: v2.ToolContent) -> bool:
        """Keep one more item of the content of a tool call. False, and a report: there is no room."""
        if type(item) is v2.ContentItem and type(item.content) is v1.TextBlock and call.has_room:  # most are
            self._weight += call.keep_text(item.content, item.meta)
            return True
        room = MAX_TOOL_CONTENT - len(call.content) if call.weight < MAX_SHOWN else 0
        shown = self._item(item) if room > 0 else []
        self._weight += call.keep(shown[:room])
        if shown and isinstance(item, v2.TerminalItem):
            self._refer(call, item.terminal_id)
        if shown and len(shown) <= room:
            return True
        if not call.refused:
            call.refused = True
            most = f"{MAX_TOOL_CONTENT} items or {MAX_SHOWN} characters"
            self._report("tool_call_content_chunk", f"a tool call has more than {most}")
        return False

    def _forget_content(self, newest: KnownToolCall) -> None:
        """Forget the content of the oldest tool calls, if that of all has become too much. The client keeps what it was sent."""
        self._weight = sum(call.weight for call in self.calls.values())  # calls may have been forgotten
        for call in self.calls.values():
            if self._weight <= MAX_SHOWN // 2:
                break
            if call is not newest and call.content and call.id not in self.stale:
                call.forgotten = True
                self._weight -= call.clear()

    def _refer(self, call: KnownToolCall, terminal_id: str) -> None:
        """Note that a tool call shows a terminal. A client that shows terminals of the agent gets to know it with the call."""
        self._terminal_of(terminal_id).call_id = call.id
        if terminal_id not in call.terminals:
            call.terminals.add(terminal_id)
            call.introduced = False

    def _tool_content(self, chunk: v2.ToolCallContentChunk) -> None:
        call = self.calls.get(chunk.tool_call_id)
        if call is None:
            self.tool_call(v2.ToolCallUpdate(tool_call_id=chunk.tool_call_id))
            call = self.calls[chunk.tool_call_id]
        if chunk.meta:
            self._report_once("tool_call_content_chunk", "its `_meta` has no place in version 1")
        if call.forgotten:
            self._report("tool_call_content_chunk", "the content before it was forgotten, so that it cannot be shown")
        elif self._add_content(call, chunk.content):
            self._mark_stale(call.id, call)
            if self._weight > MAX_SHOWN:
                self._forget_content(call)

    def _mark_stale(self, key: str | tuple[str], one: KnownToolCall | KnownTerminal) -> None:
        self.stale[key] = one
        self._all_stale[id(self)] = self

    def content_of(self, call: KnownToolCall) -> "list[v1.ToolContent]":
        """The content of a tool call as it is now."""
        if not call.terminals:
            return list(call.content)
        found: list[v1.ToolContent] = []
        for item in call.content:
            found += self._terminal_content(item) if isinstance(item, v1.TerminalItem) else [item]
        return found

    def _item(self, item: v2.ToolContent) -> "list[v1.ToolContent]":
        """Return an item of content in version 1. The text of a terminal is put in when it is sent."""
        match item:
            case v2.ContentItem(content=block):
                return [v1.ContentItem(content=c.block_to_v1(block, self._report), meta=item.meta)]
            case v2.Diff():
                diffs, lines = diffs_to_v1(item)
                if lines:
                    self._report("diff", "version 1 shows only changed lines")
                return [*diffs, *map(_text, lines)]
            case v2.TerminalItem():
                return [item]
            case _:
                self._report("tool_call_update", f"version 1 has no content `{item.kind}`")
                return [_text(f"[{item.kind}]")]

    # Terminals: in `_meta`, where the client asked for that, else as text.

    def _terminal_of(self, id: str) -> KnownTerminal:
        found = self.terminals.get(id)
        return self.terminals.add(id, KnownTerminal(id)) if found is None else found

    def _terminal_content(self, item: v2.TerminalItem) -> list[v1.ToolContent]:
        if self._terminal_meta:
            return [item]
        text = self._terminal_of(item.terminal_id).plain_text
        return [_text(text)] if text else []

    def _terminal(self, update: v2.TerminalUpdate) -> None:
        terminal = self._terminal_of(update.terminal_id)
        if update.command or update.size or update.meta or (update.cwd and not self._terminal_meta):
            self._report_once("terminal_update", "version 1 shows the output of a terminal, and nothing else about it")
        if not isinstance(update.cwd, UnsetType):
            terminal.cwd = update.cwd or ""
        if not isinstance(update.output, UnsetType):
            terminal.replace(update.output.data if update.output is not None else None)
        ended = not isinstance(update.exit_status, UnsetType) and update.exit_status is not None
        if not isinstance(update.exit_status, UnsetType):
            terminal.exit = update.exit_status
        if self.cancellable is not None:
            self.cancellable.note(OpenWork(TERMINAL, terminal.id), update.capabilities, over=ended)
        else:
            self._look_at(update.capabilities, "terminal_update")
        if not isinstance(update.output, UnsetType) or ended:
            self._terminal_changed(terminal)

    def _terminal_output(self, chunk: v2.TerminalOutputChunk) -> None:
        terminal = self._terminal_of(chunk.terminal_id)
        more = terminal.add(chunk.data)
        if more is None:
            self._report("terminal_output_chunk", "it is not base64")
        elif more:
            self._terminal_changed(terminal)

    def _terminal_changed(self, terminal: KnownTerminal) -> None:
        call = self.calls.get(terminal.call_id) if terminal.call_id is not None else None
        if call is None:
            return  # it is shown once a tool call refers to it
        if self._terminal_meta:
            self._mark_stale((terminal.id,), terminal)
        elif not call.forgotten:
            self._mark_stale(call.id, call)

    def _look_at(self, able: v2.ToolCallCapabilities | v2.TerminalCapabilities | None | UnsetType, what: str) -> None:
        """Report what is offered to a client that cannot use it."""
        if able is not None and not isinstance(able, UnsetType) and able.cancel is not None:
            self._report(what, "version 1 cannot cancel a part of the work")

    # Plans, settings and the rest.

    def _plan(self, update: v2.PlanUpdate) -> None:
        plan = update.plan
        if not isinstance(plan, v2.PlanItems):
            if self._able.plan is not None and not isinstance(plan, Unknown):
                self.send(v1.PlanUpdate(plan=plan, meta=update.meta))
            else:
                self._report("plan_update", f"version 1 has no plan of type `{c.kind_of(plan)}`")
            return
        if plan.meta:
            self._report_once("plan_update", "the `_meta` of a plan has no place in version 1")
        entries: list[v1.PlanEntry] = []
        for entry in plan.entries:
            status = _PLAN_STATUS[entry.status.meaning]
            if status.value != entry.status.value:
                self._report("plan_update", f"version 1 has no status `{entry.status.value}`")
            entries.append(
                v1.PlanEntry(content=entry.content, priority=entry.priority.meaning, status=status, meta=entry.meta)
            )
        self.plans.add(plan.plan_id, entries)
        self._send_plans(update.meta)

    def _plan_removed(self, update: v2.PlanRemoved) -> None:
        if self.plans.pop(update.plan_id, None) is not None:
            self._send_plans(update.meta)

    def _send_plans(self, meta: JsonObject | None) -> None:
        """Send the entries of all plans as the one plan of version 1, in the order of their first sight."""
        if len(self.plans) > 1:
            self._report("plan_update", "version 1 has one plan: several are joined")
        self.send(v1.Plan(entries=[entry for entries in self.plans.values() for entry in entries], meta=meta))

    def _commands(self, update: v2.AvailableCommandsUpdate) -> None:
        commands = c.commands_to_v1(update.available_commands, self._report)
        self.send(v1.AvailableCommandsUpdate(available_commands=commands, meta=update.meta))

    def options_to_v1(self) -> list[v1.ConfigOption]:
        """The options as the client was offered them: on/off options only if it shows them."""
        found = [c.option_to_v1(option, self._report) for option in self.options]
        if not self._booleans and any(isinstance(option, v1.BooleanConfig) for option in found):
            self._report("config option", "the client shows no on/off options")
            found = [option for option in found if not isinstance(option, v1.BooleanConfig)]
        return [option for option in found if option is not None]

    @property
    def mode(self) -> v2.SelectConfig | None:
        """The option that is the mode of version 1."""
        return c.mode_option(self.options)

    def set_options(self, options: "list[v2.ConfigOption]") -> bool:
        """Keep the options. Returns whether the mode is another one than before."""
        before, self.options = self.mode, options
        after = self.mode
        return after is not None and (before is None or before.current_value != after.current_value)

    def _config(self, update: v2.ConfigOptionUpdate) -> None:
        other_mode = self.set_options(update.config_options)
        self.send(v1.ConfigOptionUpdate(config_options=self.options_to_v1(), meta=update.meta))
        if other_mode and (mode := self.mode) is not None:
            self.send(v1.CurrentModeUpdate(current_mode_id=mode.current_value))

    def _info(self, update: v2.SessionInfoUpdate) -> None:
        meta = update.meta if isinstance(update.meta, dict) else None
        self.send(v1.SessionInfoUpdate(title=update.title, updated_at=update.updated_at, meta=meta))

    def _usage(self, update: v2.UsageUpdate) -> None:
        cost = None if isinstance(update.cost, UnsetType) else update.cost
        if update.cost is None:
            self._report_once("usage_update", "a cost cannot be cleared in version 1")
        self.send(v1.UsageUpdate(used=update.used, size=update.size, cost=cost, meta=update.meta))

    def _notice(self, notice: v2.NoticeUpdate) -> None:
        if self._notices:
            self.send(
                v1.NoticeUpdate(
                    severity=notice.severity, title=notice.title, description=notice.description, meta=notice.meta
                )
            )
            return
        self._report("notice", "the client shows no notices")
        if notice.severity.meaning is not v2.NoticeSeverity.INFO:
            text = f"{notice.title}\n{notice.description}" if notice.description else notice.title
            self.send(v1.AgentThoughtChunk(content=v1.TextBlock(text=text)))

    def _compact(self, update: v2.CompactionUpdate) -> None:
        if self._compaction:
            summary: list[v1.ContentBlock] | None | UnsetType
            if isinstance(update.summary, list):
                summary = [c.block_to_v1(block, self._report) for block in update.summary]
            else:
                summary = update.summary
            meta = update.meta if isinstance(update.meta, dict) else None
            self.send(
                v1.CompactionUpdate(
                    compaction_id=update.compaction_id,
                    status=update.status,
                    summary=summary,
                    error=update.error,
                    meta=meta,
                )
            )
            return
        # As a tool call: the user sees why nothing else happens.
        self._report("compaction_update", "the client shows no compactions")
        status = _COMPACTION.get(update.status.value, v1.ToolStatus.IN_PROGRESS)
        failed: list[v1.ToolContent] = [_text(update.error)] if isinstance(update.error, str) else []
        if update.compaction_id in self._compactions:
            self.send(v1.ToolCallUpdate(tool_call_id=update.compaction_id, status=status, content=failed or UNSET))
        else:
            self._compactions.add(update.compaction_id, None)
            self.send(
                v1.ToolCall(
                    tool_call_id=update.compaction_id,
                    title="Compacting",
                    kind=v1.ToolKind.THINK,
                    status=status,
                    content=failed,
                )
            )

    def _compaction_chunk(self, chunk: v2.CompactionSummaryChunk) -> None:
        if not self._compaction:
            self._report("compaction_summary_chunk", "the client shows no compactions")
            return
        block = c.block_to_v1(chunk.content, self._report)
        self.send(v1.CompactionSummaryChunk(compaction_id=chunk.compaction_id, content=block, meta=chunk.meta))


_COMPACTION: Final = {
    "completed": v1.ToolStatus.COMPLETED,
    "failed": v1.ToolStatus.FAILED,
    "cancelled": v1.ToolStatus.FAILED,
}


def _is_whole(patch: v2.ToolCallPatch) -> bool:
    """Whether a patch has every field that version 1 knows, so that nothing is left of what was there."""
    if patch.raw_output is UNSET:  # as in nearly every patch
        return False
    fields = patch.name, patch.title, patch.kind, patch.status, patch.content, patch.locations
    return not any(isinstance(field, UnsetType) for field in (*fields, patch.raw_input, patch.raw_output))


def _text(text: str) -> v1.ContentItem:
    return v1.ContentItem(content=v1.TextBlock(text=text))


def _locations(locations: "list[v2.ToolLocation] | None | UnsetType") -> "list[v1.ToolLocation] | UnsetType":
    if isinstance(locations, UnsetType):
        return UNSET
    return [v1.ToolLocation(path=each.path, line=each.line, meta=each.meta) for each in locations or ()]
