"""The things that stand in the minutes of a session, each in little memory, and how they are written down. Pure."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from antiphon.duet.clipping import clipped_middle
from antiphon.duet.quoting import one_line, quoted
from antiphon.protocol import v1
from antiphon.protocol.base import UnsetType

__all__ = ["CallItem", "EndItem", "MessageItem", "PromptItem", "SummaryItem", "fitted", "text_of"]

ITEM_LIMIT: Final = 24_000
"""Characters that are kept of one message: as many as all of the minutes may have."""

SHORT: Final = 300
"""Characters of an older message when there is not enough room for all of it."""

OUTPUT_LIMIT: Final = 800
"""Characters that are kept of what a tool gave back: its first lines."""

OUTPUT_LINES: Final = 12

PATHS: Final = 12
"""Paths of one call that are named."""


class _Placed:
    """Something that was said or done. `number` is its place in the session."""

    def __init__(self, number: int, engine: str) -> None:
        self.number = number
        self.engine = engine
        """Who did it; empty: the user."""

    @property
    def size(self) -> int:
        """About how many characters it takes."""
        return 200


class MessageItem(_Placed):
    """A message, which comes in pieces. Of one that is too long the middle is forgotten."""

    def __init__(self, number: int, engine: str, message_id: str | None = None) -> None:
        super().__init__(number, engine)
        self.message_id = message_id
        self._pieces: list[str] = []
        self._tail = ""
        self._length = 0
        self._missing = 0

    def add(self, text: str) -> None:
        """The next piece."""
        room = ITEM_LIMIT // 2 - self._length
        if room > 0:
            self._pieces.append(text[:room])
            self._length += len(self._pieces[-1])
            text = text[room:]
        if text:
            tail = self._tail + text
            self._tail = tail[-(ITEM_LIMIT // 2) :]
            self._missing += len(tail) - len(self._tail)

    @property
    def size(self) -> int:
        return super().size + self._length + len(self._tail)

    @property
    def words(self) -> str:
        """What is kept of it."""
        gap = f"\n[… {self._missing} characters left out …]\n" if self._missing else ""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0] + gap + self._tail

    def head(self, titles: Sequence[str]) -> str:
        """Who says it."""
        return f"{titles[0]} said:"

    def text(self, titles: Sequence[str], room: int | None = None, detailed: bool = False) -> str:
        """As it stands in the minutes; of what was said at most `room` characters."""
        words = self.words.strip()
        return f"{self.head(titles)}\n{quoted(words if room is None else clipped_middle(words, room))}"


class PromptItem(MessageItem):
    """What the user said, or somebody for them."""

    def __init__(self, number: int, by: str = "", message_id: str | None = None) -> None:
        super().__init__(number, "", message_id)
        self.by = by
        self.to: list[str] = []

    def head(self, titles: Sequence[str]) -> str:
        who = f"The user (by {one_line(self.by, 40)})" if self.by else "The user"
        return f"{who} said to {' and '.join(titles)}:" if titles else f"{who} said:"


class EndItem(_Placed):
    """How a turn ended that did not end well."""

    def __init__(self, number: int, engine: str, what: str) -> None:
        super().__init__(number, engine)
        self._what = one_line(what, 400)

    def text(self, titles: Sequence[str], room: int | None = None, detailed: bool = False) -> str:
        """As it stands in the minutes."""
        return f"{titles[0]}'s turn ended: {self._what}"


class CallItem(_Placed):
    """A tool call."""

    def __init__(self, number: int, engine: str, id: str) -> None:
        super().__init__(number, engine)
        self.id = id
        self.finished = False
        self._title = ""
        self._status = "pending"
        self._paths: list[str] = []
        self._changed: list[str] = []
        self._output = ""

    def take(self, news: v1.ToolCall | v1.ToolCallUpdate, label: str) -> None:
        """What is told of it. What is not told stays as it was; the engine's name before a title is ours."""
        title = news.title if isinstance(news.title, str) else ""
        self._title = one_line(title.removeprefix(label)) or self._title or one_line(str(news.name or ""))
        if isinstance(news.status, v1.ToolStatus) and not (isinstance(news, v1.ToolCall) and self._status != "pending"):
            self._status = str(news.status.value)
            self.finished = news.status in (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED)
        if not isinstance(news.locations, UnsetType) and news.locations:
            self._paths = list(dict.fromkeys(one_line(each.path) for each in news.locations))[:PATHS]
        if not isinstance(news.content, UnsetType) and news.content:
            self._changed = [_changed(each) for each in news.content if isinstance(each, v1.Diff)][:PATHS]
            self._output = _first_lines(news.content)

    @property
    def size(self) -> int:
        return super().size + len(self._output) + sum(map(len, self._paths)) + sum(map(len, self._changed))

    def text(self, titles: Sequence[str], room: int | None = None, detailed: bool = False) -> str:
        """As it stands in the minutes; with what it changed and gave back if it is `detailed` and need not be short."""
        facts = "; ".join([self._status, *self._paths])
        line = f"{titles[0]} used a tool: {self._title or 'one without a name'} ({facts})"
        if not detailed or room is not None:
            return line
        return "\n".join(
            [line, *(f"  changed {each}" for each in self._changed), *([quoted(self._output)] if self._output else [])]
        )


SummaryItem: TypeAlias = MessageItem | EndItem | CallItem


def _changed(diff: v1.Diff) -> str:
    old = "" if diff.old_text is None else f"{len(diff.old_text.splitlines())} lines became "
    return f"{one_line(diff.path)}: {old}{len(diff.new_text.splitlines())} lines{' (new)' if diff.old_text is None else ''}"


def _first_lines(content: Sequence[v1.ToolContent]) -> str:
    texts = (
        each.content.text
        for each in content
        if isinstance(each, v1.ContentItem) and isinstance(each.content, v1.TextBlock)
    )
    text = "\n".join(texts)
    lines = text[:OUTPUT_LIMIT].splitlines()[:OUTPUT_LINES]
    kept = "\n".join(lines)
    return kept if len(kept) >= len(text.rstrip()) else f"{kept}\n[…]"


def text_of(prompt: Sequence[v1.ContentBlock]) -> str:
    """A prompt in words: what is no text is named where it stands."""
    parts: list[str] = []
    for block in prompt:
        match block:
            case v1.TextBlock():
                parts.append(block.text)
            case v1.ResourceLink():
                parts.append(f"[{one_line(block.uri)}]")
            case v1.EmbeddedResource():
                parts.append(f"[{one_line(block.resource.uri)}]")
            case v1.ImageBlock():
                parts.append("[a picture]")
            case v1.AudioBlock():
                parts.append("[a recording]")
            case _:
                parts.append("[something else]")
    return " ".join(parts)


def fitted(items: Sequence[tuple[SummaryItem, Sequence[str]]], limit: int, detailed: bool, missing: bool) -> str:
    """The items with the names that stand in them, in at most `limit` characters: older ones are shortened first, then left out."""
    texts = [item.text(titles, None, detailed) for item, titles in items]
    note = "[… earlier parts left out …]"
    total = sum(len(each) + 1 for each in texts) + (len(note) if missing else 0)
    for number, (item, titles) in enumerate(items[:-1]):
        if total <= limit:
            break
        short = item.text(titles, SHORT, detailed)
        if len(short) < len(texts[number]):
            total -= len(texts[number]) - len(short)
            texts[number] = short
    first = 0
    while first < len(texts) - 1 and total > limit:
        total += 0 if missing else len(note) + 1
        missing = True
        total -= len(texts[first]) + 1
        first += 1
    if texts and total > limit:
        texts[-1] = _squeezed(*items[-1], limit - (len(note) + 1 if missing else 0))
    return "\n".join([*([note] if missing else []), *texts[first:]])[: max(limit, 0)]


def _squeezed(item: SummaryItem, titles: Sequence[str], limit: int) -> str:
    """One item alone, in so much room: the marks of its lines count, too."""
    room = limit
    while room > SHORT and len(text := item.text(titles, room)) > limit:
        room -= max(len(text) - limit, 1)
    return item.text(titles, max(room, 0))[: max(limit, 0)]
