"""What a line of the CLI comes to: updates for the client, and news for the session itself."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.engines.news import End, Mirror, ModeChanged, ModelChanged, Notice, SignInNeeded, Titled
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.engines.claude.wire import SlashCommand
    from antiphon.protocol.base import JsonObject

__all__ = [
    "CommandsChanged", "ConversationReset", "Mirror", "ModeChanged", "ModelChanged", "News", "Notice", "SignInNeeded", "Started",
    "Titled", "TurnEnded",
]  # fmt: skip


class _News(msgspec.Struct, frozen=True):
    """Base of what is told to the session and not, as it stands, to the client."""


class CommandsChanged(_News, frozen=True):
    """The slash commands on offer from now on."""

    commands: "Sequence[SlashCommand]"


class Started(_News, frozen=True):
    """How the CLI stands at the start of a turn."""

    model: str | None = None
    mode: str | None = None
    capabilities: "Sequence[str]" = ()


class ConversationReset(_News, frozen=True):
    """The conversation was thrown away; what follows belongs to `new_id`."""

    new_id: str


class TurnEnded(_News, frozen=True):
    """A turn is over. Without ids and with an `origin` the CLI had started it by itself."""

    end: End
    user_message_uuids: "Sequence[str]" = ()
    origin: "JsonObject | None" = None


News: TypeAlias = (
    v1.Update
    | Notice
    | ModeChanged
    | ModelChanged
    | CommandsChanged
    | Titled
    | Started
    | ConversationReset
    | Mirror
    | TurnEnded
    | SignInNeeded
)
