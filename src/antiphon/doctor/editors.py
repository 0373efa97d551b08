"""Checks of editors whose settings mention Antiphon: whether the program that they start exists."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem
from antiphon.editors.jsonc import NotJsonc, parse
from antiphon.editors.known import NAME, settings_path
from antiphon.editors.records import records

__all__ = ["settings_of"]

LARGEST: Final = 2 * 1024 * 1024
"""Bytes of a settings file that is read."""

FILES: Final = 200
"""Files of one editor that are looked at: some people's settings are a whole program."""

_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "zed": (".var/app/dev.zed.Zed/config/zed/settings.json",),
    "vscode": ("CONFIG/VSCodium/User/settings.json", "CONFIG/Cursor/User/settings.json"),
    "neovim": ("CONFIG/nvim/init.*", "CONFIG/nvim/lua/**/*.lua", "CONFIG/nvim/plugin/**/*.lua"),
    "emacs": (".emacs", ".emacs.el", ".emacs.d/*.el", "CONFIG/emacs/*.el", ".doom.d/*.el", "CONFIG/doom/*.el"),
}
"""Files in which users write their own settings, besides the file of `antiphon setup`: in the home or the config directory."""

_MENTIONED: Final = re.compile(
    r"""(?P<key>\bcommand\s*=?\s*)?(["'])(?P<program>(?:[^"'\n\\]*/)?antiphon)\2(?P<next>[\s,]+["']agent["'])?"""
)
"""In a program, a word that is the command if it is called, or if `agent` follows. Otherwise it may be the name of a module."""

_MODULE: Final = re.compile(r"""["']-m["'][\s,]+$""")
"""What stands before the name in `python -m antiphon`."""


def settings_of(name: str, context: DoctorContext) -> Sequence[Finding]:
    """Check the settings of an editor, if they mention Antiphon."""
    found: list[Finding] = []
    for path in _files(name, context.environment):
        text = _text(path)
        if text is None or "antiphon" not in text:
            continue
        if path.suffix != ".json":
            found += _of_code(name, path, text, context)
            continue
        try:
            document = parse(text)
        except NotJsonc as error:
            found += note(
                f"{path} mentions Antiphon, and is not understood: {error}", "correct it, if the editor complains"
            )
            continue
        for command in _commands(None if document is None else document.data):
            found += _of_command(name, path, command, context)
    return found


def _files(name: str, environment: Mapping[str, str]) -> list[Path]:
    """Yield the files where settings may be: the usual ones, and those that `antiphon setup` has written."""
    config = Path(environment.get("XDG_CONFIG_HOME", ""))
    config = config if config.is_absolute() else Path.home() / ".config"
    found = dict.fromkeys([settings_path(name, NAME, environment), *(Path(record.file) for _, record in records(name))])
    for pattern in _ELSEWHERE.get(name, ()):
        base, _, below = pattern.partition("/")
        place, wanted = (config, below) if base == "CONFIG" else (Path.home(), pattern)
        for path in place.glob(wanted):
            if len(found) >= FILES:
                return [*found]
            found[path] = None
    return [*found]


def _text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _commands(part: object) -> Iterator[list[str]]:
    """Yield every command in a document that starts Antiphon: an object with `command` and perhaps `args`."""
    if isinstance(part, list):
        for each in part:
            yield from _commands(each)
    elif isinstance(part, dict):
        words = _words(part)
        if any("antiphon" in word for word in words):
            yield words
        for each in part.values():
            yield from _commands(each)


def _words(part: dict[str, object]) -> list[str]:
    """Return the words of a command: a string with `args`, an object, or a list."""
    command = part.get("command")
    if isinstance(command, dict):
        part, command = command, command.get("path")
    if isinstance(command, list):
        return [word for word in command if isinstance(word, str)]
    arguments = part.get("args")
    rest = [word for word in arguments if isinstance(word, str)] if isinstance(arguments, list) else []
    return [command, *rest] if isinstance(command, str) else []


def _of_command(name: str, path: Path, words: list[str], context: DoctorContext) -> Sequence[Finding]:
    wrong = _missing(words[0], context)
    if wrong is not None:
        return problem(f"{path} starts `{words[0]}`, {wrong}", _again(name), path=str(path))
    engines = [word for before, word in pairwise(words) if before == "--engine"]
    for engine in engines:
        if (wrong := _unknown(engine)) is not None:
            return problem(f"{path} asks for the engine `{engine}`, which there is not", wrong)
    # Not all of its words: some people give keys as arguments.
    listed = " and ".join(f"`{engine}`" for engine in engines)
    what = f" with the engine {listed}" if engines else ""
    return ok(f"{path} starts `{words[0]}`{what}", path=str(path))


def _unknown(engine: str) -> str | None:
    """Return a hint for an unknown engine; None if the engine exists."""
    from antiphon.engines.known import UnknownEngine, make_engine
    from antiphon.errors import AcpError

    try:
        make_engine(engine)
    except UnknownEngine as error:
        return error.hint
    except AcpError:
        return None
    return None


def _of_code(name: str, path: Path, text: str, context: DoctorContext) -> Sequence[Finding]:
    """Check settings that are a program: only what looks like our command."""
    found: list[Finding] = []
    for match in _MENTIONED.finditer(text):
        if not (match["key"] or match["next"]) or _MODULE.search(text, max(0, match.start() - 20), match.start()):
            continue
        wrong = _missing(match["program"], context)
        if wrong is not None:
            found += problem(f"{path} starts `{match['program']}`, {wrong}", _again(name), path=str(path))
    return found or ok(f"{path} mentions Antiphon", path=str(path))


def _missing(program: str, context: DoctorContext) -> str | None:
    """Return what is wrong with a program that an editor starts."""
    place = os.path.expanduser(program)
    if "/" in place:
        return None if os.path.isfile(place) and os.access(place, os.X_OK) else "which is not a program that can be run"
    found = shutil.which(place, path=context.environment.get("PATH", os.defpath))
    return None if found is not None else "which is not on the PATH"


def _again(name: str) -> str:
    return f"`antiphon setup {name}` writes the right one; or correct it by hand"
