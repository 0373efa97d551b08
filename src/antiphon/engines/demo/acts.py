"""The list of slash commands. Each act is a function of the demo's session, the turn and what followed the command's name."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

    Play = Callable[["DemoSession", "AgentTurn", str], Awaitable["Outcome"]]

__all__ = ["ACTS", "Act", "act", "every_act"]


class Act(NamedTuple):
    """A slash command."""

    name: str
    description: str
    hint: str | None
    play: "Play"


ACTS: Final[dict[str, Act]] = {}
"""By name. Filled by `every_act`."""

_MODULES: Final = ("talking", "files", "commands", "showing", "asking", "settings", "drafts", "everything")


def act(name: str, description: str, hint: str | None = None) -> "Callable[[Play], Play]":
    """Make a function a slash command. `hint` is what may follow its name."""

    def register(play: "Play") -> "Play":
        ACTS[name] = Act(name, description, hint, play)
        return play

    return register


def every_act() -> dict[str, Act]:
    """All of them, in the order of `/help` whichever module was imported first."""
    homes = [import_module(f"antiphon.engines.demo.{module}").__name__ for module in _MODULES]
    return {name: act for home in homes for name, act in ACTS.items() if act.play.__module__ == home}
