"""The engines' parts in one session: opened when they are needed, gone on with where their conversation stands, in the mode that holds.

A conversation may have gone on elsewhere, in a terminal: whoever is opened again is heard out first, and what we did not know is told.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from antiphon.aio import maybe_await
from antiphon.duet.beyond import missed_updates
from antiphon.duet.events import EndEvent, Event, GivenEvent, now
from antiphon.duet.part import InnerSession
from antiphon.errors import AcpError, Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.duet.joint import JointSession
    from antiphon.engines.base import Engine, EngineSession

__all__ = ["EngineSessions"]

_log = logging.getLogger(__name__)

_LOST = (Code.RESOURCE_NOT_FOUND, Code.METHOD_NOT_FOUND)
"""How an engine says that it cannot go on with a conversation."""


class EngineSessions:
    """Of one joint session."""

    def __init__(self, joint: "JointSession", engines: "Mapping[str, Engine]") -> None:
        self._joint = joint
        self.engines = engines
        self.parts: dict[str, InnerSession] = {}
        """Those that are open."""
        self.speaking: dict[str, InnerSession] = {}
        """Those that may be heard: also while they are being opened."""
        self._opening: dict[str, asyncio.Lock] = {}

    def title(self, name: str) -> str:
        """What people call an engine."""
        return self.engines[name].title or name

    async def part(self, name: str) -> InnerSession:
        """The part of an engine, opened now if it is not open.

        Raises:
            AcpError: the engine cannot be opened.
        """
        async with self._opening.setdefault(name, asyncio.Lock()):
            if name not in self.parts:
                self.parts[name] = await self._open(name)
                self._joint.standing.show()
            return self.parts[name]

    async def _open(self, name: str) -> InnerSession:
        known = self._joint.state.of(name)
        if known.conversation:
            part = await self._again(name, known.conversation)
        elif known.source:
            part = await self._copy(name, known.source)
        else:
            part = await self._begin(name)
        try:
            await self._furnish(part)
        except BaseException:  # nobody else knows of it
            await _end(part)
            raise
        return part

    async def _furnish(self, part: InnerSession) -> None:
        """What the user chose before it was there."""
        if part.unreached:
            servers = ", ".join(f"`{each}`" for each in part.unreached)
            title = f"{part.title} cannot reach the MCP servers {servers}"
            await self._joint.saying.notice(title, "It works without them.", kept=False)
        await self.align(part)
        for option, value in self._joint.state.of(part.name).options.items():
            await self._choose_again(part, option, value)

    async def _begin(self, name: str) -> InnerSession:
        self._joint.ledger.begins(name)
        part = self._part(name)
        part.knows_nothing = self._joint.journal.minutes.was_given(name)
        return await self._opened(part, lambda: maybe_await(part.engine.new(part)))

    async def _copy(self, name: str, source: str) -> InnerSession:
        self._joint.ledger.unknown(name)
        part = self._part(name)
        if part.engine.does("fork"):
            try:
                return await self._opened(part, lambda: maybe_await(part.engine.fork(part, source)))
            except RequestError as error:
                if error.code not in _LOST:
                    raise
        return await self._anew(name)

    async def _again(self, name: str, conversation: str) -> InnerSession:
        self._joint.ledger.unknown(name)
        part = self._part(name)
        part.id = conversation
        part.collected = []
        engine = part.engine
        hear = engine.load if engine.does("load") else engine.resume
        try:
            await self._opened(part, lambda: maybe_await(hear(part)))
        except RequestError as error:
            if error.code not in _LOST:
                raise
            _log.info("%s cannot go on with %s: %s", name, conversation, error)
            return await self._anew(name)
        theirs, part.collected = part.collected, None
        await self._catch_up(part, theirs)
        return part

    async def _anew(self, name: str) -> InnerSession:
        """The engine has lost its conversation: it begins another, and is told what was said."""
        known = self._joint.state.of(name)
        known.conversation = known.source = ""
        part = await self._begin(name)
        title = f"{part.title} could not go on with its own conversation"
        await self._joint.saying.notice(title, "It begins a new one, with a summary of what was said.")
        return part

    def _part(self, name: str) -> InnerSession:
        joint = self._joint
        part = self.speaking[name] = InnerSession(joint, joint.outer, name, self.engines[name], joint.guard.rules)
        return part

    async def _opened(self, part: InnerSession, open: "Callable[[], Awaitable[EngineSession]]") -> InnerSession:
        try:
            part.playing = await open()
        except BaseException:
            part.close()  # what it left running has nobody to speak to
            raise
        return part

    async def _catch_up(self, part: InnerSession, theirs: list[v1.Update]) -> None:
        """What the engine's own history holds beyond ours is ours from now on."""
        said: list[v1.Update] = []
        for update in theirs:
            if isinstance(update, v1.StateUpdate):
                await self._joint.heard(part, update)
            else:
                said += [own for own, _ in part.labels.on(update, fresh=False)]
        events = await self._joint.history()
        missed = missed_updates(events, said, part.name)
        if missed and _is_cut_off(events, part.name):
            self._joint.journal.note(EndEvent(now(), part.name, v1.StopReason.CANCELLED.value))
        for update in missed:
            await self._joint.journal.tell(update, part.name)

    async def forgot(self, part: InnerSession, id: str) -> str:
        """An engine has begun another conversation in the middle of this one, because it lost its own: what it has to be told."""
        part.id = self._joint.state.of(part.name).conversation = id
        self._joint.ledger.unknown(part.name)
        await self._joint.save()
        return self._joint.journal.minutes.everything()

    # What is chosen.

    async def align(self, part: InnerSession) -> None:
        """Bring a part into the mode that the user chose for it or for all, if it has that."""
        state = self._joint.state
        wanted = state.of(part.name).mode or state.mode
        if wanted and wanted != _mode(part) and wanted in _modes(part):
            await self.set_mode(part, wanted)

    @asynccontextmanager
    async def looking(self, part: InnerSession) -> AsyncIterator[None]:
        """In this block a part looks only; after it, it is in the mode that it was in.

        Raises:
            RequestError: it has modes, and none in which it changes nothing unasked.
        """
        before, offered = _mode(part), _modes(part)
        quiet = next((mode for mode in (part.engine.read_only, "plan", "default") if mode in offered), None)
        if offered and quiet is None:
            why = f"{part.title} has no mode in which it only looks: let another engine review"
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", why)
        part.looking = True
        try:
            if quiet is not None and quiet != before:
                await self.set_mode(part, quiet)
            yield
        finally:
            part.looking = False
            if before and before != _mode(part) and not part.closed:
                await self._back(part, before)

    async def _back(self, part: InnerSession, mode: str) -> None:
        try:
            await self.set_mode(part, mode)
        except AcpError as error:
            _log.warning("%s stays in the mode in which it looks: %s", part.name, error)

    async def set_mode(self, part: InnerSession, mode: str) -> None:
        """Another mode, now."""
        part.obeying = True
        try:
            await maybe_await(_playing(part).set_mode(mode))
            part.settings.choose_mode(mode)
        finally:
            part.obeying = False

    async def set_model(self, part: InnerSession, model: str) -> None:
        """Another model."""
        part.settings.check_model(model)
        await maybe_await(_playing(part).set_model(model))
        part.settings.choose_model(model)

    async def set_option(self, part: InnerSession, option: str, value: bool | str) -> None:
        """Another value of one of the engine's own settings."""
        part.settings.check_option(option, value)
        await maybe_await(_playing(part).set_config_option(option, value))
        part.settings.choose_option(option, value)

    async def _choose_again(self, part: InnerSession, option: str, value: str) -> None:
        try:
            await self.set_option(part, option, value)
        except AcpError as error:  # a model that is no more: the engine's own choice holds
            _log.info("%s does not take %s = %s any more: %s", part.name, option, value, error)

    # The end.

    async def drop(self) -> None:
        """End all parts, also those that are just being opened. The next ones begin new conversations if nothing is known of the old."""
        await asyncio.gather(*(self._drop(name) for name in tuple(self._opening)))

    async def _drop(self, name: str) -> None:
        async with self._opening[name]:
            part = self.parts.pop(name, None)
            if part is not None:
                await _end(part)


def _is_cut_off(events: Sequence[Event], name: str) -> bool:
    """Whether the engine's last turn never ended before our eyes."""
    for event in reversed(events):
        if isinstance(event, GivenEvent | EndEvent) and event.engine == name:
            return isinstance(event, GivenEvent)
    return False


async def _end(part: InnerSession) -> None:
    try:
        if part.playing is not None:
            await maybe_await(part.playing.close())
    except Exception:
        _log.exception("closing %s failed", part.name)
    finally:
        part.close()


def _mode(part: InnerSession) -> str:
    return "" if part.modes is None else part.modes.current_mode_id


def _modes(part: InnerSession) -> list[str]:
    return [] if part.modes is None else [mode.id for mode in part.modes.available_modes]


def _playing(part: InnerSession) -> "EngineSession":
    assert part.playing is not None  # noqa: S101 - only open parts are in the cast
    return part.playing
