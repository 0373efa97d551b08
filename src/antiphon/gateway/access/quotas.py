"""What one principal may have of a gateway at a time, so that others find room beside it.

Browsers count with the token that they signed in with.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from antiphon.errors import Code, RequestError
from antiphon.gateway.access.messages import SHARED_METHODS
from antiphon.gateway.base import HubLimits, Principal, SharedQuotas

__all__ = ["LATER", "Quotas"]

LATER: Final = {"recoverable": True, "action": "try again later"}
"""The data of an error that passes by itself."""

ANSWERING: Final = 8
"""Requests of the extension that are answered at the same time: each may read a whole session."""

OWN: Final = 2
"""Those of them that are of one principal."""

MINUTE: Final = 60.0


class Quotas:
    """Counts what principals do, and says what is too much."""

    def __init__(self, limits: HubLimits) -> None:
        self._limits = limits
        self.shared: SharedQuotas | None = None
        """Counts for all workers of a fleet; None on a single machine."""
        self._done: dict[tuple[str, str], deque[float]] = {}
        """When each principal sent its last prompts and made its last changes."""
        self._held: Counter[str] = Counter()
        """Bytes of the prompts that wait, by their principals."""
        self._answering = asyncio.Semaphore(ANSWERING)
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    # How often.

    def refuse_prompt(self, principal: Principal) -> str:
        """Count a prompt, and return why it is refused; empty if it is not."""
        most = self._limits.prompts_per_minute
        often = self._is_often("prompt", principal, most)
        return too_many_prompts(most) if often else ""

    def refuse_change(self, principal: Principal, method: str = "") -> str:
        """Count a change of settings or of a title, and return why it is refused; empty if it is not. A `method` that changes neither is not counted."""
        if method and (method not in SHARED_METHODS or method in ("session/prompt", "session/cancel")):
            return ""
        most = self._limits.changes_per_minute
        often = self._is_often("change", principal, most)
        return f"too many changes: this token may make {most} in a minute" if often else ""

    def _is_often(self, kind: str, principal: Principal, most: int) -> bool:
        now = time.monotonic()
        done = self._done.setdefault((kind, key_of(principal)), deque())
        if has_done_often(done, now, most):
            return True
        done.append(now)
        return False

    # How much.

    def hold(self, principal: Principal, size: int) -> str:
        """Count the bytes of a prompt that waits, and return why it is refused; empty if it is not."""
        key = key_of(principal)
        if waits_too_much(self._held[key], size, self._limits.waiting):
            return "the prompts of this token that wait are too large together"
        self._held[key] += size
        return ""

    def release(self, principal: Principal, size: int) -> None:
        """Count the bytes of a prompt no more: it was sent, or will never be."""
        key = key_of(principal)
        self._held[key] -= size
        if self._held[key] <= 0:
            del self._held[key]

    # At all workers of a fleet.

    async def count_prompt(self, principal: Principal) -> None:
        """Count a prompt that is about to be sent to an agent.

        Raises:
            RequestError: the principal has sent too many.
        """
        if self.shared is not None and (why := await self.shared.refuse_prompt(principal)):
            raise RequestError(Code.INVALID_REQUEST, why, LATER, hint="try again in a minute")

    async def count_sessions(self, token: str, more: int = 0) -> None:
        """Count the sessions that a token has open here and `more`.

        Raises:
            RequestError: it has too many.
        """
        if self.shared is not None and (why := await self.shared.refuse_session(token, more)):
            hint = "those that are not used are being closed: try again, or close some"
            raise RequestError(Code.INTERNAL_ERROR, why, LATER, hint=hint)

    def session_closed(self, token: str) -> None:
        """Count a session of a token no more."""
        if self.shared is not None:
            self.shared.closed(token)

    # How many at once.

    @asynccontextmanager
    async def place(self, principal: Principal) -> AsyncIterator[None]:
        """Wait for a place among the requests of the extension that are answered now."""
        own = self._slots.setdefault(key_of(principal), asyncio.Semaphore(OWN))
        async with own, self._answering:
            yield


def key_of(principal: Principal) -> str:
    """Return what a principal is counted by: the number of its token, or its name without one."""
    return principal.root_id or principal.token_id or principal.name


def too_many_prompts(most: int) -> str:
    """Return why a prompt is refused of a token that may send so many in a minute."""
    return f"too many prompts: this token may send {most} in a minute"


def has_done_often(done: deque[float], now: float, most: int) -> bool:
    """Whether something was done as often in the last minute as it may be."""
    while done and done[0] < now - MINUTE:
        done.popleft()
    return len(done) >= most


def waits_too_much(held: int, size: int, most: int) -> bool:
    """Whether a prompt of this size is too large to wait beside those that wait already. One waits however large it is."""
    return held > 0 and held + size > most
