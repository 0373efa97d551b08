"""What a tool call says it will do, read off its raw input: a command, paths, an address. Never off its title.

Agents agree on no names, so the common ones are known in any spelling (`file_path`, `filePath`, `FILE_PATH`), and whatever
else looks like a path counts as one: a path too many makes an allow harder and a deny easier. What is not known is said to be
there, so that an allow can ask about it.
"""

import re
from typing import Final

import msgspec

from antiphon.policy import input_names as names
from antiphon.policy.input_names import plain
from antiphon.policy.patches import files_in

__all__ = ["Said", "what_it_says"]

MAX_VALUES: Final = 1000
"""Values of an input that are looked at. A call with more names more files than anybody checks; it counts as unread."""

_WRITTEN: Final = names.CONTENTS - names.PATCHES - names.KEYED_BY_PATH - {"edits"}
_PATCH: Final = re.compile(r"^(?:\*\*\* |\+\+\+ |--- |diff --git |rename to )", re.MULTILINE)


class Said(msgspec.Struct):
    """What was found.

    `unread` means that there is more, in a form that we do not read; `strange` that there is text under a name we do not know,
    which matters if the call changes files. `changes` means that it brings text to write, `opaque` that it is no object at all.
    """

    command: str | None = None
    words: tuple[str, ...] | None = None
    folder: str | None = None
    url: str | None = None
    paths: list[str] = msgspec.field(default_factory=list)
    variables: list[tuple[str, str]] = msgspec.field(default_factory=list)
    patches: list[str] = msgspec.field(default_factory=list)
    unread: bool = False
    strange: bool = False
    changes: bool = False
    opaque: bool = False


def what_it_says(raw: object) -> Said:
    """Read a raw input, whatever it is."""
    said = Said()
    if isinstance(raw, dict):
        _command(raw, said)
        if said.command is not None or said.words is not None:
            _beside_command(raw, said)
        else:
            _others(raw, said)
    elif raw:
        said.unread = said.opaque = True
    return said


def _command(raw: dict[object, object], said: Said) -> None:
    found = [value for key, value in raw.items() if plain(key) in names.COMMANDS and value]
    arguments = [value for key, value in raw.items() if plain(key) in names.ARGUMENTS and value]
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


# --- a command, and what stands beside it ---


def _beside_command(raw: dict[object, object], said: Said) -> None:
    folders: set[str] = set()
    for key, value in raw.items():
        name = plain(key)
        if value is None or value in ("", [], {}) or name in names.COMMANDS | names.ARGUMENTS | names.ASIDE:
            continue
        if name in names.FOLDERS and isinstance(value, str):
            folders.add(value)
        elif name in names.VARIABLES:
            _variables(value, said)
        elif not (name == "shell" and value in names.USUAL_SHELLS):
            said.unread = True
    said.unread |= len(folders) > 1
    said.folder = min(folders, default=None)


def _variables(value: object, said: Said) -> None:
    """`{"A": "b"}`, `[{"name": "A", "value": "b"}]` or `["A=b"]`."""
    for item in value.items() if isinstance(value, dict) else value if isinstance(value, list) else [value]:
        if isinstance(item, tuple):
            said.variables.append((str(item[0]), str(item[1])))
        elif isinstance(item, dict):
            said.variables.append((str(item.get("name")), str(item.get("value"))))
        else:
            name, _, text = str(item).partition("=")
            said.variables.append((name, text))


# --- anything else ---


def _others(raw: dict[object, object], said: Said) -> None:
    addresses = {
        value for key, value in raw.items() if plain(key) in names.ADDRESSES and isinstance(value, str) and value
    }
    said.unread |= len(addresses) > 1
    said.url = min(addresses, default=None)
    todo: list[tuple[str, object]] = []
    _keys(raw, "", todo, said)
    for name, value in todo:  # it grows meanwhile
        if name in names.HIDDEN_COMMANDS and isinstance(value, str | list | dict) and value:
            said.unread, said.command = True, ""  # it runs something, and where and how is not for us to guess
        said.changes |= name in names.CONTENTS and isinstance(value, str | list | dict)
        if isinstance(value, dict):
            _keys(value, name, todo, said)
        elif isinstance(value, list):
            todo += [(name, item) for item in value]
        elif isinstance(value, str) and value:
            _string(name, value, todo, said)
        if len(todo) > MAX_VALUES:
            said.unread = True
            return
    named = [value for name, value in todo if name in names.PATHS and isinstance(value, str)]
    for patch in said.patches:
        found = files_in(patch, named)
        said.unread |= found is None
        said.paths += sorted(found or ())


def _keys(raw: dict[object, object], under: str, todo: list[tuple[str, object]], said: Said) -> None:
    for key, value in raw.items():
        if under in names.KEYED_BY_PATH or "/" in str(key):
            said.paths.append(str(key))
        name = plain(key)
        # The text of a plan's entry is called `content` too, and nobody writes it to a file.
        todo.append(("text" if under in names.PLANS and name == "content" else name, value))


def _string(name: str, value: str, todo: list[tuple[str, object]], said: Said) -> None:
    if name in names.PATHS:
        said.paths.append(value)
    elif name in names.TEXTS or name in _WRITTEN or name in names.ADDRESSES:
        pass
    elif name in names.PATCHES or _PATCH.search(value):
        if name in names.PATCHES and _PATCH.search(value):
            said.patches.append(value)
        else:
            said.unread |= name != "unifieddiff"
    else:
        said.strange |= name not in names.LABELS or "/" in value
        if name in names.SEARCHED:
            return
        if "\n" not in value and (value.startswith(("/", "~", "../", "./")) or "/../" in value):
            said.paths.append(value)
        elif value.lstrip()[:1] in ("{", "["):
            _inner(name, value, todo, said)


def _inner(name: str, value: str, todo: list[tuple[str, object]], said: Said) -> None:
    """An object written as text: some agents pass on arguments as they got them."""
    try:
        todo.append((name, msgspec.json.decode(value)))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        said.strange = True


def _strings(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None
