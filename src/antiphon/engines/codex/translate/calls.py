"""Tool calls of Codex from their start to their end, each reported once and in order."""

from collections.abc import Iterator
from typing import Final

import msgspec

from antiphon.engines.codex.translate.events import CodexEvent
from antiphon.engines.labels import as_object
from antiphon.engines.tool_calls import TOOL_CALL_LIFE, OpenCall, ToolCallChange, ToolCalls, ToolCallState
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, JsonObject

__all__ = ["CallDescription", "CallOutcome", "CodexCall", "CodexCalls", "terminal_exit"]


class CallDescription(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is shown before there is a result. `name` is the one that the policy's rules know."""

    title: str
    kind: v1.ToolKind = v1.ToolKind.OTHER
    name: str | None = None
    raw_input: object = UNSET
    locations: list[v1.ToolLocation] = msgspec.field(default_factory=list)
    content: list[v1.ToolContent] = msgspec.field(default_factory=list)
    meta: JsonObject | None = None


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call. Content that is None stays as it is."""

    failed: bool = False
    content: list[v1.ToolContent] | None = None
    raw_output: object = UNSET
    meta: JsonObject | None = None


_CLOSED: Final = (ToolCallState.CLOSED, ToolCallState.ENDING)


class CodexCall(OpenCall):
    """A tool call of Codex that is not over. Codex reports no call before it runs."""

    __slots__ = ("asked", "description", "lasting", "terminal")

    def __init__(self, id: str, description: CallDescription, *, terminal: bool = False, lasting: bool = False) -> None:
        super().__init__(id)
        self.apply(ToolCallChange.RUN)
        self.description = description
        self.terminal = terminal
        """Whether its output is shown in a terminal of its own."""
        self.lasting = lasting
        """Whether it outlives the turn."""
        self.asked = False
        """Whether the user was asked for permission."""


class CodexCalls(ToolCalls[CodexCall]):
    """The tool calls of a thread."""

    def is_done(self, id: str) -> bool:
        """Whether Codex reported its end. One that we closed may still end."""
        return self.is_over(id) and self._over[id] not in _CLOSED

    @property
    def has_ending(self) -> bool:
        """Whether the end of a command that we closed is still to come."""
        return ToolCallState.ENDING in self._over.values()

    def forget_ends(self) -> None:
        """Report no end of a call that we closed any more."""
        self._over = {id: TOOL_CALL_LIFE.next(state, ToolCallChange.FORGET) for id, state in self._over.items()}

    def begin(self, call: CodexCall) -> Iterator[CodexEvent]:
        """Report the start of a call, or the changes of one that is open already."""
        if self.is_over(call.id):
            return
        before = self._open.get(call.id)
        if before is not None:
            before.lasting |= call.lasting
            yield from self.redescribe(before, call.description)
            return
        self._open[call.id] = call
        description = call.description
        yield v1.ToolCall(
            tool_call_id=call.id,
            title=description.title,
            kind=description.kind,
            status=call.status,
            name=description.name,
            content=description.content,
            locations=description.locations,
            raw_input=description.raw_input,
            meta=description.meta,
        )

    def redescribe(self, call: CodexCall, description: CallDescription) -> Iterator[CodexEvent]:
        """Report what changed in the description of a call."""
        before, call.description = call.description, description
        changed = _changes(before, description)
        if before.content != description.content:
            changed["content"] = description.content
        if changed:
            yield v1.ToolCallUpdate(tool_call_id=call.id, **changed)

    def ask(self, id: str) -> None:
        """Note that a call waits for permission."""
        call = self._open.get(id)
        if call is not None:
            call.apply(ToolCallChange.ASK)
            call.asked = True

    def runs(self, id: str) -> Iterator[CodexEvent]:
        """Report that a call runs after it waited. The permission request may have replaced its content, unless that is a diff."""
        call = self._open.get(id)
        if call is not None and call.is_pending:
            status = call.apply(ToolCallChange.RUN)
            matches = any(isinstance(each, v1.Diff) for each in call.description.content)
            yield v1.ToolCallUpdate(
                tool_call_id=id, status=status, content=UNSET if matches else call.description.content
            )

    def finish(self, call: CodexCall, outcome: CallOutcome) -> Iterator[CodexEvent]:
        """Report the end of a call. `call` is how it is described at the end; only what changed is reported."""
        id = call.id
        before = self._open.get(id, call)
        if not self.is_known(id):
            yield from self.begin(call)
        elif self.is_done(id):
            return
        yield v1.ToolCallUpdate(
            tool_call_id=id,
            status=self.end(id, ToolCallChange.FAIL if outcome.failed else ToolCallChange.SUCCEED),
            content=UNSET if outcome.content is None else outcome.content,
            raw_output=as_object(outcome.raw_output),
            meta=outcome.meta,
            **_changes(before.description, call.description),
        )

    def close(self, *, lasting: bool) -> Iterator[CodexEvent]:
        """Close the open calls, or those among them that do not outlive a turn."""
        for call in self.all_open():
            if lasting or not call.lasting:
                event = ToolCallChange.CLOSE_RUNNING if call.lasting else ToolCallChange.CLOSE
                meta = terminal_exit(call.id, None) if call.terminal else None
                yield v1.ToolCallUpdate(tool_call_id=call.id, status=self.end(call.id, event), meta=meta)


def terminal_exit(id: str, code: int | None) -> JsonObject:
    """Return the `_meta` by which clients see that the terminal of a command ended."""
    return {"terminal_exit": {"terminal_id": id, "exit_code": code, "signal": None}}


def _changes(before: CallDescription, after: CallDescription) -> JsonObject:
    names = ("title", "kind", "name", "raw_input", "locations")
    return {name: getattr(after, name) for name in names if getattr(before, name) != getattr(after, name)}
