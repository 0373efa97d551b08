"""Settings of a session: config options, which modes and models are among, and the commands on offer."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Choice, Items, Model, Skip, Unknown
from antiphon.protocol.v1.settings import ConfigCategory, SelectOption
from antiphon.protocol.v2.base import ConfigId, GroupId, UpdateModel, ValueId

__all__ = [
    "AvailableCommand", "AvailableCommandsUpdate", "BooleanConfig", "Command", "CommandInput", "ConfigBase",
    "ConfigCategory", "ConfigOption", "ConfigOptionUpdate", "SelectConfig", "SelectEntry", "SelectGroup",
    "SelectOption", "TextCommandInput",
]  # fmt: skip


class SelectGroup(Model, frozen=True):
    """Values shown together under a heading."""

    group_id: GroupId
    name: str
    options: Items[SelectOption]


if TYPE_CHECKING:
    SelectEntry: TypeAlias = SelectOption | SelectGroup
else:

    class SelectEntry(Choice):
        """A value or a group of values; a list holds only the one or only the other."""

        by_key = {"groupId": SelectGroup}  # noqa: RUF012
        otherwise = SelectOption


class ConfigBase(Model, frozen=True, kw_only=True, tag_field="type"):
    """The fields that every option has."""

    config_id: ConfigId
    name: str
    description: str | None = None
    category: ConfigCategory | None = None


class SelectConfig(ConfigBase, frozen=True, kw_only=True, tag="select"):
    """An option with one of several values."""

    current_value: ValueId
    options: list[SelectEntry]


class BooleanConfig(ConfigBase, frozen=True, kw_only=True, tag="boolean"):
    """An option that is on or off."""

    current_value: bool


if TYPE_CHECKING:
    ConfigOption: TypeAlias = SelectConfig | BooleanConfig | Unknown
else:
    ConfigOption = SelectConfig | BooleanConfig


class ConfigOptionUpdate(UpdateModel, frozen=True, tag="config_option_update"):
    """All options with their current values: changing one may change others."""

    config_options: Skip[ConfigOption]


class TextCommandInput(Model, frozen=True, tag_field="type", tag="text"):
    """Free text after the command's name."""

    hint: str


if TYPE_CHECKING:
    CommandInput: TypeAlias = TextCommandInput | Unknown
else:

    class CommandInput(Choice):
        """What a command takes."""

        tag = "type"
        by_tag = {"text": TextCommandInput}  # noqa: RUF012


class Command(Model, frozen=True, tag_field="type", tag="command"):
    """A command the user may type."""

    name: str
    description: str
    input: CommandInput | None = None


if TYPE_CHECKING:
    AvailableCommand: TypeAlias = Command | Unknown
else:

    class AvailableCommand(Choice):
        """Something on offer to the user; so far always a command."""

        tag = "type"
        by_tag = {"command": Command}  # noqa: RUF012


class AvailableCommandsUpdate(UpdateModel, frozen=True, tag="available_commands_update"):
    """The commands on offer from now on."""

    available_commands: Skip[AvailableCommand]
