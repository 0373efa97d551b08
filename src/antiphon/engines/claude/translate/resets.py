"""When a limit ends: the CLI says it as a number, behind a bar in its text, or in words for people."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

__all__ = ["moment", "reset_in", "told"]

_NUMBER: Final = re.compile(r"\|\s*(\d{10}(?:\d{3})?)\b")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WORDS: Final = re.compile(
    r"resets?\s+(?:at\s+|on\s+)?"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:,?\s+(?P<year>\d{{4}}))?(?:,|\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?\b"
    r"(?:\s*\((?P<zone>[A-Za-z_+\-/0-9]+)\))?",
    re.IGNORECASE,
)
_IN_MILLISECONDS: Final = 100_000_000_000
_END: Final = 253_402_300_800
"""The end of the year 9999, after which nothing that tells times can tell one."""


def moment(seconds: float | None) -> float | None:
    """Seconds since 1970, also where somebody counted milliseconds; None for what is no time."""
    if seconds is None or not 0 < seconds < _END * 1000:
        return None
    found = seconds / 1000 if seconds >= _IN_MILLISECONDS else float(seconds)
    return found if found < _END else None


def reset_in(text: str, now: float | None = None) -> float | None:
    """The moment that a text names: `…|1760000000`, or seen from `now` `resets 3pm`, `resets Nov 20, 5:07am (UTC)`."""
    if found := _NUMBER.search(text):
        return moment(float(found[1]))
    found = _WORDS.search(text)
    if now is None or found is None or (found["half"] is None and found["minute"] is None):
        return None
    try:
        return _next(found, datetime.fromtimestamp(now, _zone(found["zone"])))
    except (ValueError, OverflowError, OSError):
        return None


def told(seconds: float) -> str:
    """The moment in words, the same for everybody: `2025-10-09 08:53 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _next(found: "re.Match[str]", now: datetime) -> float:
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    then = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if found["month"]:
        year = int(found["year"] or now.year)
        then = then.replace(year=year, month=_MONTHS.index(found["month"].lower()) + 1, day=int(found["day"]))
        if found["year"] is None and now - then > timedelta(days=180):
            then = then.replace(year=year + 1)
    elif then <= now:
        then += timedelta(days=1)
    return then.timestamp()


def _zone(name: str | None) -> tzinfo | None:
    """The zone that is named; without one, or with one that nobody here knows, that of this machine, on which the CLI runs too."""
    if name is None or name.upper() in ("UTC", "GMT"):
        return UTC if name else datetime.now().astimezone().tzinfo
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # only needed for a limit that is told in words

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.now().astimezone().tzinfo
