"""The slash commands of the demo: functions of its session, the turn, and the text after the name."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

    Handler = Callable[["DemoSession", "AgentTurn", str], Awaitable["Outcome"]]

__all__ = ["COMMANDS", "DemoCommand", "all_commands", "command"]


class DemoCommand(NamedTuple):
    """A slash command."""

    name: str
    description: str
    hint: str | None
    run: "Handler"


COMMANDS: Final[dict[str, DemoCommand]] = {}
"""All commands by name. Filled by `all_commands`."""

_MODULES: Final = ("messages", "workspace", "features")


def command(name: str, description: str, hint: str | None = None) -> "Callable[[Handler], Handler]":
    """Make a function a slash command. `hint` is what may follow its name."""

    def register(handler: "Handler") -> "Handler":
        COMMANDS[name] = DemoCommand(name, description, hint, handler)
        return handler

    return register


def all_commands() -> dict[str, DemoCommand]:
    """Return all commands, in the order of `/help` whichever module was imported first."""
    homes = [import_module(f"antiphon.engines.demo.{module}").__name__ for module in _MODULES]
    return {name: command for home in homes for name, command in COMMANDS.items() if command.run.__module__ == home}
