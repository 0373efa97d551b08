"""Updates that are only for clients which say that they know them, found without decoding the rest of a message.

An agent has one client and sends it what it asked for. A server with several clients asks for all of them, and keeps from each what it
did not ask for.
"""

from typing import Final

import msgspec
from msgspec import Raw, UnsetType

from antiphon.protocol.base import BAD_INPUT

__all__ = ["is_unwanted", "may_be_opt_in", "unwanted_updates"]

_CAPABILITIES: Final = {
    "notice": "notices",
    "compaction_update": "compaction",
    "compaction_summary_chunk": "compaction",
}
"""The kinds of update, and the member of `clientCapabilities.session` by which a client asks for each."""

_MARKS: Final = tuple(f'"{kind}"'.encode() for kind in _CAPABILITIES)


class _Abilities(msgspec.Struct):
    session: dict[str, object] | None = None


class _Initialize(msgspec.Struct, rename={"abilities": "clientCapabilities"}):
    abilities: _Abilities | None = None


class _Update(msgspec.Struct, rename="camel"):
    session_update: str = ""


class _Params(msgspec.Struct):
    update: _Update


class _Notification(msgspec.Struct):
    params: _Params


def unwanted_updates(params: Raw | UnsetType) -> frozenset[str]:
    """Return the kinds of update that a client did not ask for in the params of its `initialize`."""
    try:
        found = None if isinstance(params, UnsetType) else msgspec.json.decode(params, type=_Initialize).abilities
    except BAD_INPUT:
        found = None
    asked = found.session if found is not None and found.session is not None else {}
    return frozenset(kind for kind, capability in _CAPABILITIES.items() if asked.get(capability) is None)


def may_be_opt_in(data: bytes) -> bool:
    """Whether one of these updates may be in a block of messages. Most have none, and are not looked into."""
    return any(mark in data for mark in _MARKS)


def is_unwanted(frame: bytes, unwanted: frozenset[str]) -> bool:
    """Whether a message is an update of a kind that is not wanted."""
    if not unwanted or not may_be_opt_in(frame):
        return False
    try:
        return msgspec.json.decode(frame, type=_Notification).params.update.session_update in unwanted
    except BAD_INPUT:
        return False
