"""Session modes: ways of working that an agent can be switched between."""

from antiphon.protocol.base import Items, Model
from antiphon.protocol.v1.ids import ModeId
from antiphon.protocol.v1.updating import SettingsUpdate

__all__ = ["CurrentModeUpdate", "Mode", "ModeState"]


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
