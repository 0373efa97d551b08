"""What a session's history is made of: one event after another, each a line of JSON. Written before it is shown, read when it is told again.

An update stands in its event as it was sent, and is never re-encoded: what we do not know survives.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw

from antiphon.protocol import v1
from antiphon.protocol.base import decoder, encode

__all__ = [
    "COMMAND",
    "UNSIGNED",
    "ClearEvent",
    "EndEvent",
    "Event",
    "GivenEvent",
    "PromptEvent",
    "UpdateEvent",
    "now",
    "pack",
    "unpack",
    "update_event",
]


COMMAND: Final = "command"
"""The role of a prompt that is a command of the engine's own."""


class _Event(msgspec.Struct, frozen=True, tag_field="event", omit_defaults=True):
    at: float
    """Seconds since 1970."""


class PromptEvent(_Event, frozen=True, tag="prompted"):
    """Somebody said something to the engines."""

    prompt: list[v1.ContentBlock]
    message_id: str
    by: str = ""
    """Empty: the user. Else who said it for them, such as `nudge`."""
    steering: bool = False
    """Whether it was added to a turn that ran."""


class UpdateEvent(_Event, frozen=True, tag="update_event"):
    """An update that the client got."""

    update: Raw
    engine: str = ""
    """Whose words they are; empty: our own."""


class GivenEvent(_Event, frozen=True, tag="given"):
    """What an engine was given as the user's words, by which it is found again in the engine's own history."""

    engine: str
    text: str
    role: str = ""
    """Empty: to answer. Else `review`, `fix`, or `command` for a command of the engine's own, which has to stand alone."""


class EndEvent(_Event, frozen=True, tag="ended"):
    """An engine's turn is over."""

    engine: str
    stop_reason: str = ""
    """Empty: it failed, and `error` says why."""
    error: str = ""


UNSIGNED: Final = "it is not signed in"
"""The error of a turn that an engine did not begin for the lack of a sign-in: nothing that other engines need to know."""


class ClearEvent(_Event, frozen=True, tag="cleared"):
    """The user began afresh: what came before is not told again."""


Event: TypeAlias = PromptEvent | UpdateEvent | GivenEvent | EndEvent | ClearEvent

_decoder: msgspec.json.Decoder[Event] = decoder(Event)  # type: ignore[arg-type]  # a union is a type to msgspec


def now() -> float:
    """The time of an event that happens now."""
    return round(time.time(), 3)


def update_event(update: v1.Update, engine: str = "") -> UpdateEvent:
    """The event of an update that is about to be shown."""
    return UpdateEvent(now(), Raw(encode(update)), engine)


def pack(event: Event) -> bytes:
    """As it is kept."""
    return encode(event)


def unpack(kept: Iterable[bytes]) -> Iterator[Event]:
    """As it was. One that cannot be read, because a newer Antiphon wrote it, is left out."""
    for each in kept:
        try:
            yield _decoder.decode(each)
        except msgspec.DecodeError:
            continue
