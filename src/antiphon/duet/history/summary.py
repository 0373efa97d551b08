"""A summary of a session for an engine that missed some of it. Pure; it takes little memory, however long the session.

The author of a line cannot be forged: every quoted line begins with `| `, and our own lines do not.

What an engine missed:

1. Everything that others wrote and did since it was last given a prompt. (Since then and not since it ended: while it worked, another may
   have answered. It knows what came with its prompt.) A prompt added to a running turn comes with no summary, so it does not count.
2. Not its own messages and work, and not what the user sent to it.
3. Not the last prompt, which is the one it is about to be given, whether others had it before or not. Prompts that were added to the
   turn of another count.
4. Not what no engine was given, such as a command of ours.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from antiphon.duet.history.events import (
    COMMAND,
    UNSIGNED,
    ClearEvent,
    EndEvent,
    Event,
    GivenEvent,
    PromptEvent,
    UpdateEvent,
)
from antiphon.protocol import v1
from antiphon.protocol.base import UnsetType
from antiphon.text import prose

__all__ = [
    "LAST_LIMIT",
    "MARK",
    "SINCE_LIMIT",
    "CallItem",
    "EndItem",
    "MessageItem",
    "PromptItem",
    "SessionSummary",
    "SummaryItem",
    "fitted",
    "one_line",
    "quoted",
    "text_of",
]

MARK: Final = "| "
"""What a quoted line begins with. Text cannot get out of it: whatever it holds, its next line has it again."""


def quoted(text: str) -> str:
    """A text with the mark before every line. All line breaks of Unicode count, and invisible characters are made visible."""
    return "\n".join(f"{MARK}{line}".rstrip() for line in _plain(text).splitlines())


def one_line(text: str, limit: int = 200) -> str:
    """A text as one line of at most `limit` characters."""
    line = " ".join(_plain(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _plain(text: str) -> str:
    return prose(text.encode("utf-8", "replace").decode("utf-8"))


def clipped_middle(text: str, limit: int) -> str:
    """The beginning and the end of a text, at most `limit` characters with a note of how much is missing."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit} characters left out …]\n"
    space = limit - len(note) - 8  # the number may grow by the length of the note
    if space < 2:
        return text[: max(limit, 0)]
    kept = space - space // 2
    note = f"\n[… {len(text) - space} characters left out …]\n"
    return text[:kept] + note + (text[-(space // 2) :] if space // 2 else "")


ITEM_LIMIT: Final = 24_000
"""Characters that are kept of one message: as many as the whole summary may have."""

SHORT: Final = 300
"""Characters of an older message when there is not enough room for all of it."""

OUTPUT_LIMIT: Final = 800
"""Characters that are kept of what a tool gave back: its first lines."""

OUTPUT_LINES: Final = 12

PATHS: Final = 12
"""Paths of one call that are named."""


class _Item:
    """An item of a summary."""

    number = 0
    """Position of the item in the session, set when it is stored."""
    engine = ""
    """The engine that did it; empty: the user."""

    @property
    def size(self) -> int:
        """About how many characters it takes."""
        return 200


class MessageItem(_Item):
    """A message, which comes in pieces. Of one that is too long the middle is forgotten."""

    _tail = ""
    _length = 0
    _missing = 0

    def __init__(self, engine: str, message_id: str | None = None) -> None:
        self.engine = engine
        self.message_id = message_id
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Add the next piece."""
        space = ITEM_LIMIT // 2 - self._length
        if space > 0:
            self._pieces.append(text[:space])
            self._length += len(self._pieces[-1])
            text = text[space:]
        if text:
            tail = self._tail + text
            self._tail = tail[-(ITEM_LIMIT // 2) :]
            self._missing += len(tail) - len(self._tail)

    @property
    def size(self) -> int:
        return super().size + self._length + len(self._tail)

    @property
    def words(self) -> str:
        """The text that is kept of it."""
        gap = f"\n[… {self._missing} characters left out …]\n" if self._missing else ""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0] + gap + self._tail

    def head(self, titles: Sequence[str]) -> str:
        """The line before the message, which names its author."""
        return f"{titles[0]} said:"

    def text(self, titles: Sequence[str], space: int | None = None, detailed: bool = False) -> str:
        """The item as text of the summary; of the message at most `space` characters."""
        words = self.words.strip()
        return f"{self.head(titles)}\n{quoted(words if space is None else clipped_middle(words, space))}"


class PromptItem(MessageItem):
    """A prompt of the user, or one that was given for them."""

    def __init__(self, by: str = "", message_id: str | None = None) -> None:
        self.message_id = message_id
        self.by = by
        """What gave it for the user, such as `nudge`; empty: the user did."""
        self.to: list[str] = []
        """The engines that were given it."""
        self._pieces = []

    def head(self, titles: Sequence[str]) -> str:
        author = f"The user (by {one_line(self.by, 40)})" if self.by else "The user"
        return f"{author} said to {' and '.join(titles)}:" if titles else f"{author} said:"


class EndItem(_Item):
    """The end of a turn that failed or was stopped."""

    def __init__(self, engine: str, what: str) -> None:
        self.engine = engine
        self._what = one_line(what, 400)

    def text(self, titles: Sequence[str], space: int | None = None, detailed: bool = False) -> str:
        """The item as text of the summary."""
        return f"{titles[0]}'s turn ended: {self._what}"


class CallItem(_Item):
    """A tool call."""

    def __init__(self, engine: str, id: str) -> None:
        self.engine = engine
        self.id = id
        self.finished = False
        self._title = ""
        self._status = "pending"
        self._paths: list[str] = []
        self._changed: list[str] = []
        self._output = ""

    def take(self, update: v1.ToolCall | v1.ToolCallUpdate, label: str) -> None:
        """Take an update of the call. Fields that it omits stay as they were; the engine's name before a title is ours."""
        title = update.title if isinstance(update.title, str) else ""
        self._title = one_line(title.removeprefix(label)) or self._title or one_line(str(update.name or ""))
        if isinstance(update.status, v1.ToolStatus) and not (
            isinstance(update, v1.ToolCall) and self._status != "pending"
        ):
            self._status = str(update.status.value)
            self.finished = update.status in (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED)
        if not isinstance(update.locations, UnsetType) and update.locations:
            self._paths = list(dict.fromkeys(one_line(each.path) for each in update.locations))[:PATHS]
        if not isinstance(update.content, UnsetType) and update.content:
            self._changed = [_changed(each) for each in update.content if isinstance(each, v1.Diff)][:PATHS]
            self._output = _first_lines(update.content)

    @property
    def size(self) -> int:
        return super().size + len(self._output) + sum(map(len, self._paths)) + sum(map(len, self._changed))

    def text(self, titles: Sequence[str], space: int | None = None, detailed: bool = False) -> str:
        """The item as text of the summary; with its changes and results if it is `detailed` and need not be short."""
        facts = "; ".join([self._status, *self._paths])
        line = f"{titles[0]} used a tool: {self._title or 'one without a name'} ({facts})"
        if not detailed or space is not None:
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
    """A prompt as text: what is not text is named in its position."""
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
    """One item alone, within a limit of characters; the marks of its lines count, too."""
    space = limit
    while space > SHORT and len(text := item.text(titles, space)) > limit:
        space -= max(len(text) - limit, 1)
    return item.text(titles, max(space, 0))[: max(limit, 0)]


SINCE_LIMIT: Final = 16_000
"""Characters of a summary before a prompt: a few pages."""

LAST_LIMIT: Final = 24_000
"""Characters of a whole turn or a whole session, for an engine that knows nothing else of it."""

KEPT: Final = 4 * LAST_LIMIT
"""Characters that are kept of a session, and of the last turn of each engine."""

SELDOM: Final = 16
"""Items that are added between two looks at how much is kept."""


class SessionSummary:
    """Takes every event of a session in its order, and summarises what one engine missed, or all of it."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._titles = {name: one_line(title, 60) for name, title in titles.items()}
        self._forget()

    def _forget(self) -> None:
        self._items: deque[SummaryItem] = deque()
        self._number = 0
        self._lost = 0  # the number of the last item that is not kept any more
        self._prompt: PromptItem | None = None  # the last one that began something
        self._latest: PromptItem | None = None  # the last one, be it added to a turn
        self._steering = False
        self._given_at: dict[str, int] = {}
        self._running: set[str] = set()
        self._open: dict[str, MessageItem] = {}  # the message that may go on, of each engine
        self._calls: dict[tuple[str, str], CallItem] = {}
        self._turns: dict[str, deque[SummaryItem]] = {}

    def was_given(self, engine: str) -> bool:
        """Whether the engine was ever given a prompt."""
        return engine in self._given_at

    # Adding.

    def add(self, event: Event, update: v1.Update | None = None) -> None:
        """Take the next event, live or when a history is read; `update` is that of an `UpdateEvent`."""
        match event:
            case UpdateEvent():
                if event.engine and update is not None:
                    self.add_update(event.engine, update)
            case PromptEvent():
                self._prompted(event)
            case GivenEvent():
                self._given(event.engine, alone=event.role == COMMAND)
            case EndEvent():
                self._ended(event)
            case ClearEvent():
                self._forget()

    def add_update(self, engine: str, update: v1.Update) -> None:
        """Take an update of an engine."""
        match update:
            case v1.AgentMessageChunk(content=v1.TextBlock(text=text), message_id=id):
                message = self._open.get(engine)
                if message is None or message.message_id != id or isinstance(message, PromptItem):
                    message = self._open[engine] = MessageItem(engine, id)
                    self._keep(message)
                message.add(text)
            case v1.UserMessageChunk() if engine not in self._running:  # else it repeats what it was given
                self._prompted_elsewhere(engine, update)
            case v1.ToolCall() | v1.ToolCallUpdate():
                self._used(engine, update).take(update, f"{self._title(engine)}: ")
            case _:
                pass

    def _prompted(self, event: PromptEvent) -> None:
        prompt = PromptItem(event.by)
        prompt.add(text_of(event.prompt))
        self._keep(prompt)
        self._latest, self._steering = prompt, event.steering
        if not event.steering:
            self._prompt = prompt

    def _given(self, engine: str, *, alone: bool = False) -> None:
        prompt = self._latest
        if prompt is not None and engine not in prompt.to:
            prompt.to.append(engine)
        if self._steering:
            if prompt is not None:
                self._turns.setdefault(engine, deque()).append(prompt)
        else:
            if not alone:  # a command brings nothing along, so what it missed it still misses
                self._given_at[engine] = self._number
            self._turns[engine] = deque()
        self._running.add(engine)
        self._open.pop(engine, None)

    def _ended(self, event: EndEvent) -> None:
        self._running.discard(event.engine)
        self._open.pop(event.engine, None)
        if event.stop_reason != "end_turn" and event.error != UNSIGNED:
            self._keep(EndItem(event.engine, event.stop_reason or event.error or "it failed"))

    def _prompted_elsewhere(self, engine: str, chunk: v1.UserMessageChunk) -> None:
        """Take a prompt that the user gave the engine in a terminal, from the engine's own history."""
        prompt = self._open.get(engine)
        if not isinstance(prompt, PromptItem) or prompt.message_id != chunk.message_id:
            prompt = self._open[engine] = PromptItem("", chunk.message_id)
            prompt.to.append(engine)
            self._keep(prompt)
            self._turns[engine] = deque([prompt])
        prompt.add(text_of([chunk.content]))

    def _used(self, engine: str, update: v1.ToolCall | v1.ToolCallUpdate) -> CallItem:
        used = self._calls.get((engine, update.tool_call_id))
        if used is None or (used.finished and isinstance(update, v1.ToolCall)):
            used = self._calls[engine, update.tool_call_id] = CallItem(engine, update.tool_call_id)
            self._keep(used)
            self._open.pop(engine, None)
        return used

    # Keeping.

    def _keep(self, item: SummaryItem) -> None:
        self._number += 1
        item.number = self._number
        self._items.append(item)
        if item.engine:
            self._turns.setdefault(item.engine, deque()).append(item)
        if item.number % SELDOM == 0:
            self._tidy()

    def _tidy(self) -> None:
        for items in (self._items, *self._turns.values()):
            _shorten(items)
        self._lost = self._items[0].number - 1
        if len(self._calls) > 2 * len(self._items) + 100:
            kept = {id(each) for each in (*self._items, *(each for turn in self._turns.values() for each in turn))}
            self._calls = {key: used for key, used in self._calls.items() if id(used) in kept}

    # The summary.

    def since(self, engine: str, limit: int = SINCE_LIMIT) -> str:
        """What this engine missed; empty if there is nothing."""
        given_at = self._given_at.get(engine, 0)
        items = [each for each in self._items if each.number > given_at and self._is_missed(each, engine)]
        return self._written(items, limit, missing=self._lost > given_at) if items else ""

    def last(self, engine: str, limit: int = LAST_LIMIT) -> str:
        """The last turn of this engine, with what its tools changed and gave back."""
        return self._written(list(self._turns.get(engine, ())), limit, detailed=True)

    def everything(self, limit: int = LAST_LIMIT) -> str:
        """The whole session but the prompt that is about to be given, for an engine that knows nothing of it."""
        items = [
            each for each in self._items if not isinstance(each, PromptItem) or (each.to and each is not self._prompt)
        ]
        return self._written(items, limit, missing=self._lost > 0)

    def _is_missed(self, item: SummaryItem, engine: str) -> bool:
        if isinstance(item, PromptItem):
            return bool(item.to) and engine not in item.to and item is not self._prompt
        return item.engine != engine

    def _written(
        self, items: Sequence[SummaryItem], limit: int, *, detailed: bool = False, missing: bool = False
    ) -> str:
        named = [(each, self._names(each)) for each in items]
        return fitted(named, limit, detailed, missing)

    def _names(self, item: SummaryItem) -> list[str]:
        return [self._title(each) for each in (item.to if isinstance(item, PromptItem) else (item.engine,))]

    def _title(self, engine: str) -> str:
        return self._titles.get(engine) or one_line(engine, 60)


def _shorten(items: deque[SummaryItem]) -> None:
    size = sum(each.size for each in items)
    while size > KEPT and len(items) > 1:
        size -= items.popleft().size
