"""Updates of sessions that we do not know yet: several agents tell of a session before they answer the request that opens it."""

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from antiphon.protocol.base import encode

if TYPE_CHECKING:
    from antiphon.protocol.v1.session import SessionUpdate
    from antiphon.protocol.v1.updates import Update

__all__ = ["EARLY_LIMIT", "EarlyUpdates"]

EARLY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes that may wait for their sessions to become known. Forks replay a whole history first; a session that never becomes known costs
no more than this."""

_log = logging.getLogger(__name__)


class EarlyUpdates:
    """Kept in order, until somebody claims them. The oldest go first when there are too many."""

    def __init__(self, limit: int = EARLY_LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._kept: deque[tuple[SessionUpdate, int]] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, news: "SessionUpdate") -> None:
        """One more."""
        size = len(encode(news))
        self._kept.append((news, size))
        self._size += size
        while self._size > self._limit:
            old, size = self._kept.popleft()
            self._size -= size
            self._dropped += 1
            if self._dropped == 1:  # once: there may be very many
                _log.warning("updates of sessions that nobody opened are dropped, first of `%s`", old.session_id)

    def clear(self) -> None:
        """Keep none of them."""
        self._kept.clear()
        self._size = 0

    def claim(self, session_id: str) -> "list[Update]":
        """Those of this session, in order; they wait no longer."""
        if not self._kept:
            return []
        mine = [news.update for news, _ in self._kept if news.session_id == session_id]
        self._kept = deque(each for each in self._kept if each[0].session_id != session_id)
        self._size = sum(size for _, size in self._kept)
        return mine
