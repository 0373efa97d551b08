"""Sub-agents: what they say is folded into the call that started them, and that call ends when they do."""

from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.claude.translate.blocks import unframed
from antiphon.engines.recent import trim
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.engines.claude import wire

__all__ = ["Subagents", "is_launch", "report"]

MAX_FOLDED: Final = 20_000
"""Characters of a sub-agent's talk that its call shows. All of it is sent again with each piece, so it must stay small."""


class Subagents:
    """What each said, and which task is which call."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._call_of: dict[str, str] = {}

    def started(self, task: "wire.TaskStarted") -> None:
        """A task begins: later lines may name the task alone."""
        if task.tool_use_id is not None:
            self._call_of[task.task_id] = task.tool_use_id
            trim(self._call_of)

    def call_of(self, task: "wire.TaskNotification | wire.TaskUpdated | wire.TaskProgress") -> str | None:
        """The call that started a task."""
        return getattr(task, "tool_use_id", None) or self._call_of.get(task.task_id)

    def ended(self, task_id: str) -> None:
        """Nothing more will be said of it."""
        self._call_of.pop(task_id, None)

    def says(self, call_id: str, text: str, *, thought: bool = False) -> "list[v1.ToolContent]":
        """All that it has said by now, as content of its call."""
        if thought:
            text = "\n".join(f"> {line}" for line in text.strip().splitlines())
        before = self._said.get(call_id, "")
        said = f"{before}\n\n{text}" if before else text
        self._said[call_id] = said if len(said) <= MAX_FOLDED else f"…{said[1 - MAX_FOLDED :]}"
        return _content(self._said[call_id])

    def all_said(self, call_id: str, report: "list[v1.ToolContent]") -> "list[v1.ToolContent]":
        """What its call shows in the end: all that it said, and its report unless that was the last it said."""
        said = self._said.pop(call_id, "")
        if not said:
            return report
        last = _plain(_text(report))
        return _content(said) if not last or _plain(said).endswith(last) else [*_content(said), *report]


def is_launch(structured: Any) -> bool:
    """Whether a result only says that a sub-agent went to work on its own."""
    return isinstance(structured, dict) and (
        structured.get("status") == "async_launched" or structured.get("isAsync") is True
    )


def report(text: str | None) -> "list[v1.ToolContent]":
    """What a task's end says, as content."""
    said = unframed(text or "")
    return _content(said) if said else []


def _content(text: str) -> "list[v1.ToolContent]":
    return [v1.ContentItem(content=v1.TextBlock(text=text))]


def _plain(text: str) -> str:
    """Text in which the CLI may have changed the white space."""
    return " ".join(text.split())


def _text(content: "list[v1.ToolContent]") -> str:
    texts = [
        item.content.text
        for item in content
        if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)
    ]
    return "\n".join(texts).strip()
