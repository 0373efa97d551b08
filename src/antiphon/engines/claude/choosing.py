"""What is chosen in a session, kept the same on both sides: the client changes it, the CLI changes it, each hears of the other."""

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon.engines.claude import settings
from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.agent.session import Session
    from antiphon.engines.claude import wire
    from antiphon.engines.claude.process import Process

__all__ = ["Choosing"]


class Choosing:
    """Mode, model and effort of one session."""

    def __init__(self, session: "Session", *, bypass: bool) -> None:
        self._session = session
        self.bypass = bypass
        """Whether the mode without questions is on offer."""
        self.offer = settings.Offer()
        self._mode = self._model = "default"
        self._effort = ""
        self._told = {settings.MODE: False, settings.MODEL: False, settings.EFFORT: False}
        self._setting: str | None = None

    async def begin(self, remembered: dict[str, Any] | None, kept: "Mapping[str, str]" = MappingProxyType({})) -> None:
        """Show what the CLI had on offer the last time, with the model and effort that were chosen in this session before."""
        try:
            self.offer = msgspec.convert(remembered, settings.Offer)
        except msgspec.ValidationError:
            self.offer = settings.Offer()
        self._mode, self._model, self._effort = self.offer.mode, self.offer.model, self.offer.effort
        if model := kept.get(settings.MODEL):
            self._model, self._told[settings.MODEL] = model, True
        if effort := kept.get(settings.EFFORT):
            self._effort, self._told[settings.EFFORT] = effort, True
        self._show()
        await self._offer_commands()

    def chosen(self) -> dict[str, str]:
        """What a process is started with: only what was chosen here, or the user's own settings would not count."""
        values = {settings.MODE: self._mode, settings.MODEL: self._model, settings.EFFORT: self._effort}
        return {name: value for name, value in values.items() if self._told[name] and value}

    async def learn(self, offer: settings.Offer) -> None:
        """What it really has on offer, and what it begins with."""
        new_commands = offer.commands != self.offer.commands
        self.offer = offer
        if not self._told[settings.MODE]:
            self._mode = offer.mode
        if not self._told[settings.MODEL]:
            self._model = offer.model
        if not self._told[settings.EFFORT]:
            self._effort = offer.effort
        await self._show_and_tell()
        if new_commands:
            await self._offer_commands()

    # The client changes something.

    async def set_mode(self, process: "Process", mode: str) -> None:
        """Another mode, now."""
        self._setting = mode
        try:
            await _set(process, "set_permission_mode", {"mode": mode})
        except RequestError:
            if mode == settings.BYPASS:  # the user's or an administrator's settings forbid it
                self.bypass = False
                await self._show_and_tell()
            raise
        finally:
            self._setting = None
        self._mode = mode
        self._told[settings.MODE] = True
        self._show()

    async def set_model(self, process: "Process", model: str) -> None:
        """Another model, from the next step on."""
        await _set(process, "set_model", {"model": model})
        self._model = model
        self._told[settings.MODEL] = True
        self._show()

    async def set_option(self, process: "Process", name: str, value: str) -> None:
        """A setting, in the way of newer clients."""
        if name == settings.MODE:
            await self.set_mode(process, value)
        elif name == settings.MODEL:
            await self.set_model(process, value)
        elif name == settings.EFFORT:
            await _set(process, "apply_flag_settings", {"settings": {"effortLevel": value}})
            self._effort = value
            self._told[settings.EFFORT] = True
            self._show()

    # The CLI changes something.

    async def mode_is(self, mode: str) -> None:
        """It works in this mode."""
        if mode == self._mode or mode == self._setting:
            return
        self._mode = mode
        self._told[settings.MODE] = True
        await self._show_and_tell()

    async def model_is(self, name: str) -> None:
        """It uses the model of this name."""
        model = settings.model_shown(self.offer.models, name, self._model)
        if model != self._model:
            self._model = model
            self._told[settings.MODEL] = True
            await self._show_and_tell()

    async def commands_are(self, commands: "Sequence[wire.SlashCommand]") -> None:
        """It has these slash commands now."""
        known = [settings.CliCommand(each.name, each.description, each.argument_hint) for each in commands]
        self.offer = msgspec.structs.replace(self.offer, commands=known)
        await self._offer_commands()

    # Showing.

    async def _offer_commands(self) -> None:
        await self._session.offer(*settings.commands_of(self.offer))

    def _show(self) -> None:
        choice = settings.choices_of(
            self.offer, bypass=self.bypass, mode=self._mode, model=self._model, effort=self._effort
        )
        session = self._session
        session.modes, session.models, session.config_options = choice.modes, choice.models, choice.options

    async def _show_and_tell(self) -> None:
        session = self._session
        modes, models, options = session.modes, session.models, list(session.config_options)
        self._show()
        if session.config_options != options:
            await session.tell_options()
        if modes is not None and session.modes is not None and modes.current_mode_id != session.modes.current_mode_id:
            await session.update(v1.CurrentModeUpdate(session.modes.current_mode_id))
        if (
            models is not None
            and session.models is not None
            and models.current_model_id != session.models.current_model_id
        ):
            await session.tell_model(session.models.current_model_id)


async def _set(process: "Process", subtype: str, fields: dict[str, Any]) -> None:
    from antiphon.engines.claude.process import ControlRefused  # late: `session/new` needs no process

    try:
        await process.control(subtype, fields)
    except ControlRefused as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", error.error) from error
    except ConnectionClosed as error:
        hint = "choose it again: the conversation goes on in a new process"
        raise RequestError(Code.INTERNAL_ERROR, "Claude Code ended unexpectedly", error.sentence, hint=hint) from error
