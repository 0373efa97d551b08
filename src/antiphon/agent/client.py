"""The client at the other end, as an agent sees it: who it is and what it can do."""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from antiphon.protocol.methods import extension_call, extension_notice
from antiphon.protocol.v1.initialize import ClientCapabilities

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from antiphon.connection.connection import Connection
    from antiphon.protocol.timeouts import Timeout
    from antiphon.protocol.v1.initialize import Implementation, Initialize

__all__ = ["ConnectedClient"]


class ConnectedClient:
    """What the client said about itself. What it did not say, it cannot do."""

    def __init__(self, connection: "Connection", asked: "Initialize | None" = None) -> None:
        self.connection = connection
        self.chooses_models = False
        """Whether it has used `session/set_model`. No schema has that any more, so only who does can be told news in that way."""
        self.introduce(asked)

    def introduce(self, asked: "Initialize | None") -> None:
        """What it says in `initialize`."""
        self.introduced = asked is not None
        self.info: Implementation | None = asked.client_info if asked is not None else None
        self.capabilities = asked.client_capabilities if asked is not None else ClientCapabilities()

    def gather(self) -> None:
        """Send what is written in this turn of the event loop together, at its end: each write wakes the client."""
        self.connection.transport.gather()

    @property
    def name(self) -> str:
        """What it calls itself; empty if it does not say."""
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
        """`fs/read_text_file`."""
        return self.capabilities.fs.read_text_file

    @property
    def writes_files(self) -> bool:
        """`fs/write_text_file`."""
        return self.capabilities.fs.write_text_file

    @property
    def runs_commands(self) -> bool:
        """The `terminal/…` methods."""
        return self.capabilities.terminal

    @property
    def shows_forms(self) -> bool:
        """Questions to the user, as forms."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    @property
    def opens_pages(self) -> bool:
        """Questions to the user, on pages that it opens."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.url is not None

    @property
    def shows_notices(self) -> bool:
        """Notices."""
        session = self.capabilities.session
        return session is not None and session.notices is not None

    @property
    def shows_compaction(self) -> bool:
        """Compactions of the context."""
        session = self.capabilities.session
        return session is not None and session.compaction is not None

    @property
    def shows_booleans(self) -> bool:
        """Settings that are on or off."""
        session = self.capabilities.session
        return session is not None and session.config_options is not None and session.config_options.boolean is not None
