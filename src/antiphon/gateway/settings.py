"""The settings of a session as they are now, in the agent's own bytes: modes, models, options; and what else is needed to open it again.

They are the answer to a client that loads the session. They change with responses and with updates of the agent.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.gateway.events import for_session
from antiphon.journal.owner import SessionHome
from antiphon.protocol.v1.dialects import DIALECTS
from antiphon.rpc.spans import UNREADABLE, members_of, params_values_of, replaced, with_value

__all__ = ["SETTINGS_KINDS", "HubSettings", "agent_id_in", "with_title", "without_boolean_options"]

SETTINGS_KINDS: Final = frozenset({b"av", b"co", b"cu", b"pl", b"se", b"us"})
"""The first two letters of the kinds of update that change settings, title, commands, plan or usage; a few others share them."""

STATE_LIMIT: Final = 64 * 1024
"""Bytes of a plan or of usage that are kept with the settings. A client that needs more reads the events."""

_INFO: Final = "session_info_update"
_SHOWN: Final = ("modes", "models", "configOptions")
_AGENT_ID: Final = "agentSession"
_CURRENT: Final = (
    ("modes", "currentModeId", "current_mode_update"),
    ("models", "currentModelId", "current_model_update"),
)


class _Update(msgspec.Struct, rename="camel"):
    session_update: str = ""
    current_mode_id: str | UnsetType = UNSET
    current_model_id: str | UnsetType = UNSET
    config_options: Raw | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    available_commands: Raw | UnsetType = UNSET
    entries: Raw | UnsetType = UNSET


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
    except UNREADABLE:
        pass  # what cannot be read is for the client to refuse
    return frame


def with_title(line: bytes, title: str) -> bytes:
    """Return an update of the agent with another title of the session, if it has one."""
    try:
        update = _frame(line).params.update
        if update.session_update != _INFO or isinstance(update.title, UnsetType):
            return line
        return with_value(line, ("params", "update", "title"), msgspec.json.encode(title))
    except (*UNREADABLE, ValueError):
        return line


def agent_id_in(stored: bytes) -> str:
    """Return the id that the agent knows a session by, from its stored settings, if it is another one than its clients have; else empty."""
    return HubSettings(stored).agent_id if _AGENT_ID.encode() in stored else ""


class HubSettings:
    """The settings of one session."""

    __slots__ = ("_named", "_values", "were_chosen")

    def __init__(self, stored: bytes = b"{}") -> None:
        self._values: dict[str, bytes] = {name: bytes(value) for name, value in _members(stored).items()}
        self.were_chosen = False
        """Whether a client has chosen one of them since the agent opened the session."""
        self._named: Counter[str] = Counter()

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
        except UNREADABLE:
            return
        for name in _SHOWN:
            if name in found and bytes(found[name]) != b"null":
                self._values[name] = bytes(found[name])

    def named(self, method: str) -> int:
        """How often updates of the agent have named what a method sets, its mode or its model."""
        return self._named[method]

    def chosen(self, method: str, params: bytes, result: bytes, named: int) -> None:
        """Take over what a client has chosen, from its request and the response.

        `named` is from the time of the request. What the agent has named itself since then counts: it may be another one than was requested.
        """
        try:
            asked, got = _members(params), _members(result)
        except UNREADABLE:
            return
        self.were_chosen = True
        if named != self.named(method):
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

    def note(self, line: bytes) -> tuple[bool, str | None]:
        """Take over what an update changes. Return whether that is to be stored now, and the title if it has one."""
        try:
            update = _frame(line).params.update
        except UNREADABLE:
            return False, None
        if update.session_update in ("plan", "usage_update"):
            self._note_state(update, line)
            return False, None  # it comes often, and is stored with the end of the turn
        if update.session_update == "available_commands_update":
            self._values["commands"] = line
        if isinstance(update.current_mode_id, str):
            self._named["session/set_mode"] += 1
            self._choose("modes", "currentModeId", msgspec.json.encode(update.current_mode_id))
        if isinstance(update.current_model_id, str):
            self._named["session/set_model"] += 1
            self._choose("models", "currentModelId", msgspec.json.encode(update.current_model_id))
        if not isinstance(update.config_options, UnsetType):
            self._values["configOptions"] = bytes(update.config_options)
        title = update.title if isinstance(update.title, str) and update.session_update == _INFO else None
        return update.session_update != "user_message_chunk", title

    def _note_state(self, update: _Update, line: bytes) -> None:
        name = "plan" if update.session_update == "plan" else "usage"
        span = [*params_values_of(line, "update")][-1]
        found = (
            line[slice(*span)] if name == "usage" else b"" if isinstance(update.entries, UnsetType) else update.entries
        )
        self._values.pop(name, None)
        if 0 < len(bytes(found)) <= STATE_LIMIT:
            self._values[name] = bytes(found)

    def state(self) -> dict[str, Raw | None]:
        """Return what events have set and a client that begins later does not see: commands, plan and usage."""
        commands: Raw | UnsetType = UNSET
        if self.commands is not None:
            with suppress(*UNREADABLE):
                commands = _frame(self.commands).params.update.available_commands
        state = {name: Raw(self._values[name]) if name in self._values else None for name in ("plan", "usage")}
        return {"commands": None if isinstance(commands, UnsetType) else commands, **state}

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

    @property
    def agent_id(self) -> str:
        """The id that the agent knows the session by, if it is another one than its clients have; else empty."""
        return msgspec.json.decode(self._values.get(_AGENT_ID, b'""'), type=str)

    @agent_id.setter
    def agent_id(self, id: str) -> None:
        self._values.pop(_AGENT_ID, None)
        if id:
            self._values[_AGENT_ID] = msgspec.json.encode(id)

    def for_agent(self, line: bytes) -> bytes:
        """Return a message of a client as the agent gets it: with the id that it knows the session by."""
        return for_session(line, self.agent_id) if _AGENT_ID in self._values else line

    def updates_since(self, before: "HubSettings") -> Iterator[dict[str, object]]:
        """Yield the updates that tell a client which knows the earlier settings what has changed."""
        for name, member, kind in _CURRENT:
            now = self._current(name, member)
            if now is not None and now != before._current(name, member):
                yield {"sessionUpdate": kind, member: Raw(now)}
        options = self._values.get("configOptions")
        if options is not None and options != before._values.get("configOptions"):
            yield {"sessionUpdate": "config_option_update", "configOptions": Raw(options)}

    def _current(self, name: str, member: str) -> bytes | None:
        try:
            return bytes(_members(self._values[name])[member])
        except (KeyError, *UNREADABLE):
            return None

    @property
    def asked_after(self) -> int:
        """The number of the last event before the first request that waits outside of a turn; -1 if none does.

        It is no setting, and stored beside them: where the gateway is killed, the next one finds those requests by it.
        """
        return int(self._values.get("askedAfter", b"-1"))

    @asked_after.setter
    def asked_after(self, number: int) -> None:
        self._values.pop("askedAfter", None)
        if number >= 0:
            self._values["askedAfter"] = b"%d" % number

    # What a fleet stores of a session beside its settings.

    @property
    def home(self) -> SessionHome:
        """Where the session was last; empty for one that was stored on a single machine."""
        with suppress(*UNREADABLE):
            return msgspec.json.decode(self._values.get("home", b"{}"), type=SessionHome)
        return SessionHome()

    @home.setter
    def home(self, home: SessionHome) -> None:
        self._values["home"] = msgspec.json.encode(home)

    @property
    def is_moved(self) -> bool:
        """Whether the agent of another worker had it open last: the agent here may not know it."""
        return "isMoved" in self._values

    @is_moved.setter
    def is_moved(self, is_moved: bool) -> None:
        self._mark("isMoved", is_moved)

    @property
    def needs_context(self) -> bool:
        """Whether the agent has begun a new session in its place, and has not seen what happened before."""
        return "needsContext" in self._values

    @needs_context.setter
    def needs_context(self, needs_context: bool) -> None:
        self._mark("needsContext", needs_context)

    def _mark(self, name: str, is_set: bool) -> None:
        self._values.pop(name, None)
        if is_set:
            self._values[name] = b"true"

    def _choose(self, name: str, member: str, written: bytes) -> None:
        if name in self._values:
            with suppress(*UNREADABLE):
                self._values[name] = with_value(self._values[name], (member,), written)
