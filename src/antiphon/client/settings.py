"""What can be changed about a session: taken from the answers that open it, followed through its updates. Sends nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.protocol.v1.updates import Update

__all__ = ["Followed", "Offer", "follow", "of_category", "take", "with_value"]

Offer: TypeAlias = v1.NewSessionResult | v1.LoadSessionResult | v1.ResumeSessionResult | v1.ForkSessionResult
"""The answers that say what a session offers."""


class Followed(Protocol):
    """Something that keeps up with a session's settings."""

    modes: v1.ModeState | None
    config_options: list[v1.ConfigOption] | None
    models: v1.ModelState | None
    commands: list[v1.Command] | None
    title: str | None


def take(session: Followed, offer: Offer) -> None:
    """What an answer offers; what it leaves out stays as it was: some agents answer `session/resume` with nothing at all."""
    if offer.modes is not None:
        session.modes = offer.modes
    if offer.config_options is not None:
        session.config_options = offer.config_options
    if offer.models is not None:
        session.models = offer.models


def follow(session: Followed, update: "Update") -> None:
    """Keep up with an update."""
    if not isinstance(update, v1.SettingsUpdate):  # nearly all of them: pieces of text
        return
    match update:
        case v1.CurrentModeUpdate(current_mode_id=mode):
            modes = session.modes or v1.ModeState(mode, [])
            session.modes = msgspec.structs.replace(modes, current_mode_id=mode)
        case v1.CurrentModelUpdate(current_model_id=model):
            models = session.models or v1.ModelState([], model)
            session.models = msgspec.structs.replace(models, current_model_id=model)
        case v1.ConfigOptionUpdate(config_options=options):
            session.config_options = options
            _keep_in_step(session)
        case v1.AvailableCommandsUpdate(available_commands=commands):
            session.commands = commands
        case v1.SessionInfoUpdate(title=title) if not isinstance(title, v1.UnsetType):
            session.title = title
        case _:
            pass


def _keep_in_step(session: Followed) -> None:
    """Modes and models are the older view of two settings: where an agent has both, they say the same."""
    mode, model = of_category(session, v1.ConfigCategory.MODE), of_category(session, v1.ConfigCategory.MODEL)
    if mode is not None and session.modes is not None:
        session.modes = msgspec.structs.replace(session.modes, current_mode_id=mode.current_value)
    if model is not None and session.models is not None:
        session.models = msgspec.structs.replace(session.models, current_model_id=model.current_value)


def of_category(session: Followed, category: v1.ConfigCategory) -> v1.SelectConfig | None:
    """The setting that is about this, if there is one."""
    for option in session.config_options or ():
        if isinstance(option, v1.SelectConfig) and option.category == category:
            return option
    return None


def with_value(options: Sequence[v1.ConfigOption], config_id: str, value: str | bool) -> list[v1.ConfigOption]:
    """The settings with one changed, for agents that do not say how they stand now."""
    changed: list[v1.ConfigOption] = []
    for option in options:
        kind = str if isinstance(option, v1.SelectConfig) else bool
        if isinstance(option, v1.ConfigBase) and option.id == config_id and isinstance(value, kind):
            changed.append(msgspec.structs.replace(option, current_value=value))
        else:
            changed.append(option)
    return changed
