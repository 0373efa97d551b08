"""Times as they are stored: UTC in ISO 8601, all of one width, so that the order of the texts is the order in time."""

from datetime import UTC, datetime

__all__ = ["stamp", "utc_now"]


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A moment as text, such as `2026-01-02T03:04:05.000000Z`."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone, such as `datetime.now(UTC)`")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
