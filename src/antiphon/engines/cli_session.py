"""An engine session of a CLI as the client sees it: how it is opened, and its settings. Knows no particular CLI.

A setting has two views for the client: modes and models as the protocol had them first, and config options. What changes in one view is
sent for the other, whether the client changed it or the CLI.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.agent.session import send_model
from antiphon.engines.base import EngineSession
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn

__all__ = [
    "EFFORT", "MODE", "MODEL", "CliSession", "SettingsSync", "SettingsView", "effort_option", "mode_option", "model_option",
]  # fmt: skip

MODE: Final = "mode"
MODEL: Final = "model"
EFFORT: Final = "effort"
"""The ids of the settings that every CLI has."""


class SettingsView(msgspec.Struct, frozen=True):
    """All settings of a session as the client is shown them."""

    modes: v1.ModeState
    models: v1.ModelState
    options: list[v1.ConfigOption]


def mode_option(modes: "Iterable[v1.Mode]", current: str, description: str) -> v1.SelectConfig:
    """The mode as a config option."""
    return v1.SelectConfig(
        id=MODE,
        name="Mode",
        description=description,
        category=v1.ConfigCategory.MODE,
        current_value=current,
        options=[v1.SelectOption(each.id, each.name, each.description) for each in modes],
    )


def model_option(models: "Iterable[v1.SessionModel]", current: str) -> v1.SelectConfig:
    """The model as a config option."""
    return v1.SelectConfig(
        id=MODEL,
        name="Model",
        category=v1.ConfigCategory.MODEL,
        current_value=current,
        options=[v1.SelectOption(each.model_id, each.name, each.description) for each in models],
    )


def effort_option(levels: "Sequence[tuple[str, str | None]]", current: str, usual: str) -> v1.SelectConfig:
    """The effort as a config option. `levels`: each with a description; `usual` is shown if the current one is not among them."""
    return v1.SelectConfig(
        id=EFFORT,
        name="Effort",
        description="How much the model thinks",
        category=v1.ConfigCategory.THOUGHT_LEVEL,
        current_value=current if current in [level for level, _ in levels] else usual,
        options=[v1.SelectOption(level, level.capitalize(), description) for level, description in levels],
    )


class SettingsSync:
    """The settings of one session, kept equal in the CLI and at the client. A subclass knows what is on offer."""

    def __init__(self, session: "AgentSession", model: str = "") -> None:
        self._session = session
        self.mode = "default"
        self.model = model
        self.effort = ""
        self._chosen: set[str] = set()
        """The settings that were chosen in this session. For all others the user's own configuration of the CLI counts."""

    def shown(self) -> SettingsView:
        """The settings as the client is shown them."""
        raise NotImplementedError

    def _show(self) -> None:
        session, now = self._session, self.shown()
        session.modes, session.models, session.config_options = now.modes, now.models, now.options

    async def _show_and_send(self) -> None:
        """Show the settings, and send the client those that have changed."""
        session = self._session
        modes, models, options = session.modes, session.models, list(session.config_options)
        self._show()
        if session.config_options != options:
            await session.send_options()
        mode, model = _current_mode(session.modes), _current_model(session.models)
        if modes is not None and mode is not None and mode != modes.current_mode_id:
            await session.update(v1.CurrentModeUpdate(mode))
        if models is not None and model is not None and model != models.current_model_id:
            await send_model(session, model)


def _current_mode(modes: v1.ModeState | None) -> str | None:
    return None if modes is None else modes.current_mode_id


def _current_model(models: v1.ModelState | None) -> str | None:
    return None if models is None else models.current_model_id


class CliSession(EngineSession):
    """A session of a CLI. A subclass opens it and has the driver that works in it."""

    def __init__(self, session: "AgentSession") -> None:
        self.session = session

    async def create(self) -> None:
        """Open a new session."""
        raise NotImplementedError

    async def restore(self, *, replay: bool) -> None:
        """Open an earlier session; `replay`: and send its history."""
        raise NotImplementedError

    async def copy(self, source: str) -> None:
        """Open a new session that begins with the history of another."""
        raise NotImplementedError

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        raise NotImplementedError

    # Settings. The client that changes one view is sent the other.

    async def choose(self, name: str, value: str) -> None:
        """Change a setting in the CLI."""
        raise NotImplementedError

    async def set_mode(self, mode_id: str) -> None:
        await self.choose(MODE, mode_id)
        await self.session.send_options()

    async def set_model(self, model_id: str) -> None:
        await self.choose(MODEL, model_id)
        await self.session.send_options()

    async def set_config_option(self, config_id: str, value: bool | str) -> None:
        await self.choose(config_id, str(value))
        if config_id == MODE:
            await self.session.update(v1.CurrentModeUpdate(str(value)))
        elif config_id == MODEL:
            await send_model(self.session, str(value))

    async def close(self) -> None:
        raise NotImplementedError
