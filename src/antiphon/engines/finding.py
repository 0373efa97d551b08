"""The program behind an engine, and which version it has. Knows no engine and no event loop; where the program is, the catalogue knows.

What a program says about its version is kept beside its size and time, so that `session/new` does not wait for it.
"""

import os
import re
import time
from pathlib import Path
from typing import Final

import msgspec

from antiphon.catalogue.programs import CLAUDE, CODEX, Cli, CliMissing, CliProblem, Found, Source, find_cli
from antiphon.config.environment import environment_for
from antiphon.engines.remembered import notes_folder, read_notes, write_notes

__all__ = [
    "CLAUDE", "CODEX", "Cli", "CliMissing", "CliProblem", "CliTooOld", "Found", "Source", "Told", "ask", "ask_version",
    "check_version", "find_cli", "home", "known_version", "version_of",
]  # fmt: skip

PATIENCE: Final = 10.0
"""Seconds for `--version`. It takes some milliseconds, but the first start of a large program after a boot takes its time."""

FRESH: Final = 24 * 3600.0
"""Seconds that a version is believed without asking again: behind a small wrapper the program may change and the wrapper not."""

_VERSION: Final = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:[-+][0-9A-Za-z.-]+)?)")


class Told(msgspec.Struct, frozen=True):
    """What a program said before it ended."""

    status: int
    out: str
    err: str


class CliTooOld(CliProblem):
    """It is here, and too old."""


def version_of(found: Found) -> str:
    """Its version: as we know it, else as it says. It blocks while it is asked.

    Raises:
        CliMissing: it does not start, or does not say.
        CliTooOld: it is too old.
    """
    return check_version(found, known_version(found) or ask_version(found))


def known_version(found: Found) -> str | None:
    """Its version, if it was asked before and has not changed since."""
    sign = _sign(found.path)
    notes = read_notes(_versions(found.cli))
    entry = None if notes is None else notes.get(found.path)
    match entry:
        case {"sign": known, "version": str(version), "at": int() | float() as at}:
            return version if known == sign and 0 <= time.time() - at < FRESH else None
        case _:
            return None


def ask_version(found: Found) -> str:
    """Its version as it says, and to be known from now on. It blocks.

    Raises:
        CliMissing: it does not start, or does not say.
    """
    sign = _sign(found.path)
    told = ask(found, "--version", cwd=home())
    version = _VERSION.search(told.out)
    if told.status != 0 or version is None:
        said = (told.err or told.out).strip().partition("\n")[0][:200] or f"it ended with {told.status}"
        raise CliMissing(
            f"{found.cli.title} cannot be started: `{found.path} --version` said: {said}",
            f"install it again: {found.cli.install}; or name another one in {found.cli.variable}",
        )
    path = _versions(found.cli)
    notes = {place: each for place, each in (read_notes(path) or {}).items() if os.path.exists(place)}
    notes[found.path] = {"sign": sign, "version": version[1], "at": time.time()}
    write_notes(path, notes)
    return version[1]


def check_version(found: Found, version: str) -> str:
    """The version, if it is new enough.

    Raises:
        CliTooOld: it is not.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", re.split("[-+]", version)[0]))
    if numbers < found.cli.oldest:
        oldest = ".".join(map(str, found.cli.oldest))
        raise CliTooOld(
            f"{found.cli.title} {version} is too old: {oldest} or newer is needed, and this one is `{found.path}`",
            f"update it: {found.cli.install}; or name another one in {found.cli.variable}",
        )
    return version


def ask(found: Found, *words: str, cwd: str | None = None, limit: float = PATIENCE) -> Told:
    """Run the program for an answer, with nothing to read. It blocks; what does not answer in time is killed.

    Raises:
        CliMissing: it does not start, or does not answer.
    """
    from antiphon.engines.program import answer_of

    hint = f"install it again: {found.cli.install}; or name another one in {found.cli.variable}"
    try:
        told = answer_of([found.path, *words], environment_for(found.cli.name), cwd, limit)
    except OSError as error:
        raise CliMissing(f"{found.cli.title} cannot be started: `{found.path}`: {error.strerror}", hint) from error
    if told is None:
        shown = " ".join((found.path, *words))
        raise CliMissing(f"{found.cli.title} does not answer: `{shown}` took more than {limit:g} s", hint)
    status, out, err = told
    return Told(status, out.decode(errors="replace"), err.decode(errors="replace"))


def _sign(path: str) -> list[int]:
    """Changes whenever the program does."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _versions(cli: Cli) -> Path:
    return notes_folder() / f"{cli.name}-versions.json"


def home() -> str:
    """The home directory, in which no file of a project counts; the root if there is none."""
    home = os.path.expanduser("~")
    return home if os.path.isdir(home) else "/"
