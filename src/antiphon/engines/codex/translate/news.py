"""What the server's words come to: updates for the client, and news for the session itself."""

from typing import TypeAlias

from antiphon.engines.codex.wire import ThreadSettings
from antiphon.engines.events import (
    Common,
    End,
    EndError,
    Mirror,
    ModeChanged,
    ModelChanged,
    Notice,
    SignInNeeded,
    Titled,
    TurnEnded,
)
from antiphon.protocol import v1

__all__ = [
    "End", "EndError", "Mirror", "ModeChanged", "ModelChanged", "News", "Notice", "SignInNeeded", "ThreadSettings", "Titled",
    "TurnEnded",
]  # fmt: skip

News: TypeAlias = v1.Update | Common | ThreadSettings
"""`ThreadSettings` as the server has it: the thread is set up like this now, whoever did it."""
