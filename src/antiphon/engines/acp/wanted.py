"""What the user has chosen in a session, to be chosen again when the agent was started again: it would come back with other rights."""

from typing import TYPE_CHECKING, Self

import msgspec

from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.settings import SessionSettings
    from antiphon.client.relay import Life

__all__ = ["Wanted"]


class Wanted(msgspec.Struct, frozen=True):
    """A mode, a model, and the values of settings."""

    mode: str | None
    model: str | None
    options: dict[str, bool | str]

    @classmethod
    def of(cls, settings: "SessionSettings") -> Self:
        """As it stands."""
        return cls(
            settings.modes.current_mode_id if settings.modes is not None else None,
            settings.models.current_model_id if settings.models is not None else None,
            {
                option.id: option.current_value
                for option in settings.options
                if isinstance(option, v1.SelectConfig | v1.BooleanConfig)
            },
        )

    async def choose_again(self, life: "Life", id: str, settings: "SessionSettings") -> None:
        """Ask the agent for all of it that is not so, and note it in the settings that it came back with.

        Raises:
            RequestError: it is on offer no more, or the agent refuses.
        """
        if self.mode is not None and settings.modes is not None and settings.modes.current_mode_id != self.mode:
            settings.check_mode(self.mode)
            await life.request(m.SET_MODE, v1.SetMode(id, self.mode))
            settings.choose_mode(self.mode)
        if self.model is not None and settings.models is not None and settings.models.current_model_id != self.model:
            settings.check_model(self.model)
            await life.request(m.SET_MODEL, v1.SetModel(id, self.model))
            settings.choose_model(self.model)
        for option_id, value in self.options.items():
            if Wanted.of(settings).options.get(option_id, value) != value:
                settings.check_option(option_id, value)
                answer = await life.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(id, option_id, value))
                settings.options = list(answer.config_options) or settings.options
