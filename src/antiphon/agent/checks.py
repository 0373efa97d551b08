"""Whether a client asks for what was advertised. A refusal says what was wrong and what would be right."""

import os
from collections.abc import Collection, Iterable

from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

__all__ = ["check_content", "check_place", "check_servers"]


def check_content(prompt: "Iterable[v1.ContentBlock]", takes: Collection[str]) -> None:
    """Raises `RequestError` for content of a kind that the agent did not say it takes."""
    for block in prompt:
        kind = _kind(block)
        if kind is not None and kind not in takes:
            raise _wrong(f"this agent takes no `{kind}` content in a prompt: send text or a `resource_link` instead")


def _kind(block: "v1.ContentBlock") -> str | None:
    """What it is called; None for what every agent takes."""
    match block:
        case v1.TextBlock() | v1.ResourceLink():
            return None
        case v1.ImageBlock():
            return "image"
        case v1.AudioBlock():
            return "audio"
        case v1.EmbeddedResource():
            return "resource"
        case _:
            return block.kind


def check_servers(servers: "Iterable[v1.McpServer]", mcp: Collection[str]) -> None:
    """Raises `RequestError` for an MCP server of a kind that the agent did not say it reaches."""
    for server in servers:
        match server:
            case v1.StdioServer():
                continue
            case v1.HttpServer():
                kind = "http"
            case v1.SseServer():
                kind = "sse"
            case v1.AcpServer():
                kind = "acp"
            case _:
                kind = server.kind
        if kind not in mcp:
            reached = ", ".join(("stdio", *mcp))
            raise _wrong(f"this agent reaches no MCP servers of type `{kind}`, only {reached}")


def check_place(cwd: str, directories: Iterable[str]) -> None:
    """Raises `RequestError` for a directory that is not absolute."""
    for name, path in (("cwd", cwd), *(("additionalDirectories", each) for each in directories)):
        if not os.path.isabs(path):
            raise _wrong(f"`{name}` must be an absolute path, not `{path}`")


def _wrong(sentence: str) -> RequestError:
    return RequestError(Code.INVALID_PARAMS, "Invalid params", sentence)
