"""What a tool call says it will do, read off its raw input: a command, paths, an address. Never off its title.

Agents agree on no names, so the common ones are known, and whatever else looks like a path counts as one: a path too many
makes an allow harder and a deny easier.
"""

from typing import Final

import msgspec

__all__ = ["Said", "what_it_says"]

_COMMANDS: Final = ("command", "cmd", "script", "shell_command", "command_line", "commandLine")
_ARGUMENTS: Final = ("args", "arguments", "argv")
_FOLDERS: Final = ("cwd", "workdir", "working_directory", "workingDirectory", "dir_path")
_ADDRESSES: Final = ("url", "uri")
_PATHS: Final = frozenset({
    "absolute_path", "absolutePath", "dest", "destination", "dir", "directory", "dst", "file", "file_path", "filePath",
    "filename", "files", "folder", "from", "new_path", "newPath", "notebook_path", "notebookPath", "old_path", "oldPath",
    "path", "paths", "source", "src", "target", "target_file", "targetFile", "to",
})  # fmt: skip
_TEXTS: Final = frozenset({
    "content", "description", "edits", "explanation", "glob", "message", "new_source", "new_string", "newString", "new_text",
    "old_string", "oldString", "old_text", "pattern", "prompt", "query", "regex", "text", "todos",
})  # fmt: skip
"""Keys whose values are text that may well begin with a slash."""
_PATCHES: Final = frozenset({"diff", "patch", "patches"})

MAX_VALUES: Final = 1000
"""Values of an input that are looked at. A call with more names more files than anybody checks; it counts as unread."""


class Said(msgspec.Struct):
    """What was found. `unread` means that there is more, in a form that we do not read."""

    command: str | None = None
    words: tuple[str, ...] | None = None
    folder: str | None = None
    url: str | None = None
    paths: list[str] = msgspec.field(default_factory=list)
    unread: bool = False


def what_it_says(raw: object) -> Said:
    """Read a raw input, whatever it is."""
    said = Said()
    if isinstance(raw, dict):
        _command(raw, said)
        _others(raw, said)
    elif raw:
        said.unread = True
    return said


def _command(raw: dict[object, object], said: Said) -> None:
    found = [raw[key] for key in _COMMANDS if raw.get(key)]
    arguments = [raw[key] for key in _ARGUMENTS if raw.get(key)]
    if not found:
        return
    command = found[0]
    given = _strings(arguments[0]) if arguments else ()
    if len(found) > 1 or len(arguments) > 1 or given is None:
        said.unread, said.command = True, ""
    elif isinstance(command, str) and given:
        said.words = (command, *given)
    elif isinstance(command, str):
        said.command = command
    elif (words := _strings(command)) and not given:
        said.words = words
    else:
        said.unread, said.command = True, ""


def _others(raw: dict[object, object], said: Said) -> None:
    folders = {value for key in _FOLDERS if isinstance(value := raw.get(key), str) and value}
    addresses = {value for key in _ADDRESSES if isinstance(value := raw.get(key), str) and value}
    said.unread |= len(folders) > 1 or len(addresses) > 1
    said.folder = min(folders, default=None)
    said.url = min(addresses, default=None)
    skipped = (
        {*_COMMANDS, *_ARGUMENTS, *_FOLDERS, *_ADDRESSES} if said.command is not None or said.words else {*_ADDRESSES}
    )
    todo: list[tuple[object, object]] = [item for item in raw.items() if item[0] not in skipped]
    for key, value in todo:  # it grows meanwhile
        if isinstance(value, dict):
            todo += value.items()
        elif isinstance(value, list):
            todo += [(key, item) for item in value]
        elif isinstance(value, str) and value:
            _string(key, value, said)
        if len(todo) > MAX_VALUES:
            said.unread = True
            return


def _string(key: object, value: str, said: Said) -> None:
    if key in _PATHS:
        said.paths.append(value)
    elif key in _PATCHES:
        said.unread = True
    elif key not in _TEXTS and "\n" not in value and (value.startswith(("/", "~", "../", "./")) or "/../" in value):
        said.paths.append(value)


def _strings(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None
