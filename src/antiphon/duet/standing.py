"""How a joint session stands: what the client may choose and what is chosen, put together from the engines' parts and our own choices."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from antiphon.connection.wire import NO_WAIT
from antiphon.duet import options
from antiphon.duet.commands import offered
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.duet.joint import Joint

__all__ = ["Standing"]


class Standing:
    """Of one session."""

    def __init__(self, joint: "Joint") -> None:
        self._joint = joint
        self._commands: list[v1.Command] | None = None

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
            options.Offer(name, parts[name].title, parts[name].modes, parts[name].models, parts[name].config_options)
            for name in ordered
            if name in parts
        ]
        shown = options.merged(self._chosen(), offers)
        outer = joint.outer
        outer.modes, outer.models, outer.config_options = shown.modes, shown.models, shown.options
        for part in parts.values():
            part.labels.visible = len(names) > 1

    def _chosen(self) -> options.Joint:
        joint, state = self._joint, self._joint.state
        return options.Joint(
            self.titles, state.route, joint.primary, state.review, joint.auto_resume, state.mode or None
        )

    def tell(self) -> Awaitable[None]:
        """Tell what has changed of it."""
        joint = self._joint
        outer, journal = joint.outer, joint.journal
        modes, models, before = outer.modes, outer.models, list(outer.config_options)
        self.show()
        told: Awaitable[None] = NO_WAIT
        if outer.config_options != before:
            told = journal.tell(v1.ConfigOptionUpdate(outer.settings.shown(outer.client.shows_booleans)))
        if modes is not None and outer.modes is not None and modes.current_mode_id != outer.modes.current_mode_id:
            told = journal.tell(v1.CurrentModeUpdate(outer.modes.current_mode_id))
        if models is not None and outer.models is not None and models.current_model_id != outer.models.current_model_id:
            told = journal.tell(v1.CurrentModelUpdate(outer.models.current_model_id))
        return told

    def tell_commands(self) -> Awaitable[None]:
        """Say which slash commands there are."""
        joint = self._joint
        theirs = {name: part.offered for name, part in joint.cast.parts.items()}
        merged = options.commands_merged(offered(self.titles), theirs, joint.engines_of(joint.state.route))
        if merged == self._commands:
            return NO_WAIT
        self._commands = merged
        return joint.journal.tell(v1.AvailableCommandsUpdate(merged))
