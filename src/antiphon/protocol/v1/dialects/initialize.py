"""The handshake in other words, and signing in."""

from typing import Final

from antiphon.protocol.dialects import (
    Change,
    DialectRule,
    Fields,
    Raw,
    fields_of,
    inside,
    is_null,
    items_of,
    packed,
    renamed,
    text_of,
)
from antiphon.protocol.v1.dialects import BRIDGE, GO_CLIENT, OPENCODE

__all__ = ["INITIALIZE_RULES"]


# Fields that both sides send about themselves.


def _capabilities(key: str) -> Change:
    """`capabilities`, whose owner follows from the sender."""
    rename = renamed("capabilities", key)
    return lambda fields: rename(fields) if fields_of(fields.get("capabilities")) is not None else None


def _with_capabilities(question: Fields, answer: bytes) -> bytes:
    """Under both names. Clients of version 2, which send `info` too, read the schema's name when they are answered in version 1."""
    fields = fields_of(answer)
    if fields is None or "capabilities" in fields or "info" in question:
        return answer
    return bytes(packed({**fields, "capabilities": fields.get("agentCapabilities", packed({}))}))


def _without_version(info: Fields) -> Fields | None:
    named = text_of(info.get("name")) is not None
    return {**info, "version": packed("")} if named and is_null(info.get("version")) else None


# What the client can do.


def _prompt_and_mcp(capabilities: Fields) -> Fields | None:
    """`prompt` fits our types as it is; `mcp` has its fields one level deeper than ours."""
    transport = fields_of((fields_of(capabilities.get("mcp")) or {}).get("transport"))
    if transport is not None:
        return {**capabilities, "mcp": packed(transport)}
    return capabilities if fields_of(capabilities.get("prompt")) is not None else None


def _with_method_names(question: Fields, answer: bytes) -> bytes:
    """Ways to sign in by their ids alone; `authenticate {method}` brings one back."""
    fields = fields_of(answer)
    methods = None if fields is None else items_of(fields.get("authMethods"))
    if fields is None or methods is None:
        return answer
    ids = [found["id"] for method in methods if (found := fields_of(method)) is not None and "id" in found]
    return bytes(packed({**fields, "authMethods": ids}))


# What the agent can do.


def _content_list(capabilities: Fields) -> Fields | None:
    """`content: ["text", "image"]`: what is listed can be sent."""
    listed = items_of(capabilities.get("content"))
    if listed is None:
        return None
    kinds = {text_of(item) for item in listed}
    found: Fields = {key: packed(key in kinds) for key in ("image", "audio", "embeddedContext")}
    return {**found, **{key: value for key, value in capabilities.items() if key != "content"}}


def _mcp_transports(capabilities: Fields) -> Fields | None:
    mcp = fields_of(capabilities.get("mcp"))
    if mcp is None or "mcpCapabilities" in capabilities:
        return None
    found = {new: mcp[old] for old, new in (("httpTransport", "http"), ("sseTransport", "sse")) if old in mcp}
    rest = {key: value for key, value in capabilities.items() if key != "mcp"}
    return {**rest, "mcpCapabilities": packed(found)} if found else None


def _methods_by_name(fields: Fields) -> Fields | None:
    """Ways to sign in as bare words."""
    methods = items_of(fields.get("authMethods")) or []
    words = [text_of(method) for method in methods]
    if not any(word is not None for word in words):
        return None
    listed = [raw if word is None else _method(word) for raw, word in zip(methods, words, strict=True)]
    return {**fields, "authMethods": packed(listed)}


def _method(word: str) -> Raw:
    return packed({"id": word, "name": word})


_ASKED: Final = "initialize"

INITIALIZE_RULES: Final = (
    DialectRule(
        "client capabilities by their short name", BRIDGE, _ASKED, "params", _capabilities("clientCapabilities"),
        hints=(b'"capabilities"',), answer=_with_capabilities,
    ),
    DialectRule(
        "client that prompts and knows MCP", OPENCODE, _ASKED, "params", inside("clientCapabilities", _prompt_and_mcp),
        hints=(b'"prompt"', b'"transport"'), answer=_with_method_names,
    ),
    DialectRule("client without version", OPENCODE, _ASKED, "params", inside("clientInfo", _without_version)),
    DialectRule(
        "agent capabilities by their short name", BRIDGE, _ASKED, "result", _capabilities("agentCapabilities"),
        hints=(b'"capabilities"',),
    ),
    DialectRule(
        "prompt capabilities as a list", GO_CLIENT, _ASKED, "result",
        inside("agentCapabilities", inside("promptCapabilities", _content_list)), hints=(b'"content"',),
    ),
    DialectRule(
        "MCP capabilities by transport", GO_CLIENT, _ASKED, "result", inside("agentCapabilities", _mcp_transports),
        hints=(b'"httpTransport"', b'"sseTransport"'),
    ),
    DialectRule("agent without version", OPENCODE, _ASKED, "result", inside("agentInfo", _without_version)),
    DialectRule("sign-in methods as words", OPENCODE, _ASKED, "result", _methods_by_name),
    DialectRule("method for methodId", OPENCODE, "authenticate", "params", renamed("method", "methodId")),
)  # fmt: skip
