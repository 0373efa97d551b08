"""The program of a CLI on this machine: its version, what it prints, and what is remembered of it. Knows no engine and no event loop.

The version is stored with size and time of the program, so that `session/new` does not wait for it. What a CLI offered the last time is
a hint and never the truth: it may be missing, old or damaged at any time, nothing fails because of that, and the CLI itself corrects it.
"""

import logging
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.catalogue.programs import CLAUDE, CODEX, Cli, CliMissing, CliProblem, FoundProgram, Source, find_cli
from antiphon.config.directories import make_private_directory, state_dir
from antiphon.config.environment import environment_for

if TYPE_CHECKING:
    from antiphon.protocol.base import JsonObject

__all__ = [
    "CLAUDE",
    "CODEX",
    "Cli",
    "CliMemory",
    "CliMissing",
    "CliOutput",
    "CliProblem",
    "CliTooOld",
    "FoundProgram",
    "Source",
    "StoredSettings",
    "ask_version",
    "check_version",
    "find_cli",
    "home_directory",
    "known_version",
    "notes_folder",
    "read_notes",
    "run_cli",
    "version_of",
    "write_notes",
]

OUTPUT_LIMIT: Final = 30.0
"""Seconds for `--version`. It takes some milliseconds, but the first start of a large program after a boot takes its time."""

FRESH: Final = 24 * 3600.0
"""Seconds that a version is believed without asking again: behind a small wrapper the program may change and the wrapper not."""

_VERSION: Final = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:[-+][0-9A-Za-z.-]+)?)")


class CliOutput(msgspec.Struct, frozen=True):
    """What a program printed, and its status."""

    status: int
    out: str
    err: str


class CliTooOld(CliProblem):
    """The program of the CLI is too old."""


def version_of(found: FoundProgram) -> str:
    """Return the version of a program: the stored one, else the one that it prints. Blocks while the program runs.

    Raises:
        CliMissing: it does not start, or prints no version.
        CliTooOld: it is too old.
    """
    return check_version(found, known_version(found) or ask_version(found))


def known_version(found: FoundProgram) -> str | None:
    """Return the stored version of a program, if the program has not changed since."""
    sign = _sign(found.path)
    notes = read_notes(_versions(found.cli))
    entry = None if notes is None else notes.get(found.path)
    match entry:
        case {"sign": known, "version": str(version), "at": int() | float() as at}:
            return version if known == sign and 0 <= time.time() - at < FRESH else None
        case _:
            return None


def ask_version(found: FoundProgram) -> str:
    """Ask a program for its version, and store it. Blocks.

    Raises:
        CliMissing: it does not start, or prints no version.
    """
    sign = _sign(found.path)
    output = run_cli(found, "--version", cwd=home_directory())
    version = _VERSION.search(output.out)
    if output.status != 0 or version is None:
        output_text = (output.err or output.out).strip().partition("\n")[0][:200] or f"it ended with {output.status}"
        raise CliMissing(
            f"{found.cli.title} cannot be started: `{found.path} --version` printed: {output_text}",
            f"install it again: {found.cli.install}; or name another one in {found.cli.variable}",
        )
    path = _versions(found.cli)
    notes = {place: each for place, each in (read_notes(path) or {}).items() if os.path.exists(place)}
    notes[found.path] = {"sign": sign, "version": version[1], "at": time.time()}
    write_notes(path, notes)
    return version[1]


def check_version(found: FoundProgram, version: str) -> str:
    """Return the version, if it is new enough.

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


def run_cli(found: FoundProgram, *words: str, cwd: str | None = None, limit: float = OUTPUT_LIMIT) -> CliOutput:
    """Run the program with an empty stdin, and return what it printed. Blocks; a program that takes too long is killed.

    Raises:
        CliMissing: it does not start, or takes too long.
    """
    from antiphon.engines.process import run_once

    hint = f"install it again: {found.cli.install}; or name another one in {found.cli.variable}"
    try:
        output = run_once([found.path, *words], environment_for(found.cli.name), cwd, limit)
    except OSError as error:
        raise CliMissing(f"{found.cli.title} cannot be started: `{found.path}`: {error.strerror}", hint) from error
    if output is None:
        shown = " ".join((found.path, *words))
        raise CliMissing(f"{found.cli.title} does not answer: `{shown}` took more than {limit:g} s", hint)
    status, out, err = output
    return CliOutput(status, out.decode(errors="replace"), err.decode(errors="replace"))


def _sign(path: str) -> list[int]:
    """Return numbers that change whenever the program does."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _versions(cli: Cli) -> Path:
    return notes_folder() / f"{cli.name}-versions.json"


def home_directory() -> str:
    """Return the home directory, in which no file of a project counts; the root without one."""
    home = os.path.expanduser("~")
    return home if os.path.isdir(home) else "/"


# What is remembered.

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of notes that are read. What a CLI offers has some kilobytes."""

VERSIONS: Final = 8
"""Versions of one CLI that are remembered. Some CLIs have a new one every day."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_log = logging.getLogger(__name__)


class CliMemory:
    """What one version of a CLI offered: a JSON object, in a file of its own."""

    def __init__(self, name: str, version: str, folder: Path | None = None) -> None:
        self._folder = folder or notes_folder()
        self._family = f"{_safe(name)}-told-"
        self.path = self._folder / f"{self._family}{_safe(version)}.json"

    def load(self) -> "JsonObject | None":
        """Return what was offered, if it is known."""
        return read_notes(self.path)

    def save(self, offer: Mapping[str, object]) -> None:
        """Store an offer; it replaces the earlier one. Nothing is written if it is the same."""
        if read_notes(self.path) != offer and write_notes(self.path, offer):
            self._forget_old()

    def _forget_old(self) -> None:
        with suppress(OSError):
            mine = [path for path in self._folder.iterdir() if path.name.startswith(self._family)]
            mine.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in mine[:-VERSIONS]:
                path.unlink()


class StoredSettings:
    """The settings of one session of a CLI that forgets them: setting → value."""

    def __init__(self, session_id: str, folder: Path | None = None) -> None:
        self.path = (folder or notes_folder()) / "sessions" / f"{_safe(session_id)}.json"

    def load(self) -> dict[str, str]:
        """Return the stored settings."""
        notes = read_notes(self.path) or {}
        return {name: value for name, value in notes.items() if isinstance(value, str)}

    def save(self, chosen: Mapping[str, str]) -> None:
        """Store these settings instead."""
        write_notes(self.path, chosen)

    def forget(self) -> None:
        """Delete the stored settings."""
        with suppress(OSError):
            self.path.unlink()


def notes_folder() -> Path:
    """Return the directory of the notes about CLIs."""
    return state_dir() / "engines"


def read_notes(path: Path) -> "JsonObject | None":
    """Return the JSON object in a file; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
        notes = msgspec.json.decode(data) if len(data) <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    return notes if isinstance(notes, dict) else None


def write_notes(path: Path, notes: Mapping[str, object]) -> bool:
    """Write a JSON object to a file that only the user can read, atomically. False: it could not be written."""
    beside = path.with_name(f".{os.urandom(8).hex()}")
    try:
        data = msgspec.json.encode(dict(notes))
        make_private_directory(path.parent)
        fd = os.open(beside, _NEW, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        _log.debug("%s cannot be written: %s", path, error)
        return False
    return True


def _safe(word: str) -> str:
    """Return a part of a file's name, whatever a program calls its version."""
    return re.sub(r"[^A-Za-z0-9.+_-]", "-", word)[:80]
