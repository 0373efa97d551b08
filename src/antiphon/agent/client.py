"""The client at the other end of a connection, as an agent sees it: its name and its capabilities."""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from antiphon.protocol.methods import extension_call, extension_notice
from antiphon.protocol.v1.initialize import ClientCapabilities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.connection.connection import Connection
    from antiphon.protocol.timeouts import Timeout
    from antiphon.protocol.v1.initialize import Implementation, Initialize

__all__ = ["ConnectedClient"]


class ConnectedClient:
    """What the client sent about itself with `initialize`. What it did not send, it cannot do."""

    def __init__(self, connection: "Connection", asked: "Initialize | None" = None) -> None:
        self.connection = connection
        self.gather: Callable[[], None] = connection.transport.gather
        """Sends all that is written in this step of the event loop together, at its end: each write wakes the client."""
        self._chooses_models = False
        self._introduce(asked)

    def _introduce(self, asked: "Initialize | None") -> None:
        """Take what the client sends with `initialize`."""
        self._initialized = asked is not None
        self.info: Implementation | None = asked.client_info if asked is not None else None
        self.capabilities = asked.client_capabilities if asked is not None else ClientCapabilities()

    @property
    def version(self) -> int:
        """The version of ACP that it speaks, 1 or 2. What a hook sees is version 1 in either case."""
        return 2 if self.connection.translated else 1

    @property
    def name(self) -> str:
        """The name of the client; empty if it sent none."""
        return self.info.name if self.info is not None else ""

    async def request_extension(self, method: str, params: object = None, *, timeout: "Timeout" = UNSET) -> Any:
        """Send an extension request, such as `_mine/ping`, and return its result as plain JSON values.

        Raises:
            RequestRefused: the client does not know it, or refuses.
        """
        return await self.connection.request(extension_call(method), {} if params is None else params, timeout=timeout)

    def notify_extension(self, method: str, params: object = None) -> "Awaitable[None]":
        """Send an extension notification. Await it: it waits while the client is slow."""
        return self.connection.notify(extension_notice(method), {} if params is None else params)

    @property
    def reads_files(self) -> bool:
        """Whether it reads files for the agent: `fs/read_text_file`."""
        return self.capabilities.fs.read_text_file

    @property
    def writes_files(self) -> bool:
        """Whether it writes files for the agent: `fs/write_text_file`."""
        return self.capabilities.fs.write_text_file

    @property
    def runs_commands(self) -> bool:
        """Whether it runs commands for the agent: the `terminal/…` methods."""
        return self.capabilities.terminal

    @property
    def shows_forms(self) -> bool:
        """Whether it shows the user forms with questions."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    @property
    def opens_pages(self) -> bool:
        """Whether it opens web pages with questions for the user."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.url is not None

    @property
    def shows_notices(self) -> bool:
        """Whether it shows notices."""
        session = self.capabilities.session
        return session is not None and session.notices is not None

    @property
    def shows_compaction(self) -> bool:
        """Whether it shows compactions of the context."""
        session = self.capabilities.session
        return session is not None and session.compaction is not None

    @property
    def shows_booleans(self) -> bool:
        """Whether it shows options that are on or off."""
        session = self.capabilities.session
        return session is not None and session.config_options is not None and session.config_options.boolean is not None

    @property
    def chooses_models(self) -> bool:
        """Whether it has sent `session/set_model`. No schema has that any more, so other clients do not know the update about it."""
        return self._chooses_models
