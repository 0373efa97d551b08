"""The settings of a session as they are now, in the agent's own bytes: modes, models, options; and its commands and MCP servers.

They are the answer to a client that loads the session. They change with responses and with updates of the agent.
"""

from contextlib import suppress
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.protocol.v1.dialects import DIALECTS
from antiphon.rpc.spans import Unreadable, members_of, replaced, with_value

__all__ = ["SETTINGS_KINDS", "HubSettings", "without_boolean_options"]

SETTINGS_KINDS: Final = frozenset({b"av", b"co", b"cu", b"se"})
"""The first two letters of the kinds of update that change settings, title or commands; a few others share them."""

_SHOWN: Final = ("modes", "models", "configOptions")
_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unreadable)


class _Update(msgspec.Struct, rename="camel"):
    session_update: str = ""
    current_mode_id: str | UnsetType = UNSET
    config_options: Raw | UnsetType = UNSET
    title: str | UnsetType | None = UNSET


class _Params(msgspec.Struct):
    update: _Update = msgspec.field(default_factory=_Update)


class _Frame(msgspec.Struct):
    params: _Params = msgspec.field(default_factory=_Params)


_frame = msgspec.json.Decoder(_Frame).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode


class _Typed(msgspec.Struct):
    type: str = ""


def without_boolean_options(frame: bytes) -> bytes:
    """Return a response or update without the options that are switches: for a client that does not offer to show them."""
    try:
        for outer in (("result",), ("params", "update")):
            within = (0, len(frame))
            for name in (*outer, "configOptions"):
                found = [span for key, span in members_of(frame, within) if key == name]
                if not found or frame[found[-1][0] : found[-1][0] + 1] not in (b"{", b"["):
                    break
                within = found[-1]
            else:
                options = msgspec.json.decode(frame[slice(*within)], type=list[Raw])
                kept = [each for each in options if msgspec.json.decode(each, type=_Typed).type != "boolean"]
                return replaced(frame, [(within, msgspec.json.encode(kept))])
    except _ERRORS:
        pass  # what cannot be read is for the client to refuse
    return frame


class HubSettings:
    """The settings of one session."""

    __slots__ = ("_values",)

    def __init__(self, stored: bytes = b"{}") -> None:
        self._values: dict[str, bytes] = {name: bytes(value) for name, value in _members(stored).items()}

    def stored(self) -> bytes:
        """Return all of it as JSON."""
        return msgspec.json.encode({name: Raw(value) for name, value in self._values.items()})

    def result(self, given: bytes = b"{}") -> bytes:
        """Return the result of `session/load` and its like, with the settings as they are now."""
        for name in _SHOWN:
            if name in self._values:
                given = with_value(given, (name,), self._values[name])
        return given

    def opened(self, result: bytes) -> None:
        """Take the settings from the result that opened the session, in the schema's words.

        An agent may answer a client of another dialect in its words, and clients of the schema load the session later.
        """
        try:
            found = _members(DIALECTS.repair("session/load", "result", result)[0])
        except _ERRORS:
            return
        for name in _SHOWN:
            if name in found and bytes(found[name]) != b"null":
                self._values[name] = bytes(found[name])

    def chosen(self, method: str, params: bytes, result: bytes) -> None:
        """Take over what a client has chosen, from its request and the response."""
        try:
            asked, got = _members(params), _members(result)
        except _ERRORS:
            return
        match method:
            case "session/set_mode" if "modeId" in asked:
                self._choose("modes", "currentModeId", bytes(asked["modeId"]))
            case "session/set_model" if "modelId" in asked:
                self._choose("models", "currentModelId", bytes(asked["modelId"]))
            case "session/set_config_option" if "configOptions" in got:
                self._values["configOptions"] = bytes(got["configOptions"])
            case _:
                pass

    def note(self, line: bytes) -> str | None:
        """Take over what an update changes. Return the title if it has one."""
        try:
            update = _frame(line).params.update
        except _ERRORS:
            return None
        if update.session_update == "available_commands_update":
            self._values["commands"] = line
        if isinstance(update.current_mode_id, str):
            self._choose("modes", "currentModeId", msgspec.json.encode(update.current_mode_id))
        if not isinstance(update.config_options, UnsetType):
            self._values["configOptions"] = bytes(update.config_options)
        return update.title if isinstance(update.title, str) else None

    @property
    def commands(self) -> bytes | None:
        """The last update with the commands of the agent, for clients that get no replay."""
        return self._values.get("commands")

    @property
    def mcp_servers(self) -> bytes:
        """The MCP servers that the session was opened with: the agent needs them again in another process."""
        return self._values.get("mcpServers", b"[]")

    @mcp_servers.setter
    def mcp_servers(self, servers: bytes) -> None:
        self._values["mcpServers"] = servers

    def _choose(self, name: str, member: str, written: bytes) -> None:
        if name in self._values:
            with suppress(*_ERRORS):
                self._values[name] = with_value(self._values[name], (member,), written)
