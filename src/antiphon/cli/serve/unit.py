"""Units for systemd that start a gateway or a worker with the options of a command line: printed, installed, removed."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from antiphon.errors import AcpError

__all__ = ["add_unit_options", "print_unit", "remove_unit"]

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


_OPTIONS: Final = ("unit", "--json", "--install", "--undo")
"""Words of a command line that are not for the service."""

MANAGER_TIMEOUT: Final = 90.0
"""Seconds that `systemctl` may take: it waits for a gateway that ends its turns."""


def add_unit_options(parser: argparse.ArgumentParser) -> None:
    """Add what `unit` can do besides printing."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--install", action="store_true", help="write it for systemd of this user, and start it")
    ways.add_argument("--undo", action="store_true", help="stop it, and remove the unit again")


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
    install: bool = False,
) -> None:
    """Print or install a unit that starts `antiphon ROLE` with the options of this command line.

    `what` it is, in words; `name`: the name of the unit; `more`: options that were not given, and have another default elsewhere;
    `drain`: seconds that turns may go on when it ends.
    """
    given = [*_with_whole_paths([word for word in words if word not in _OPTIONS]), *more]
    command = [sys.executable, "-m", "antiphon", role, *given, *(["--", *program] if program else [])]
    line = shlex.join(command).replace("%", "%%").replace("$", "$$")
    directory = os.getcwd().replace("%", "%%")
    text = UNIT.format(what=what, directory=directory, command=line, stop=drain + END_TIME)
    if install:
        _install_unit(text, name, what)
        return
    sys.stdout.write(text)
    sys.stderr.write(f"`--install` writes it to {_unit_path(name)} and starts it\n")


def _unit_path(name: str) -> Path:
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".config") / "systemd" / "user" / f"{name}.service"


def _is_ours(text: str, what: str) -> bool:
    return f"\nDescription=Antiphon {what}\n" in text


def _read_ours(path: Path, what: str) -> str | None:
    """Return the unit that is there, None if there is none.

    Raises:
        AcpError: it cannot be read, or is not ours.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise AcpError(f"{path} cannot be read: {error}", hint="check what it is") from error
    if not _is_ours(text, what):
        raise AcpError(
            f"{path} is not a unit of Antiphon's {what}; it stays as it is", hint="rename or remove it first"
        )
    return text


def _install_unit(text: str, name: str, what: str) -> None:
    """Write the unit, and have systemd start it now and at every login.

    Raises:
        AcpError: there is another file of that name, or it cannot be written, or systemd refuses it.
    """
    path = _unit_path(name)
    before = _read_ours(path, what)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AcpError(f"{path} cannot be written: {error.strerror or error}", hint="check its permissions") from error
    sys.stderr.write(f"{'made' if before is None else 'changed'} {path}; `unit --undo` takes it back\n")
    commands = (("daemon-reload",), ("enable", name), ("restart", name))
    if not _manage(*commands):
        typed = " && ".join(shlex.join(("systemctl", "--user", *words)) for words in commands)
        sys.stderr.write(f"there is no `systemctl` here: where systemd runs, {typed}\n")


def remove_unit(name: str, what: str) -> None:
    """Stop the service and remove its unit, whether `--install` or a person has put it there.

    Raises:
        AcpError: the file of that name is not ours, or cannot be removed, or systemd refuses to stop it.
    """
    path = _unit_path(name)
    if _read_ours(path, what) is None:
        sys.stderr.write(f"there is no {path}\n")
        return
    managed = _manage(("disable", "--now", name))
    try:
        path.unlink()
    except OSError as error:
        raise AcpError(f"{path} cannot be removed: {error.strerror or error}", hint="remove it yourself") from error
    if managed:
        _manage(("daemon-reload",))
    sys.stderr.write(f"removed {path}\n")


def _manage(*commands: Sequence[str]) -> bool:
    """Run commands of systemd for this user, and return whether there is a systemd.

    Raises:
        AcpError: one of them failed.
    """
    program = shutil.which("systemctl")
    if program is None:
        return False
    for words in commands:
        line = [program, "--user", *words]
        try:
            done = subprocess.run(
                line, capture_output=True, encoding="utf-8", errors="replace", timeout=MANAGER_TIMEOUT
            )
        except subprocess.TimeoutExpired as error:
            raise AcpError(f"`{shlex.join(line)}` took too long", hint="try it in a terminal") from error
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
            raise AcpError(
                f"`{shlex.join(line)}` failed: {reason[0]}",
                hint="systemd of this user has to run: log in, or use SSH with a session",
            )
    return True
