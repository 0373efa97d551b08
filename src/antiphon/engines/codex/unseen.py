"""Calls that no item tells of, in one thread: heard where the server tells the model's own words, else looked up when a turn ends."""

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.rollout import Rollout
from antiphon.engines.codex.translate.refused import Refused, Said
from antiphon.protocol.base import BAD_INPUT

__all__ = ["RAW", "RAW_EVENTS", "Unseen"]

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
        self._rollout: Rollout | None = None

    def opened(self, thread: wire.Thread, *, live: bool) -> None:
        """A thread was opened; `live` if the server tells the model's own words of it."""
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
        found = [item for each in said if (item := self._refused.feed(each, live=False)) is not None]
        self._refused.turn_ended()
        return found


def _said(raw: msgspec.Raw) -> Said:
    try:
        return msgspec.json.decode(raw, type=_Told).item
    except BAD_INPUT:
        return Said()
