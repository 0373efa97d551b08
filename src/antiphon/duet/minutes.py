"""What was said in a session, in a compact form, for the engine that did not hear it. Pure; little memory, however long the session.

Who said what cannot be forged: every line of what somebody said begins with `| `, and our own lines do not.

What an engine has not heard:

1. Everything that others said and did since it was last given a prompt. (Since then and not since it ended: while it worked, another may
   have spoken. What its prompt brought along it has heard.) A word added to a running turn brings nothing along, so it does not count.
2. Not its own words and work, and not what the user said to it.
3. Not the last prompt, which is the one it is about to be given, whether others had it before or not. Words that were added to the turn
   of another are told.
4. Not what no engine was given, such as a command of ours.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from antiphon.duet.events import COMMAND, UNSIGNED, ClearEvent, EndEvent, Event, GivenEvent, PromptEvent, UpdateEvent
from antiphon.duet.minuted import CallItem, EndItem, MessageItem, PromptItem, SummaryItem, fitted, text_of
from antiphon.duet.quoting import one_line
from antiphon.duet.told import updates_of
from antiphon.protocol import v1

__all__ = ["LAST_LIMIT", "SINCE_LIMIT", "SessionSummary"]

SINCE_LIMIT: Final = 16_000
"""Characters that an engine is told before its own prompt: a few pages."""

LAST_LIMIT: Final = 24_000
"""Characters of a whole turn or a whole session, for one who has nothing else."""

KEPT: Final = 4 * LAST_LIMIT
"""Characters that are kept of a session, and of the last turn of each engine."""

SELDOM: Final = 16
"""Things that are written down between two looks at how much is kept."""


class SessionSummary:
    """Takes every event in its order, and tells."""

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
        self._heard: dict[str, int] = {}
        self._running: set[str] = set()
        self._open: dict[str, MessageItem] = {}  # the message that may go on, of each engine
        self._calls: dict[tuple[str, str], CallItem] = {}
        self._turns: dict[str, deque[SummaryItem]] = {}

    def was_given(self, engine: str) -> bool:
        """Whether the engine was ever given something."""
        return engine in self._heard

    # What comes.

    def hear(self, event: Event) -> None:
        """Take an event, live or when a history is read again."""
        match event:
            case PromptEvent():
                self._prompted(event)
            case GivenEvent():
                self._given(event.engine, alone=event.role == COMMAND)
            case UpdateEvent() if event.engine:
                for update in updates_of([event]):
                    self._shown(event.engine, update)
            case EndEvent():
                self._ended(event)
            case ClearEvent():
                self._forget()
            case _:
                pass

    def _prompted(self, event: PromptEvent) -> None:
        said = PromptItem(self._next(), event.by)
        said.add(text_of(event.prompt))
        self._keep(said)
        self._latest, self._steering = said, event.steering
        if not event.steering:
            self._prompt = said

    def _given(self, engine: str, *, alone: bool = False) -> None:
        said = self._latest
        if said is not None and engine not in said.to:
            said.to.append(engine)
        if self._steering:
            if said is not None:
                self._turns.setdefault(engine, deque()).append(said)
        else:
            if not alone:  # a command brings nothing along, so what it had not heard it still has not
                self._heard[engine] = self._number
            self._turns[engine] = deque()
        self._running.add(engine)
        self._open.pop(engine, None)

    def _ended(self, event: EndEvent) -> None:
        self._running.discard(event.engine)
        self._open.pop(event.engine, None)
        if event.stop_reason != "end_turn" and event.error != UNSIGNED:
            self._keep(EndItem(self._next(), event.engine, event.stop_reason or event.error or "it failed"))

    def _shown(self, engine: str, update: v1.Update) -> None:
        match update:
            case v1.AgentMessageChunk(content=v1.TextBlock(text=text), message_id=id):
                self._words(engine, id).add(text)
            case v1.UserMessageChunk() if engine not in self._running:  # else it repeats what it was given
                self._said_elsewhere(engine, update)
            case v1.ToolCall() | v1.ToolCallUpdate():
                self._used(engine, update).take(update, f"{self._title(engine)}: ")
            case _:
                pass

    def _words(self, engine: str, id: str | None) -> MessageItem:
        words = self._open.get(engine)
        if words is None or isinstance(words, PromptItem) or words.message_id != id:
            words = self._open[engine] = MessageItem(self._next(), engine, id)
            self._keep(words)
        return words

    def _said_elsewhere(self, engine: str, chunk: v1.UserMessageChunk) -> None:
        """The user went on with an engine in a terminal, and its own history tells of it."""
        said = self._open.get(engine)
        if not isinstance(said, PromptItem) or said.message_id != chunk.message_id:
            said = self._open[engine] = PromptItem(self._next(), "", chunk.message_id)
            said.to.append(engine)
            self._keep(said)
            self._turns[engine] = deque([said])
        said.add(text_of([chunk.content]))

    def _used(self, engine: str, update: v1.ToolCall | v1.ToolCallUpdate) -> CallItem:
        used = self._calls.get((engine, update.tool_call_id))
        if used is None or (used.finished and isinstance(update, v1.ToolCall)):
            used = self._calls[engine, update.tool_call_id] = CallItem(self._next(), engine, update.tool_call_id)
            self._keep(used)
            self._open.pop(engine, None)
        return used

    # What is kept.

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _keep(self, item: SummaryItem) -> None:
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

    # What is told.

    def since(self, engine: str, limit: int = SINCE_LIMIT) -> str:
        """What this engine has not heard; empty if there is nothing."""
        heard = self._heard.get(engine, 0)
        items = [each for each in self._items if each.number > heard and self._is_news(each, engine)]
        return self._written(items, limit, missing=bool(items) and self._lost > heard)

    def last(self, engine: str, limit: int = LAST_LIMIT) -> str:
        """The last turn of this engine, with what its tools changed and gave back."""
        return self._written(list(self._turns.get(engine, ())), limit, detailed=True)

    def everything(self, limit: int = LAST_LIMIT) -> str:
        """The whole session but the prompt that is about to be given, for an engine that knows nothing of it."""
        items = [
            each for each in self._items if not isinstance(each, PromptItem) or (each.to and each is not self._prompt)
        ]
        return self._written(items, limit, missing=self._lost > 0)

    def _is_news(self, item: SummaryItem, engine: str) -> bool:
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
