"""The file in which Codex stores a thread, and the tool calls that only this file has.

Codex reports no item for a call that it refuses. Such calls are found in the raw output of the model: as the server sends it where a thread
was started here, else in the file.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.unreported_calls import ResponseItem, UnreportedCalls
from antiphon.protocol.base import BAD_INPUT

__all__ = ["LARGEST", "RAW", "RAW_EVENTS", "MissingItems", "Rollout", "UnseenItems"]

LARGEST: Final = 16 * 1024 * 1024
"""Bytes that are read at once. A larger part is skipped."""


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    payload: ResponseItem = ResponseItem()


class Rollout:
    """The file of one thread. Blocks."""

    def __init__(self, path: str, *, whole: bool = False) -> None:
        self._path = path
        self._at = 0 if whole else self._size()

    def fresh(self) -> list[ResponseItem]:
        """Return what was added since the last call, in order."""
        size = self._size()
        if not 0 < size - self._at <= LARGEST:
            self._at = size
            return []
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                *lines, half = file.read(size - self._at).split(b"\n")
        except OSError:
            return []
        self._at = size - len(half)  # the rest of a line that is being written comes with the next call
        return [entry for entry in map(_read, lines) if entry is not None]

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:  # the thread is empty
            return 0


def _read(line: bytes) -> ResponseItem | None:
    try:
        found = msgspec.json.decode(line, type=_Line)
    except BAD_INPUT:
        return None
    entry = found.payload
    return entry if found.type == "response_item" or entry.type == "item_completed" else None


RAW_EVENTS: Final = {"experimentalRawEvents": True}
"""Makes the server send the raw output of the model. Only a thread that is started takes it, not one that is resumed or forked."""

RAW: Final = frozenset({"rawResponseItem/completed", "rawResponse/completed"})
"""The methods of these notifications."""


class _RawNotification(msgspec.Struct, frozen=True):
    item: ResponseItem = ResponseItem()


class UnseenItems:
    """The tool calls of one thread that no item reports."""

    def __init__(self) -> None:
        self._refused = UnreportedCalls()
        self._path: str | None = None
        self._rollout: Rollout | None = None

    def opened(self, thread: wire.Thread, *, live: bool) -> None:
        """A thread was opened; `live` if the server sends the raw output of the model."""
        self._path = thread.path
        self._rollout = Rollout(thread.path) if thread.path and not live else None

    def receive(self, message: wire.ServerNotification) -> Iterator[wire.Item]:
        """Return the missing items that a notification shows."""
        match message.params:
            case wire.ItemNotification(item=item):
                self._refused.seen(getattr(item, "id", ""))
            case wire.UnreadParams(raw=raw) if message.method in RAW:
                found = self._refused.feed(_call_in(raw))
                if found is not None:
                    yield found
            case _:
                pass

    async def turn_ended(self) -> list[wire.Item]:
        """Return the missing items of the turn that the file has."""
        entry = await asyncio.to_thread(self._rollout.fresh) if self._rollout is not None else []
        found = [item for each in entry if (item := self._refused.feed(each)) is not None]
        self._refused.turn_ended()
        return found

    async def history(self) -> "MissingItems":
        """Return the missing items of the whole history."""
        return MissingItems(await asyncio.to_thread(_recalled, self._path) if self._path else {})


class MissingItems:
    """Items that a history lacks, by the item that came after them."""

    def __init__(self, before: dict[str, list[wire.Item]]) -> None:
        self._before = before

    def put_into(self, turn: wire.CodexTurn) -> wire.CodexTurn:
        """Return the turn with its missing items."""
        ids = {getattr(item, "id", "") for item in turn.items}
        if ids.isdisjoint(self._before):
            return turn
        items: list[wire.Item] = []
        for item in turn.items:
            lacking = self._before.get(getattr(item, "id", ""), ())
            items += [each for each in lacking if getattr(each, "id", "") not in ids]
            items.append(item)
        return msgspec.structs.replace(turn, items=items)


def _recalled(path: str) -> dict[str, list[wire.Item]]:
    refused, waiting = UnreportedCalls(), list[wire.Item]()
    found: dict[str, list[wire.Item]] = {}
    for entry in Rollout(path, whole=True).fresh():
        next_one = entry.item.id if entry.item is not None else entry.id if entry.type == "message" else None
        if next_one and waiting:
            found[next_one], waiting = waiting, []
        if (item := refused.feed(entry)) is not None:
            waiting.append(item)
    return found


def _call_in(raw: msgspec.Raw) -> ResponseItem:
    try:
        return msgspec.json.decode(raw, type=_RawNotification).item
    except BAD_INPUT:
        return ResponseItem()
