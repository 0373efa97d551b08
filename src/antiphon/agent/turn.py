"""A turn with verbs: what an agent does between a prompt and its answer."""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from antiphon.agent.asking import Asking
from antiphon.agent.tools import LiveCall
from antiphon.agent.working import Working
from antiphon.protocol import v1

if TYPE_CHECKING:
    import os

    from antiphon.agent.session import Session

__all__ = ["Turn"]


class Turn(Asking, Working):
    """One prompt being worked on. Every verb raises `TurnOver` once it has been answered.

    Besides what is here: `ask_permission`, `ask`, `choose`, `visit` (questions to the user), `read`, `write`, `run` (files and
    commands), `update` and `request` (anything the protocol has).
    """

    def __init__(self, session: "Session", prompt: "Sequence[v1.ContentBlock]") -> None:
        super().__init__(session)
        self.prompt = tuple(prompt)
        """What the user said, block by block."""

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return "".join(block.text for block in self.prompt if isinstance(block, v1.TextBlock))

    @property
    def command(self) -> tuple[str, str] | None:
        """The slash command that the prompt begins with and what follows it, or None."""
        text = self.text.strip()
        if not text.startswith("/") or text[1:2].isspace() or len(text) < 2:
            return None
        name, *rest = text[1:].split(maxsplit=1)
        if "/" in name or "." in name:  # a path
            return None
        return name, rest[0] if rest else ""

    def say(self, content: "str | v1.ContentBlock") -> Awaitable[None]:
        """A piece of the answer: text, which is Markdown, or any other content."""
        if self.over:  # spelt out, because agents that stream do little else
            self._still_on()
        if isinstance(content, str):
            return self.session.say(content)
        return self.session.update(v1.AgentMessageChunk(_block(content)))

    def think(self, content: "str | v1.ContentBlock") -> Awaitable[None]:
        """A piece of the thinking behind it."""
        self._still_on()
        if isinstance(content, str):
            return self.session.think(content)
        return self.session.update(v1.AgentThoughtChunk(_block(content)))

    def plan(self, *entries: "str | v1.PlanEntry", done: int = 0) -> Awaitable[None]:
        """Show the whole plan as it stands; it replaces the one before. Of plain texts the first `done` are completed and the next is
        being worked on."""
        return self.update(v1.Plan([_entry(entry, place, done) for place, entry in enumerate(entries)]))

    def tool(
        self,
        title: str,
        kind: v1.ToolKind = v1.ToolKind.OTHER,
        *,
        name: str | None = None,
        input: Any = v1.UNSET,
        at: "Sequence[v1.ToolLocation | str | os.PathLike[str]]" = (),
        id: str | None = None,
    ) -> LiveCall:
        """Show a tool call: `async with turn.tool("Read a.txt", v1.ToolKind.READ, at=["a.txt"]) as call`.

        `name` is the tool's own name, `input` what it was called with, `at` the files it works on.
        """
        places = [each if isinstance(each, v1.ToolLocation) else v1.ToolLocation(self.path(each)) for each in at]
        call = v1.ToolCall(
            id or self.next_id("call"), title, kind, v1.ToolStatus.PENDING, name, locations=places, raw_input=input
        )
        return LiveCall(self, call)

    def usage(self, used: int, size: int, cost: float | None = None, currency: str = "USD") -> Awaitable[None]:
        """Say how full the context window is, and what the session has cost so far."""
        return self.update(v1.UsageUpdate(used, size, None if cost is None else v1.Cost(cost, currency)))


def _block(content: object) -> v1.ContentBlock:
    """What is not even content would be dropped by the client, in silence."""
    if not isinstance(content, v1.ContentBlock | v1.Unknown):
        raise TypeError(f"{content!r:.60} is neither text nor content of a message")
    return content


def _entry(entry: "str | v1.PlanEntry", place: int, done: int) -> v1.PlanEntry:
    if not isinstance(entry, str):
        return entry
    if place < done:
        status = v1.PlanStatus.COMPLETED
    else:
        status = v1.PlanStatus.IN_PROGRESS if place == done else v1.PlanStatus.PENDING
    return v1.PlanEntry(entry, v1.PlanPriority.MEDIUM, status)
