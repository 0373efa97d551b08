"""The streams of the fleet: which subjects are stored, and the subjects under which a stored message is sent live."""

from typing import Final, NamedTuple

from antiphon.fleet.broker import Fence

__all__ = ["ACCESS", "SESSIONS", "STREAMS", "StoredSize", "StoredStream", "check_condition", "fits", "stream_of"]


class StoredStream(NamedTuple):
    """Subjects with one prefix, stored in one sequence."""

    name: str
    prefix: str
    live: str
    """The prefix that takes the place of `prefix` when a message was stored and is sent to those that follow."""

    @property
    def subjects(self) -> str:
        """The pattern of everything that is stored here."""
        return f"{self.prefix}>"


class StoredSize(NamedTuple):
    """How much a stream holds."""

    messages: int
    bytes: int
    servers: int
    """Servers that keep it."""
    away: int
    """Those of them that cannot be reached, or store nothing."""
    lag: int
    """Messages that the slowest of the others has not got yet."""


SESSIONS: Final = StoredStream("ACP_SESSIONS", "acp.s.", "acp.live.")
ACCESS: Final = StoredStream("ACP_ACCESS", "acp.a.", "acp.alive.")
STREAMS: Final = (SESSIONS, ACCESS)


def stream_of(pattern: str) -> StoredStream:
    """Return the stream that stores a subject, or all subjects of a pattern.

    Raises:
        ValueError: none does.
    """
    for stream in STREAMS:
        if pattern.startswith(stream.prefix):
            return stream
    raise ValueError(f"{pattern} is not stored: that starts with {' or '.join(stream.prefix for stream in STREAMS)}")


def check_condition(subject: str, fence: Fence | None, expects: int | None) -> Fence | None:
    """Return the condition under which a message is stored.

    Raises:
        ValueError: the subject is not stored, its fence is in another stream, or there are two conditions: a broker checks one.
    """
    stream = stream_of(subject)
    if fence is None:
        return None if expects is None else Fence(subject, expects)
    if expects is not None:
        raise ValueError("a message has a fence or expects a number, not both")
    if stream_of(fence.subject) != stream:
        raise ValueError(f"{fence.subject} is not in the stream of {subject}")
    return fence


def fits(pattern: str, subject: str) -> bool:
    """Return whether a pattern stands for a subject: `*` is one word, a last `>` one or more."""
    if pattern == subject:
        return True
    wanted, words = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        if len(words) < len(wanted):
            return False
        wanted.pop()
        del words[len(wanted) :]
    return len(wanted) == len(words) and all(want in ("*", word) for want, word in zip(wanted, words, strict=True))
