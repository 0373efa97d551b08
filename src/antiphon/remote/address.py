"""The address of a remote agent for a client of ours: with a gateway there, connections outlive their sockets."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.remote.link import RemoteLink
from antiphon.remote.paths import PathMap
from antiphon.transports.remote import RemoteAddress

if TYPE_CHECKING:
    from antiphon.transports.base import Transport

__all__ = ["LinkedAddress"]


class LinkedAddress(RemoteAddress):
    """An address whose connections are opened again by themselves, where the server numbers the events of sessions.

    The first connection is opened as any other, and fails as it does. If there is no gateway at the other end, its loss is that of the
    client, which decides what to send again.

    Paths are not mapped: a client of ours sends the directory that it is given, and offers the files that its policy allows. `report` is called with a sentence when a connection is lost, and when it is back.

    Raises:
        LocalProtocolError: it is no such address, or has a password in it.
    """

    def __init__(
        self, url: str, *, token: str | None = None, plaintext: bool = False, report: Callable[[str], None]
    ) -> None:
        super().__init__(url, token=token, plaintext=plaintext)
        self._plain = RemoteAddress(url, token=token, plaintext=plaintext)
        self._report = report

    async def open(self) -> "Transport":
        """Open a connection that outlives its socket.

        Raises:
            ConnectionRefused: it was not reached, or refused.
            ExtraMissing: the packages for it are not installed.
        """
        first = await self._plain.open()
        return RemoteLink(self._plain, PathMap(), first=first, report=self._report, offers_files=True)
