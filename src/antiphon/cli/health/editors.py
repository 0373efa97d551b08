"""Editors whose settings mention us: whether what they start is there. Files that do not mention us are not our business."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.cli.health.findings import Finding, Ward, note, ok, problem
from antiphon.cli.health.jsonc import read_jsonc

__all__ = ["EDITORS", "Editor", "settings_of"]

LARGEST: Final = 2 * 1024 * 1024
"""Bytes of a settings file that is read."""

FILES: Final = 200
"""Files of one editor that are looked at: some people's settings are a whole program."""

_QUOTED: Final = re.compile(r"""(["'])((?:(?!\1)[^\n\\]){1,500})\1""")


class Editor(msgspec.Struct, frozen=True):
    """An editor, and where its settings may be: in the home directory, or in that of configurations if it begins with `CONFIG`."""

    id: str
    title: str
    places: tuple[str, ...]
    """Patterns of files. Those that end in `.json` are read as JSON with comments; of the others only quoted words are."""


EDITORS: Final = (
    Editor("zed", "Zed", ("CONFIG/zed/settings.json", ".var/app/dev.zed.Zed/config/zed/settings.json")),
    Editor("jetbrains", "JetBrains", (".jetbrains/acp.json",)),
    Editor(
        "vscode",
        "VS Code",
        (
            "CONFIG/Code/User/settings.json",
            "CONFIG/VSCodium/User/settings.json",
            "Library/Application Support/Code/User/settings.json",
        ),
    ),
    Editor("neovim", "Neovim", ("CONFIG/nvim/init.*", "CONFIG/nvim/lua/**/*.lua", "CONFIG/nvim/plugin/**/*.lua")),
    Editor(
        "emacs",
        "Emacs",
        (".emacs", ".emacs.el", ".emacs.d/*.el", "CONFIG/emacs/*.el", ".doom.d/*.el", "CONFIG/doom/*.el"),
    ),
)


def settings_of(editor: Editor, ward: Ward) -> Sequence[Finding]:
    """What an editor's settings say about us; nothing if they do not mention us."""
    found: list[Finding] = []
    for path in _files(editor, ward.environment):
        text = _text(path)
        if text is None or "antiphon" not in text:
            continue
        if path.suffix != ".json":
            found += _of_code(path, text, ward)
            continue
        try:
            document = read_jsonc(text)
        except ValueError as error:
            found += note(
                f"{path} mentions Antiphon, and is not understood: {error}", "correct it, if the editor complains"
            )
            continue
        for command in _commands(document):
            found += _of_command(path, command, ward)
    return found


def _files(editor: Editor, environment: Mapping[str, str]) -> Iterator[Path]:
    config = Path(environment.get("XDG_CONFIG_HOME", ""))
    home = Path(environment.get("HOME") or Path.home())
    config = config if config.is_absolute() else home / ".config"
    left = FILES
    for pattern in editor.places:
        base, _, below = pattern.partition("/")
        place, pattern = (config, below) if base == "CONFIG" else (home, pattern)
        for path in place.glob(pattern):
            left -= 1
            if left < 0:
                return
            yield path


def _text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _commands(part: Any) -> Iterator[list[str]]:
    """Every command in a document that has to do with us: an object with a `command`, and perhaps `args`."""
    if isinstance(part, list):
        for each in part:
            yield from _commands(each)
    elif isinstance(part, dict):
        words = _words(part)
        if any("antiphon" in word for word in words):
            yield words
        for each in part.values():
            yield from _commands(each)


def _words(part: dict[str, Any]) -> list[str]:
    """The words of a command: `"command": "x", "args": […]`, or an object or a list in place of the string."""
    command = part.get("command")
    if isinstance(command, dict):
        part, command = command, command.get("path")
    if isinstance(command, list):
        return [word for word in command if isinstance(word, str)]
    arguments = part.get("args")
    rest = [word for word in arguments if isinstance(word, str)] if isinstance(arguments, list) else []
    return [command, *rest] if isinstance(command, str) else []


def _of_command(path: Path, words: list[str], ward: Ward) -> Sequence[Finding]:
    wrong = _missing(words[0], ward)
    if wrong is not None:
        return problem(f"{path} starts `{words[0]}`, {wrong}", _where(), path=str(path))
    engine = words[words.index("--engine") + 1 :][:1] if "--engine" in words else []
    engines = _engines()
    if engine and engines and engine[0] not in engines:
        return problem(
            f"{path} asks for the engine `{engine[0]}`, which there is not", f"choose one of {', '.join(engines)}"
        )
    # Not all of its words: some people give keys as arguments.
    what = f" with the engine `{engine[0]}`" if engine else ""
    return ok(f"{path} starts `{words[0]}`{what}", path=str(path))


def _engines() -> list[str]:
    """What `antiphon agent --engine` takes, if it takes only some words."""
    from antiphon.cli.agent import parser

    choices = next(action.choices for action in parser()._actions if "--engine" in action.option_strings)
    return [str(choice) for choice in choices or ()]


def _of_code(path: Path, text: str, ward: Ward) -> Sequence[Finding]:
    """Of a program only quoted words are looked at: a name, or the path of a program."""
    quoted = (match[2] for match in _QUOTED.finditer(text))
    programs = {word for word in quoted if word == "antiphon" or (word.endswith("/antiphon") and " " not in word)}
    found: list[Finding] = []
    for program in sorted(programs):
        wrong = _missing(program, ward)
        if wrong is not None:
            found += problem(f"{path} mentions `{program}`, {wrong}", _where(), path=str(path))
    return found or ok(f"{path} mentions Antiphon", path=str(path))


def _missing(program: str, ward: Ward) -> str | None:
    """What is wrong with a program that an editor is to start."""
    place = os.path.expanduser(program)
    if "/" in place:
        return None if os.path.isfile(place) and os.access(place, os.X_OK) else "which is no program that can be run"
    found = shutil.which(place, path=ward.environment.get("PATH", os.defpath))
    return None if found is not None else "which is not on the PATH"


def _where() -> str:
    beside = os.path.join(sys.prefix, "bin", "antiphon")
    return f"write {beside} there" if os.path.exists(beside) else "write the whole path of `antiphon` there"
