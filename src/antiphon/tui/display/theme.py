"""The colours of the chat: a style for each speaker and for what is marked. A theme of the user's own is a small file.

Rule 1: colour adds no information. Without it every line reads the same.
Rule 2: the built-in theme uses the terminal's own sixteen colours, which are readable on light and on dark. `light` and `dark` use
others, for terminals whose own colours are not.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from rich.errors import StyleSyntaxError
from rich.style import Style

from antiphon.errors import AcpError

__all__ = ["STYLES", "THEMES", "ThemeProblem", "is_light", "load_theme", "style_of_engine"]

STYLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "you": "bold blue",
        "claude": "bold magenta",
        "codex": "bold green",
        "agent": "bold cyan",
        "tool": "bold",
        "thought": "dim italic",
        "key": "bold cyan",
        "question": "bold yellow",
        "warning": "yellow",
        "error": "red",
        "done": "green",
        "diff.added": "green",
        "diff.removed": "red",
        "markdown.code": "cyan",
    }
)
"""Every style that a theme can change, and the built-in one."""

THEMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "terminal": {},
        "dark": {
            "you": "bold #7aa2f7", "claude": "bold #e0906c", "codex": "bold #8fce9e", "agent": "bold #73d0e6",
            "key": "bold #73d0e6", "question": "bold #f0c674", "warning": "#f0c674", "error": "#f28779", "done": "#8fce9e",
            "diff.added": "#8fce9e", "diff.removed": "#f28779", "markdown.code": "#73d0e6",
        },
        "light": {
            "you": "bold #1d4ed8", "claude": "bold #b4532a", "codex": "bold #166534", "agent": "bold #0e7490",
            "key": "bold #0e7490", "question": "bold #92400e", "warning": "#92400e", "error": "#b91c1c", "done": "#166534",
            "diff.added": "#166534", "diff.removed": "#b91c1c", "markdown.code": "#0e7490",
        },
    }
)  # fmt: skip
"""The themes that need no file, by name."""


class ThemeProblem(AcpError):
    """A theme that cannot be used."""


def load_theme(name: str, directory: Path) -> Mapping[str, str]:
    """Return the styles of a theme: a built-in one, or the file `NAME.toml` in the directory.

    Raises:
        ThemeProblem: there is no such theme, or something in its file is no style.
    """
    if name in THEMES:
        return THEMES[name]
    file = directory / f"{name}.toml"
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        here = sorted(path.stem for path in directory.glob("*.toml")) if directory.is_dir() else []
        raise ThemeProblem(
            f"there is no theme `{name}`", hint=f"there are {', '.join([*THEMES, *here])}; yours would be {file}"
        ) from None
    except (OSError, ValueError) as error:
        raise ThemeProblem(
            f"{file} cannot be read: {error}", hint='a line of it is `claude = "bold magenta"`'
        ) from error
    for key, value in found.items():
        _check(file, key, value)
    return found


def is_light(name: str, environment: Mapping[str, str]) -> bool:
    """Whether the terminal's background is light: by the name of the theme, or by what the terminal says (`0;15`: black on white)."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return name == "light" or (name != "dark" and background in ("7", "15"))


def _check(file: Path, key: str, value: object) -> None:
    if key not in STYLES:
        raise ThemeProblem(f"{file} has an unknown style `{key}`", hint=f"there are {', '.join(STYLES)}")
    try:
        Style.parse(value if isinstance(value, str) else "")
        if not isinstance(value, str):
            raise StyleSyntaxError("it is no text")
    except StyleSyntaxError as error:
        raise ThemeProblem(f"{file}: `{key}` is no style: {error}", hint='such as "bold #d97757" or "green"') from error


def style_of_engine(name: str) -> str:
    """Return the style of an engine, by its short name."""
    return name if name in ("claude", "codex") else "agent"
