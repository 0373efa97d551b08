"""Which engines there are. Asked before `initialize` is answered, so it looks at the disk and starts nothing."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.catalogue.known import OURS
from antiphon.catalogue.programs import CLAUDE, CODEX, Cli, CliMissing, find_cli
from antiphon.errors import Advice

if TYPE_CHECKING:
    from antiphon.config.shapes import Settings

__all__ = ["DEMO", "Present", "default_agent", "installed", "named_by_user"]

DEMO: Final = "demo"
"""What answers where nothing else is."""

_DRIVEN: Final[Mapping[str, Cli]] = MappingProxyType({cli.name: cli for cli in (CLAUDE, CODEX)})


class Present(msgspec.Struct, frozen=True):
    """The engines of an agent, at least one, the preferred first."""

    engines: tuple[str, ...]
    """Names, or command lines as they were written."""
    missing: Mapping[str, Advice] = MappingProxyType({})
    """Those that were looked for and are not there → why, with a hint."""


def installed(named: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> Present:
    """The engines that somebody named, in this order; without a name those that are installed; without any of them the demo.

    Of those named only the ones with a program that we know are looked for. The others tell when they are started.
    """
    wanted = tuple(dict.fromkeys(named or _DRIVEN))
    missing = {name: why for name in wanted if (why := _why_not(name, environment)) is not None}
    there = tuple(name for name in wanted if name not in missing)
    # Who named an engine wants that one: its own error says more than a demo that answers in its place.
    return Present(there or (wanted if named else (DEMO,)), MappingProxyType(missing))


def named_by_user() -> tuple[str, ...] | None:
    """The engines that the user's own config file names. Reads the file only as far as it has to: somebody waits."""
    from antiphon.config.files import read_file, user_file

    file = read_file(user_file(), digest=False)
    if file is None or "duet" not in file.text:  # most say nothing of it, and reading TOML takes long
        return None
    from antiphon.config.reading import read

    return read(file.text).texts("duet", "engines") or None


def _why_not(name: str, environment: Mapping[str, str]) -> Advice | None:
    if name not in _DRIVEN:
        return None
    try:
        find_cli(_DRIVEN[name], environment)
    except CliMissing as error:
        return error.advice
    return None


# --- the agent that `run` and `chat` start by default ----------------------------------------------------------------


def default_agent(settings: "Settings", environment: Mapping[str, str] = os.environ) -> str:
    """Our own agent, where it has an engine; else the demo, which costs nothing and changes nothing unasked."""
    return OURS if settings.duet.engines or installed(None, environment).engines != (DEMO,) else DEMO
