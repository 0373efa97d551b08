"""The first line of a recording: who made it, when, and of which command."""

from antiphon import __version__
from antiphon.recorder.lines import note

__all__ = ["opening"]


def opening(command: list[str], started: str, part: int, redacted: frozenset[str]) -> bytes:
    """The first line of the file that holds this part of the recording."""
    more: dict[str, object] = {"part": part} if part > 1 else {}
    if redacted:
        more["redacted"] = sorted(redacted)
    # A word of a command line may be no text at all.
    words = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in command]
    return note(0, f"antiphon record {__version__}", started=started, command=words, **more)
