"""The ways to sign in to an agent, remembered from its last start: clients are told of them before it runs.

Those that are a command in a terminal are not offered. A client would run it with the program that it knows, which is ours.
"""

import zlib
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.cli_program import CliMemory
from antiphon.protocol.v1.auth import AgentAuth, EnvVarAuth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.protocol.v1.auth import AuthMethod

__all__ = ["Ways"]

_KEY: Final = "authMethods"


class Ways:
    """Those of one agent, which is known by its command."""

    def __init__(self, name: str, command: "Sequence[str]") -> None:
        self._notes = CliMemory(f"{name}-ways", f"{zlib.crc32(chr(0).join(command).encode()):08x}")

    def remembered(self) -> "list[AuthMethod]":
        """What it offered last time."""
        told = (self._notes.load() or {}).get(_KEY)
        try:
            return [_read(each) for each in told] if isinstance(told, list) else []
        except msgspec.ValidationError:  # from another version of ours
            return []

    def offered(self, methods: "Sequence[AuthMethod]") -> "list[AuthMethod]":
        """Those of these that can be passed on."""
        return [each for each in methods if isinstance(each, AgentAuth | EnvVarAuth)]

    def remember(self, methods: "Sequence[AuthMethod]") -> None:
        """For the next time."""
        self._notes.save({_KEY: [msgspec.to_builtins(each) for each in methods]})


def _read(told: object) -> "AuthMethod":
    if isinstance(told, dict) and told.get("type") == "env_var":
        return msgspec.convert(told, EnvVarAuth)
    return msgspec.convert(told, AgentAuth)
