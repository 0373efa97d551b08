"""What an agent tells a client that it can do, computed from what it does. Knows no event loop: an editor waits for this."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from antiphon.errors import LocalProtocolError
from antiphon.protocol.v1.initialize import (
    AgentAuthCapabilities,
    AgentCapabilities,
    CloseSupport,
    DeleteSupport,
    DirectoriesSupport,
    ForkSupport,
    ListSupport,
    LogoutSupport,
    McpCapabilities,
    PromptCapabilities,
    ResumeSupport,
    SessionCapabilities,
    Support,
)

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["CONTENT_KINDS", "MCP_KINDS", "VERSION", "capabilities"]

VERSION: Final = 1
"""The version of the protocol that agents speak here. Whatever a client asks for, this is the answer."""

CONTENT_KINDS: Final = ("image", "audio", "resource")
"""Kinds of content that a prompt may hold besides text and links."""

MCP_KINDS: Final = ("http", "sse")
"""Kinds of MCP server besides child processes."""

S = TypeVar("S", bound=Support)


def capabilities(does: Callable[[str], bool], takes: "Collection[str]", mcp: "Collection[str]") -> AgentCapabilities:
    """What to advertise: `does` says whether a hook is filled in, `takes` and `mcp` what is accepted."""
    _check("takes", takes, CONTENT_KINDS)
    _check("mcp", mcp, MCP_KINDS)

    def support(kind: type[S], hook: str) -> S | None:
        return kind() if does(hook) else None

    return AgentCapabilities(
        load_session=does("load_session"),
        prompt_capabilities=PromptCapabilities("image" in takes, "audio" in takes, "resource" in takes),
        mcp_capabilities=McpCapabilities("http" in mcp, "sse" in mcp),
        session_capabilities=SessionCapabilities(
            list=support(ListSupport, "list_sessions"),
            resume=support(ResumeSupport, "resume_session"),
            fork=support(ForkSupport, "fork_session"),
            delete=support(DeleteSupport, "delete_session"),
            close=CloseSupport(),  # ending the turn and forgetting the session needs no help
            additional_directories=DirectoriesSupport(),  # they are in `session.directories` for whoever looks
        ),
        auth=AgentAuthCapabilities(logout=support(LogoutSupport, "logout")),
    )


def _check(name: str, given: "Collection[str]", known: "Collection[str]") -> None:
    for word in given:
        if word not in known:
            raise LocalProtocolError(f"`{name}` has no `{word}`", hint=f"it may hold {', '.join(known)}")
