"""Each kind of item to whoever tells of it, when it starts and when it is complete."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from antiphon.engines.bounded import tally
from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.calls import Call, Calls
from antiphon.engines.codex.translate.changes import Changes
from antiphon.engines.codex.translate.commands import Commands
from antiphon.engines.codex.translate.compaction import Compaction
from antiphon.engines.codex.translate.content import block_of_input
from antiphon.engines.codex.translate.messages import Messages
from antiphon.engines.codex.translate.news import News
from antiphon.engines.codex.translate.tools import TOOLS, outcome_of, show
from antiphon.engines.events import Notice
from antiphon.protocol import v1
from antiphon.protocol.base import Unknown

if TYPE_CHECKING:
    from collections import Counter

__all__ = ["Items"]


class Items:
    """Those of one thread."""

    def __init__(
        self,
        cwd: str,
        calls: Calls,
        messages: Messages,
        commands: Commands,
        changes: Changes,
        compaction: Compaction,
        unknown: "Counter[str]",
    ) -> None:
        self._cwd = cwd
        self._calls = calls
        self._unknown = unknown
        self._starts: dict[type, Callable[[Any], Iterable[News]]] = {
            wire.AgentMessage: messages.started,
            wire.ProposedPlan: messages.started,
            wire.Reasoning: messages.started,
            wire.CommandExecution: commands.started,
            wire.FileChange: changes.started,
            wire.ContextCompaction: lambda item: compaction.started(item.id),
            wire.EnteredReviewMode: _review_begins,
            wire.FunctionCallOutput: _nothing,  # it is complete already
            **dict.fromkeys(TOOLS.keys() - {wire.FunctionCallOutput}, self._call_begins),
        }
        self._ends: dict[type, Callable[[Any], Iterable[News]]] = {
            wire.AgentMessage: messages.said,
            wire.ProposedPlan: messages.said,
            wire.Reasoning: messages.thought,
            wire.FileChange: changes.completed,
            wire.ContextCompaction: lambda item: compaction.completed(item.id),
            wire.ExitedReviewMode: messages.reviewed,
            wire.HookPrompt: _hooks,
            wire.UserMessage: _nothing,  # whoever said it knows it
            wire.EnteredReviewMode: _nothing,
            wire.CommandExecution: lambda item: commands.completed(item, replay=False),
            **dict.fromkeys(TOOLS, self._call_ends),
            Unknown: self._strange,
        }
        self._replays: dict[type, Callable[[Any], Iterable[News]]] = {
            wire.UserMessage: _user,
            wire.EnteredReviewMode: _review_begins,
            wire.CommandExecution: lambda item: commands.completed(item, replay=True),
        }

    def started(self, item: wire.Item) -> Iterable[News]:
        """An item begins."""
        return self._starts.get(type(item), _nothing)(item)

    def completed(self, item: wire.Item, *, replay: bool) -> Iterable[News]:
        """An item is complete, now or in a history."""
        handler = self._replays.get(type(item)) if replay else None
        return (handler or self._ends.get(type(item), _nothing))(item)

    def _call_begins(self, item: Any) -> Iterable[News]:
        return self._calls.begin(Call(item.id, show(item, self._cwd)))

    def _call_ends(self, item: Any) -> Iterable[News]:
        if isinstance(item, wire.FunctionCallOutput) and self._calls.is_known(item.id):
            return ()  # the call has an item of its own
        return self._calls.finish(Call(item.id, show(item, self._cwd)), outcome_of(item))

    def _strange(self, item: Unknown) -> Iterable[News]:
        tally(self._unknown, f"item {item.kind}")
        return ()


def _nothing(_: object) -> Iterable[News]:
    return ()


def _review_begins(item: wire.EnteredReviewMode) -> Iterable[News]:
    return (Notice("A review begins", item.review or None),)


def _user(item: wire.UserMessage) -> Iterator[News]:
    for piece in item.content:
        block = block_of_input(piece)
        if block is not None:
            yield v1.UserMessageChunk(content=block, message_id=item.id)


def _hooks(item: wire.HookPrompt) -> Iterator[News]:
    text = "\n".join(fragment.text for fragment in item.fragments if fragment.text)
    if text:
        yield Notice("A hook says to the model", text)
