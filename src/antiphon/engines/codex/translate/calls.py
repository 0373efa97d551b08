"""Calls from their start to their end, each told once, in order, and never left open by mistake."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from antiphon.engines.bounded import Recent
from antiphon.engines.codex.translate.events import CodexEvent
from antiphon.engines.labels import as_object
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, JsonObject

__all__ = ["CallDescription", "CallOutcome", "CodexCall", "CodexCalls", "terminal_exit"]

_PENDING: Final = v1.ToolStatus.PENDING
_RUNNING: Final = v1.ToolStatus.IN_PROGRESS
_COMPLETED: Final = v1.ToolStatus.COMPLETED
_FAILED: Final = v1.ToolStatus.FAILED


class CallDescription(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is shown before there is a result. `name` is the one that the policy's rules know."""

    title: str
    kind: v1.ToolKind = v1.ToolKind.OTHER
    name: str | None = None
    raw_input: Any = UNSET
    locations: list[v1.ToolLocation] = msgspec.field(default_factory=list)
    content: list[v1.ToolContent] = msgspec.field(default_factory=list)
    meta: JsonObject | None = None


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to. Content that is None stays as it is."""

    failed: bool = False
    content: list[v1.ToolContent] | None = None
    raw_output: Any = UNSET
    meta: JsonObject | None = None


class CodexCall:
    """One call that is not over."""

    __slots__ = ("asked", "id", "lasting", "shown", "status", "terminal")

    def __init__(self, id: str, shown: CallDescription, *, terminal: bool = False, lasting: bool = False) -> None:
        self.id = id
        self.shown = shown
        self.status = _RUNNING
        self.terminal = terminal
        """Its output is shown in a terminal of its own."""
        self.lasting = lasting
        """It goes on when the turn is over."""
        self.asked = False
        """The user was asked about it."""


class CodexCalls:
    """Every call of a thread that is not over."""

    def __init__(self) -> None:
        self._open: dict[str, CodexCall] = {}
        self._over: Recent[str] = Recent()
        self._given_up: Recent[str] = Recent()
        """Closed by us; its end may still be told."""
        self._ending: Recent[str] = Recent()
        """Those among them that run somewhere, so that their end comes soon if somebody ends them."""

    def get(self, id: str) -> CodexCall | None:
        """A call that is not over."""
        return self._open.get(id)

    def is_known(self, id: str) -> bool:
        """Whether anything was told of it."""
        return id in self._open or id in self._over

    def is_done(self, id: str) -> bool:
        """Whether all was told of it."""
        return id in self._over and id not in self._given_up

    @property
    def has_ending(self) -> bool:
        """Whether the end of a call that we closed is still to come."""
        return len(self._ending) > 0

    def forget_ends(self) -> None:
        """The ends of calls that we closed are not told any more."""
        self._given_up = Recent()
        self._ending = Recent()

    def all_open(self) -> list[CodexCall]:
        """Those that are not over, the latest first."""
        return list(self._open.values())[::-1]

    def begin(self, call: CodexCall) -> Iterator[CodexEvent]:
        """It begins; one that is open already may look different now."""
        if call.id in self._over:
            return
        before = self._open.get(call.id)
        if before is not None:
            before.lasting |= call.lasting
            yield from self.looks(before, call.shown)
            return
        self._open[call.id] = call
        shown = call.shown
        yield v1.ToolCall(
            tool_call_id=call.id,
            title=shown.title,
            kind=shown.kind,
            status=call.status,
            name=shown.name,
            content=shown.content,
            locations=shown.locations,
            raw_input=shown.raw_input,
            meta=shown.meta,
        )

    def looks(self, call: CodexCall, shown: CallDescription) -> Iterator[CodexEvent]:
        """It is shown differently from now on."""
        before, call.shown = call.shown, shown
        changed = _changes(before, shown)
        if before.content != shown.content:
            changed["content"] = shown.content
        if changed:
            yield v1.ToolCallUpdate(tool_call_id=call.id, **changed)

    def asked(self, id: str) -> None:
        """The user is asked about it, so it waits."""
        call = self._open.get(id)
        if call is not None:
            call.status, call.asked = _PENDING, True

    def runs(self, id: str) -> Iterator[CodexEvent]:
        """It waited, and now it runs. The question may have shown something else in its place, but for diffs."""
        call = self._open.get(id)
        if call is not None and call.status == _PENDING:
            call.status = _RUNNING
            same = any(isinstance(each, v1.Diff) for each in call.shown.content)
            yield v1.ToolCallUpdate(tool_call_id=id, status=_RUNNING, content=UNSET if same else call.shown.content)

    def finish(self, call: CodexCall, outcome: CallOutcome) -> Iterator[CodexEvent]:
        """It came to something. `call` is how it looks in the end; what was told of it before is not told again."""
        id = call.id
        before = self._open.pop(id, None)
        if before is None:
            if self.is_done(id):
                return
            if id not in self._over:
                yield from self.begin(call)
                self._open.pop(id, None)
            before = call
        self._over.add(id)
        self._given_up.discard(id)
        self._ending.discard(id)
        yield v1.ToolCallUpdate(
            tool_call_id=id,
            status=_FAILED if outcome.failed else _COMPLETED,
            content=UNSET if outcome.content is None else outcome.content,
            raw_output=as_object(outcome.raw_output),
            meta=outcome.meta,
            **_changes(before.shown, call.shown),
        )

    def close(self, *, lasting: bool) -> Iterator[CodexEvent]:
        """Nothing more comes of those that are open, or of those among them that do not outlive a turn."""
        for call in self.all_open():
            if lasting or not call.lasting:
                del self._open[call.id]
                self._over.add(call.id)
                self._given_up.add(call.id)
                if call.lasting:
                    self._ending.add(call.id)
                meta = terminal_exit(call.id, None) if call.terminal else None
                yield v1.ToolCallUpdate(tool_call_id=call.id, status=_FAILED, meta=meta)


def terminal_exit(id: str, code: int | None) -> JsonObject:
    """The word to clients that a command's terminal has nothing more to show."""
    return {"terminal_exit": {"terminal_id": id, "exit_code": code, "signal": None}}


def _changes(before: CallDescription, after: CallDescription) -> dict[str, Any]:
    names = ("title", "kind", "name", "raw_input", "locations")
    return {name: getattr(after, name) for name in names if getattr(before, name) != getattr(after, name)}
