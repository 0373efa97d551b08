"""Sessions in other words: how they are opened, what they offer, how they are prompted.

The OpenCode dialect asks for a model and a mode when it opens a session, may load one without a directory, and lists
the modes flat. A request of that dialect gets a response of that dialect.
"""

import re
from collections.abc import Iterator
from typing import Final

from antiphon.protocol.dialects import (
    Answer,
    Change,
    DialectRule,
    Fields,
    Raw,
    each,
    fields_of,
    in_turn,
    inside,
    is_null,
    items_of,
    named_values,
    packed,
    renamed,
    text_of,
    with_meta,
)
from antiphon.protocol.v1.dialects import BANJO_NOTES, BANJO_WIRE, GO_CLIENT, OPENCODE, OWN_DIRECTORY

__all__ = ["MCP_RULES", "SESSION_RULES", "with_flat_modes"]


def _model_and_mode(fields: Fields) -> Fields | None:
    """Nothing to change: the types have both as legacy fields. What counts is that the answer follows."""
    model = fields_of(fields.get("model")) or {}
    asked = text_of(fields.get("modeId")) is not None or text_of(model.get("providerID")) is not None
    return fields if asked else None


def _without_cwd(fields: Fields) -> Fields | None:
    """The directory is the one that the session had, which only the agent knows. An empty one that was sent stays an error."""
    return with_meta({**fields, "cwd": packed("")}, OWN_DIRECTORY, True) if is_null(fields.get("cwd")) else None


def with_flat_modes(question: Fields, answer: bytes) -> bytes:
    """`modes` as a list with `currentModeId` beside it, and always a `sessionId`."""
    fields = fields_of(answer)
    if fields is None:
        return answer
    if "sessionId" not in fields and "sessionId" in question:
        fields = {"sessionId": question["sessionId"], **fields}
    modes = fields_of(fields.get("modes"))
    if modes is not None:
        offered, current = modes.get("availableModes", packed([])), modes.get("currentModeId", packed(""))
        fields = {**fields, "modes": offered, "currentModeId": current}
    return bytes(packed(fields))


def _flat_modes(fields: Fields) -> Fields | None:
    """Without a `currentModeId` the current mode is not known, and its id is empty."""
    modes = items_of(fields.get("modes"))
    if modes is None:
        return None
    current = text_of(fields.get("currentModeId")) or ""
    rest = {key: value for key, value in fields.items() if key != "currentModeId"}
    return {**rest, "modes": packed({"availableModes": modes, "currentModeId": current})}


def _prompt(fields: Fields) -> Fields | None:
    is_list = items_of(fields.get("content")) is not None
    return renamed("content", "prompt")(fields) if is_list else None


def _empty(key: str) -> Change:
    """An answer without the list that it is about."""
    return lambda fields: {**fields, key: packed([])} if key not in fields else None


def _opening() -> Iterator[DialectRule]:
    answer: Answer | None
    yield DialectRule(
        "session with model or mode", OPENCODE, "session/new", "params", _model_and_mode,
        hints=(b'"modeId"', b'"providerID"'), answer=with_flat_modes,
    )  # fmt: skip
    for method, source, answer in (
        ("session/load", OPENCODE, with_flat_modes),
        ("session/resume", BANJO_NOTES, None),
    ):
        yield DialectRule("session without cwd", source, method, "params", _without_cwd, answer=answer)
    models_by_id = inside("models", each("availableModels", renamed("id", "modelId")))
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        yield DialectRule("modes as a list", OPENCODE, method, "result", _flat_modes)
        yield DialectRule("models by id", BANJO_WIRE, method, "result", models_by_id)


_PYTHON_SDK: Final = "Python SDK 0.12.1 and 1.0.0rc3, example agents"

SESSION_RULES: Final = (
    *_opening(),
    DialectRule("mode for modeId", BANJO_NOTES, "session/set_mode", "params", renamed("mode", "modeId")),
    DialectRule("content for prompt", OPENCODE, "session/prompt", "params", _prompt),
    DialectRule("no sessions", _PYTHON_SDK, "session/list", "result", _empty("sessions"), null=b'{"sessions":[]}'),
    DialectRule(
        "no settings",
        _PYTHON_SDK,
        "session/set_config_option",
        "result",
        _empty("configOptions"),
        null=b'{"configOptions":[]}',
    ),
)


# MCP servers in other words, in every request that opens a session.


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
    """A name from the program or the host, and a number where two would share one: agents identify servers by it."""
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


def _rules() -> Iterator[DialectRule]:
    # `session/resume` and `session/fork` may leave the list out by the schema's own word.
    for method in ("session/new", "session/load"):
        yield DialectRule("no MCP servers", BANJO_NOTES, method, "params", _missing)
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        for name, source, change in _SERVER_RULES:
            yield DialectRule(name, source, method, "params", change)


MCP_RULES: Final = tuple(_rules())
