"""Settings of a session: config options, modes, models, and the slash commands on offer."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.protocol.base import Choice, Items, Model, Unknown
from antiphon.protocol.v1.base import ConfigId, GroupId, ModeId, ModelId, SessionId, SettingsUpdate, ValueId
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "AvailableCommandsUpdate",
    "BooleanConfig",
    "Command",
    "CommandInput",
    "ConfigBase",
    "ConfigCategory",
    "ConfigOption",
    "ConfigOptionUpdate",
    "CurrentModeUpdate",
    "CurrentModelUpdate",
    "Mode",
    "ModeState",
    "ModelChoice",
    "ModelState",
    "SelectConfig",
    "SelectEntry",
    "SelectGroup",
    "SelectOption",
    "SessionModel",
    "SetModel",
    "SetModelResult",
]


@unknown_reads_as(None)
class ConfigCategory(Word):
    """What a setting is about; only a hint for where to show it."""

    MODE = "mode"
    MODEL = "model"
    MODEL_CONFIG = "model_config"
    THOUGHT_LEVEL = "thought_level"


class SelectOption(Model, frozen=True):
    """One value to pick."""

    value: ValueId
    name: str
    description: str | None = None


class SelectGroup(Model, frozen=True):
    """Values shown together under a heading."""

    group: GroupId
    name: str
    options: Items[SelectOption]


if TYPE_CHECKING:
    SelectEntry: TypeAlias = SelectOption | SelectGroup
else:

    class SelectEntry(Choice):
        """A value or a group of values; a list holds only the one or only the other."""

        by_key = {"group": SelectGroup}  # noqa: RUF012
        otherwise = SelectOption


class ConfigBase(Model, frozen=True, kw_only=True, tag_field="type"):
    """The fields that every setting has."""

    id: ConfigId
    name: str
    description: str | None = None
    category: ConfigCategory | None = None


class SelectConfig(ConfigBase, frozen=True, kw_only=True, tag="select"):
    """A setting with one of several values."""

    current_value: ValueId
    options: list[SelectEntry]


class BooleanConfig(ConfigBase, frozen=True, kw_only=True, tag="boolean"):
    """A setting that is on or off."""

    current_value: bool


if TYPE_CHECKING:
    ConfigOption: TypeAlias = SelectConfig | BooleanConfig | Unknown
else:
    ConfigOption = SelectConfig | BooleanConfig


class ConfigOptionUpdate(SettingsUpdate, frozen=True, tag="config_option_update"):
    """All settings with their current values: changing one may change others."""

    config_options: Items[ConfigOption]


# Modes: ways of working that an agent can be switched between.


class Mode(Model, frozen=True):
    """One way of working, such as planning without touching files."""

    id: ModeId
    name: str
    description: str | None = None


class ModeState(Model, frozen=True):
    """The modes on offer and the one in force."""

    current_mode_id: ModeId
    available_modes: Items[Mode]


class CurrentModeUpdate(SettingsUpdate, frozen=True, tag="current_mode_update"):
    """The session changed its mode."""

    current_mode_id: ModeId


# Models, as agents offered them before there were config options. No schema has this any more; many agents still do it.


class SessionModel(Model, frozen=True):
    """A model the session can use."""

    model_id: ModelId
    name: str
    description: str | None = None


class ModelState(Model, frozen=True):
    """The models on offer and the one in use."""

    available_models: Items[SessionModel]
    current_model_id: ModelId


class ModelChoice(Model, frozen=True):
    """The model a client wants a new session to start with."""

    provider_id: str = msgspec.field(name="providerID")
    model_id: str = msgspec.field(name="modelID")


class SetModel(Model, frozen=True):
    """Use another model from now on."""

    session_id: SessionId
    model_id: ModelId


class SetModelResult(Model, frozen=True):
    """The model is changed."""


class CurrentModelUpdate(SettingsUpdate, frozen=True, tag="current_model_update"):
    """The session changed its model."""

    current_model_id: ModelId


# Slash commands that the agent offers.


class CommandInput(Model, frozen=True):
    """Free text after the command's name."""

    hint: str


class Command(Model, frozen=True):
    """A command the user may type."""

    name: str
    description: str
    input: CommandInput | None = None


class AvailableCommandsUpdate(SettingsUpdate, frozen=True, tag="available_commands_update"):
    """The commands on offer from now on."""

    available_commands: Items[Command]
