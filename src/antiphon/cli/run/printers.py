"""Prints a run: as text, as the last message only, or as JSON events.

On a terminal a call is one line that is drawn again as it goes on. In a pipe it is one line when it has ended.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

import msgspec

from antiphon.protocol import v1
from antiphon.protocol.base import encode
from antiphon.runs import events
from antiphon.text import Style, exact_line, one_line
from antiphon.transcript.presentation import (
    call_line,
    diff_lines,
    diffs_in,
    engine_of,
    is_label,
    plan_line,
    shown_path,
    usage_line,
    written_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.cli.terminal import Screen
    from antiphon.client.session import ClientSession
    from antiphon.runs.events import ResultEvent
    from antiphon.store.decisions import AuditEntry
    from antiphon.transcript.entries import CallEntry

__all__ = [
    "JsonPrinter",
    "Printer",
    "QuietPrinter",
    "ResultPrinter",
    "TailOf",
    "TextPrinter",
    "WordOf",
    "show_diff",
    "tokens_event",
    "usage_event",
]

PLAN = "plan"

OUTPUT_LINES: Final = 10
"""The last lines of a command's output that are shown."""

OUTPUT_COLUMNS: Final = 500
"""Characters of each."""

TailOf: TypeAlias = Callable[[str], str | None]
"""What a terminal wrote last, by its id."""

WordOf: TypeAlias = Callable[[str], str]
"""What became of a call that failed, by its id: an agent reports no more than that it failed."""


class Printer(Protocol):
    """Prints a run, in one of three forms."""

    def opened(self, session: "ClientSession", agent: str, version: str | None, how: str) -> None:
        """The session is open, and the prompt is sent."""

    def update(self, update: v1.Update) -> None:
        """Show an update."""

    def decided(self, entry: "AuditEntry", engine: str | None) -> None:
        """Show a decision of the policy or the person about what an engine wants to do."""

    def answered(self, message: str, answer: str, engine: str | None) -> None:
        """Show that a question was answered or declined."""

    def warn(self, title: str, hint: str | None = None) -> None:
        """Show a warning of Antiphon."""

    def ended(self, result: "ResultEvent", usage: v1.UsageUpdate | None, tokens: v1.Usage | None) -> None:
        """Show the end of the run."""


class TextPrinter:
    """Prints a run for people."""

    def __init__(
        self, screen: "Screen", tail_of: TailOf = lambda id: None, word_of: WordOf = lambda id: "failed"
    ) -> None:
        self._screen = screen
        self._tail_of = tail_of
        self._word_of = word_of
        self._merged = _same_place()
        self._session: ClientSession | None = None
        self._message: str | None = None  # the id of the message that is being printed
        self._in_message = self._thinking = False
        self._has_text = False
        self._plan: str | None = None
        self._unfinished: dict[str, CallEntry] = {}
        self._shown: set[str] = set()

    def opened(self, session: "ClientSession", agent: str, version: str | None, how: str) -> None:
        self._session = session
        self._screen.status(f"waiting for {agent} …")

    def update(self, update: v1.Update) -> None:
        match update:
            case v1.AgentMessageChunk(content=v1.TextBlock(text=text), message_id=id):
                self._print_text(text, id)
            case v1.AgentThoughtChunk(content=v1.TextBlock(text=text)):
                if self._in_message:
                    self._part()
                self._in_message, self._thinking = False, True
                self._screen.think(text)
            case v1.MessageChunk(content=content) if not isinstance(update, v1.UserMessageChunk):
                self._note(f"[{describe_block(content)}]", "dim")
            case v1.ToolCall(tool_call_id=id) | v1.ToolCallUpdate(tool_call_id=id):
                self._in_message = self._in_message and not isinstance(update, v1.ToolCall)
                self._call(id)
            case v1.Plan(entries=steps):
                self._show_plan(plan_line(steps))
            case v1.NoticeUpdate(severity=severity, title=title, description=description):
                style: Style = "dim" if severity == v1.NoticeSeverity.INFO else "yellow"
                self._note(f"! {severity}: {title}{f': {description}' if description else ''}", style)
            case v1.CompactionUpdate(status=status):
                self._note(f"~ the context is shortened: {status}", "dim")
            case v1.CurrentModeUpdate(current_mode_id=mode):
                self._note(f"~ mode: {mode}", "dim")
            case _:
                pass

    def decided(self, entry: "AuditEntry", engine: str | None) -> None:
        if entry.verdict != "allow" and entry.source != "user":  # the user knows of their own answer
            self._note(
                f"✗ denied ({entry.kind}): {exact_line(entry.subject or entry.tool or 'it did not name the action')}: {entry.why}",
                "yellow",
            )

    def answered(self, message: str, answer: str, engine: str | None) -> None:
        if answer != "accept":
            self._note(f"? {one_line(message)} ({'declined' if answer == 'decline' else 'dismissed'})", "yellow")

    def warn(self, title: str, hint: str | None = None) -> None:
        self._note(f"warning: {title}{f' ({hint})' if hint else ''}", "yellow")

    def ended(self, result: "ResultEvent", usage: v1.UsageUpdate | None, tokens: v1.Usage | None) -> None:
        self._in_message = False
        self._screen.end_message()
        end = " (cancelled)" if result.stop_reason == "cancelled" else ""
        for key, call in self._unfinished.items():
            line = f"{call_line(call, self._cwd)}{end}"
            if not self._screen.can_redraw:
                self._screen.note(line)
            elif end and self._screen.is_live(key):
                self._screen.live(key, line)
        if not self._screen.can_redraw and self._plan is not None:
            self._screen.note(self._plan)
        if (used := usage_line(usage, tokens)) is not None:
            self._screen.note(used, "dim")
        if result.stop_reason not in (None, "end_turn") and result.error is None:
            self._screen.note(f"stopped: {result.stop_reason}", "yellow")

    # Parts of the above.

    @property
    def _cwd(self) -> str:
        return self._session.cwd if self._session is not None else "/"

    def _print_text(self, text: str, id: str | None) -> None:
        if not text:
            return
        another = not self._in_message or (id is not None and self._message is not None and id != self._message)
        if another and self._has_text:
            self._screen.end_message(gap=True)
        if self._thinking:
            self._part()
        self._in_message, self._has_text, self._message, self._thinking = True, True, id, False
        self._screen.say(text)

    def _note(self, text: str, style: Style = "") -> None:
        self._part()
        self._thinking = False
        self._screen.note(text, style)

    def _part(self) -> None:
        """End open lines if stdout and stderr are the same file or pipe."""
        if self._merged:
            self._screen.finish()

    def _call(self, id: str) -> None:
        call = self._session.transcript.call(id) if self._session is not None else None
        if call is None:
            return
        key = f"{call.key} {id}"
        if not call.finished:
            self._unfinished[key] = call
            self._screen.live(key, call_line(call, self._cwd))
            return
        if self._unfinished.pop(key, None) is None and key in self._shown:
            return  # a repetition
        self._shown.add(key)
        style: Style = "green" if call.status == v1.ToolStatus.COMPLETED else "red"
        line = call_line(call, self._cwd, self._word_of(call.id))
        if self._screen.can_redraw:
            self._screen.live(key, line, style)
        else:
            self._note(one_line(line), style)
        self._show_output(call)
        if call.status == v1.ToolStatus.COMPLETED:
            for diff in diffs_in(call.content):
                if _change(diff) not in self._screen.shown:  # with the question
                    show_diff(self._screen, diff, self._cwd)

    def _show_output(self, call: "CallEntry") -> None:
        """Print the last lines of a command's output."""
        ids = [item.terminal_id for item in call.content if isinstance(item, v1.TerminalItem)]
        texts = [text for id in ids if (text := self._tail_of(id)) is not None]
        if not texts and (ids or call.kind == v1.ToolKind.EXECUTE) and isinstance(call.raw_output, Mapping):
            kept = call.raw_output.get("output")
            texts = [kept] if isinstance(kept, str) else []
        for text in texts:
            lines = written_lines(text)
            if len(lines) > OUTPUT_LINES:
                self._screen.note(f"  … {len(lines) - OUTPUT_LINES} lines before", "dim")
            for line in lines[-OUTPUT_LINES:]:
                self._screen.note(f"  {line[:OUTPUT_COLUMNS]}", "dim")

    def _show_plan(self, line: str) -> None:
        self._plan = line
        self._screen.live(PLAN, line, "cyan")


class QuietPrinter:
    """Prints the last message, denials, failures and problems with the settings, for `--quiet`.

    `answer` returns what is printed of the result.
    """

    def __init__(self, screen: "Screen", answer: "Callable[[ResultEvent], str]" = lambda result: result.text) -> None:
        self._screen = screen
        self._answer = answer
        self._warned = set[str]()

    def opened(self, session: "ClientSession", agent: str, version: str | None, how: str) -> None:
        pass

    def update(self, update: v1.Update) -> None:
        match update:
            case v1.NoticeUpdate(title=title, description=description, meta={"antiphon": {"untrusted": True}}):
                self.warn(title, description)
            case v1.NoticeUpdate(meta={"antiphon": {"unsaved": True}}):
                self._note(str(update.severity), update.title, update.description)
            case _:
                pass

    def decided(self, entry: "AuditEntry", engine: str | None) -> None:
        pass

    def answered(self, message: str, answer: str, engine: str | None) -> None:
        pass

    def warn(self, title: str, hint: str | None = None) -> None:
        """Print a warning once. Problems with settings and storage are shown even with `--quiet`."""
        if title not in self._warned:
            self._warned.add(title)
            self._note("warning", title, hint)

    def _note(self, severity: str, title: str, more: str | None) -> None:
        self._screen.note(f"{severity}: {title}{f' ({one_line(more)})' if more else ''}", "yellow")

    def ended(self, result: "ResultEvent", usage: v1.UsageUpdate | None, tokens: v1.Usage | None) -> None:
        self._screen.say(self._answer(result))
        self._screen.end_message()


def _same_place() -> bool:
    """Whether stdout and stderr are one file or one pipe: `2>&1`."""
    try:
        return os.path.sameopenfile(1, 2)
    except OSError:  # closed
        return False


def show_diff(screen: "Screen", diff: v1.Diff, cwd: str) -> None:
    """Print a diff, in colours if the terminal has them."""
    screen.shown.add(_change(diff))
    styles: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
    for number, line in enumerate(diff_lines(diff, shown_path(diff.path, cwd))):
        screen.note(f"  {line}", "bold" if number == 0 else styles.get(line[:1], "dim"))


def _change(diff: v1.Diff) -> tuple[str, str | None, str]:
    """Return what identifies a diff. Its `_meta` cannot be hashed, and may change between the request and the end."""
    return (diff.path, diff.old_text, diff.new_text)


def describe_block(block: v1.ContentBlock) -> str:
    """Describe a content block that is not text."""
    match block:
        case v1.ImageBlock(mime_type=mime) | v1.AudioBlock(mime_type=mime):
            return f"{mime}, {len(block.data) * 3 // 4:,} bytes"
        case v1.ResourceLink(name=name, uri=uri):
            return f"{name}: {uri}"
        case v1.EmbeddedResource(resource=resource):
            return resource.uri
        case v1.TextBlock(text=text):
            return text
        case _:
            return block.kind


# --- JSON -----------------------------------------------------------------------------------------------------------


class JsonPrinter:
    """Prints a run as JSON events, one per line."""

    def __init__(self, write: "Callable[[bytes], object]", word_of: "WordOf" = lambda id: "failed") -> None:
        self._write_line = write
        self._word_of = word_of
        self._session: ClientSession | None = None
        self._inputs: dict[str, object] = {}
        self._calls: dict[str, events.CallEvent] = {}

    def opened(self, session: "ClientSession", agent: str, version: str | None, how: str) -> None:
        self._session = session
        start = events.StartEvent(
            schema_version=events.VERSION,
            agent=agent,
            agent_version=version,
            session_id=session.id,
            opened=cast('Literal["new", "resumed", "loaded"]', how),
            cwd=session.cwd,
            mode=session.modes.current_mode_id if session.modes is not None else None,
            model=session.models.current_model_id if session.models is not None else None,
        )
        self._write(start)

    def update(self, update: v1.Update) -> None:
        engine = engine_of(update)
        match update:
            case v1.AgentMessageChunk(content=v1.TextBlock(text=text), message_id=id):
                self._write(events.MessageEvent(text=text, message_id=id, engine=engine, label=is_label(update)))
            case v1.AgentThoughtChunk(content=v1.TextBlock(text=text), message_id=id):
                self._write(events.ThoughtEvent(text=text, message_id=id, engine=engine, label=is_label(update)))
            case v1.AgentMessageChunk(content=block, message_id=id):
                self._write(events.ContentEvent(place="message", block=_plain(block), message_id=id, engine=engine))
            case v1.AgentThoughtChunk(content=block, message_id=id):
                self._write(events.ContentEvent(place="thought", block=_plain(block), message_id=id, engine=engine))
            case v1.ToolCall(tool_call_id=id) | v1.ToolCallUpdate(tool_call_id=id):
                self._call(id, engine)
            case v1.Plan(entries=entries):
                self._write(events.PlanEvent(steps=[_step(entry) for entry in entries], engine=engine))
            case v1.UsageUpdate():
                self._write(usage_event(update))
            case v1.NoticeUpdate(severity=severity, title=title, description=description):
                self._write(
                    events.NoticeEvent(severity=str(severity), title=title, description=description, engine=engine)
                )
            case _:
                self._write(events.OtherUpdateEvent(update=_plain(update), engine=engine))

    def decided(self, entry: "AuditEntry", engine: str | None) -> None:
        verdict: Literal["allow", "deny"] = "allow" if entry.verdict == "allow" else "deny"
        self._write(
            events.PermissionEvent(
                subject=entry.subject,
                kind=entry.kind,
                verdict=verdict,
                asked=entry.source == "user",
                rule=entry.rule or None,
                why=entry.why,
                engine=engine,
            )
        )

    def answered(self, message: str, answer: str, engine: str | None) -> None:
        self._write(
            events.QuestionEvent(
                message=message, answer=cast('Literal["accept", "decline", "cancel"]', answer), engine=engine
            )
        )

    def warn(self, title: str, hint: str | None = None) -> None:
        self._write(events.NoticeEvent(severity="warning", title=title, description=hint))

    def ended(self, result: events.ResultEvent, usage: v1.UsageUpdate | None, tokens: v1.Usage | None) -> None:
        self._write(result)

    def _call(self, id: str, engine: str | None) -> None:
        call = self._session.transcript.call(id) if self._session is not None else None
        if call is None:
            return
        known = self._inputs.get(id, v1.UNSET)
        is_new = call.raw_input is not v1.UNSET and call.raw_input != known
        self._inputs[id] = call.raw_input
        denied = call.denied or self._word_of(id) == "denied"
        event = _call_event(call, engine, with_input=is_new, denied=denied)
        timeless = msgspec.structs.replace(event, time="")
        if timeless != self._calls.get(id):  # agents repeat the call with every piece of output
            self._calls[id] = timeless
            self._write(event)

    def _write(self, event: events.Event) -> None:
        self._write_line(events.encode_event(event))


class ResultPrinter(JsonPrinter):
    """Prints the result as one JSON object, and nothing before it."""

    def _write(self, event: events.Event) -> None:
        if isinstance(event, events.ResultEvent):
            super()._write(event)


def usage_event(usage: v1.UsageUpdate) -> events.UsageEvent:
    """Return the event about the context window."""
    cost = None
    if usage.cost is not None:  # agents add up floats: 0.018160000000000003
        cost = events.SessionCost(amount=round(usage.cost.amount, 6), currency=usage.cost.currency)
    return events.UsageEvent(used=usage.used, size=usage.size, cost=cost, engine=engine_of(usage))


def tokens_event(tokens: v1.Usage) -> events.TokenCounts:
    """Return the token counts of a turn."""
    return events.TokenCounts(
        total=tokens.total_tokens,
        input=tokens.input_tokens,
        output=tokens.output_tokens,
        thought=tokens.thought_tokens,
        cached_read=tokens.cached_read_tokens,
        cached_write=tokens.cached_write_tokens,
    )


def _step(entry: v1.PlanEntry) -> events.PlannedStep:
    return events.PlannedStep(content=entry.content, status=str(entry.status), priority=str(entry.priority))


def _call_event(call: "CallEntry", engine: str | None, *, with_input: bool, denied: bool) -> events.CallEvent:
    ended = call.finished
    return events.CallEvent(
        id=call.id,
        title=call.title,
        kind=str(call.kind),
        status=str(call.status),
        name=call.name,
        paths=list(dict.fromkeys(place.path for place in call.locations)),
        input=call.raw_input if with_input else None,
        output=call.raw_output if ended and call.raw_output is not v1.UNSET else None,
        content=_plain_list(call.content) if ended else [],
        engine=engine,
        denied=denied and call.status == v1.ToolStatus.FAILED,
    )


def _plain(part: object) -> object:
    """Return a part of a message as plain JSON values."""
    return msgspec.json.decode(encode(part))


def _plain_list(parts: "Sequence[object]") -> list[object]:
    return [_plain(part) for part in parts]
