"""Tool calls of Claude Code and the plan: from the first token to the end, each reported once and in order."""

import re
from typing import TYPE_CHECKING, Final

from antiphon.engines.bounded import Recent
from antiphon.engines.claude.translate.descriptions import describe, early_title
from antiphon.engines.claude.translate.events import Mirror
from antiphon.engines.labels import DENIED
from antiphon.engines.tool_calls import OpenCall, ToolCallChange, ToolCalls
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, JsonObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from msgspec import UnsetType

    from antiphon.engines.claude.translate.events import ClaudeEvent
    from antiphon.engines.claude.translate.results import CallResult

__all__ = ["AGENTS", "PLAN_TOOLS", "SHELLS", "ClaudeCall", "ClaudeCalls", "ClaudePlan"]

AGENTS: Final = frozenset({"Agent", "Task"})
SHELLS: Final = frozenset({"Bash", "PowerShell"})

EARLY_INPUT: Final = 4096
"""Characters of an input in which the file or the command is looked for before the input is complete. It comes first."""

_EXIT_CODE = re.compile(r"\(exit code (\d{1,10})\)")


class ClaudeCall(OpenCall):
    """A tool call of Claude Code that is not over."""

    __slots__ = ("background", "early", "input", "name", "parent", "title")

    def __init__(self, id: str, name: str, parent: str | None) -> None:
        super().__init__(id)
        self.name = name
        self.parent = parent
        """The call of the sub-agent that makes this one."""
        self.input: JsonObject = {}
        self.title = name
        self.early: str | None = ""
        """The input as far as it has come; None once nothing more is looked for in it."""
        self.background = False
        """Whether it outlives the turn."""


class ClaudeCalls(ToolCalls[ClaudeCall]):
    """The tool calls of a session of Claude Code."""

    def __init__(self, cwd: str, *, terminals: bool, mirror: bool) -> None:
        super().__init__()
        self._cwd = cwd
        self._terminals = terminals
        self._mirror = mirror and not terminals
        self._running_on: Recent[str] = Recent()
        """Commands in the background: their calls are over, their terminals are not."""

    def begin(self, id: str, name: str, parent: str | None) -> "Iterator[ClaudeEvent]":
        """Report a call that the model begins to write: its name is known, its input is not."""
        if self.is_known(id):
            return
        call = self._open[id] = ClaudeCall(id, name, parent)
        described = describe(name, {}, self._cwd)
        call.title = described.title
        yield v1.ToolCall(
            tool_call_id=id,
            title=described.title,
            kind=described.kind,
            name=described.name,
            content=self._placeholder(call, []),
            meta=self._meta(call, start=True),
        )

    def more_input(self, call: ClaudeCall, text: str) -> "Iterator[ClaudeEvent]":
        """Add a piece of the input, and report the title as soon as the input has what the call is about."""
        if call.early is None:
            return
        call.early += text
        title = early_title(call.name, call.early, self._cwd)
        if title is not None or len(call.early) > EARLY_INPUT:
            call.early = None
        if title is not None and title != call.title:
            call.title = title
            yield v1.ToolCallUpdate(tool_call_id=call.id, title=title, meta=self._meta(call))

    def complete_input(self, id: str, name: str, input: "JsonObject", parent: str | None) -> "Iterator[ClaudeEvent]":
        """Report the whole input of a call: it runs, unless the user is asked for permission first."""
        if self.is_over(id):
            return
        described = describe(name, input, self._cwd)
        call = self._open.get(id)
        is_new = call is None
        if call is None:
            call = self._open[id] = ClaudeCall(id, name, parent)
        elif call.early is None and call.input == input and not call.is_pending:
            return  # reported already
        call.input, call.early, call.title = input, None, described.title
        update: type[v1.ToolCall | v1.ToolCallUpdate] = v1.ToolCall if is_new else v1.ToolCallUpdate
        yield update(
            tool_call_id=id,
            title=described.title,
            kind=described.kind,
            status=call.apply(ToolCallChange.RUN),
            name=described.name,
            content=self._placeholder(call, described.content),
            locations=described.locations,
            raw_input=input,
            meta=self._meta(call, start=is_new),
        )

    def permission_patch(self, id: str, name: str, input: "JsonObject") -> v1.ToolCallPatch:
        """Return what a permission request shows of a call. The call does not run before the response."""
        described = describe(name, input, self._cwd)
        call = self._open.get(id)
        if call is not None:
            call.apply(ToolCallChange.ASK)
        return v1.ToolCallPatch(
            tool_call_id=id,
            title=described.title,
            kind=described.kind,
            status=v1.ToolStatus.PENDING,
            name=described.name,
            content=described.content,
            locations=described.locations,
            raw_input=input,
            meta=self._meta(call or ClaudeCall(id, name, None)),
        )

    def run(self, id: str) -> "Iterator[ClaudeEvent]":
        """Report that a call runs after it waited for permission."""
        call = self._open.get(id)
        if call is not None and call.is_pending:
            yield v1.ToolCallUpdate(
                tool_call_id=id,
                status=call.apply(ToolCallChange.RUN),
                content=self._content_after_permission(call),
                meta=self._meta(call),
            )

    def update_content(self, call: ClaudeCall, content: "list[v1.ToolContent]") -> v1.ToolCallUpdate:
        """Report what a call shows while it runs."""
        return v1.ToolCallUpdate(tool_call_id=call.id, content=content, meta=self._meta(call))

    def finish(
        self, call: ClaudeCall, result: "CallResult", content: "list[v1.ToolContent] | None" = None
    ) -> "Iterator[ClaudeEvent]":
        """Report the result of a call. `content` replaces what the result itself shows."""
        status = self.end(call.id, _outcome(result.failed))
        meta = {**self._meta(call), **(DENIED if result.denied else {})}
        parts: list[v1.ToolContent] | UnsetType = result.content if content is None else content
        if call.name in SHELLS and result.output is not None and (self._terminals or self._mirror):
            if self._terminals:
                output = {"terminal_id": call.id, "data": result.output}
                yield v1.ToolCallUpdate(tool_call_id=call.id, meta={"terminal_output": output})
                if call.background:
                    self._running_on.add(call.id)
                else:
                    meta = {**meta, **_exit(call.id, result.exit_code)}
                parts = [v1.TerminalItem(terminal_id=call.id)]
            else:
                yield Mirror(call.id, str(call.input.get("command", "")), result.output, result.exit_code)
                parts = UNSET
        yield v1.ToolCallUpdate(
            tool_call_id=call.id,
            status=status,
            content=parts if parts else UNSET,
            locations=result.locations if result.locations else UNSET,
            raw_output=result.raw_output,
            meta=meta,
        )

    def unannounced(self, id: str, result: "CallResult", parent: str | None) -> "Iterator[ClaudeEvent]":
        """Report the result of a call whose start was never reported, as after a resume."""
        yield v1.ToolCall(
            tool_call_id=id,
            title="Tool call",
            status=self.end(id, _outcome(result.failed)),
            content=result.content,
            locations=result.locations,
            raw_output=result.raw_output,
            meta={**(_parent(parent) if parent else {}), **(DENIED if result.denied else {})} or None,
        )

    def finish_task(self, call: ClaudeCall, failed: bool, content: "list[v1.ToolContent]") -> v1.ToolCallUpdate:
        """End a call whose result is the report of its task."""
        return self._end_without_result(call, _outcome(failed), content)

    def close(self, call: ClaudeCall, content: "list[v1.ToolContent]") -> v1.ToolCallUpdate:
        """End a call that gets no result any more."""
        return self._end_without_result(call, ToolCallChange.CLOSE, content)

    def _end_without_result(
        self, call: ClaudeCall, event: ToolCallChange, content: "list[v1.ToolContent]"
    ) -> v1.ToolCallUpdate:
        meta = self._meta(call)
        if self._terminals and call.name in SHELLS:
            meta = {**meta, **_exit(call.id, None)}
        return v1.ToolCallUpdate(
            tool_call_id=call.id,
            status=self.end(call.id, event),
            content=content if content else UNSET,
            meta=meta,
        )

    def left_open(self, *, background: bool, below: str | None = None) -> "Collection[ClaudeCall]":
        """Return the calls to close, the inner ones first: all that do not outlive the turn, or all, or all of one sub-agent."""
        found = [
            call
            for call in self._open.values()
            if (background or not self._outlives(call)) and (below is None or self._is_below(call, below))
        ]
        return found[::-1]

    def background_exit(self, id: str, summary: str | None) -> "Iterator[ClaudeEvent]":
        """Report the end of a command in the background, and so of its terminal."""
        if id in self._running_on:
            self._running_on.discard(id)
            code = _EXIT_CODE.search(summary or "")
            yield v1.ToolCallUpdate(tool_call_id=id, meta=_exit(id, int(code[1]) if code else None))

    def _lineage(self, call: ClaudeCall) -> "Iterator[ClaudeCall]":
        seen: set[str] = set()
        at: ClaudeCall | None = call
        while at is not None and at.id not in seen:
            seen.add(at.id)
            yield at
            at = self.get(at.parent)

    def _outlives(self, call: ClaudeCall) -> bool:
        return any(each.background for each in self._lineage(call))

    def _is_below(self, call: ClaudeCall, ancestor: str) -> bool:
        return call.id != ancestor and any(each.parent == ancestor for each in self._lineage(call))

    def _placeholder(self, call: ClaudeCall, content: "list[v1.ToolContent]") -> "list[v1.ToolContent]":
        """The content in which a command's output will be shown; else a preview."""
        return [v1.TerminalItem(terminal_id=call.id)] if self._terminals and call.name in SHELLS else content

    def _content_after_permission(self, call: ClaudeCall) -> "list[v1.ToolContent] | UnsetType":
        """The permission request may have replaced the terminal by the command."""
        return self._placeholder(call, []) or UNSET

    def _meta(self, call: ClaudeCall, *, start: bool = False) -> "JsonObject":
        about = {"toolName": call.name} | ({"parentToolUseId": call.parent} if call.parent else {})
        meta: JsonObject = {"claudeCode": about}
        if start and self._terminals and call.name in SHELLS:
            meta["terminal_info"] = {"terminal_id": call.id, "cwd": self._cwd}
        return meta


def _outcome(failed: bool) -> ToolCallChange:
    return ToolCallChange.FAIL if failed else ToolCallChange.SUCCEED


def _exit(id: str, code: int | None) -> "JsonObject":
    return {"terminal_exit": {"terminal_id": id, "exit_code": code, "signal": None}}


def _parent(parent: str) -> "JsonObject":
    return {"claudeCode": {"parentToolUseId": parent}}


# The plan: `TodoWrite` replaces it whole, the task tools change it one by one; what counts is that a call succeeded.

PLAN_TOOLS: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"})
"""Tools whose calls are reported as the plan and not as calls."""


class _Task:
    __slots__ = ("status", "subject")

    def __init__(self, subject: str, status: str = "pending") -> None:
        self.subject = subject
        self.status = status


class ClaudePlan:
    """The plan of a session, as the tools for it leave it."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}
        self._sent: list[v1.PlanEntry] = []

    def apply(self, name: str, input: "Mapping[str, object]", structured: object, failed: bool) -> "Iterator[v1.Plan]":
        """Apply a call that ended, and report the plan if it changed. A failed call changed nothing; `TodoWrite` has all in its input."""
        if failed:
            return
        result = structured if isinstance(structured, dict) else {}
        if name == "TodoWrite":
            self._write(input)
        elif name == "TaskCreate":
            self._create(input, result)
        elif name == "TaskUpdate":
            self._update(input)
        elif name == "TaskList":
            self._list(result)
        yield from self._changed()

    def clear(self) -> "Iterator[v1.Plan]":
        """Empty the plan, because the session starts again."""
        self._tasks = {}
        yield from self._changed()

    def _write(self, input: "Mapping[str, object]") -> None:
        todos = input.get("todos")
        if isinstance(todos, list):
            self._tasks = {
                str(number): _Task(_first_text(todo, "content", "subject", "title"), str(todo.get("status", "")))
                for number, todo in enumerate(todos, 1)
                if isinstance(todo, dict)
            }

    def _create(self, input: "Mapping[str, object]", result: "Mapping[str, object]") -> None:
        made = result.get("task")
        made = made if isinstance(made, dict) else {}
        subject = _first_text(made, "subject") or _first_text(input, "subject", "description")
        id = str(made.get("id") or len(self._tasks) + 1)
        self._tasks[id] = _Task(subject)

    def _update(self, input: "Mapping[str, object]") -> None:
        id, status = str(input.get("taskId", "")), input.get("status")
        if status == "deleted":
            self._tasks.pop(id, None)
            return
        task = self._tasks.get(id)
        if task is None:  # made before a resume
            if not _first_text(input, "subject"):
                return
            task = self._tasks[id] = _Task("")
        task.subject = _first_text(input, "subject") or task.subject
        if isinstance(status, str):
            task.status = status

    def _list(self, result: "Mapping[str, object]") -> None:
        tasks = result.get("tasks")
        if isinstance(tasks, list):
            self._tasks = {
                str(task.get("id", number)): _Task(_first_text(task, "subject"), str(task.get("status", "")))
                for number, task in enumerate(tasks, 1)
                if isinstance(task, dict)
            }

    def _changed(self) -> "Iterator[v1.Plan]":
        entries = [
            v1.PlanEntry(
                content=task.subject or f"Task {id}",
                priority=v1.PlanPriority.MEDIUM,
                status=_STATUS.get(task.status, v1.PlanStatus.PENDING),
            )
            for id, task in self._tasks.items()
        ]
        if entries != self._sent:
            self._sent = entries
            yield v1.Plan(entries=entries)


_STATUS: Final = {
    "completed": v1.PlanStatus.COMPLETED,
    "in_progress": v1.PlanStatus.IN_PROGRESS,
    "pending": v1.PlanStatus.PENDING,
}


def _first_text(fields: "Mapping[str, object]", *names: str) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")
