"""Requests to one worker, and what is sent to all of them: how it is, that it is to drain, whether it has a directory, revoked tokens.

A request is a message on `acp.ctl.WORKER` with a JSON object that has `do`; the answer is a JSON object. What a version does not know it
answers with `error`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, CoreMessage
from antiphon.protocol.base import BAD_INPUT

__all__ = ["ALL", "CONTROL", "Answer", "ControlListener", "WorkerControl", "WorkerNotice", "WorkerRequest"]

CONTROL: Final = "acp.ctl."
"""The subject of requests to a worker, without its name."""

ALL: Final = "acp.all"
"""The subject of what all workers are sent."""

REQUEST_TIMEOUT: Final = 2.0
"""Seconds for the answer of a worker, unless the caller gives another time."""

_log = logging.getLogger(__name__)


class WorkerRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to a worker."""

    do: str
    directories: tuple[str, ...] = ()


class WorkerNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What all workers are sent. It is not stored: one that is away misses it."""

    revoked: str = ""
    """The number of a token that was revoked: its prompts that wait are dropped."""
    why: str = ""


class WorkerControl:
    """Sends requests to workers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def ask(self, worker: str, request: WorkerRequest, timeout: float = REQUEST_TIMEOUT) -> Mapping[str, object]:
        """Send a request to a worker and return its answer.

        Raises:
            NoResponder: there is no such worker.
            BrokerAway: it does not answer.
            AcpError: it refused.
        """
        answer = await self._broker.request(CONTROL + worker, msgspec.json.encode(request), timeout=timeout)
        try:
            found = msgspec.json.decode(answer, type=dict[str, object])
        except BAD_INPUT as error:
            raise AcpError(f"the answer of worker `{worker}` cannot be read: {error}") from error
        if "error" in found:
            raise AcpError(f"worker `{worker}`: {found['error']}", hint=str(found.get("hint", "")))
        return found

    async def has_directories(self, worker: str, directories: Sequence[str]) -> bool:
        """Whether directories exist where a worker is."""
        found = await self.ask(worker, WorkerRequest("directories", tuple(directories)))
        return found.get("exist") is True

    async def real_paths(self, worker: str, directories: Sequence[str]) -> Sequence[str]:
        """Return the real paths of directories where a worker is; none where one does not exist, or it does not say."""
        try:
            found = await self.ask(worker, WorkerRequest("directories", tuple(directories)))
            real = msgspec.convert(found.get("real", ()), list[str])
        except (AcpError, msgspec.ValidationError) as error:
            _log.info("worker `%s` does not say where directories are: %s", worker, error)
            return ()
        return real if len(real) == len(directories) else ()

    def revoked(self, token: str, why: str) -> None:
        """Have all workers drop the prompts of a token that wait."""
        self._broker.publish(ALL, msgspec.json.encode(WorkerNotice(token, why)))


Answer: TypeAlias = Callable[[WorkerRequest], Awaitable[Mapping[str, object]]]
"""Does what is requested, and returns the answer."""


class ControlListener:
    """Takes the requests to one worker, and what is sent to all of them."""

    def __init__(
        self, broker: Broker, worker: str, answers: Mapping[str, Answer], notice: Callable[[WorkerNotice], None]
    ) -> None:
        """`answers` has what answers each request by its name."""
        self._broker = broker
        self._answers = answers
        self._notice = notice
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions = [
            broker.subscribe(CONTROL + worker, self._take),
            broker.subscribe(ALL, self._noticed),
        ]

    async def close(self) -> None:
        """Take no more of them, and wait for those that are being answered."""
        for subscription in self._subscriptions:
            subscription.end()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _take(self, message: CoreMessage) -> None:
        if message.reply:
            task = asyncio.get_running_loop().create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: CoreMessage) -> None:
        try:
            request = msgspec.json.decode(message.data, type=WorkerRequest)
            answer = self._answers.get(request.do)
            if answer is None:
                known = ", ".join(sorted(self._answers))
                found: Mapping[str, object] = {
                    "error": f"it does not know `{request.do}`",
                    "hint": f"it knows: {known}",
                }
            else:
                found = await answer(request)
        except AcpError as error:
            found = {"error": error.sentence, "hint": error.hint}
        except BAD_INPUT as error:
            found = {"error": f"the request cannot be read: {error}"}
        except Exception:
            _log.exception("a request to this worker failed")
            found = {"error": "it failed", "hint": "its log has the reason"}
        self._broker.publish(message.reply, msgspec.json.encode(found))

    def _noticed(self, message: CoreMessage) -> None:
        try:
            notice = msgspec.json.decode(message.data, type=WorkerNotice)
        except BAD_INPUT as error:
            _log.warning("what all workers were sent cannot be read: %s", error)
            return
        self._notice(notice)
