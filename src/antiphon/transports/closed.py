"""What to say when a program was started without the stdin and stdout that the protocol needs. Imports no event loop."""

from antiphon.errors import LocalProtocolError

__all__ = ["stdio_closed"]


def stdio_closed() -> LocalProtocolError:
    """Stdin or stdout is closed."""
    hint = "hint: start this program from an ACP client, or with its stdin and stdout connected to something"
    return LocalProtocolError(f"stdin or stdout is closed, and the protocol needs both\n{hint}")
