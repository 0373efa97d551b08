"""Updates of an agent of version 1 as a client of version 2 keeps them, for one session.

Version 2 wants an id on every message and plan, and has terminals of its own. Messages without an id are put together here, modes and
models become options, and what is replayed is cleared first, because the client may still hold it.
"""

import base64
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.protocol import v1, v2
from antiphon.protocol.base import Json, JsonObject, Unknown, encode
from antiphon.protocol.translate.tables import BoundedTable, MessageLog
from antiphon.protocol.translate.v1_updates import KEPT
from antiphon.protocol.translate.values import content as c
from antiphon.protocol.translate.values.patches import MAX_COMPARED_DIFFS, diff_to_v2

__all__ = ["PLAN", "UnnamedMessage", "UpdatesToV2"]

PLAN: Final = "plan"
"""The id of the one plan that version 1 has."""

_CHUNKS: Final = {"user": v2.UserMessageChunk, "agent": v2.AgentMessageChunk, "thought": v2.AgentThoughtChunk}
_MESSAGES: Final = {"user": v2.UserMessageUpdate, "agent": v2.AgentMessageUpdate, "thought": v2.AgentThoughtUpdate}
_TAGS: Final = {kind: str(chunk.__struct_config__.tag).encode() for kind, chunk in _CHUNKS.items()}
_TERMINAL_KEYS: Final = ("terminal_info", "terminal_output", "terminal_output_delta", "terminal_exit")
_SAME_STATUS: Final = {id(word): v2.ToolStatus(word.value) for word in v1.ToolStatus}
"""The words of version 1 in version 2, by the identity of the word: it takes half a microsecond to make one."""
_MODES: Final = "modes"
_MODELS: Final = "models"


class UnnamedMessage:
    """The message that pieces without an id belong to, with its params encoded up to the text."""

    __slots__ = ("id", "kind", "start")

    def __init__(self, session_id: str, kind: str, id: str) -> None:
        self.kind = kind
        self.id = id
        head = b'{"sessionId":%b,"update":{"sessionUpdate":"%b","messageId":%b,"content":{"type":"text","text":'
        self.start = head % (encode(session_id), _TAGS[kind], encode(id))

    def params(self, text: str) -> bytes:
        """The params of a piece of it."""
        return b"%b%b}}}" % (self.start, encode(text))


class UpdatesToV2:
    """The updates of one session, in version 2. `emit` sends one, `report` reports what has no place there."""

    def __init__(self, session_id: str, emit: Callable[[object], None], report: c.Report, cwd: str = "") -> None:
        self.session_id = session_id
        self.send = emit
        """Sends an update of version 2 as it is."""
        self._report = report
        self.cwd = cwd
        self.open: UnnamedMessage | None = None
        """The message that pieces without an id belong to."""
        self._counts = {"user": 0, "agent": 0, "thought": 0}
        self._users: BoundedTable[str, str] = BoundedTable()
        """The user messages that the agent named, with their ids here. Version 1 does not name prompts, so all have an id by their place:
        else a prompt would have another id when it is replayed."""
        self._mark = ""
        """A part of new ids that sets them apart from those of a history that is not known here."""
        self.calls: BoundedTable[str, str | None] = BoundedTable()
        """The tool calls that were sent, with their titles."""
        self._terminals: BoundedTable[str, MessageLog] = BoundedTable()
        """The terminals that were sent, with a digest of their output."""
        self.options: list[v2.ConfigOption] = []
        self.made: dict[str, str] = {}
        """Options that were made here from modes or models, by their id."""
        self.title: str | None = None
        self.replaying = False
        self._cleared: BoundedTable[tuple[str, str], None] = BoundedTable()
        self._handlers: dict[type, Callable[[Json], None]] = {
            v1.AgentMessageChunk: self._agent,
            v1.AgentThoughtChunk: self._thought,
            v1.UserMessageChunk: self._user,
            v1.ToolCall: self._tool_call,
            v1.ToolCallUpdate: self.tool_call_patch,
            v1.Plan: self._plan,
            v1.PlanUpdate: self._plan_update,
            v1.PlanRemoved: self._same,
            v1.AvailableCommandsUpdate: self._commands,
            v1.CurrentModeUpdate: self._mode,
            v1.CurrentModelUpdate: self._model,
            v1.ConfigOptionUpdate: self._config,
            v1.SessionInfoUpdate: self._info,
            v1.UsageUpdate: self._usage,
            v1.NoticeUpdate: self._notice,
            v1.CompactionUpdate: self._same,
            v1.CompactionSummaryChunk: self._same,
            v1.SubagentUpdate: self._same,
            v1.SessionMessage: self._same,
            v1.SessionMessageChunk: self._same,
        }

    def update(self, update: v1.Update) -> None:
        """Send one update."""
        if isinstance(update, Unknown):
            name = update.kind if update.kind.startswith("_") else f"_{update.kind}"
            self.send(Unknown(name, encode({**update.fields, "sessionUpdate": name})))
            return
        self._handlers[type(update)](update)

    def begin_replay(self) -> None:
        """A history follows: ids are counted from its start again, so that they are the same each time."""
        self.replaying = True
        self.open = None
        self._counts = dict.fromkeys(self._counts, 0)
        self._users.clear()
        self._mark = ""
        self._cleared.clear()

    def begin_after_unknown(self, mark: str) -> None:
        """The session has a history, which is not known here and will not be: its ids are not given to other messages."""
        self._mark = f"{mark}-"

    def pass_over(self, update: v1.Update) -> None:
        """Take an update of a history that the client does not want, so that later messages get the ids that they have in a replay."""
        send, self.send = self.send, _not_sent
        try:
            self.update(update)
        finally:
            self.send = send

    def end_replay(self) -> None:
        """The history is complete."""
        self.replaying = False
        self.open = None
        self._cleared.clear()

    # Messages.

    def new_id(self, kind: str) -> str:
        """Return the id of the next message of a kind, and count that message. It depends on nothing but its place in the session."""
        id = self.next_id(kind)
        self._counts[kind] += 1
        return id

    def next_id(self, kind: str) -> str:
        """Return the id that the next message of a kind will have."""
        return f"{kind}-{self._mark}{self._counts[kind] + 1}"

    def name_user(self, message_id: str, id: str) -> None:
        """Keep the id here of a user message that the agent named."""
        self._users.add(message_id, id)

    def close_message(self) -> None:
        """Close the message: the next piece without an id begins a new one."""
        self.open = None

    def _user(self, chunk: v1.UserMessageChunk) -> None:
        if chunk.message_id is not None:
            if chunk.message_id not in self._users:
                self.name_user(chunk.message_id, self.new_id("user"))
            chunk = msgspec.structs.replace(chunk, message_id=self._users[chunk.message_id])
        self._chunk("user", chunk)

    def _agent(self, chunk: v1.AgentMessageChunk) -> None:
        self._chunk("agent", chunk)

    def _thought(self, chunk: v1.AgentThoughtChunk) -> None:
        self._chunk("thought", chunk)

    def _chunk(self, kind: str, chunk: v1.MessageChunk) -> None:
        if chunk.message_id is not None:
            id = chunk.message_id
            self.open = None
        else:
            if self.open is None or self.open.kind != kind:
                self.open = UnnamedMessage(self.session_id, kind, self.new_id(kind))
            id = self.open.id
        if self.replaying and (kind, id) not in self._cleared:
            self._cleared.add((kind, id), None)
            self.send(_MESSAGES[kind](message_id=id, content=[], meta=None))
        self.send(_CHUNKS[kind](message_id=id, content=c.block_to_v2(chunk.content), meta=chunk.meta))

    # Tool calls.

    def _tool_call(self, call: v1.ToolCall) -> None:
        """A new call; one whose id is known begins anew, so what it does not have is cleared."""
        self.open = None
        again = call.tool_call_id in self.calls or self.replaying
        self.calls.add(call.tool_call_id, call.title)
        status, meta = _status(call.status, self._terminal_meta(call.meta))
        absent: None | UnsetType = None if again else UNSET
        self.send(
            v2.ToolCallUpdate(
                tool_call_id=call.tool_call_id,
                name=call.name if call.name is not None else absent,
                title=call.title,
                kind=call.kind,
                status=status,
                content=self._content(call.content) or absent,
                locations=_locations(call.locations) or absent,
                raw_input=absent if isinstance(call.raw_input, UnsetType) else call.raw_input,
                raw_output=absent if isinstance(call.raw_output, UnsetType) else call.raw_output,
                meta=meta if meta is not None else (None if again else UNSET),
            )
        )
        self._terminal_output(call.meta)

    def tool_call_patch(self, patch: v1.ToolCallPatch) -> None:
        """A changed call. In version 1 `null` leaves a field as it was."""
        self.open = None
        self.send(self.patch(patch))
        self._terminal_output(patch.meta)

    def patch(self, patch: v1.ToolCallPatch) -> v2.ToolCallUpdate:
        """Return a changed call in version 2."""
        if isinstance(patch.title, str) or patch.tool_call_id not in self.calls:
            title = patch.title if isinstance(patch.title, str) else None
            self.calls.add(patch.tool_call_id, title)
        meta = self._terminal_meta(patch.meta)
        status: v2.ToolStatus | UnsetType = UNSET
        if isinstance(patch.status, v1.ToolStatus):
            status, meta = _status(patch.status, meta)
        content = patch.content
        return v2.ToolCallUpdate(
            tool_call_id=patch.tool_call_id,
            name=UNSET if patch.name is None else patch.name,
            title=UNSET if patch.title is None else patch.title,
            kind=UNSET if patch.kind is None else patch.kind,
            status=status,
            content=self._content(content) if isinstance(content, list) else UNSET,
            locations=_locations(patch.locations) if isinstance(patch.locations, list) else UNSET,
            raw_input=patch.raw_input,
            raw_output=patch.raw_output,
            meta=UNSET if meta is None else meta,
        )

    def _content(self, items: "list[v1.ToolContent]") -> "list[v2.ToolContent]":
        found: list[v2.ToolContent] = []
        diffs = 0
        for item in items:
            match item:
                case v1.ContentItem(content=block):
                    found.append(v2.ContentItem(content=c.block_to_v2(block), meta=item.meta))
                case v1.Diff():
                    diffs += 1
                    found.append(diff_to_v2(item, compared=diffs <= MAX_COMPARED_DIFFS))
                case v1.TerminalItem():
                    self._show_terminal(item.terminal_id)
                    found.append(item)
                case _:
                    found.append(_own_item(item))
        return found

    # Terminals, which agents of version 1 show in `_meta`.

    def _show_terminal(self, id: str, cwd: str | None = None) -> None:
        if id not in self._terminals:
            self._terminals.add(id, MessageLog(id))
            self.send(v2.TerminalUpdate(terminal_id=id, cwd=cwd or self.cwd or UNSET))

    def _terminal_meta(self, meta: JsonObject | None) -> JsonObject | None:
        """Show a terminal that `_meta` names, and return the rest of `_meta`."""
        if meta is None or not any(key in meta for key in _TERMINAL_KEYS):
            return meta
        info = meta.get("terminal_info")
        if isinstance(info, dict) and isinstance(id := info.get("terminal_id"), str):
            cwd = info.get("cwd")
            self._show_terminal(id, cwd if isinstance(cwd, str) else None)
        return {key: value for key, value in meta.items() if key not in _TERMINAL_KEYS} or None

    def _terminal_output(self, meta: JsonObject | None) -> None:
        """Send the output and the end of a terminal that `_meta` has."""
        if meta is None:
            return
        for key in ("terminal_output", "terminal_output_delta"):
            output = meta.get(key)
            if isinstance(output, dict) and isinstance(id := output.get("terminal_id"), str):
                data = output.get("data")
                if isinstance(data, str):
                    self._output(id, data, whole=key == "terminal_output")
        ended = meta.get("terminal_exit")
        if isinstance(ended, dict) and isinstance(id := ended.get("terminal_id"), str):
            self._show_terminal(id)
            code, signal = ended.get("exit_code"), ended.get("signal")
            status = v2.ExitStatus(
                exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
                signal=signal if isinstance(signal, str) else None,
            )
            self.send(v2.TerminalUpdate(terminal_id=id, exit_status=status))

    def _output(self, id: str, data: str, *, whole: bool) -> None:
        self._show_terminal(id)
        log = self._terminals[id]
        if whole:
            rest = log.rest_of([v1.TextBlock(text=data)])
            if rest is None:
                log.clear()
                log.add_text(data)
                self.send(v2.TerminalUpdate(terminal_id=id, output=v2.TerminalSnapshot(data=_packed(data))))
                return
            data = "".join(block.text for block in rest)
        if data:
            log.add_text(data)
            self.send(v2.TerminalOutputChunk(terminal_id=id, data=_packed(data)))

    # Plans, settings and the rest.

    def _plan(self, plan: v1.Plan) -> None:
        self.open = None
        content = v2.PlanItems(plan_id=PLAN, entries=_entries(plan.entries))
        self.send(v2.PlanUpdate(plan=content, meta=plan.meta))

    def _plan_update(self, update: v1.PlanUpdate) -> None:
        self.open = None
        plan: v2.PlanContent
        if isinstance(update.plan, v1.PlanItems):
            plan = v2.PlanItems(
                plan_id=update.plan.plan_id, entries=_entries(update.plan.entries), meta=update.plan.meta
            )
        else:
            plan = update.plan
        self.send(v2.PlanUpdate(plan=plan, meta=update.meta))

    def _same(self, update: object) -> None:
        """Send an update that has the same form in both versions."""
        self.send(update)

    def _commands(self, update: v1.AvailableCommandsUpdate) -> None:
        commands = c.commands_to_v2(update.available_commands)
        self.send(v2.AvailableCommandsUpdate(available_commands=commands, meta=update.meta))

    def set_settings(
        self,
        options: "list[v1.ConfigOption] | None",
        modes: v1.ModeState | None,
        models: v1.ModelState | None,
    ) -> None:
        """Keep the settings of a session that was opened: options, and options made of its modes and models."""
        self.options = [c.option_to_v2(option) for option in options or ()]
        self.made = {}
        if modes is not None:
            self._make(c.modes_to_option(modes), _MODES)
        if models is not None:
            self._make(c.models_to_option(models), _MODELS)

    def _make(self, option: v2.SelectConfig, source: str) -> None:
        known = [each for each in self.options if not isinstance(each, Unknown)]
        if any(each.category is option.category for each in known):
            return
        if any(each.config_id == option.config_id for each in known):
            option = msgspec.structs.replace(option, config_id=f"_{option.config_id}")
        self.options.append(option)
        self.made[option.config_id] = source

    def sets_mode(self, config_id: str) -> bool:
        """Whether an option was made of the modes."""
        return self.made.get(config_id) == _MODES

    def sets_model(self, config_id: str) -> bool:
        """Whether an option was made of the models."""
        return self.made.get(config_id) == _MODELS

    def set_value(self, config_id: str, value: str | bool) -> None:
        """Change the current value of an option, and send all options."""
        self.options = c.with_value(self.options, config_id, value)
        self.send_options()

    def set_options(self, options: "list[v1.ConfigOption]") -> None:
        """Keep the options that the agent sent; those that were made here stay."""
        made = [each for each in self.options if not isinstance(each, Unknown) and each.config_id in self.made]
        self.options = [c.option_to_v2(option) for option in options]
        taken = {each.category for each in self.options if not isinstance(each, Unknown)}
        for option in made:
            if option.category in taken:
                self.made.pop(option.config_id)
            else:
                self.options.append(option)

    def send_options(self, meta: JsonObject | None = None) -> None:
        """Send all options."""
        self.send(v2.ConfigOptionUpdate(config_options=self.options, meta=meta))

    def _mode(self, update: v1.CurrentModeUpdate) -> None:
        self._set_current(v2.ConfigCategory.MODE, update.current_mode_id, "current_mode_update")

    def _model(self, update: v1.CurrentModelUpdate) -> None:
        self._set_current(v2.ConfigCategory.MODEL, update.current_model_id, "current_model_update")

    def _set_current(self, category: v2.ConfigCategory, value: str, kind: str) -> None:
        for option in self.options:
            if isinstance(option, v2.SelectConfig) and option.category is category:
                if option.current_value != value:
                    self.set_value(option.config_id, value)
                return
        self._report(kind, "the session has no such option")

    def _config(self, update: v1.ConfigOptionUpdate) -> None:
        self.set_options(update.config_options)
        self.send_options(update.meta)

    def _info(self, update: v1.SessionInfoUpdate) -> None:
        if not isinstance(update.title, UnsetType):
            self.title = update.title
        meta = UNSET if update.meta is None else update.meta
        self.send(v2.SessionInfoUpdate(title=update.title, updated_at=update.updated_at, meta=meta))

    def _usage(self, update: v1.UsageUpdate) -> None:
        cost = UNSET if update.cost is None else update.cost
        self.send(v2.UsageUpdate(used=update.used, size=update.size, cost=cost, meta=update.meta))

    def _notice(self, notice: v1.NoticeUpdate) -> None:
        if notice.title:
            self.send(notice)
        else:
            self._report("notice", "it has no title")


def _entries(entries: "list[v1.PlanEntry]") -> list[v2.PlanEntry]:
    return [
        v2.PlanEntry(
            content=entry.content, priority=entry.priority, status=v2.PlanStatus(entry.status.value), meta=entry.meta
        )
        for entry in entries
    ]


def _status(status: v1.ToolStatus, meta: JsonObject | None) -> tuple[v2.ToolStatus, JsonObject | None]:
    """The status, as it was where another translator kept it."""
    kept = meta.get(KEPT) if meta is not None else None
    if meta is not None and isinstance(kept, dict) and isinstance(word := kept.get("status"), str):
        return v2.ToolStatus(word), {key: value for key, value in meta.items() if key != KEPT} or None
    return _SAME_STATUS.get(id(status)) or v2.ToolStatus(status.value), meta


def _locations(locations: "list[v1.ToolLocation]") -> list[v2.ToolLocation]:
    """Return locations whose lines count from 1; some agents count from 0."""
    return [v2.ToolLocation(path=each.path, line=each.line or None, meta=each.meta) for each in locations]


def _own_item(item: "v1.ToolContent") -> "v2.ToolContent":
    if not isinstance(item, Unknown) or item.kind.startswith("_"):
        return item  # type: ignore[return-value]  # the other classes are in both unions
    return Unknown(f"_{item.kind}", encode({**item.fields, "type": f"_{item.kind}"}))


def _not_sent(update: object) -> None:
    """What is sent of a history that the client does not want."""


def _packed(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
