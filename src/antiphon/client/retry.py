"""When a request is worth asking again. Knows errors and patience; sends nothing.

Asked again: what failed because the connection was lost (if the agent can be started again), because it took too long (-32001),
because the session had expired (-32003, once it is open again), or because the agent itself has lost a connection (-32000 that says
so): the second time that happens the agent is started again, if it can be. After a sign-in, what was refused for the lack of one (-32000), once;
that is no failure to be patient with, so it is never repeated otherwise. Whatever else an agent refuses it will refuse again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from antiphon.errors import AcpError, Code, ConnectionClosed, RequestRefused

__all__ = ["Retry", "Tries"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """How patient to be: the seconds before each further try. `Retry(())` asks once."""

    delays: Sequence[float] = (1, 2, 4, 8)
    start_over: bool = True
    """Whether a new session may take the place of one that the agent has forgotten. It says so, but it knows nothing of before."""


class Tries:
    """The tries of one request."""

    def __init__(
        self,
        retry: Retry,
        *,
        can_reconnect: Callable[[], bool],
        sign_in: Callable[[RequestRefused, bool], Awaitable[None]],
        reconnect: Callable[[], Awaitable[None]],
    ) -> None:
        self._delays = iter(retry.delays)
        self._can_reconnect = can_reconnect
        self._sign_in = sign_in
        self._signed_in = False
        self._reconnect = reconnect
        self._closed = 0

    async def another(self, error: AcpError, expire: Callable[[], None] | None = None) -> None:
        """Return when it is time to ask again. `expire` marks the session that the request is about as no longer open.

        Raises:
            AcpError: the error itself, if asking again would not help or has been done often enough.
            AuthRequired: somebody has to sign in, and nobody here did.
        """
        if isinstance(error, RequestRefused) and error.wants_sign_in:
            await self._sign_in(error, self._signed_in)
            self._signed_in = True
            return
        delay = next(self._delays, None) if self._helps(error, expire) else None
        if delay is None:
            raise error
        _log.warning("trying again in %g s: %s", delay, error)
        await asyncio.sleep(delay)
        if isinstance(error, RequestRefused) and error.says_closed:
            self._closed += 1
            if self._closed > 1 and self._can_reconnect():
                await self._reconnect()

    def _helps(self, error: AcpError, expire: Callable[[], None] | None) -> bool:
        if isinstance(error, ConnectionClosed):
            return self._can_reconnect()
        if not isinstance(error, RequestRefused):
            return False
        if error.code == Code.SESSION_EXPIRED and expire is not None:
            expire()
            return True
        if error.says_closed:
            return True
        # By its meaning: some agents say "unsupported protocol version" with this code.
        return error.code == Code.REQUEST_TIMEOUT and error.meaning == "request timeout"
