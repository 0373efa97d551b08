"""The content of one config file: its text checked key by key against the table of keys. No I/O.

Every key that is accepted stands in `KEYS`, and nowhere else. What is not understood is a problem with a line and a hint, never
skipped in silence: a misspelt `deny` would be a rule that is never applied.
"""

import errno
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from antiphon.config.directories import config_dir
from antiphon.config.shapes import EDITING, IMAGES, MODES, NAME, NOTIFY, ON_ASK, REVIEWS
from antiphon.errors import Advice

__all__ = [
    "BUILT_IN",
    "KEYS",
    "MAX_FILE",
    "MAX_PROBLEMS",
    "NAME",
    "ConfigFile",
    "ConfigProblem",
    "ConfigValues",
    "KeyPath",
    "Statement",
    "line_of",
    "project_file",
    "read",
    "read_file",
    "statement_of",
    "statements",
    "user_file",
]

# --- finding and reading files ---------------------------------------------------------------------------------------

MAX_FILE: Final = 128 * 1024
"""Bytes of a config file. A thousand rules take half of it; what is larger was not written by hand."""

FOLDER: Final = ".antiphon"
CONFIG_NAME: Final = "config.toml"
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class ConfigFile(msgspec.Struct, frozen=True):
    """A config file: its text, or why it cannot be read."""

    path: Path
    text: str = ""
    digest: str = ""
    """SHA-256 of the bytes of `text`; empty if they could not be read or no digest was requested."""
    trouble: str | None = None


def user_file() -> Path:
    """Return the path of the user's config file."""
    return config_dir() / CONFIG_NAME


def project_file(cwd: str | os.PathLike[str]) -> ConfigFile | None:
    """Return the config file of a project: in the directory itself, or in the nearest parent.

    Neither the home directory nor the root makes a project of everything below it; the directory itself may be either.
    """
    start = Path(cwd).resolve()
    home = Path.home().resolve()
    for folder in (start, *start.parents):
        if folder != start and folder in (home, Path(folder.anchor)):
            return None
        found = read_file(folder / FOLDER / CONFIG_NAME)
        if found is not None:
            return found
    return None


def read_file(path: Path, *, digest: bool = True) -> ConfigFile | None:
    """Return a config file; None if it does not exist. An unreadable one is returned with its error."""
    try:
        fd = os.open(path, _OPEN)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        return ConfigFile(path, trouble=error.strerror or str(error))
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ConfigFile(path, trouble="it is not a regular file")
        data = _read(fd)
    except OSError as error:
        return ConfigFile(path, trouble=error.strerror or str(error))
    finally:
        os.close(fd)
    if len(data) > MAX_FILE:
        return ConfigFile(path, trouble=f"it is larger than {MAX_FILE >> 10} KiB")
    try:
        return ConfigFile(path, data.decode(), _digest(data) if digest else "")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return ConfigFile(path, trouble=f"it is not text in UTF-8 (line {line})")


def _digest(data: bytes) -> str:
    import hashlib  # importing it takes longer than the rest of this module, and starting an engine needs no digest

    return hashlib.sha256(data).hexdigest()


def _read(fd: int) -> bytes:
    data = b""
    while len(data) <= MAX_FILE and (chunk := os.read(fd, MAX_FILE + 1 - len(data))):
        data += chunk
    return data


# --- statements and line numbers of a TOML text ----------------------------------------------------------------------
# The standard library's parser returns values without their lines, and an error has to name the line.

KeyPath = tuple[str, ...]

_TOKEN: Final = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'''  # strings of several lines; up to two quotes may stand before the closing ones
    r"""|'''(?:[^']|'{1,2}(?!'))*'{3,5}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'"""
    r"|\#[^\n]*|[\[\]{}=\n]",
    re.DOTALL,
)


class Statement(msgspec.Struct, frozen=True):
    """A header or a key with its value: `text[start:end]`, with its last line's end. `line` counts from 1."""

    path: KeyPath
    """The whole path: of a key with that of its table."""
    header: bool
    start: int
    end: int
    line: int


def statements(text: str) -> Iterator[Statement]:
    """The statements of a valid TOML text, in order. What is between them is comments and empty lines."""
    table: KeyPath = ()
    start, line = 0, 1
    while start < len(text):
        end, equals = _extent(text, start)
        words = text[start:end].lstrip(" \t")
        if words.startswith("["):
            table = _path(words)
            yield Statement(table, True, start, end, line)
        elif equals is not None:
            yield Statement(table + _path(f"{text[start:equals]} = 0"), False, start, end, line)
        line += text.count("\n", start, end)
        start = end


def statement_of(among: Iterable[Statement], path: KeyPath) -> Statement | None:
    """The statement that sets a key, or comes nearest to it: the line it is on, or the table that it is missing from."""
    best: Statement | None = None
    depth = 0
    for statement in among:
        shared = min(len(path), len(statement.path))
        if shared > depth and statement.path[:shared] == path[:shared]:
            best, depth = statement, shared
    return best


def line_of(text: str, statement: Statement | None, value: str | None = None) -> int:
    """Return the line of a statement, or of a string in its value; 1 if it is not known."""
    if statement is None:
        return 1
    inside = -1 if value is None else text.find(value, statement.start, statement.end)
    return statement.line + (text.count("\n", statement.start, inside) if inside >= 0 else 0)


def _extent(text: str, start: int) -> tuple[int, int | None]:
    """The end of the statement or empty line that starts here, and the position of its equals sign."""
    depth, equals = 0, None
    for token in _TOKEN.finditer(text, start):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "=" if equals is None and depth == 0:
                equals = token.start()
            case "\n" if depth == 0:
                return token.end(), equals
            case _:
                pass
    return len(text), equals


def _path(words: str) -> KeyPath:
    """The path of a header or of `key = 0`: asked of the parser, which knows how keys are quoted."""
    found: list[str] = []
    part: object = tomllib.loads(words)
    while part and isinstance(part, dict | list):
        if isinstance(part, list):  # [[a.b]]
            part = part[0]
            continue
        ((key, part),) = part.items()
        found.append(key)
    return tuple(found)


MAX_PROBLEMS: Final = 20
"""Problems reported for one file. A file with more of them is probably not a config file."""

BUILT_IN: Final = ("demo",)
"""Agents that need no program and no file, and that no file replaces."""

Value: TypeAlias = str | bool | int | float | tuple[str, ...] | Mapping[str, str]
Check: TypeAlias = Callable[[object], Value]
"""Returns the value as it will be used. Raises ValueError with what it has to be."""


class ConfigProblem(msgspec.Struct, frozen=True):
    """A problem in a config file."""

    line: int
    sentence: str
    hint: str
    policy: bool
    """Whether the policy may be another one than was meant."""

    def shown(self, file: str) -> Advice:
        """Return the problem as a text, with file and line."""
        return Advice(f"{file}, line {self.line}: {self.sentence}", self.hint)


class ConfigValues(msgspec.Struct, frozen=True):
    """The valid values of one config file, by path."""

    values: Mapping[KeyPath, Value] = MappingProxyType({})
    lines: Mapping[tuple[KeyPath, str], int] = MappingProxyType({})
    """The line of each rule: (path, text) → line."""
    problems: tuple[ConfigProblem, ...] = ()

    def get(self, *path: str) -> Value | None:
        """The value of a key, if it is set."""
        return self.values.get(path)

    def text(self, *path: str) -> str | None:
        """The value of a key that is a string."""
        value = self.values.get(path)
        return value if isinstance(value, str) else None

    def texts(self, *path: str) -> tuple[str, ...]:
        """The value of a key that is a list of strings; without it an empty one."""
        value = self.values.get(path)
        return value if isinstance(value, tuple) else ()

    def table(self, *path: str) -> Mapping[str, str]:
        """The value of a key that is a table of strings; without it an empty one."""
        value = self.values.get(path)
        return value if isinstance(value, Mapping) else {}

    def names(self, table: str) -> list[str]:
        """The names in a table of tables, in their order."""
        return list(dict.fromkeys(path[1] for path in self.values if path[0] == table and len(path) > 1))


# What a value may be.


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a string that is not empty")
    return value


def _name_of(what: str) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise ValueError(f"must be the name of {what}: letters, digits, `-`, `_` and `.`")
        return value

    return check


def _one_of(*choices: str) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return check


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError('must be a list of strings: ["Read", "Bash(git status)"]')
    return tuple(value)


def _command(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value) or not value[0]:
        raise ValueError('must be a list of words, the program first: ["my-agent", "--acp"]')
    program = os.path.expanduser(value[0])
    if "/" in program and not program.startswith("/"):
        raise ValueError("must begin with a program's name or its whole path (`~` is your home)")
    if any("\0" in word for word in value):
        raise ValueError("must not hold a NUL character")
    return (program, *value[1:])


def _program(value: object) -> str:
    program = os.path.expanduser(value) if isinstance(value, str) else ""
    if not program.strip() or "\0" in program or ("/" in program and not program.startswith("/")):
        raise ValueError("must be a program's name or its whole path (`~` is your home)")
    return program


def _directory(value: object) -> str:
    place = os.path.expanduser(value) if isinstance(value, str) else ""
    if not place.startswith("/") or "\0" in place:
        raise ValueError("must be the whole path of a directory (`~` is your home)")
    return place


def _variables(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError('must be a table of strings: { NAME = "value" }')
    if any(not name or "=" in name or "\0" in name + item for name, item in value.items()):
        raise ValueError("must have names without `=`, and no NUL character anywhere")
    return MappingProxyType(value)


def _on_or_off(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("must be a whole number from 1 on")
    return value


def _amount(least: str, fits: Callable[[float], bool]) -> Check:
    def check(value: object) -> float:
        try:
            amount = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        except OverflowError:  # an absurdly large number
            amount = math.inf
        if not math.isfinite(amount) or not fits(amount):
            raise ValueError(f"must be a number {least}")
        return amount

    return check


def _engines(value: object) -> tuple[str, ...]:
    wanted = 'must be a list of engines, by name or by command line: ["claude", "my-agent --acp"]'
    if not isinstance(value, list) or not value or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError(wanted)
    if len(set(value)) < len(value):
        raise ValueError("must not name an engine twice")
    for item in value:
        if not NAME.fullmatch(item):
            _command(_words(item))
    return tuple(value)


def _words(line: str) -> list[str]:
    import shlex

    try:
        return shlex.split(line)
    except ValueError as error:
        raise ValueError(f"has a command line that does not end: {error}") from error


def _address(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise ValueError("must be an address that begins with http:// or https://")
    return value


KEYS: Final[Mapping[str, Check]] = {
    "agent": _name_of("an agent"),
    "mode": _text,
    "model": _text,
    "policy.mode": _one_of(*MODES),
    "policy.on_ask": _one_of(*ON_ASK),
    "policy.allow": _texts,
    "policy.deny": _texts,
    "policy.ask": _texts,
    "agents.NAME.command": _command,
    "agents.NAME.env": _variables,
    "agents.NAME.cwd": _directory,
    "agents.NAME.title": _text,
    "mcp.NAME.type": _one_of("stdio", "http", "sse"),
    "mcp.NAME.command": _command,
    "mcp.NAME.env": _variables,
    "mcp.NAME.url": _address,
    "mcp.NAME.headers": _variables,
    "engines.claude.executable": _program,
    "engines.codex.executable": _program,
    "chat.theme": _name_of("a theme"),
    "chat.notify": _one_of(*NOTIFY),
    "chat.keys": _one_of(*EDITING),
    "chat.images": _one_of(*IMAGES),
    "chat.undo": _on_or_off,
    "duet.engines": _engines,
    "duet.route": _name_of("a route"),
    "duet.primary": _name_of("an engine"),
    "duet.auto_resume": _on_or_off,
    "duet.review": _one_of(*REVIEWS),
    "duet.review_rounds": _count,
    "duet.max_turns": _count,
    "duet.max_tokens": _count,
    "duet.max_cost": _amount("above 0", lambda dollars: dollars > 0),
    "duet.tasks": _command,
    "duet.nudge": _on_or_off,
    "duet.nudge_cooldown": _amount("of seconds, from 0 on", lambda seconds: seconds >= 0),
    "duet.nudge_max": _count,
}
"""Every key there is → what its value may be. `NAME` stands for a name that the user chooses."""

_TABLES: Final = {key[:n] for key in KEYS for n, letter in enumerate(key) if letter == "."}
_NAMED: Final = {table.removesuffix(".NAME") for table in _TABLES if table.endswith(".NAME")}


def read(text: str) -> ConfigValues:
    """Read a config file."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return ConfigValues(problems=(_broken(error, text),))
    reader = _Reader(text)
    reader.walk((), "", document)
    reader.check_whole()
    return ConfigValues(reader.values, reader.lines, tuple(sorted(reader.problems, key=lambda problem: problem.line)))


def _broken(error: Exception, text: str) -> ConfigProblem:
    reason = (
        str(error) if isinstance(error, tomllib.TOMLDecodeError) else "nested too deeply, or a number that is too long"
    )
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", reason)
    line, column = 1, ""
    if place is not None:
        reason = reason[: place.start()]
        line = int(place[1]) if place[1] else len(text.splitlines()) or 1
        column = f" (column {place[2]})" if place[2] else " (at the end)"
    return ConfigProblem(
        line, f"this is not TOML: {reason}{column}", "correct it; until then you are asked about every call", True
    )


class _Reader:
    """Walks through one document and collects values and problems."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.values: dict[KeyPath, Value] = {}
        self.lines: dict[tuple[KeyPath, str], int] = {}
        self.problems: list[ConfigProblem] = []
        self._statements = list(statements(text))
        self._named: list[KeyPath] = []
        self._wrong: set[KeyPath] = set()

    def walk(self, path: KeyPath, pattern: str, table: Mapping[str, object]) -> None:
        for key, value in table.items():
            here = (*path, key)
            kind = "NAME" if pattern in _NAMED else key
            below = f"{pattern}.{kind}" if pattern else kind
            if kind == "NAME" and not NAME.fullmatch(key):
                self.problem(here, f"`{_shown(here)}` is no name", "use letters, digits, `-`, `_` and `.`")
            elif below == "agents.NAME" and key in BUILT_IN:
                self.problem(here, f"`{key}` is built in", "choose another name")
            elif below in KEYS:
                self.take(here, KEYS[below], value)
            elif below not in _TABLES:
                self.problem(here, f"there is no key `{_shown(here)}`", _closest(below))
            elif isinstance(value, dict):
                if kind == "NAME":
                    self._named.append(here)
                self.walk(here, below, value)
            else:
                self.problem(here, f"`{_shown(here)}` must be a table", f"write `[{_shown(here)}]` and its keys below")

    def take(self, path: KeyPath, check: Check, value: object) -> None:
        try:
            taken = check(value)
        except ValueError as error:
            self.problem(path, f"`{_shown(path)}` {error}", "correct it, or take it out")
            return
        self.values[path] = taken
        if path[0] == "policy" and isinstance(taken, tuple):
            here = statement_of(self._statements, path)
            for rule in taken:
                self.lines[path, rule] = line_of(self.text, here, rule)

    def check_whole(self) -> None:
        """Check what concerns several keys."""
        for path in self._named:
            remote = (*path, "url") in self.values or (*path, "url") in self._wrong
            kind = self.values.get((*path, "type"), "http" if remote else "stdio")
            needed = (*path, "url") if path[0] == "mcp" and kind != "stdio" else (*path, "command")
            if needed not in self.values and needed not in self._wrong:
                hint = 'add `url = "https://…"`' if needed[-1] == "url" else 'add `command = ["program", "argument"]`'
                self.problem(path, f"`{_shown(path)}` has no {needed[-1]}", hint)

    def problem(self, path: KeyPath, sentence: str, hint: str) -> None:
        # An unknown table may be the policy, misspelt.
        policy = path[0] not in ("agent", "mode", "model", "agents", "mcp", "engines", "duet", "chat")
        self._wrong.add(path)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(ConfigProblem(self._line(path), sentence, hint, policy))
        elif policy and not any(problem.policy for problem in self.problems):
            self.problems[-1] = ConfigProblem(self._line(path), sentence, hint, policy)

    def _line(self, path: KeyPath) -> int:
        return line_of(self.text, statement_of(self._statements, path))


def _shown(path: KeyPath) -> str:
    """Return a path of keys for people, without control characters."""
    return ".".join(key if NAME.fullmatch(key) else ascii(key)[:60] for key in path)


def _closest(pattern: str) -> str:
    import difflib

    near = difflib.get_close_matches(pattern, [*KEYS, *_TABLES], n=1)
    return f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(KEYS)}"
