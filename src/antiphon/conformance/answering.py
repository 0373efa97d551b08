"""Answers what a peer asks, one task for each question, and holds back what a scenario wants to answer by itself, or not at all."""

import asyncio
from abc import ABC, abstractmethod
from typing import Any

from antiphon.conformance.wire import Wire
from antiphon.errors import Code
from antiphon.traffic.entries import Entry

__all__ = ["Answerer", "Refused"]


class Refused(Exception):
    """What was asked for cannot be had: an error with a code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Answerer(ABC):
    """Listens to a wire and answers."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.held: set[str] = set()
        self.waiting: list[Entry] = []
        """Questions of the peer's that a scenario held back and has not answered."""
        self._tasks: set[asyncio.Task[None]] = set()
        wire.listener = self.hear

    def hear(self, entry: Entry) -> None:
        """Answer a question, or keep it for the scenario."""
        if not entry.is_request:
            return
        if entry.method in self.held:
            self.waiting.append(entry)
            return
        task = asyncio.create_task(self.respond(entry), name=f"answer to {entry.method}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def respond(self, entry: Entry) -> None:
        """Answer a question as a correct peer does."""
        try:
            result = await self.do(entry.method or "", entry.params)
        except Refused as refusal:
            await self.refuse(entry, refusal.code, str(refusal))
        except (KeyError, TypeError, ValueError) as error:  # params that the schema forbids: the judge has noted it
            await self.refuse(entry, Code.INVALID_PARAMS, f"invalid params: {error!r}")
        except Exception as error:  # whatever it is, a question that is never answered would be held against the peer
            await self.refuse(entry, Code.INTERNAL_ERROR, f"it could not be done: {error!r}")
        else:
            await self.answer(entry, result)

    async def answer(self, entry: Entry, result: object) -> Entry:
        """Answer a question with a result."""
        return await self.wire.say({"jsonrpc": "2.0", "id": entry.msg.get("id"), "result": result})

    async def refuse(self, entry: Entry, code: int, message: str) -> Entry:
        """Answer a question with an error."""
        error = {"code": code, "message": message}
        return await self.wire.say({"jsonrpc": "2.0", "id": entry.msg.get("id"), "error": error})

    @abstractmethod
    async def do(self, method: str, params: dict[str, Any]) -> object:
        """The result for a question.

        Raises:
            Refused: there is none to be had.
        """

    async def close(self) -> None:
        """Leave what is not answered."""
        for task in tuple(self._tasks):
            task.cancel()
