"""How a joint session stands: what the client may choose and what is chosen, put together from the engines' parts and our own choices."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from antiphon.aio import NO_WAIT
from antiphon.duet.commands import offered
from antiphon.duet.options import EngineOffer, commands_merged, merged
from antiphon.duet.options import SharedSettings as Chosen
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.duet.joint import JointSession

__all__ = ["JointSettings"]


class JointSettings:
    """Of one session."""

    def __init__(self, joint: "JointSession") -> None:
        self._joint = joint
        self._commands: list[v1.Command] | None = None
        self._told: tuple[list[v1.ConfigOption], str | None, str | None] = ([], None, None)

    @property
    def titles(self) -> dict[str, str]:
        """What people call the engines."""
        cast = self._joint.cast
        return {name: cast.title(name) for name in cast.engines}

    def show(self) -> None:
        """Put together what the client may choose."""
        joint = self._joint
        names = joint.engines_of(joint.state.route)
        parts = joint.cast.parts
        ordered = [*names, *(each for each in parts if each not in names)]
        offers = [
            EngineOffer(name, parts[name].title, parts[name].modes, parts[name].models, parts[name].config_options)
            for name in ordered
            if name in parts
        ]
        shown = merged(self._chosen(), offers)
        outer = joint.outer
        outer.modes, outer.models, outer.config_options = shown.modes, shown.models, shown.options

    def _chosen(self) -> Chosen:
        joint, state = self._joint, self._joint.state
        return Chosen(self.titles, state.route, joint.primary, state.review, joint.auto_resume, state.mode or None)

    def known(self) -> None:
        """The client has been told how things stand, by the answer that opened the session."""
        self._told = self._now()

    def _now(self) -> tuple[list[v1.ConfigOption], str | None, str | None]:
        outer = self._joint.outer
        return (
            outer.settings.shown(outer.client.shows_booleans),
            None if outer.modes is None else outer.modes.current_mode_id,
            None if outer.models is None else outer.models.current_model_id,
        )

    def tell(self) -> Awaitable[None]:
        """Tell what has changed of it since the client last heard."""
        self.show()
        journal, before = self._joint.journal, self._told
        options, mode, model = self._told = self._now()
        told: Awaitable[None] = NO_WAIT
        if options != before[0]:
            told = journal.tell(v1.ConfigOptionUpdate(options))
        if mode is not None and mode != before[1]:
            told = journal.tell(v1.CurrentModeUpdate(mode))
        if model is not None and model != before[2] and self._joint.outer.client.chooses_models:
            told = journal.tell(v1.CurrentModelUpdate(model))
        return told

    def tell_commands(self) -> Awaitable[None]:
        """Say which slash commands there are."""
        joint = self._joint
        theirs = {name: part.offered for name, part in joint.cast.parts.items()}
        listed = commands_merged(offered(self.titles), theirs, joint.engines_of(joint.state.route))
        if listed == self._commands:
            return NO_WAIT
        self._commands = listed
        return joint.journal.tell(v1.AvailableCommandsUpdate(listed))
