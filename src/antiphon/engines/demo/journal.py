"""What of a session is worth telling again, gathered while it happens. Pieces of one text become one piece."""

from typing import TYPE_CHECKING, Final

from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Journal"]

_TEXTS: Final = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


class Journal:
    """Takes updates as they leave and hands them on in larger pieces."""

    def __init__(self, write: "Callable[[list[v1.Update]], None]") -> None:
        self._write = write
        self._kind: type | None = None
        self._pieces: list[str] = []

    def note(self, update: "v1.Update") -> None:
        """One more update left."""
        if isinstance(update, v1.SettingsUpdate | v1.Unknown):
            return
        if isinstance(update, _TEXTS) and isinstance(update.content, v1.TextBlock) and update.message_id is None:
            if type(update) is not self._kind:
                self.flush()
                self._kind = type(update)
            self._pieces.append(update.content.text)
            return
        self.flush()
        self._write([update])

    def flush(self) -> None:
        """Hand on what was gathered."""
        if self._kind is not None:
            whole = v1.TextBlock("".join(self._pieces))
            self._write([self._kind(whole)])
        self._kind, self._pieces = None, []
