"""What a session needs to go on after a restart, besides its history: a small piece of JSON beside it."""

import logging

import msgspec

__all__ = ["EngineState", "JointState"]


_log = logging.getLogger(__name__)


class EngineState(msgspec.Struct, omit_defaults=True):
    """What is known of one engine in a session."""

    conversation: str = ""
    """The engine's own id of it, once it was given something; empty: it knows nothing yet."""
    source: str = ""
    """The conversation that it is to begin as a copy of."""
    mode: str = ""
    """A mode for it alone, if the user chose one."""
    options: dict[str, str] = {}
    """What the user chose, by the engine's own ids."""


class JointState(msgspec.Struct, omit_defaults=True):
    """What holds in a session."""

    route: str = ""
    primary: str = ""
    routed: bool = False
    """Whether the user chose the route in this session."""
    review: str = ""
    """What becomes of a reviewer's findings: `report` or `fix`."""
    mode: str = ""
    """The mode that the user chose, or an engine changed to; empty: as the engines begin."""
    auto_resume: bool | None = None
    """Whether a new session goes on with this one, if the user chose that here."""
    nudge: bool | None = None
    """The same for going on by itself at a limit."""
    engines: dict[str, EngineState] = {}

    def of(self, engine: str) -> EngineState:
        """What is known of an engine."""
        return self.engines.setdefault(engine, EngineState())

    @classmethod
    def read(cls, kept: bytes) -> "JointState":
        """As it was; as at the beginning, if it cannot be read."""
        try:
            return msgspec.json.decode(kept, type=cls) if kept else cls()
        except msgspec.DecodeError as error:
            _log.warning("what was chosen in a session cannot be read, so it begins anew: %s", error)
            return cls()

    def packed(self) -> bytes:
        """As it is kept."""
        return msgspec.json.encode(self)
