"""The settings of a session: modes, models and options. Pure values; the session sends changes to the client.

Older clients know modes and models, newer ones know options with the categories `mode` and `model`. Where an agent offers both
they are two views of one setting, so a change of the one changes the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.protocol.v1.settings import BooleanConfig, ConfigCategory, SelectConfig, SelectGroup, SelectOption

if TYPE_CHECKING:
    from antiphon.protocol.v1.settings import ConfigOption, ModelState, ModeState

__all__ = ["SessionSettings"]

_SWITCHES: Final = (("true", "false"), ("on", "off"))
"""The two values of an option that is on or off, as clients write them."""


class SessionSettings:
    """The settings of one session: what is on offer, and what is chosen."""

    def __init__(self) -> None:
        self.modes: ModeState | None = None
        self.options: list[ConfigOption] = []
        self.models: ModelState | None = None
        self._spelled: dict[str, dict[str, str]] = {}
        """Options whose values the client writes in another way than we do → our value → its value."""

    # Whether a value is on offer.

    def check_mode(self, mode_id: str) -> None:
        """Raise `RequestError` for a mode that is not on offer."""
        _among("mode", mode_id, _mode_ids(self.modes) if self.modes else [])

    def check_model(self, model_id: str) -> None:
        """Raise `RequestError` for a model that is not on offer."""
        _among("model", model_id, _model_ids(self.models) if self.models else [])

    def check_option(self, config_id: str, value: bool | str) -> "ConfigOption":
        """Return the option. Raise `RequestError` if there is no such option, or if it cannot have this value."""
        by_id = {option.id: option for option in self.options if isinstance(option, SelectConfig | BooleanConfig)}
        _among("setting", config_id, list(by_id))
        option = by_id[config_id]
        if isinstance(option, SelectConfig):
            _among(f"value of `{config_id}`", value, [choice.value for choice in choices(option)])
        elif not isinstance(value, bool):
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"`{config_id}` is on or off, not {value!r}")
        return option

    def meant(self, config_id: str, value: bool | str) -> bool | str:
        """Return the value that a client means: `true` and `false` stand for `on` and `off`, and the other way round.

        Raises:
            RequestError: there is no such option, or it cannot have this value.
        """
        option = next((each for each in self.options if getattr(each, "id", None) == config_id), None)
        word = str(value).lower()
        written = next((pair for pair in _SWITCHES if word in pair), None)
        if written is not None and isinstance(option, BooleanConfig):
            value = word == written[0]
        elif written is not None and isinstance(option, SelectConfig):
            offered = [choice.value for choice in choices(option)]
            ours = next((pair for pair in _SWITCHES if set(pair) == set(offered)), None)
            if ours is not None and value not in offered:
                self._spelled[config_id] = dict(zip(ours, written, strict=True))
                value = ours[written.index(word)]
        self.check_option(config_id, value)
        return value

    # Changes. Each returns whether the other view of the same setting changed with it.

    def choose_mode(self, mode_id: str) -> bool:
        """Change the mode. Return whether an option changed with it."""
        if self.modes is not None:
            self.modes = msgspec.structs.replace(self.modes, current_mode_id=mode_id)
        return self._follow(ConfigCategory.MODE, mode_id)

    def choose_model(self, model_id: str) -> bool:
        """Change the model. Return whether an option changed with it."""
        if self.models is not None:
            self.models = msgspec.structs.replace(self.models, current_model_id=model_id)
        return self._follow(ConfigCategory.MODEL, model_id)

    def choose_option(self, config_id: str, value: bool | str) -> bool:
        """Change an option. Return whether the mode changed with it."""
        for index, option in enumerate(self.options):
            if isinstance(option, SelectConfig | BooleanConfig) and option.id == config_id:
                self.options[index] = msgspec.structs.replace(option, current_value=value)
                return self._lead(option.category, value)
        return False

    def _follow(self, category: ConfigCategory, value: str) -> bool:
        for option in self.options:
            if not isinstance(option, SelectConfig) or option.category != category or option.current_value == value:
                continue
            if value in [choice.value for choice in choices(option)]:  # else the two differ, and the agent knows why
                self.choose_option(option.id, value)
                return True
        return False

    def _lead(self, category: ConfigCategory | None, value: bool | str) -> bool:
        modes, models = self.modes, self.models
        if category == ConfigCategory.MODE and modes is not None and value in _mode_ids(modes):
            self.modes = msgspec.structs.replace(modes, current_mode_id=str(value))
            return modes.current_mode_id != value
        if category == ConfigCategory.MODEL and models is not None and value in _model_ids(models):
            self.models = msgspec.structs.replace(models, current_model_id=str(value))
        return False

    def shown(self, booleans: bool) -> "list[ConfigOption]":
        """Return the options as a client gets them: without those that are on or off, if it does not know them."""
        return [
            _spelled(option, self._spelled)
            for option in self.options
            if booleans or not isinstance(option, BooleanConfig)
        ]


def choices(option: SelectConfig) -> Iterator[SelectOption]:
    """Yield every value of an option, grouped or not."""
    for entry in option.options:
        if isinstance(entry, SelectGroup):
            yield from entry.options
        else:
            yield entry


def _spelled(option: "ConfigOption", words: "Mapping[str, Mapping[str, str]]") -> "ConfigOption":
    """Return an option with the values as the client writes them."""
    if not isinstance(option, SelectConfig) or option.id not in words:
        return option
    own = words[option.id]
    values: list[SelectOption | SelectGroup] = [
        each if isinstance(each, SelectGroup) else msgspec.structs.replace(each, value=own.get(each.value, each.value))
        for each in option.options
    ]
    current = own.get(option.current_value, option.current_value)
    return msgspec.structs.replace(option, current_value=current, options=values)


def _mode_ids(modes: "ModeState") -> list[str]:
    return [mode.id for mode in modes.available_modes]


def _model_ids(models: "ModelState") -> list[str]:
    return [model.model_id for model in models.available_models]


def _among(what: str, given: object, offered: Sequence[object]) -> None:
    if given not in offered:
        names = ", ".join(f"`{each}`" for each in offered)
        hint = f"one of {names}" if names else f"this session has no {what}s to choose from"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"there is no {what} `{given}`: {hint}")
