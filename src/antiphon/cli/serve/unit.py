"""Units for systemd that start a gateway or a worker with the options of a command line."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["print_unit"]

UNIT: Final = """\
[Unit]
Description=Antiphon {what}
After=network.target

[Service]
WorkingDirectory={directory}
ExecStart={command}
Restart=on-failure
RestartSec=2
KillMode=mixed
TimeoutStopSec={stop:g}
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes

[Install]
WantedBy=default.target
"""

END_TIME: Final = 15.0
"""Seconds that a process needs to end once its turns have ended, at most."""

_PATHS: Final = ("--root", "--data", "--unix", "--tls-cert", "--tls-key", "--credentials")
_NAMED_PATHS: Final = ("--workspace",)
"""Options whose value is NAME=DIR."""


def _whole(text: str) -> str:
    return str(Path(text).expanduser().absolute())


def _with_whole_paths(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with absolute paths: a service starts in another directory."""
    whole: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if whole and whole[-1] in _PATHS:
            whole.append(_whole(word))
        elif (whole and whole[-1] in _NAMED_PATHS) or (equals and option in _PATHS):
            whole.append(f"{option}={_whole(value)}")
        elif equals and option in _NAMED_PATHS:
            name, _, directory = value.partition("=")
            whole.append(f"{option}={name}={_whole(directory)}")
        else:
            whole.append(word)
    return whole


def print_unit(
    role: str,
    words: Sequence[str],
    program: Sequence[str] | None,
    *,
    what: str,
    name: str,
    more: Sequence[str] = (),
    drain: float = 60.0,
) -> None:
    """Print a unit that starts `antiphon ROLE` with the options of this command line.

    `what` it is, in words; `name`: the name of the unit; `more`: options that were not given, and have another default elsewhere;
    `drain`: seconds that turns may go on when it ends.
    """
    given = [*_with_whole_paths([word for word in words if word not in ("unit", "--json")]), *more]
    command = [sys.executable, "-m", "antiphon", role, *given, *(["--", *program] if program else [])]
    line = shlex.join(command).replace("%", "%%").replace("$", "$$")
    directory = os.getcwd().replace("%", "%%")
    sys.stdout.write(UNIT.format(what=what, directory=directory, command=line, stop=drain + END_TIME))
    hint = f"save it as ~/.config/systemd/user/{name}.service, then: systemctl --user enable --now {name}"
    sys.stderr.write(f"{hint}\n")
