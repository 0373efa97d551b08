"""The capabilities of both sides, and the versions that they speak. Ours are computed from the handlers that were given, the agent's are
checked before a request.

An omitted capability is an unsupported one. A request that the agent has not advertised is refused here, before anything is sent.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from antiphon.errors import LocalProtocolError, NotSupported, RemoteProtocolError
from antiphon.protocol import v1
from antiphon.protocol.v1.version import V1

if TYPE_CHECKING:
    from antiphon.client.files import Files
    from antiphon.client.handlers import Elicitation
    from antiphon.client.terminals import Terminals
    from antiphon.connection.connection import Connection
    from antiphon.connection.negotiation import Reopen
    from antiphon.connection.reports import Observer
    from antiphon.transports.base import Transport

__all__ = [
    "DEFAULT_VERSIONS", "Abilities", "check_version", "checked_versions", "our_capabilities", "spoken_version", "versioned",
]  # fmt: skip


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


# Versions: version 1 is the one that a client is written in here; another one is translated.

DEFAULT_VERSIONS: Final = (1, 2)
"""Version 1 first: an agent that has both is not translated."""


def checked_versions(versions: Sequence[int]) -> tuple[int, ...]:
    """Return the versions of a client, the preferred one first.

    Raises:
        LocalProtocolError: there are none, or one that is not known here.
    """
    found = tuple(versions)
    if not found or len(set(found)) < len(found) or not set(found) <= set(DEFAULT_VERSIONS):
        wrong = f"these are no versions of ACP: {found}"
        raise LocalProtocolError(wrong, hint="give 1, 2 or both, the preferred one first")
    return found


def versioned(
    transport: "Transport",
    versions: tuple[int, ...],
    observer: "Observer | None",
    reopen: "Reopen | None" = None,
    *,
    extended: bool = False,
) -> "Transport":
    """Return the transport with what it needs to speak these versions. Translators are loaded when one is needed.

    `reopen` starts the agent again: some end after they have refused a version. `extended`: what only version 2 has is taken as
    `protocol.extension` describes it.
    """
    if versions == (V1.number,):
        return transport
    from antiphon.connection.adapter import TranslatedTransport
    from antiphon.connection.negotiation import ClientNegotiation
    from antiphon.protocol.translate.choice import by_answer, v1_client

    clock = asyncio.get_running_loop().time
    if versions[0] != V1.number:
        translator = v1_client(clock, extended=extended)
        return TranslatedTransport(transport, translator, above="client", observer=observer)
    choose = partial(by_answer, clock, extended=extended)
    return ClientNegotiation(transport, choose, observer=observer, reopen=reopen)


def spoken_version(connection: "Connection") -> int:
    """Return the version of ACP that the agent at the other end speaks."""
    return 2 if connection.translated else V1.number


def check_version(connection: "Connection", versions: tuple[int, ...], name: str) -> None:
    """Check the version that an agent turned out to speak, and take out what was there to find it out.

    Raises:
        RemoteProtocolError: it is version 1, which is not wanted.
    """
    if V1.number not in versions and not connection.translated:
        raise RemoteProtocolError(
            f"{name} supports version {V1.number} of ACP alone",
            hint="allow that version, or use a version of the agent that supports a newer one",
        )
    connection.settle()
