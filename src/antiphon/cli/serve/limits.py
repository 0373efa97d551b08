"""The limits of a gateway as they are typed: `--limit NAME=VALUE`."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.cli.arguments import duration, number_from

if TYPE_CHECKING:
    from antiphon.gateway.base import HubLimits
    from antiphon.gateway.server.program import ServeOptions

__all__ = ["LIMITS", "hub_limit", "hub_limits", "hub_limits_help", "limit", "limits_help", "with_limits"]

_SIZE: Final = re.compile(r"([0-9]{1,15})(?: ?([KMGT])(?:i?B)?)?")
_UNITS: Final = {None: 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}

MAX_MESSAGE: Final = 64 * 1024 * 1024
"""The largest message that may be allowed: it is held in memory, for each client that sends one."""


def size(text: str) -> int:
    """Return the bytes of a size: `65536`, `512K`, `64M`, `4GiB`."""
    found = _SIZE.fullmatch(text) if text.isascii() else None
    number = int(found[1]) * _UNITS[found[2]] if found is not None else 0
    if not number:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size: give bytes, or a number with a unit, such as `64M`")
    return number


def _message_size(text: str) -> int:
    if size(text) > MAX_MESSAGE:
        raise argparse.ArgumentTypeError(f"`{text}` is too large: give at most {MAX_MESSAGE >> 20}M, such as `64M`")
    return size(text)


class _Limit(msgspec.Struct, frozen=True):
    about: str
    default: str
    read: Callable[[str], object]
    owner: str
    """The field of the options that has it; empty: the options themselves."""
    field: str


_number: Final = number_from(1)
LIMITS: Final[Mapping[str, _Limit]] = {
    "agents": _Limit("agents whose processes run at the same time", "16", _number, "limits", "agents"),
    "memory": _Limit(
        "memory of an agent with all that it started; more ends it", "3/4 of the machine's", size, "limits", "agent_memory"
    ),
    "processes": _Limit("processes of an agent; more ends it", "1000", _number, "limits", "agent_processes"),
    "turn": _Limit("time of a turn, which is cancelled then", "none", duration, "limits", "turn_timeout"),
    "answer": _Limit("time for a permission request, which is rejected then", "none", duration, "limits", "answer_timeout"),
    "idle": _Limit("time after which an agent that is not used ends", "15m", duration, "limits", "idle"),
    "session-idle": _Limit("time after which a session that is not used is closed", "1h", duration, "limits", "session_idle"),
    "prompts-per-minute": _Limit("prompts of one token", "30", _number, "limits", "prompts_per_minute"),
    "queue": _Limit("prompts that wait in one session", "32", _number, "limits", "queue"),
    "sessions": _Limit("sessions that are open at the same time", "10000", _number, "limits", "sessions"),
    "token-sessions": _Limit("open sessions of one token", "2500", _number, "limits", "token_sessions"),
    "connections": _Limit("connections at the same time", "1000", _number, "limits", "connections"),
    "unsent": _Limit("bytes that wait for one client, before it gets the rest later", "8M", size, "limits", "unsent"),
    "message": _Limit("size of a message, up to 64M", "16M", _message_size, "", "message_limit"),
    "days": _Limit("days for which a session is kept after its last use", "90", _number, "retention", "session_days"),
    "audit-days": _Limit("days for which the audit log is kept", "365", _number, "retention", "audit_days"),
    "disk": _Limit("size of all data, beyond which the oldest sessions go", "10G", size, "retention", "total_bytes"),
}  # fmt: skip
"""Every limit by its name."""


_HUB: Final = {name: each for name, each in LIMITS.items() if each.owner == "limits" and name != "sessions"}
"""Those of agents and sessions, which a worker of a fleet has too. Its sessions are its slots."""


def limits_help(limits: Mapping[str, _Limit] = LIMITS) -> str:
    """Return the table of limits."""
    width = max(map(len, limits))
    return "\n".join(f"  {name:{width}}  {each.about} ({each.default})" for name, each in limits.items())


def hub_limits_help() -> str:
    """Return the table of the limits of a worker."""
    return limits_help(_HUB)


def hub_limit(text: str) -> tuple[str, object]:
    """Read `NAME=VALUE` for a worker."""
    return limit(text, _HUB)


def limit(text: str, limits: Mapping[str, _Limit] = LIMITS) -> tuple[str, object]:
    """Read `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if name not in limits or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is not a limit: give NAME=VALUE; the names are {', '.join(limits)}")
    try:
        return name, LIMITS[name].read(value)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from error


def hub_limits(given: Sequence[tuple[str, Any]]) -> "HubLimits":
    """Return the limits of a worker; the last one of a name counts."""
    from antiphon.gateway.server.program import ServeOptions

    return with_limits(ServeOptions(), given).limits


def with_limits(options: "ServeOptions", given: Sequence[tuple[str, Any]]) -> "ServeOptions":
    """Return options with these limits; the last one of a name counts."""
    from antiphon.gateway.agents.usage import machine_memory

    fields: dict[str, dict[str, object]] = {
        "limits": {"agent_memory": machine_memory() // 4 * 3},
        "retention": {},
        "": {},
    }
    for name, value in given:
        fields[LIMITS[name].owner][LIMITS[name].field] = value
    own = fields.pop("")
    parts = {part: msgspec.structs.replace(getattr(options, part), **changed) for part, changed in fields.items()}
    return msgspec.structs.replace(options, **own, **parts)
