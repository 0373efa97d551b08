"""Calls that no item tells of, in one thread: heard where the server tells the model's own words, else looked up where Codex keeps them."""

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.rollout import Rollout
from antiphon.engines.codex.translate.refused import Refused, Said
from antiphon.protocol.base import BAD_INPUT

__all__ = ["RAW", "RAW_EVENTS", "Missing", "Unseen"]

RAW_EVENTS: Final = {"experimentalRawEvents": True}
"""What makes the server tell the model's own words. Only a thread that is started takes it, not one that is resumed or forked."""

RAW: Final = frozenset({"rawResponseItem/completed", "rawResponse/completed"})
"""The methods by which it tells them."""


class _Told(msgspec.Struct, frozen=True):
    item: Said = Said()


class Unseen:
    """Of one thread."""

    def __init__(self) -> None:
        self._refused = Refused()
        self._path: str | None = None
        self._rollout: Rollout | None = None

    def opened(self, thread: wire.Thread, *, live: bool) -> None:
        """A thread was opened; `live` if the server tells the model's own words of it."""
        self._path = thread.path
        self._rollout = Rollout(thread.path) if thread.path and not live else None

    def hear(self, told: wire.Told) -> Iterator[wire.Item]:
        """The items that are missing, as far as this tells of any."""
        match told.params:
            case wire.ItemTold(item=item):
                self._refused.seen(getattr(item, "id", ""))
            case wire.Unread(raw=raw) if told.method in RAW:
                found = self._refused.feed(_said(raw))
                if found is not None:
                    yield found
            case _:
                pass

    async def turn_ended(self) -> list[wire.Item]:
        """Those of the turn that were not heard of."""
        said = await asyncio.to_thread(self._rollout.fresh) if self._rollout is not None else []
        found = [item for each in said if (item := self._refused.feed(each)) is not None]
        self._refused.turn_ended()
        return found

    async def history(self) -> "Missing":
        """Those of all that was said before."""
        return Missing(await asyncio.to_thread(_recalled, self._path) if self._path else {})


class Missing:
    """Items that a history lacks, by the item that came after them."""

    def __init__(self, before: dict[str, list[wire.Item]]) -> None:
        self._before = before

    def put_into(self, turn: wire.Turn) -> wire.Turn:
        """The turn with what it lacks."""
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
    refused, waiting = Refused(), list[wire.Item]()
    found: dict[str, list[wire.Item]] = {}
    for said in Rollout(path, whole=True).fresh():
        next_one = said.item.id if said.item is not None else said.id if said.type == "message" else None
        if next_one and waiting:
            found[next_one], waiting = waiting, []
        if (item := refused.feed(said)) is not None:
            waiting.append(item)
    return found


def _said(raw: msgspec.Raw) -> Said:
    try:
        return msgspec.json.decode(raw, type=_Told).item
    except BAD_INPUT:
        return Said()
