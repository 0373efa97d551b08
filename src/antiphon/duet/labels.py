"""Whose words they are, where more than one engine speaks: in `_meta` for clients, and for the eye. Pure.

A message begins with the engine's name as a paragraph of its own, so that Markdown after it stays what it is. Ids of an engine that counts
from one are made its own, because another engine may count from one as well.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec

from antiphon.protocol import v1

__all__ = ["Labels"]

_TALK: Final = (v1.AgentMessageChunk, v1.AgentThoughtChunk)
U = TypeVar("U", bound=v1.ToolCall | v1.ToolCallUpdate | v1.ToolCallPatch)


class Labels:
    """Of one engine in one session. `visible` is set while others speak, too."""

    def __init__(self, engine: str, title: str, *, own_ids: bool) -> None:
        self._engine = engine
        self._title = title
        self._own_ids = own_ids
        self.visible = False
        self.follows = False
        """Whether words of somebody else stand before, which clients may join with ours."""
        self._labelled: set[tuple[type, str]] = set()

    def on(self, update: v1.Update, *, fresh: bool) -> Iterator[tuple[v1.Update, bool]]:
        """The update as it is told, after a label if one is due; with each, whether it is the label. `fresh`: somebody else, or something
        else, was heard just before."""
        if not self.visible and not self._own_ids:  # alone: there is nothing to tell apart
            yield update, False
        elif isinstance(update, v1.MessageChunk):
            yield from self._talk(update, fresh)
        elif isinstance(update, v1.ToolCall | v1.ToolCallUpdate):
            own: v1.Update = self.call(update)
            yield own, False
        else:
            yield self._marked(update), False

    def _talk(self, update: v1.MessageChunk, fresh: bool) -> Iterator[tuple[v1.Update, bool]]:
        own = self._marked(update)
        if own.message_id is not None:
            own = msgspec.structs.replace(own, message_id=self.own(own.message_id))
        if self.visible and isinstance(update, _TALK) and self._is_due(own, fresh):
            before = "\n\n" if self.follows else ""
            label = v1.TextBlock(f"{before}**{self._title}**\n\n")
            yield msgspec.structs.replace(own, content=label, meta=self._meta(update.meta, label=True)), True
        yield own, False

    def _is_due(self, update: v1.MessageChunk, fresh: bool) -> bool:
        if update.message_id is None:
            return fresh
        key = (type(update), update.message_id)
        due = key not in self._labelled
        self._labelled.add(key)
        return due

    def call(self, call: U) -> U:
        """A tool call, or news of one, or the one that a question is about."""
        changes: dict[str, Any] = {"meta": self._meta(call.meta), "tool_call_id": self.own(call.tool_call_id)}
        title = call.title
        if self.visible and title and not title.startswith(f"{self._title}: "):
            changes["title"] = f"{self._title}: {title}"
        return msgspec.structs.replace(call, **changes)

    def _marked(self, update: Any) -> Any:
        if not hasattr(update, "meta"):  # a kind from tomorrow is told as it came
            return update
        return msgspec.structs.replace(update, meta=self._meta(update.meta))

    def _meta(self, meta: dict[str, Any] | None, *, label: bool = False) -> dict[str, Any]:
        added: dict[str, Any] = {"engine": self._engine, "label": True} if label else {"engine": self._engine}
        if not meta:
            return {"antiphon": added}
        ours = meta.get("antiphon")
        return {**meta, "antiphon": {**(ours if isinstance(ours, dict) else {}), **added}}

    def own(self, id: str) -> str:
        """The id of a message or a call, as the client knows it."""
        return f"{self._engine}:{id}" if self._own_ids else id
