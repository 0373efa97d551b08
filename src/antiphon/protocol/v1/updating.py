"""What every session update shares."""

from typing import Any

from antiphon.protocol.base import UNSET, Legacy, Model, UnsetType

__all__ = ["UpdateModel"]


class UpdateModel(Model, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """One piece of news about a session; the tag says which."""

    timestamp: Legacy[Any | UnsetType] = UNSET
