"""Settings of a session that the user can change: pick one of several, or switch on and off."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Choice, Items, Model, Unknown
from antiphon.protocol.v1.ids import ConfigId, GroupId, ValueId
from antiphon.protocol.v1.updating import SettingsUpdate
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "BooleanConfig", "ConfigBase", "ConfigCategory", "ConfigOption", "ConfigOptionUpdate", "SelectConfig",
    "SelectEntry", "SelectGroup", "SelectOption",
]  # fmt: skip


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
    """What every setting says about itself."""

    id: ConfigId
    name: str
    description: str | None = None
    category: ConfigCategory | None = None


class SelectConfig(ConfigBase, frozen=True, kw_only=True, tag="select"):
    """One of several values is in force."""

    current_value: ValueId
    options: list[SelectEntry]


class BooleanConfig(ConfigBase, frozen=True, kw_only=True, tag="boolean"):
    """On or off."""

    current_value: bool


if TYPE_CHECKING:
    ConfigOption: TypeAlias = SelectConfig | BooleanConfig | Unknown
else:
    ConfigOption = SelectConfig | BooleanConfig


class ConfigOptionUpdate(SettingsUpdate, frozen=True, tag="config_option_update"):
    """All settings as they stand now: changing one may change others."""

    config_options: Items[ConfigOption]
