"""What the model says and thinks, told once.

A stream that breaks is begun again, and the model says the same under new ids. What is said after a retry is held back as long
as it repeats what was told before; where it goes on, the message that the user already sees goes on.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from antiphon.engines.codex.wire import AgentMessage, ExitedReviewMode, ProposedPlan, Reasoning
from antiphon.protocol import v1

__all__ = ["Messages"]

Chunk = v1.AgentMessageChunk | v1.AgentThoughtChunk
_BETWEEN_PARTS: Final = "\n\n"


class _Message:
    """One message as far as it was told."""

    __slots__ = ("chunk", "id", "part", "parts", "pieces")

    def __init__(self, id: str, chunk: type[Chunk]) -> None:
        self.id = id
        self.chunk = chunk
        self.pieces: list[str] = []
        self.parts: str | None = None
        """Which of its two forms a thought is told in: `summary` or `content`."""
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
    """What is said after a retry, while it may be a repetition of one of these."""

    __slots__ = ("like", "text")

    def __init__(self, like: list[_Message]) -> None:
        self.like = like
        self.text = ""


class Messages:
    """Those of the running turn."""

    def __init__(self) -> None:
        self._told: dict[str, _Message] = {}
        """By the item's id. A message that goes on after a retry has several."""
        self._held: dict[str, _Held] = {}
        self._since: list[_Message] = []
        """Told since the model's last complete answer, so a retry may repeat them."""
        self._repeatable: list[_Message] = []

    def turn_began(self) -> None:
        """What was said before is over."""
        self._told.clear()
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
        if item.id in self._told and self._repeatable:
            self._begin(item.id, v1.AgentThoughtChunk if isinstance(item, Reasoning) else v1.AgentMessageChunk)
        return ()

    def says(self, id: str, text: str) -> Sequence[Chunk]:
        """More of a message."""
        message = self._told.get(id)
        if message is not None and text and not self._held:
            return (message.more(text),)
        return tuple(self._more(id, v1.AgentMessageChunk, text))

    def thinks(self, id: str, text: str, parts: str, part: int) -> Sequence[Chunk]:
        """More of a thought, in one of its two forms and in one of its parts."""
        message = self._told.get(id) or self._begin(id, v1.AgentThoughtChunk)
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

    def said(self, item: AgentMessage | ProposedPlan) -> Sequence[Chunk]:
        """The whole message: what was not told yet is."""
        return tuple(self._whole(item.id, v1.AgentMessageChunk, item.text))

    def thought(self, item: Reasoning) -> Sequence[Chunk]:
        """The whole thought."""
        message = self._told.get(item.id)
        parts = item.content if (message and message.parts == "content") or not any(item.summary) else item.summary
        whole = _BETWEEN_PARTS.join(part for part in parts if part)
        return tuple(self._whole(item.id, v1.AgentThoughtChunk, whole))

    def reviewed(self, item: ExitedReviewMode) -> Sequence[Chunk]:
        """The finding of a review; Codex may say it again as a message."""
        news = tuple(self._whole(item.id, v1.AgentMessageChunk, item.review))
        if news:
            self._repeatable.append(self._told[item.id])
        return news

    def _begin(self, id: str, chunk: type[Chunk]) -> _Message:
        before = self._told.get(id)
        message = self._told[id] = _Message(id if before is None else f"{before.id}-again", chunk)
        like = [told for told in self._repeatable if told.chunk is chunk]
        if like:
            self._held[id] = _Held(like)
        else:
            self._since.append(message)
        return message

    def _more(self, id: str, chunk: type[Chunk], text: str) -> Iterator[Chunk]:
        message = self._told.get(id) or self._begin(id, chunk)
        held = self._held.get(id)
        if held is None:
            if text:
                yield message.more(text)
            return
        held.text += text
        like = [told for told in held.like if told.text.startswith(held.text) or held.text.startswith(told.text)]
        if any(told.text.startswith(held.text) for told in like):
            return
        del self._held[id]
        if like:
            yield from self._goes_on(id, max(like, key=lambda told: len(told.text)), held.text)
        else:
            self._since.append(message)
            yield message.more(held.text)

    def _goes_on(self, id: str, earlier: _Message, text: str) -> Iterator[Chunk]:
        """The message with this id is the earlier one, and longer."""
        rest = text[len(earlier.text) :]
        message = self._told[id]
        earlier.parts, earlier.part = message.parts, message.part
        self._told[id] = earlier
        self._repeatable = [told for told in self._repeatable if told is not earlier]
        if rest:
            yield earlier.more(rest)

    def _whole(self, id: str, chunk: type[Chunk], text: str) -> Iterator[Chunk]:
        held = self._held.get(id)
        if held is not None:
            held.text = ""
        elif id in self._told:
            message = self._told[id]
            if text.startswith(message.text) and len(text) > len(message.text):
                yield message.more(text[len(message.text) :])
            return
        if not text:
            self._held.pop(id, None)
            return
        yield from self._more(id, chunk, text)
        held = self._held.pop(id, None)
        if held is not None:  # there is nothing new in it
            same = next((told for told in held.like if told.text.startswith(text)), None)
            if same is not None:
                yield from self._goes_on(id, same, same.text)
