"""What each side can do: ours is computed from the handlers that were given, theirs is looked up before we ask.

An omitted capability is an unsupported one. What the agent never said that it can do is refused here, before anything is sent.
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
    """What we tell the agent that it may ask of us."""
    asking = None
    if elicitation is not None:
        asking = v1.ElicitationCapabilities(
            form=v1.FormSupport() if elicitation.form is not None else None,
            url=v1.UrlSupport() if elicitation.url is not None else None,
        )
    return v1.ClientCapabilities(
        fs=v1.FileCapabilities(read_text_file=files is not None, write_text_file=files is not None and files.can_write),
        terminal=terminals is not None,
        # The transcript shows all of these, whoever draws it.
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
"""Methods that not every agent answers → the capability that says so."""


class Abilities:
    """What one agent said that it can do."""

    def __init__(self, name: str, capabilities: v1.AgentCapabilities) -> None:
        self._name = name
        self._capabilities = capabilities

    def has(self, method: str) -> bool:
        """Whether it answers this method."""
        session = self._capabilities.session_capabilities
        match method:
            case "session/load":
                return self._capabilities.load_session
            case "logout":
                return self._capabilities.auth.logout is not None
            case _:
                return getattr(session, method.removeprefix("session/")) is not None

    def need_method(self, method: str) -> None:
        """It answers this method.

        Raises:
            NotSupported: it did not say so.
        """
        if not self.has(method):
            raise self._lack(f"answer `{method}`", _METHODS[method])

    def need_content(self, blocks: Iterable[v1.ContentBlock]) -> None:
        """It takes all of this in a prompt."""
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

    def need_place(self, servers: Sequence[v1.McpServer], directories: Sequence[str]) -> None:
        """It reaches all of these MCP servers and may have these directories besides the one it starts in."""
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

    def _lack(self, deed: str, capability: str) -> NotSupported:
        return NotSupported(f"{self._name} does not {deed}: it did not advertise `{capability}`")
