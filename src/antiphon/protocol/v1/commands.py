"""Slash commands that the agent offers."""

from antiphon.protocol.base import Items, Model
from antiphon.protocol.v1.updating import SettingsUpdate

__all__ = ["AvailableCommandsUpdate", "Command", "CommandInput"]


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
