"""Agents of version 2 that do one thing wrong, where a change on the wire cannot show it."""

from typing import Any

from tests.conformance.memory import Message
from tests.conformance.v2.correct_agent import CorrectAgent, Kitchen, write_file


class OneSession(CorrectAgent):
    """All of its sessions have one id."""

    def name(self, what: str) -> str:
        return "session" if what == "session" else super().name(what)


class LateKitchen(Kitchen):
    """Answers a prompt when the work is over."""

    async def work(self) -> None:
        agent, self.agent = self.agent, Holding(self.agent)  # type: ignore[assignment]
        await super().work()
        self.agent = agent


class Holding:
    """An agent whose answers wait for the end of the work."""

    def __init__(self, agent: CorrectAgent) -> None:
        self._agent = agent
        self._held: list[Message] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def send(self, **message: Any) -> None:
        if "result" in message:
            self._held.append(message)
            return
        if message.get("params", {}).get("update", {}).get("state") == "idle":
            for one in self._held:
                await self._agent.send(**one)
            self._held.clear()
        await self._agent.send(**message)


class StubbornKitchen(Kitchen):
    """Waits for an answer of the user, cancelled or not."""

    async def question(self, method: str, **params: Any) -> Message:
        await self.report("requires_action")
        _, asked = await self.agent.ask(method, sessionId=self.id, **params)
        answer = await asked
        await self.report("running")
        return answer


class EagerKitchen(Kitchen):
    """Takes every answer for a yes."""

    async def ask(self, words: list[str]) -> None:
        await super().ask(words)
        write_file(words[1], words[2])


class StoppingKitchen(Kitchen):
    """Ends what runs in the background when the work is cancelled."""

    def cancel(self) -> list[Any]:
        for stop in self.calls.values():
            stop.set()
        return super().cancel()


def cooks(kitchen: type[Kitchen]) -> type[CorrectAgent]:
    return type("FaultyAgent", (CorrectAgent,), {"kitchen": kitchen})


class Uncancellable(CorrectAgent):
    """Accepts the cancellation of a call and does nothing."""

    async def _cancel_call(self, session: Kitchen, params: Message) -> Message:
        if params["toolCallId"] not in session.calls:
            return await super()._cancel_call(session, params)
        return {}
