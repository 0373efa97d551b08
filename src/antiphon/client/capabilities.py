"""The capabilities of both sides: ours are computed from the handlers that were given, the agent's are checked before a request.

An omitted capability is an unsupported one. A request that the agent has not advertised is refused here, before anything is sent.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from antiphon.errors import NotSupported
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.client.files import Files
    from antiphon.client.handlers import Elicitation
    from antiphon.client.terminals import Terminals

__all__ = ["Abilities", "our_capabilities"]


def our_capabilities(
    files: "Files | None",
    terminals: "Terminals | None",
    elicitation: "Elicitation | None",
    *,
    terminal_login: bool = False,
) -> v1.ClientCapabilities:
    """Compute what we advertise to the agent."""
    asking = None
    if elicitation is not None:
        asking = v1.ElicitationCapabilities(
            form=v1.FormSupport() if elicitation.form is not None else None,
            url=v1.UrlSupport() if elicitation.url is not None else None,
        )
    return v1.ClientCapabilities(
        fs=v1.FileCapabilities(read_text_file=files is not None, write_text_file=files is not None and files.can_write),
        terminal=terminals is not None,
        # The transcript has all of these, however it is drawn.
        session=v1.ClientSessionCapabilities(
            compaction=v1.CompactionSupport(),
            config_options=v1.ConfigCapabilities(boolean=v1.BooleanConfigSupport()),
            notices=v1.NoticeSupport(),
        ),
        elicitation=asking,
        auth=v1.AuthCapabilities(terminal=terminal_login),
    )


_METHODS: Final = {
    "session/load": "loadSession",
    "session/resume": "sessionCapabilities.resume",
    "session/fork": "sessionCapabilities.fork",
    "session/list": "sessionCapabilities.list",
    "session/delete": "sessionCapabilities.delete",
    "session/close": "sessionCapabilities.close",
    "logout": "auth.logout",
}
"""Methods that not every agent has → the capability for it."""


class Abilities:
    """What one agent has advertised."""

    def __init__(self, name: str, capabilities: v1.AgentCapabilities) -> None:
        self._name = name
        self._capabilities = capabilities

    def has(self, method: str) -> bool:
        """Whether the agent has this method."""
        session = self._capabilities.session_capabilities
        match method:
            case "session/load":
                return self._capabilities.load_session
            case "logout":
                return self._capabilities.auth.logout is not None
            case _:
                return getattr(session, method.removeprefix("session/")) is not None

    def need_method(self, method: str) -> None:
        """Check that the agent has this method.

        Raises:
            NotSupported: the agent did not advertise it.
        """
        if not self.has(method):
            raise self._lack(f"answer `{method}`", _METHODS[method])

    def need_content(self, blocks: Iterable[v1.ContentBlock]) -> None:
        """Check that the agent takes all of this in a prompt. Raises `NotSupported`."""
        takes = self._capabilities.prompt_capabilities
        for block in blocks:
            match block:
                case v1.ImageBlock() if not takes.image:
                    raise self._lack("take images in prompts", "promptCapabilities.image")
                case v1.AudioBlock() if not takes.audio:
                    raise self._lack("take sound in prompts", "promptCapabilities.audio")
                case v1.EmbeddedResource() if not takes.embedded_context:
                    raise self._lack("take embedded resources in prompts", "promptCapabilities.embeddedContext")
                case _:
                    pass

    def need_workspace(self, servers: Sequence[v1.McpServer], directories: Sequence[str]) -> None:
        """Check that the agent reaches these MCP servers and takes additional directories. Raises `NotSupported`."""
        reaches = self._capabilities.mcp_capabilities
        for server in servers:
            match server:
                case v1.HttpServer() if not reaches.http:
                    raise self._lack("reach MCP servers over HTTP", "mcpCapabilities.http")
                case v1.SseServer() if not reaches.sse:
                    raise self._lack("reach MCP servers over SSE", "mcpCapabilities.sse")
                case v1.AcpServer() if not reaches.acp:
                    raise self._lack("reach MCP servers over ACP", "mcpCapabilities.acp")
                case _:
                    pass
        if directories and self._capabilities.session_capabilities.additional_directories is None:
            raise self._lack("work in more than one directory", "sessionCapabilities.additionalDirectories")

    def _lack(self, ability: str, capability: str) -> NotSupported:
        return NotSupported(f"{self._name} does not {ability}: it did not advertise `{capability}`")
