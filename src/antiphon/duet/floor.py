"""Two engines at once, one heard at a time: a message is not cut in two by somebody else's words.

Whoever speaks has the floor until its message ends: with something that is no talk, or with its turn. Until then what the others say is
held back, in their order, and told when the floor is free.
"""

from collections.abc import Awaitable, Callable

from antiphon.aio import NO_WAIT
from antiphon.protocol import v1

__all__ = ["MessageOrder"]

_TALK = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


class MessageOrder:
    """`tell` is given what may be heard now, with the name of who says it."""

    def __init__(self, tell: Callable[[str, v1.Update], Awaitable[None]]) -> None:
        self._tell = tell
        self._held: dict[str, list[v1.Update]] = {}
        self._speaker: str | None = None
        self._done: set[str] = set()

    def say(self, name: str, update: v1.Update) -> Awaitable[None]:
        """Somebody says something."""
        if self._speaker not in (None, name):
            self._held.setdefault(name, []).append(update)
            return NO_WAIT
        told = self._tell(name, update)
        self._speaker = self._goes_on(name, update)
        if self._speaker is None and self._held:
            self._pass_on()
        return told

    def claim(self, name: str) -> None:
        """Somebody has to ask the user something now: what they said before goes first, whoever is speaking."""
        for update in self._held.pop(name, ()):
            _ = self._tell(name, update)

    def done(self, name: str) -> None:
        """Their turn is over: what they say now, or have said, is not waited for."""
        self._done.add(name)
        if self._speaker == name:
            self._speaker = None
        if self._speaker is None:
            self._pass_on()

    def end(self) -> None:
        """Nobody speaks at once any more: whatever is held is told."""
        self._speaker = None
        for name in tuple(self._held):
            self.claim(name)

    def _pass_on(self) -> None:
        while self._held and self._speaker is None:
            name = next(iter(self._held))
            held = self._held.pop(name)
            for update in held:
                _ = self._tell(name, update)
            self._speaker = self._goes_on(name, held[-1])

    def _goes_on(self, name: str, update: v1.Update) -> str | None:
        return name if isinstance(update, _TALK) and name not in self._done else None
