"""What every session update shares, and whether it is history or state. The class says so: nobody else keeps a list."""

from typing import Any

from antiphon.protocol.base import UNSET, Legacy, Model, UnsetType

__all__ = ["SettingsUpdate", "StateUpdate", "UpdateModel"]


class UpdateModel(Model, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """One piece of news about a session; the tag says which."""

    timestamp: Legacy[Any | UnsetType] = UNSET


class StateUpdate(UpdateModel, frozen=True, kw_only=True):
    """How a session stands now. Every other update is history: something that was said or done."""


class SettingsUpdate(StateUpdate, frozen=True, kw_only=True):
    """State that is sent anew whenever the session is opened, so it is never stored."""
