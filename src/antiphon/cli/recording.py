"""A run as programs read it: events on stdout, one per line, and not a word besides."""

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from antiphon.cli import events
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from antiphon.transcript.presentation import engine_of, is_label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.cli.printing import WordOf
    from antiphon.client.session import ClientSession
    from antiphon.store.decisions import AuditEntry
    from antiphon.transcript.entries import CallEntry

__all__ = ["JsonPrinter", "tokens_event", "usage_event"]


class JsonPrinter:
    """For programs."""

    def __init__(self, write: "Callable[[bytes], object]", word_of: "WordOf" = lambda id: "failed") -> None:
        self._write_line = write
        self._word_of = word_of
        self._session: ClientSession | None = None
        self._inputs: dict[str, Any] = {}
        self._calls: dict[str, events.ToolCall] = {}

    def opened(self, session: "ClientSession", agent: str, version: str | None, how: str) -> None:
        self._session = session
        start = events.Start(
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
                self._write(events.Message(text=text, message_id=id, engine=engine, label=is_label(update)))
            case v1.AgentThoughtChunk(content=v1.TextBlock(text=text), message_id=id):
                self._write(events.Thought(text=text, message_id=id, engine=engine, label=is_label(update)))
            case v1.AgentMessageChunk(content=block, message_id=id):
                self._write(events.Content(place="message", block=_plain(block), message_id=id, engine=engine))
            case v1.AgentThoughtChunk(content=block, message_id=id):
                self._write(events.Content(place="thought", block=_plain(block), message_id=id, engine=engine))
            case v1.ToolCall(tool_call_id=id) | v1.ToolCallUpdate(tool_call_id=id):
                self._call(id, engine)
            case v1.Plan(entries=entries):
                self._write(events.Plan(steps=[_step(entry) for entry in entries], engine=engine))
            case v1.UsageUpdate():
                self._write(usage_event(update))
            case v1.NoticeUpdate(severity=severity, title=title, description=description):
                self._write(events.Notice(severity=str(severity), title=title, description=description, engine=engine))
            case _:
                self._write(events.Update(update=_plain(update)))

    def decided(self, entry: "AuditEntry") -> None:
        verdict: Literal["allow", "deny"] = "allow" if entry.verdict == "allow" else "deny"
        self._write(
            events.Permission(
                subject=entry.subject,
                kind=entry.kind,
                verdict=verdict,
                asked=entry.source == "user",
                rule=entry.rule or None,
                why=entry.why,
            )
        )

    def answered(self, message: str, answer: str) -> None:
        self._write(events.Question(message=message, answer=cast('Literal["accept", "decline", "cancel"]', answer)))

    def warn(self, title: str, hint: str | None = None) -> None:
        self._write(events.Notice(severity="warning", title=title, description=hint))

    def ended(self, result: events.Result, usage: v1.UsageUpdate | None, tokens: v1.Usage | None) -> None:
        self._write(result)

    def _call(self, id: str, engine: str | None) -> None:
        call = self._session.transcript.call(id) if self._session is not None else None
        if call is None:
            return
        known = self._inputs.get(id, v1.UNSET)
        news = call.raw_input is not v1.UNSET and call.raw_input != known
        self._inputs[id] = call.raw_input
        denied = call.denied or self._word_of(id) == "denied"
        event = _call_event(call, engine, with_input=news, denied=denied)
        if event != self._calls.get(id):  # agents tell the same again with every piece of output
            self._calls[id] = event
            self._write(event)

    def _write(self, event: events.Event) -> None:
        self._write_line(events.encode_event(event))


def usage_event(usage: v1.UsageUpdate) -> events.Usage:
    """How full the window is."""
    cost = None if usage.cost is None else events.Cost(amount=usage.cost.amount, currency=usage.cost.currency)
    return events.Usage(used=usage.used, size=usage.size, cost=cost, engine=engine_of(usage))


def tokens_event(tokens: v1.Usage) -> events.Tokens:
    """The tokens of the session."""
    return events.Tokens(
        total=tokens.total_tokens,
        input=tokens.input_tokens,
        output=tokens.output_tokens,
        thought=tokens.thought_tokens,
        cached_read=tokens.cached_read_tokens,
        cached_write=tokens.cached_write_tokens,
    )


def _step(entry: v1.PlanEntry) -> events.PlanStep:
    return events.PlanStep(content=entry.content, status=str(entry.status), priority=str(entry.priority))


def _call_event(call: "CallEntry", engine: str | None, *, with_input: bool, denied: bool) -> events.ToolCall:
    ended = call.finished
    return events.ToolCall(
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


def _plain(part: object) -> Any:
    """A part of a message as plain JSON."""
    return msgspec.json.decode(encode(part))


def _plain_list(parts: "Sequence[object]") -> list[Any]:
    return [_plain(part) for part in parts]
