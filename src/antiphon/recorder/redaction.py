"""Take secrets, home paths and contents of files out of a recording. Pure, line by line.

Only strings are changed, and numbers that are secrets, and only where they are: the rest of a line stays byte for byte, and a line
with nothing to hide stays as it is. So every message is as valid as it was, its ids are what they were, and numbers are written as
they were sent.
"""

import base64
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from antiphon.recorder.lines import note
from antiphon.recorder.writer import RecordingFiles
from antiphon.redaction import Secrets, holds_secrets, is_count, is_flag, is_secret_name, is_secret_number
from antiphon.text import replace_surrogates
from antiphon.traffic.entries import BAD_INPUT

__all__ = ["RecordingRedactor", "redact_file"]

_TOKENS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],]|-?\d[\d.eE+-]*+', re.DOTALL)
_ITEM: Final = "[]"
"""Stands in a path for a place in an array."""

_GIVEN: Final = frozenset({"env", "environment", "headers"})
"""What stands below these is given to a program or a server, and is private."""

_CONTENT: Final = frozenset({"oldText", "newText", "blob"})
_TOOL: Final = frozenset({"rawInput", "rawOutput"})
_CONTENT_SIGNS: Final = (
    '"oldtext"',
    '"newtext"',
    '"blob"',
    '"rawinput"',
    '"rawoutput"',
    '"resource"',
    '"data"',
    '"output"',
    '"raw"',
    '"patch"',
)
_TERMINAL_SIGNS: Final = ("terminal_output_chunk", "terminal_update")
"""The updates of version 2 that have the output of a terminal, as base64."""
_COLOURS: Final = re.compile(r"(\x1b\[[0-?]*[ -/]*[@-~])")
_CONTENT_STRING: Final = re.compile(r'"content"\s*:\s*"')
_OURS: Final = re.compile(r"\[redacted: \d+ characters\]")


class RecordingRedactor:
    """Takes out what is asked for: `secrets`, `home`, `files`."""

    def __init__(self, what: Collection[str], environment: Mapping[str, str] = os.environ) -> None:
        self._secrets = Secrets() if "secrets" in what else None
        home, user = _home_and_user(environment)
        self._home = _home_pattern(home, user) if "home" in what else None
        # A slash may be written with a backslash before it, so only names are looked for.
        self._home_signs = {"home", "users", *(part.lower() for part in (os.path.basename(home), user) if part)}
        self._files = "files" in what

    def block(self, lines: bytes) -> bytes:
        """Whole lines of a recording, each valid JSON."""
        return b"".join(self.line(line) + b"\n" for line in lines.split(b"\n")[:-1])

    def line(self, line: bytes) -> bytes:
        """Redact one line of a recording: valid JSON, without its line end."""
        text = line.decode()
        if not self._may_change(text):
            return line
        done: list[str] = []
        at = 0
        for start, end, string in _Walk(self).changes(text):
            done += (text[at:start], string)
            at = end
        if not done:
            return line
        return "".join((*done, text[at:])).encode()

    def _may_change(self, text: str) -> bool:
        """Whether the line has to be read string by string. Most have not, and that takes a tenth of the time."""
        plain = text.lower()
        if "\\u" in plain:  # letters may be written by their numbers
            return True
        if self._secrets is not None and (
            "env" in plain or "headers" in plain or self._secrets.may_be_in(plain) or self._secrets.knows_one_in(text)
        ):
            return True
        if self._home is not None and any(sign in plain for sign in self._home_signs):
            return True
        if any(sign in plain for sign in _TERMINAL_SIGNS):  # what is in base64 shows no signs
            return True
        return '"base64"' in plain or (self._files and _may_have_content(plain))

    def key(self, text: str) -> str:
        """The name of a field: only what is a secret by itself is hidden there."""
        return self._secrets.clear(text) if self._secrets is not None else text

    def value(self, text: str, path: list[str], before: str, *, is_stderr: bool) -> str:
        """A string somewhere in a line; `before` is the string before it in the same array."""
        if len(path) == 1 and path[0] in ("dir", "base64"):
            return text if path[0] == "dir" else _counted(text)
        if path == ["raw"] and not is_stderr:
            if _is_json(text):  # other tools write messages like that too
                return self.line(text.encode()).decode()
            if self._files:  # a piece of a message, or of anything
                return _counted(text)
        if self._files and _is_content(path):
            return _counted(text)
        if _is_output(path):
            return self._output(text)
        if self._secrets is not None:
            if self._is_secret(path, before, text):
                return self._secrets.hide(text)
            if _is_given(path):
                return self._secrets.hide(text, is_named=False)
            text = self._secrets.clear(text)
        return text if self._home is None else self._home.sub(_tilde, text)

    def _clear(self, text: str) -> str:
        clear = text if self._secrets is None else self._secrets.clear(text)
        return clear if self._home is None else self._home.sub(_tilde, clear)

    def _output(self, data: str) -> str:
        """The output of a terminal in base64. A secret that is cut by the end of a piece is not found."""
        try:
            text = base64.b64decode(data, validate=True).decode("utf-8", "surrogateescape")
        except ValueError:
            return data
        # A colour right before a word would hide where the word begins.
        clear = "".join(one if one.startswith("\x1b") else self._clear(one) for one in _COLOURS.split(text))
        return data if clear == text else base64.b64encode(clear.encode("utf-8", "surrogateescape")).decode()

    def number(self, text: str, path: list[str]) -> str:
        """A number somewhere in a line. It becomes another number, so that the message stays what it was."""
        if self._secrets is None or not any(map(is_secret_name, path)):
            return text
        name = next((one for one in reversed(path) if is_secret_name(one)), "")
        return "0" if is_secret_number(name, text) and _has_secrets(path) else text

    def named(self, text: str) -> str:
        """A value whose name marks it as a secret."""
        return self._secrets.hide(text) if self._secrets is not None else text

    def _is_secret(self, path: list[str], before: str, text: str) -> bool:
        if is_count(path[-1], text):
            return False
        if path[-1] == _ITEM and is_flag(before) and not text.startswith("-"):
            return True
        near = path[-2] if path[-1] == _ITEM and len(path) > 1 else path[-1]
        return is_secret_name(near) or _has_secrets(path)


@dataclass(slots=True)
class _Pair:
    """The fields of an object that may be a name and a value; `where` is the place of a value that was not hidden, and its text."""

    name: str = ""
    value: str = ""
    where: tuple[int, int, str] | None = None


_PAIR: Final = ("name", "value")
_PLAIN_NAME: Final = re.compile(r"[\w.-]+")
"""A label for people has spaces."""


class _Walk:
    """The strings of one line, with the names they stand under."""

    def __init__(self, redactor: RecordingRedactor) -> None:
        self._redactor = redactor
        self._is_stderr = False
        self._path: list[str] = []  # one for each open object or array: the name or item that is being read in it
        self._before: list[str] = []  # the string before, in each of them
        self._pairs: list[_Pair] = []  # in each of them

    def changes(self, text: str) -> list[tuple[int, int, str]]:
        """What is to stand instead, and where."""
        found: list[tuple[int, int, str]] = []
        names = False  # whether the next string is the name of a field
        path, before, pairs = self._path, self._before, self._pairs
        for token in _TOKENS.finditer(text):
            sign = token.group()
            if sign == ",":
                names = path[-1] is not _ITEM
            elif sign in "{[":
                path.append("" if sign == "{" else _ITEM)
                before.append("")
                pairs.append(_Pair())
                names = sign == "{"
            elif sign in "}]":
                path.pop()
                before.pop()
                found += self._of_pair(pairs.pop())
                names = False
            elif sign[0] != '"':
                if path and (number := self._redactor.number(sign, path)) != sign:
                    found.append((*token.span(), number))
            else:
                old = _text_of(sign)
                new = self._key(old) if names else self._value(old)
                if path and not names and path[-1] in _PAIR:
                    setattr(pairs[-1], path[-1], old)
                    if path[-1] == "value":
                        pairs[-1].where = (*token.span(), new) if new == old else None
                names = False
                if new != old:
                    found.append((*token.span(), msgspec.json.encode(new).decode()))
        return sorted(found)

    def _of_pair(self, pair: "_Pair") -> list[tuple[int, int, str]]:
        """The replacement for a value whose name stands beside it, before or after."""
        if pair.where is None or not _PLAIN_NAME.fullmatch(pair.name) or not is_secret_name(pair.name):
            return []
        start, end, text = pair.where
        if self._path[-2:] == ["options", _ITEM]:  # what can be chosen, with a label
            return []
        return [(start, end, msgspec.json.encode(self._redactor.named(text)).decode())]

    def _key(self, text: str) -> str:
        self._path[-1] = text
        return self._redactor.key(text)

    def _value(self, text: str) -> str:
        if not self._path:
            return self._redactor.key(text)
        if self._path == ["dir"]:
            self._is_stderr = text == "stderr"
        new = self._redactor.value(text, self._path, self._before[-1], is_stderr=self._is_stderr)
        self._before[-1] = text
        return new


def _is_content(path: list[str]) -> bool:
    """Whether this is a part of a file, or of the output of a tool or a terminal."""
    name = path[-1]
    above = path[-2] if len(path) > 1 else ""
    if name in _CONTENT or not _TOOL.isdisjoint(path):
        return True
    if name == "text":  # in a resource, or in what a tool has to show; else it is part of a message
        shown = path[-4:-1] == ["content", _ITEM, "content"] or path[-3:-1] == ["content", "content"]
        return above in ("resource", "patch") or shown
    if name == "data":  # a picture, a sound, the output of a terminal; in an error it has the reason
        return above != "error"
    return name in ("content", "output") and above in ("params", "result")


def _is_output(path: list[str]) -> bool:
    """Whether this is the output of a terminal, or a piece of it, in version 2."""
    return path[-2:] == ["update", "data"] or path[-3:] == ["update", "output", "data"]


def _may_have_content(plain: str) -> bool:
    """Whether a line in small letters can have any of that."""
    return (
        any(sign in plain for sign in _CONTENT_SIGNS)
        or plain.count('"content"') > 1
        or _CONTENT_STRING.search(plain) is not None
    )


def _is_given(path: list[str]) -> bool:
    """Whether this is the value of an environment variable or a header, in any way to write them, or a part of one."""
    for at, name in enumerate(path[:-1]):
        if name in _GIVEN:
            return path[at + 1 :] != [_ITEM, "name"]
    return False


def _has_secrets(path: list[str]) -> bool:
    """Whether a name on the path marks everything below it as secret. A schema has names too, but no values."""
    return any(holds_secrets(name) and not (at and path[at - 1] == "properties") for at, name in enumerate(path))


def _text_of(string: str) -> str:
    """The text of a JSON string."""
    if "\\" not in string:
        return string[1:-1]
    try:
        text: str = msgspec.json.decode(string)
    except msgspec.DecodeError:
        text = msgspec.json.decode(replace_surrogates(string.encode()))
    return text


def _counted(text: str) -> str:
    return text if not text or _OURS.fullmatch(text) else f"[redacted: {len(text)} characters]"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except BAD_INPUT:
        return False
    return text[:1] in "{["


def _tilde(found: re.Match[str]) -> str:
    """What stands for a home directory. With its slash: where the protocol wants an absolute path there is still one."""
    return "-~" if found.group().startswith("-") else "/~"


def _home_and_user(environment: Mapping[str, str]) -> tuple[str, str]:
    home = environment.get("HOME", "").rstrip("/")
    return home, environment.get("USER") or environment.get("LOGNAME") or os.path.basename(home)


def _home_pattern(home: str, user: str) -> re.Pattern[str]:
    """Home directories, ours and those of others; our name where it is a part of a path; and our home as a part of one name."""
    name = r"[^/\\\s\"'`:;,<>|(){}\[\]]+"
    alone = r"(?<![\w.~-])"
    ways = [rf"{alone}/(?:home|Users)/{name}", rf"{alone}[A-Za-z]:\\+Users\\+{name}"]
    if home.startswith("/"):
        ways.insert(0, alone + re.escape(home) + r"(?![\w.-])")
        if home.count("/") > 1:  # as in `.claude/projects/-home-ada-songs`
            ways.append(re.escape(home.replace("/", "-")) + r"(?![\w.])")
    if len(user) > 2 and user != "root":
        ways.append(rf"(?<=[\w.-])/{re.escape(user)}(?![\w.-])")
    return re.compile("|".join(ways))


# --- a whole file: a recording that was made without redaction, written once more with it


def redact_file(source: str, target: str, what: frozenset[str]) -> tuple[int, int]:
    """Write the recording `source` redacted to `target`: how many lines were written, and how many were not JSON and left out.

    It is read twice: a secret that gives itself away only at the end is hidden in the beginning too.

    Raises:
        OSError: one of them cannot be read or written.
    """
    redactor = RecordingRedactor(what)
    files = RecordingFiles(target)
    written = left_out = 0
    with open(source, "rb") as file:
        if os.path.exists(target) and os.path.samefile(source, target):
            raise ValueError("a recording cannot be rewritten onto itself")
        for line in file:
            if _is_json_line(line):
                redactor.line(line)
        file.seek(0)
        files.open()
        try:
            for line in file:
                if not line.strip():
                    continue
                written += 1
                if _is_json_line(line):
                    files.write(redactor.line(line.rstrip(b"\r\n")) + b"\n")
                else:
                    left_out += 1
                    files.write(note(0, "a line that is not JSON was left out", bytes=len(line)))
        finally:
            files.close()
    return written, left_out


def _is_json_line(line: bytes) -> bool:
    try:
        line.decode()
        msgspec.json.decode(line, type=msgspec.Raw)
    except BAD_INPUT:
        return False
    return True
