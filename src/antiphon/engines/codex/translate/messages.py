"""Messages and thoughts of the model, each reported once; the plan, compactions and usage beside them.

A broken stream is started again, and the model repeats itself under new ids. Text after a retry is held back as long
as it repeats what was reported before; after that, the message that the user already sees goes on.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from antiphon.engines.bounded import tokens
from antiphon.engines.codex.wire import (
    AgentMessage,
    ExitedReviewMode,
    PlanUpdated,
    ProposedPlan,
    RateLimits,
    Reasoning,
    TokenUsage,
)
from antiphon.protocol import v1

__all__ = ["CodexCompaction", "CodexLimits", "CodexMessages", "CodexUsageMeter", "plan_of"]

Chunk = v1.AgentMessageChunk | v1.AgentThoughtChunk
_BETWEEN_PARTS: Final = "\n\n"


class _Message:
    """One message as far as it was reported."""

    __slots__ = ("chunk", "id", "part", "parts", "pieces")

    def __init__(self, id: str, chunk: type[Chunk]) -> None:
        self.id = id
        self.chunk = chunk
        self.pieces: list[str] = []
        self.parts: str | None = None
        """The form in which a thought is reported: `summary` or `content`."""
        self.part = 0

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def more(self, text: str) -> Chunk:
        self.pieces.append(text)
        return self.chunk(content=v1.TextBlock(text=text), message_id=self.id)


class _Held:
    """Text after a retry, while it may repeat one of these messages."""

    __slots__ = ("like", "text")

    def __init__(self, like: list[_Message]) -> None:
        self.like = like
        self.text = ""


class CodexMessages:
    """The messages of the running turn."""

    def __init__(self) -> None:
        self._sent: dict[str, _Message] = {}
        """Messages by the item's id. One that goes on after a retry has several."""
        self._held: dict[str, _Held] = {}
        self._since: list[_Message] = []
        """Messages since the model's last complete answer, which a retry may repeat."""
        self._repeatable: list[_Message] = []

    def turn_began(self) -> None:
        """Forget the messages of the turn before."""
        self._sent.clear()
        self._held.clear()
        self.answered()

    def answered(self) -> None:
        """The model's answer is complete; nothing of it comes again."""
        self._since.clear()
        self._repeatable.clear()

    def retried(self) -> None:
        """The model begins its answer again."""
        self._held.clear()
        self._repeatable = [message for message in self._since if message.text]

    def started(self, item: AgentMessage | ProposedPlan | Reasoning) -> Sequence[Chunk]:
        """An item begins; under an id that is known it is one that begins again."""
        if item.id in self._sent and self._repeatable:
            self._begin(item.id, v1.AgentThoughtChunk if isinstance(item, Reasoning) else v1.AgentMessageChunk)
        return ()

    def add_text(self, id: str, text: str) -> Sequence[Chunk]:
        """More of a message."""
        message = self._sent.get(id)
        if message is not None and text and not self._held:
            return (message.more(text),)
        return tuple(self._more(id, v1.AgentMessageChunk, text))

    def add_thought(self, id: str, text: str, parts: str, part: int) -> Sequence[Chunk]:
        """More of a thought, in one of its two forms and in one of its parts."""
        message = self._sent.get(id) or self._begin(id, v1.AgentThoughtChunk)
        if message.parts is None:
            message.parts = parts
        if message.parts != parts or not text:
            return ()
        if part != message.part:
            message.part = part
            held = self._held.get(id)
            if message.pieces or (held is not None and held.text):
                text = _BETWEEN_PARTS + text
        return tuple(self._more(id, v1.AgentThoughtChunk, text))

    def message_completed(self, item: AgentMessage | ProposedPlan) -> Sequence[Chunk]:
        """Report the part of a whole message that was not streamed."""
        return tuple(self._whole(item.id, v1.AgentMessageChunk, item.text))

    def reasoning_completed(self, item: Reasoning) -> Sequence[Chunk]:
        """The whole thought."""
        message = self._sent.get(item.id)
        parts = item.content if (message and message.parts == "content") or not any(item.summary) else item.summary
        whole = _BETWEEN_PARTS.join(part for part in parts if part)
        return tuple(self._whole(item.id, v1.AgentThoughtChunk, whole))

    def reviewed(self, item: ExitedReviewMode) -> Sequence[Chunk]:
        """Report the finding of a review; Codex may repeat it as a message."""
        events = tuple(self._whole(item.id, v1.AgentMessageChunk, item.review))
        if events:
            self._repeatable.append(self._sent[item.id])
        return events

    def _begin(self, id: str, chunk: type[Chunk]) -> _Message:
        before = self._sent.get(id)
        message = self._sent[id] = _Message(id if before is None else f"{before.id}-again", chunk)
        like = [params for params in self._repeatable if params.chunk is chunk]
        if like:
            self._held[id] = _Held(like)
        else:
            self._since.append(message)
        return message

    def _more(self, id: str, chunk: type[Chunk], text: str) -> Iterator[Chunk]:
        message = self._sent.get(id) or self._begin(id, chunk)
        held = self._held.get(id)
        if held is None:
            if text:
                yield message.more(text)
            return
        held.text += text
        like = [
            params for params in held.like if params.text.startswith(held.text) or held.text.startswith(params.text)
        ]
        if any(params.text.startswith(held.text) for params in like):
            return
        del self._held[id]
        if like:
            yield from self._goes_on(id, max(like, key=lambda params: len(params.text)), held.text)
        else:
            self._since.append(message)
            yield message.more(held.text)

    def _goes_on(self, id: str, earlier: _Message, text: str) -> Iterator[Chunk]:
        """The message with this id is the earlier one, and longer."""
        rest = text[len(earlier.text) :]
        message = self._sent[id]
        earlier.parts, earlier.part = message.parts, message.part
        self._sent[id] = earlier
        self._repeatable = [params for params in self._repeatable if params is not earlier]
        if rest:
            yield earlier.more(rest)

    def _whole(self, id: str, chunk: type[Chunk], text: str) -> Iterator[Chunk]:
        held = self._held.get(id)
        if held is not None:
            held.text = ""
        elif id in self._sent:
            message = self._sent[id]
            if text.startswith(message.text) and len(text) > len(message.text):
                yield message.more(text[len(message.text) :])
            return
        if not text:
            self._held.pop(id, None)
            return
        yield from self._more(id, chunk, text)
        held = self._held.pop(id, None)
        if held is not None:  # there is nothing new in it
            matches = next((params for params in held.like if params.text.startswith(text)), None)
            if matches is not None:
                yield from self._goes_on(id, matches, matches.text)


# The plan, as a list of things to do.

_PLAN_STATUS: Final = {
    "pending": v1.PlanStatus.PENDING,
    "inProgress": v1.PlanStatus.IN_PROGRESS,
    "in_progress": v1.PlanStatus.IN_PROGRESS,
    "completed": v1.PlanStatus.COMPLETED,
}


def plan_of(update: PlanUpdated) -> v1.Plan:
    """The whole plan. Why it changed has no place in it but `_meta`."""
    entries = [
        v1.PlanEntry(
            content=step.step,
            priority=v1.PlanPriority.MEDIUM,
            status=_PLAN_STATUS.get(step.status, v1.PlanStatus.PENDING),
        )
        for step in update.plan
    ]
    meta = {"codex": {"explanation": update.explanation}} if update.explanation else None
    return v1.Plan(entries=entries, meta=meta)


# Compaction: an item reports its start and its end. Older servers only report the end.

_STATUS = v1.CompactionStatus


class CodexCompaction:
    """The compactions of a thread, one after the other."""

    def __init__(self) -> None:
        self._open: str | None = None
        self._done: set[str] = set()
        """Ids of finished items of the running turn."""

    def turn_began(self) -> None:
        """What was done before is over."""
        self._done.clear()

    def started(self, id: str) -> Iterator[v1.CompactionUpdate]:
        """Report that a compaction starts."""
        if id not in self._done and id != self._open:
            self._open = id
            yield v1.CompactionUpdate(compaction_id=id, status=_STATUS.IN_PROGRESS)

    def completed(self, id: str) -> Iterator[v1.CompactionUpdate]:
        """Report that a compaction is done."""
        if id in self._done:
            return
        self._done.add(id)
        if self._open == id:
            self._open = None
        yield v1.CompactionUpdate(compaction_id=id, status=_STATUS.COMPLETED)

    def compacted(self, turn_id: str | None) -> Iterator[v1.CompactionUpdate]:
        """Report a compaction that only the older notification names; newer servers send both."""
        if self._open is None and not self._done:
            yield from self.completed(turn_id or "compaction")

    def over(self, *, interrupted: bool) -> Iterator[v1.CompactionUpdate]:
        """The turn is over, so nothing is being compacted any more."""
        if self._open is not None:
            id, self._open = self._open, None
            status = _STATUS.CANCELLED if interrupted else _STATUS.FAILED
            yield v1.CompactionUpdate(compaction_id=id, status=status)


# How full the context is, what the thread has used so far, and when a limit is lifted.

LAST_TIME = 253_402_300_799
"""The end of the year 9999, the last that `datetime` can express."""


class CodexUsageMeter:
    """The usage of a thread, reported when it changes."""

    def __init__(self) -> None:
        self.usage: v1.Usage | None = None
        """All tokens of the thread so far."""
        self._sent: v1.UsageUpdate | None = None

    @property
    def total(self) -> int:
        """The same in one number."""
        return self.usage.total_tokens if self.usage is not None else 0

    def tokens(self, usage: TokenUsage) -> Sequence[v1.UsageUpdate]:
        """A request was answered."""
        total = usage.total
        self.usage = v1.Usage(
            total_tokens=tokens(total.total_tokens),
            input_tokens=tokens(total.input_tokens),
            output_tokens=tokens(total.output_tokens),
            thought_tokens=tokens(total.reasoning_output_tokens),
            cached_read_tokens=tokens(total.cached_input_tokens),
            cached_write_tokens=tokens(total.cache_write_input_tokens),
        )
        used, size = usage.last.total_tokens, usage.model_context_window
        if used <= 0 or not size or size < 0:  # an answer that was cut short counts nothing
            return ()
        update = v1.UsageUpdate(used=tokens(used), size=tokens(size))
        if update == self._sent:
            return ()
        self._sent = update
        return (update,)


class CodexLimits:
    """The limits of an account. Reports are partial: what is missing in one is unchanged."""

    def __init__(self) -> None:
        self._limits = RateLimits()

    def updated(self, limits: RateLimits) -> None:
        """Take a report of the limits."""
        self._limits = RateLimits(
            primary=limits.primary or self._limits.primary,
            secondary=limits.secondary or self._limits.secondary,
            rate_limit_reached_type=limits.rate_limit_reached_type,
        )

    def resets_at(self) -> float | None:
        """When one may go on: as soon as the last of the limits that are used up is lifted."""
        windows = [each for each in (self._limits.primary, self._limits.secondary) if each is not None]
        used_up = [each for each in windows if each.used_percent >= 100]
        if not used_up and self._limits.rate_limit_reached_type is not None:
            used_up = sorted(windows, key=lambda each: each.used_percent)[-1:]
        resets_at = max((each.resets_at or 0 for each in used_up), default=0)
        return float(resets_at) if 0 < resets_at <= LAST_TIME else None
