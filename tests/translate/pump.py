"""A client and an agent with translators between them, and no event loop: JSON objects in, JSON objects out, and a clock that is set."""

from collections import deque
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from antiphon.connection.adapter import _chunk_decoder, _frame
from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.exchange import Loss, RequestFailure
from antiphon.protocol.translate.base import Translator

__all__ = ["Json", "Pump"]

Json = dict[str, Any]


class Pump:
    """Translators in a chain, from the client to the agent. What arrives at the ends is in `at_client` and `at_agent`."""

    def __init__(self, *kinds: type[Translator], fast: bool = True) -> None:
        self.now = 0.0
        self.links = [kind(lambda: self.now) for kind in kinds]
        self.at_client: list[Json] = []
        self.at_agent: list[Json] = []
        self.losses: list[Loss] = []
        self._fast = fast
        self._way: deque[tuple[int, bool, bytes]] = deque()

    def client(self, message: Json, *, settle: bool = True) -> None:
        """The client sends a message."""
        self._feed(0, message, from_agent=False, settle=settle)

    def agent(self, message: Json, *, settle: bool = True) -> None:
        """The agent sends a message."""
        self._feed(len(self.links) - 1, message, from_agent=True, settle=settle)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        for place, link in enumerate(self.links):
            link.expire()
            self._collect(place)
        self._run()

    def settle(self) -> None:
        """Nothing more comes for now."""
        for place, link in enumerate(self.links):
            link.settle()
            self._collect(place)
        self._run()

    def lose_agent(self) -> None:
        """The agent is gone."""
        for place, link in reversed(list(enumerate(self.links))):
            link.agent_lost()
            self._collect(place)
        self._run()

    def _feed(self, place: int, message: Json, *, from_agent: bool, settle: bool) -> None:
        self._way.append((place, from_agent, msgspec.json.encode({"jsonrpc": "2.0", **message})))
        self._run()
        if settle:
            self.settle()

    def _run(self) -> None:
        while self._way:
            place, from_agent, frame = self._way.popleft()
            if not 0 <= place < len(self.links):
                (self.at_client if place < 0 else self.at_agent).append(_decoded(frame))
                continue
            link: Any = self.links[place]
            if link.transparent:
                self._way.append((place - 1 if from_agent else place + 1, from_agent, frame))
                continue
            if from_agent and self._fast and self._took_chunk(place, link, frame):
                continue
            _give(link, frame, from_agent)
            self._collect(place)

    def _took_chunk(self, place: int, link: Any, frame: bytes) -> bool:
        try:
            verdict = link.agent_chunk(_chunk_decoder(link.__class__).decode(frame).params)
        except BAD_INPUT:
            return False
        if verdict is None:
            return False
        if verdict is not True:
            frame = b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % verdict
        self._way.append((place - 1, True, frame))
        return True

    def _collect(self, place: int) -> None:
        link = self.links[place]
        for message in link.to_client:
            self._way.append((place - 1, True, _frame(message)))
        for message in link.to_agent:
            self._way.append((place + 1, False, _frame(message)))
        self.losses += link.losses
        link.to_client.clear()
        link.to_agent.clear()
        link.losses.clear()


class _Envelope(msgspec.Struct):
    id: Any = UNSET
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw | msgspec.UnsetType = UNSET
    error: Any = None


def _give(link: Any, frame: bytes, from_agent: bool) -> None:
    side = "agent" if from_agent else "client"
    message = msgspec.json.decode(frame, type=_Envelope)
    if message.method is not None and message.id is UNSET:
        getattr(link, f"{side}_notification")(message.method, message.params)
    elif message.method is not None:
        getattr(link, f"{side}_request")(message.id, message.method, message.params)
    else:
        error = message.error
        failure = None if error is None else RequestFailure(error["code"], error["message"], error.get("data", UNSET))
        getattr(link, f"{side}_response")(message.id, None if message.result is UNSET else message.result, failure)


def _decoded(frame: bytes) -> Json:
    found: Json = msgspec.json.decode(frame)
    found.pop("jsonrpc", None)
    return found
