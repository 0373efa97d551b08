"""What of a client's messages reaches an agent.

A message is checked here and forwarded as it was written, so both sides have to read the same in it: a key that is repeated, or spelled
with other letters than ours, is read by some agents and not by us (`encoding/json` of Go takes `MCPSERVERS` for `mcpServers`).

What opens a session is reduced: an agent would run the programs, and connect to the servers, that a client names there.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Raw

from antiphon.errors import Code, RequestError
from antiphon.protocol.v1 import methods as m
from antiphon.rpc.spans import params_values_of, replaced

__all__ = [
    "REQUESTS", "SHARED_METHODS", "WHOLE_AGENT", "ClientRules", "ReducedRequest", "check_spelling", "has_too_many_parts", "reduced_opening",
]  # fmt: skip

ALL_HOSTS: Final = "*"

PARTS: Final = 100_000
"""Objects, arrays, texts and values of a message. A large one is large because of its texts; five million objects are six seconds of work."""

CHOSEN: Final = 200
"""Characters of a setting that a client chooses, in the audit log."""

SERVERS: Final = 100
"""MCP servers that a client names for a session."""

SHARED_METHODS: Final = frozenset(
    {
        "session/prompt",
        "session/cancel",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
    }
)
"""What the holder of a share may send to the agent: methods that are about one session and nothing else. Any other could be about the
whole agent, whatever session its params name."""

WHOLE_AGENT: Final = frozenset(
    {
        m.AUTHENTICATE.name,
        m.LOGOUT.name,
        m.SET_PROVIDER.name,
        m.DISABLE_PROVIDER.name,
        m.PROXY_INITIALIZE.name,
        m.PROXY_SUCCESSOR.name,
        "auth/login",
        "auth/logout",
    }
)
"""Requests that change an agent for all who use it. One of them names the server that gets the keys of the agent, and one the account
that sees the prompts of all. The last two are of version 2: an agent may speak both."""

REQUESTS: Final = WHOLE_AGENT | frozenset(
    {*(m.CALLS_BY_NAME.keys() - m.NOTICES_BY_NAME.keys()), "tool_call/cancel", "terminal/cancel"}
)
"""Methods that are requests and nothing else, in both versions of ACP."""

_ENVELOPE: Final = ("jsonrpc", "id", "method", "params", "result", "error")
_PARAMS: Final = ("sessionId", "cwd", "additionalDirectories", "mcpServers", "requestId", "_meta")
_SERVER: Final = ("type", "name", "command", "args", "env", "url", "headers")
_HARMLESS_META: Final = frozenset({"antiphon", "baggage", "traceparent", "tracestate"})
"""Keys of `_meta` that are passed on: ours, and those of traces. Others are settings of agents, as `claudeCode` with options of its CLI."""


class _Chosen(msgspec.Struct, rename="camel"):
    """What a client sets in a session."""

    mode_id: object = ""
    model_id: object = ""
    config_id: object = ""
    value: object = ""


def chosen_setting(params: Raw) -> str:
    """Return what a client sets in a session, for the audit log.

    Raises:
        msgspec.DecodeError: it cannot be read.
    """
    chosen = msgspec.json.decode(params, type=_Chosen)
    given = (chosen.mode_id, chosen.model_id, chosen.config_id, chosen.value)
    return " ".join(str(part)[:CHOSEN] for part in given if part != "")


class ClientRules(msgspec.Struct, frozen=True):
    """What clients may add to a session."""

    mcp_hosts: frozenset[str] = frozenset()
    """Hosts of MCP servers that clients may name; `*` for all. Programs are never started for clients."""
    meta: frozenset[str] = frozenset()
    """Keys in the `_meta` of a request that opens a session, besides those that are harmless."""

    def passes_meta(self, key: str) -> bool:
        """Whether a key in the `_meta` of a client reaches an agent."""
        return key in _HARMLESS_META or key in self.meta


class _Repeated(ValueError):
    pass


_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def has_too_many_parts(line: bytes) -> bool:
    """Whether a message has more parts than may be read at once: all else waits meanwhile. Texts are passed over, however long they are."""
    if len(line) <= PARTS:
        return False
    parts = at = 0
    for text in _STRING.finditer(line):
        parts += 1 + _marks(line, at, text.start())
        if parts > PARTS:
            return True
        at = text.end()
    return parts + _marks(line, at, len(line)) > PARTS


def _marks(line: bytes, begin: int, end: int) -> int:
    return sum(line.count(mark, begin, end) for mark in (b",", b"[", b"{")) if end - begin > 1 else 0


def check_spelling(line: bytes) -> str:
    """Return why a message can be read in two ways, or in too long a time; empty if it cannot."""
    if has_too_many_parts(line):
        return f"the message has more than {PARTS} parts"
    try:
        message = json.loads(line, object_pairs_hook=_without_repetition)
    except _Repeated as error:
        return f"the key `{error}` is repeated"
    except (ValueError, RecursionError):
        return "the message cannot be read"
    if not isinstance(message, dict):
        return ""
    params = message.get("params")
    servers = params.get("mcpServers") if isinstance(params, dict) else None
    looked_at: list[tuple[object, tuple[str, ...]]] = [(message, _ENVELOPE), (params, _PARAMS)]
    looked_at += [(each, _SERVER) for each in servers] if isinstance(servers, list) else []
    for found, names in looked_at:
        for key in found if isinstance(found, dict) else ():
            if key not in names and (right := _SPELLINGS[names].get(key.casefold())):
                return f"the key `{key}` is to be spelled `{right}`"
    return ""


def _spellings(names: tuple[str, ...]) -> dict[str, str]:
    """Other words that agents take for these: in other cases, and as the fields of the official Python SDK are called."""
    snake = {re.sub("([A-Z])", r"_\1", name).casefold(): name for name in names if not name.startswith("_")}
    fields = {f"field{name}".casefold(): name for name in names if name.startswith("_")}
    return {name.casefold(): name for name in names} | snake | fields


_SPELLINGS: Final[Mapping[tuple[str, ...], Mapping[str, str]]] = {
    names: _spellings(names) for names in (_ENVELOPE, _PARAMS, _SERVER)
}


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key[:100])
        found[key] = value
    return found


_URL: Final = re.compile(
    r"https?://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][!-\[\]-~]*)?"
)
"""An address that every parser reads in the same way: a plain name or number, no user, no escapes, no backslash, nothing that is not ASCII."""


class _RemoteServer(msgspec.Struct, forbid_unknown_fields=True):
    """An MCP server that is reached over HTTP, with nothing beside it that an agent could take for a program."""

    type: Literal["http", "sse"]
    url: str
    name: str = ""
    headers: list[dict[str, str]] = []


class _ClientServer(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """An MCP server that the client has itself, and that is reached over its connection."""

    type: Literal["acp"]
    name: str = ""
    id: str = ""
    server_id: str = ""


class _NamedServer(msgspec.Struct):
    name: str = "?"


class ReducedRequest(msgspec.Struct, frozen=True):
    """A request that opens a session, without what clients may not add."""

    line: bytes
    servers: bytes
    """The MCP servers that were kept, as JSON."""
    left_out: list[str]
    """The names of what was left out."""


def reduced_opening(line: bytes, servers: Sequence[Raw], rules: ClientRules) -> ReducedRequest:
    """Leave out the MCP servers and the `_meta` that a client may not add to a session.

    Raises:
        RequestError: they make no sense.
    """
    if len(servers) > SERVERS:
        raise RequestError(Code.INVALID_PARAMS, f"a session has at most {SERVERS} MCP servers")
    try:
        allowed = [_is_allowed(raw, rules) for raw in servers]
        kept = [raw for raw, is_kept in zip(servers, allowed, strict=True) if is_kept]
        refused = [raw for raw, is_kept in zip(servers, allowed, strict=True) if not is_kept]
        left_out = [msgspec.json.decode(raw, type=_NamedServer).name for raw in refused]
        written = msgspec.json.encode(kept)
        changes = [(span, written) for span in params_values_of(line, "mcpServers")] if left_out else []
        for begin, end in params_values_of(line, "_meta"):
            meta = msgspec.json.decode(line[begin:end], type=dict[str, Raw] | None) or {}
            harmless = {key: value for key, value in meta.items() if rules.passes_meta(key)}
            if len(harmless) < len(meta):
                changes.append(((begin, end), msgspec.json.encode(harmless)))
                left_out += [f"_meta.{key}" for key in meta if key not in harmless]
    except (msgspec.DecodeError, ValueError) as error:
        raise RequestError(Code.INVALID_PARAMS, f"`mcpServers` or `_meta` cannot be read: {error}") from error
    return ReducedRequest(replaced(line, changes), written, left_out)


def _is_allowed(server: Raw, rules: ClientRules) -> bool:
    """Whether a client may add an MCP server: one in a form that the schema has, at a host that is named. Doubt leaves it out."""
    kinds: tuple[type[_RemoteServer | _ClientServer], ...] = (_ClientServer, _RemoteServer)
    for kind in kinds:
        try:
            found = msgspec.json.decode(server, type=kind)
        except (msgspec.ValidationError, UnicodeDecodeError):
            continue
        if isinstance(found, _ClientServer):
            return True
        address = _URL.fullmatch(found.url)
        hosts = rules.mcp_hosts
        return address is not None and (ALL_HOSTS in hosts or address["host"].strip("[]").lower() in hosts)
    return False
