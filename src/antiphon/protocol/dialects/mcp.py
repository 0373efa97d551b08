"""MCP servers in other words, in every request that opens a session."""

import re
from collections.abc import Iterator
from typing import Final

from antiphon.protocol.dialects.rule import (
    Change,
    Fields,
    Raw,
    Rule,
    each,
    fields_of,
    in_turn,
    is_null,
    items_of,
    named_values,
    packed,
    renamed,
    text_of,
)
from antiphon.protocol.dialects.sources import BANJO_NOTES, GO_CLIENT, OPENCODE

__all__ = ["MCP_RULES"]


def _missing(fields: Fields) -> Fields | None:
    return {**fields, "mcpServers": packed([])} if "mcpServers" not in fields else None


def _map(fields: Fields) -> Fields | None:
    """`{"name": {…}}` as a list of servers that know their names."""
    servers = fields_of(fields.get("mcpServers"))
    if servers is None:
        return None
    named = [
        {**server, "name": packed(name)} for name, raw in servers.items() if (server := fields_of(raw)) is not None
    ]
    return {**fields, "mcpServers": packed(named)}


def _local_or_remote(server: Fields) -> Fields | None:
    kind = text_of(server.get("type"))
    if kind == "remote":
        return {**server, "type": packed("http")}
    # A server without a type is a command to start.
    return {key: value for key, value in server.items() if key != "type"} if kind == "local" else None


def _url_alone(server: Fields) -> Fields | None:
    """The notes know one server with an address, and it is the SSE one; they give it no type."""
    return {"type": packed("sse"), **server} if "type" not in server and "url" in server else None


def _named(key: str) -> Change:
    def apply(server: Fields) -> Fields | None:
        listed = named_values(server.get(key))
        return None if listed is None else {**server, key: listed}

    return apply


def _without_lists(server: Fields) -> Fields | None:
    """Lists that the schema wants and the documents leave out when they are empty."""
    wanted = ("headers",) if "url" in server else ("args", "env") if "command" in server else ()
    missing = [key for key in wanted if key not in server]
    return {**server, **{key: packed([]) for key in missing}} if missing else None


def _unnamed(fields: Fields) -> Fields | None:
    """A name from the program or the host, and a number where two would share one: agents tell servers apart by it."""
    servers = items_of(fields.get("mcpServers")) or []
    taken = {text_of(server.get("name")) for server in map(fields_of, servers) if server is not None}
    named: list[Raw] = []
    numbers: dict[str, int] = {}
    for raw in servers:
        server = fields_of(raw)
        name = None if server is None or not is_null(server.get("name")) else _name_for(server, taken, numbers)
        named.append(raw if server is None or name is None else packed({**server, "name": name}))
        taken.add(name)
    return {**fields, "mcpServers": packed(named)} if named != servers else None


def _name_for(server: Fields, taken: set[str | None], numbers: dict[str, int]) -> str | None:
    command, url = text_of(server.get("command")), text_of(server.get("url"))
    if command is not None:
        name = re.split(r"[/\\]", command.rstrip("/\\"))[-1]
    elif url is not None:
        name = re.split(r"[/?#]", url.partition("://")[2] or url)[0].rpartition("@")[2]
    else:
        return None
    name = name or "server"
    number = numbers.get(name, 1)
    while (numbered := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    numbers[name] = number + 1  # so that thousands of nameless servers do not each start counting at one
    return numbered


_in_each = "mcpServers"

# In this order: first a list, then each server's type and fields, then its name.
_SERVER_RULES: Final[tuple[tuple[str, str, Change], ...]] = (
    ("MCP servers as a map", GO_CLIENT, _map),
    ("MCP server local or remote", OPENCODE, each(_in_each, _local_or_remote)),
    ("MCP server with a url alone", BANJO_NOTES, each(_in_each, _url_alone)),
    ("MCP environment", OPENCODE, each(_in_each, renamed("environment", "env"))),
    ("MCP variables or headers as a map", GO_CLIENT, each(_in_each, in_turn(_named("env"), _named("headers")))),
    ("MCP server without its lists", OPENCODE, each(_in_each, _without_lists)),
    ("MCP server without name", OPENCODE, _unnamed),
)


def _rules() -> Iterator[Rule]:
    # `session/resume` and `session/fork` may leave the list out by the schema's own word.
    for method in ("session/new", "session/load"):
        yield Rule("no MCP servers", BANJO_NOTES, method, "params", _missing)
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        for name, source, change in _SERVER_RULES:
            yield Rule(name, source, method, "params", change)


MCP_RULES: Final = tuple(_rules())
