"""The clients that are ours, by the names that they introduce themselves with, and which of all clients are scripts. Pure."""

from typing import Final, NamedTuple

__all__ = ["CHAT", "RUN", "SCRIPTS", "Client", "is_script"]


class Client(NamedTuple):
    """A client of ours: its name in `clientInfo`, and how people call it."""

    name: str
    title: str


CHAT: Final = Client("antiphon-chat", "antiphon chat")
RUN: Final = Client("antiphon-run", "antiphon run")
CHECK: Final = "antiphon-check"
"""The check has a handshake of its own, with this name in it."""

SCRIPTS: Final = (RUN.name, CHECK)
"""Clients that no person talks through. Their sessions are marked in lists, and no new session goes on with one by itself."""


def is_script(client: str) -> bool:
    """Whether a client of this name is a script."""
    return client in SCRIPTS
