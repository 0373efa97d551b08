"""What the raw input of a tool call asks for: a command, paths, an address. The title is never read.

Agents agree on no names, so the common ones are known in any spelling (`file_path`, `filePath`, `FILE_PATH`), and whatever
else looks like a path counts as one: a path too many makes an allow harder and a deny easier. What is not known is reported as
unread, so that the user is asked about it.
"""

import re
from collections.abc import Collection
from typing import Final

import msgspec

__all__ = [
    "ADDRESSES",
    "ARGUMENTS",
    "ASIDE",
    "COMMANDS",
    "CONTENTS",
    "DIRECTORIES",
    "HIDDEN_COMMANDS",
    "KEYED_BY_PATH",
    "LABELS",
    "PATCHES",
    "PATHS",
    "PLANS",
    "SEARCHED",
    "TEXTS",
    "USUAL_SHELLS",
    "VARIABLES",
    "CallInput",
    "files_in",
    "plain",
    "read_input",
]

# --- unified diffs: which files one names, if the input names them too
# OpenCode, Kilo and Copilot put the diff of an edit beside its path. Such a diff can be read if all of its headers name that path.
# Anything else that a program which applies patches could read as the name of a file, a rename, a mode or a deletion is not read here,
# and the call is asked about.

_HEADERS: Final = re.compile(r"^--- ([^\n]*)\n\+\+\+ ([^\n]*)$", re.MULTILINE)
"""The two lines before the changes of a file. A pair inside of a change counts as well: what applies it may count lines otherwise."""

_INDEX: Final = re.compile(r"^Index: ([^\n]*)$", re.MULTILINE)
_GIT: Final = re.compile(r"^diff ([^\n]*)$", re.MULTILINE)
_MODES: Final = re.compile(r"^(?:new|create) file mode (?!100644$)", re.MULTILINE)
_MORE: Final = re.compile(
    r"^(?:\*\*\* |rename |copy |similarity |dissimilarity |old mode |new mode |deleted file |GIT |Binary |Prereq:|Submodule )", re.MULTILINE
)  # fmt: skip
_LINES: Final = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Other ends of lines: a header may stand behind one."""

_NOTHING: Final = ("/dev/null", "a/dev/null")
"""What the old side of a new file is called."""


def files_in(patch: str, named: Collection[str]) -> set[str] | None:
    """The files that a patch may change; None if it has a header that is of no file in `named`, or cannot be read.

    A name with `a/` or `b/` before it is both: a program may strip that, or not.
    """
    pairs = _HEADERS.findall(patch)
    if not pairs or _LINES.search(patch) or _MORE.search(patch) or _MODES.search(patch):
        return None
    known = {spelling for name in named for spelling in _spellings(name)}
    commands = {f"--git {old} {new}" for old in known for new in known}
    if any(command not in commands for command in _GIT.findall(patch)):
        return None
    old, new = ({_name(pair[side]) for pair in pairs} for side in (0, 1))
    found = (old - {*_NOTHING}) | new | {*_INDEX.findall(patch)}
    return {each for name in found for each in (name, _stripped(name))} if found <= known else None


def _spellings(name: str) -> set[str]:
    bare = name.removeprefix("/")
    return {name, f"a/{bare}", f"b/{bare}"}


def _name(header: str) -> str:
    """A header without the time that may stand behind a tab."""
    return header.partition("\t")[0]


def _stripped(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name


# --- names in raw inputs, without case, `_` and `-`: `file_path`, `filePath` and `FILE-PATH` are `filepath`

COMMANDS: Final = frozenset({"cmd", "command", "commandline", "script", "shellcommand"})
HIDDEN_COMMANDS: Final = COMMANDS | {
    "bash", "chars", "cmds", "code", "commands", "exec", "executable", "keystrokes", "powershell", "program", "scripts", "sh", "shell",
    "stdin",
}  # fmt: skip
"""What runs something, wherever it stands: deep inside, or typed into a program that already runs."""
ARGUMENTS: Final = frozenset({"args", "arguments", "argv"})
VARIABLES: Final = frozenset({"env", "environment", "environmentvariables", "envs", "envvars"})
DIRECTORIES: Final = frozenset({
    "cwd", "dir", "directory", "dirpath", "folder", "path", "workdir", "workingdir", "workingdirectory",
})  # fmt: skip
LABELS: Final = frozenset({
    "callid", "cellid", "celltype", "editmode", "encoding", "id", "kind", "language", "sessionid", "status", "toolcallid", "tooluseid",
    "turnid", "type",
})  # fmt: skip
"""Short values that name nothing on a disk."""
ASIDE: Final = LABELS | {
    "blocking", "commandactions", "description", "explanation", "isbackground", "justification", "login", "maxoutputtokens", "parsedcmd",
    "proposedexecpolicyamendment", "reason", "requireuserapproval", "runinbackground", "timeout", "timeoutms", "timeoutsec", "timeoutseconds", "title",
    "tty", "yieldtimems",
}  # fmt: skip
"""What may stand beside a command and changes nothing about it."""
USUAL_SHELLS: Final = (
    "bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh",
)  # fmt: skip

ADDRESSES: Final = frozenset({"uri", "url"})
PATHS: Final = DIRECTORIES | {
    "absolutepath", "dest", "destination", "dst", "file", "filename", "filepath", "filepaths", "files", "from", "movepath", "newpath",
    "notebookpath", "oldpath", "paths", "source", "src", "target", "targetfile", "to",
}  # fmt: skip
KEYED_BY_PATH: Final = frozenset({"changes", "filechanges", "files"})
"""Objects whose keys are paths, at least with some agents."""
PATCHES: Final = frozenset({"diff", "patch", "patches", "unifieddiff"})
CONTENTS: Final = PATCHES | {
    "changes", "content", "contents", "edits", "filechanges", "filetext", "inserttext", "newcontent", "newsource", "newstr",
    "newstring", "newtext", "replacement",
}  # fmt: skip
"""What is there to be written. A call that has it does not only read."""
TEXTS: Final = frozenset({
    "description", "explanation", "instruction", "instructions", "message", "oldcontent", "oldstr", "oldstring", "oldtext", "text",
    "todos",
})  # fmt: skip
"""Text that may well begin with a slash."""
SEARCHED: Final = frozenset({"glob", "pattern", "prompt", "query", "regex"})
"""The same for a search. A call that changes files and has one of these names them with it."""
PLANS: Final = frozenset({"entries", "plan", "todos"})


def plain(key: object) -> str:
    """A name without what agents spell differently."""
    return str(key).casefold().replace("_", "").replace("-", "")


MAX_VALUES: Final = 1000
"""Values of an input that are looked at. A call with more names more files than a person checks; it counts as unread."""

_WRITTEN: Final = CONTENTS - PATCHES - KEYED_BY_PATH - {"edits"}
_PATCH: Final = re.compile(r"^(?:\*\*\* |\+\+\+ |--- |diff --git |rename to )", re.MULTILINE)


class CallInput(msgspec.Struct):
    """What was found.

    `unread` means that there is more, in a form that we do not read; `strange` that there is text under a name we do not know,
    which matters if the call changes files. `changes` means that it brings text to write, `opaque` that it is not an object at all.
    """

    command: str | None = None
    words: tuple[str, ...] | None = None
    directory: str | None = None
    url: str | None = None
    paths: list[str] = msgspec.field(default_factory=list)
    variables: list[tuple[str, str]] = msgspec.field(default_factory=list)
    patches: list[str] = msgspec.field(default_factory=list)
    unread: bool = False
    strange: bool = False
    changes: bool = False
    opaque: bool = False


def read_input(raw: object) -> CallInput:
    """Read a raw input, whatever it is."""
    call_input = CallInput()
    if isinstance(raw, dict):
        _command(raw, call_input)
        if call_input.command is not None or call_input.words is not None:
            _beside_command(raw, call_input)
        else:
            _others(raw, call_input)
    elif raw:
        call_input.unread = call_input.opaque = True
    return call_input


def _command(raw: dict[object, object], call_input: CallInput) -> None:
    found = [value for key, value in raw.items() if plain(key) in COMMANDS and value]
    arguments = [value for key, value in raw.items() if plain(key) in ARGUMENTS and value]
    if not found:
        return
    command = found[0]
    given = _strings(arguments[0]) if arguments else ()
    if len(found) > 1 or len(arguments) > 1 or given is None:
        call_input.unread, call_input.command = True, ""
    elif isinstance(command, str) and given:
        call_input.words = (command, *given)
    elif isinstance(command, str):
        call_input.command = command
    elif (words := _strings(command)) and not given:
        call_input.words = words
    else:
        call_input.unread, call_input.command = True, ""


# --- a command, and what stands beside it ---


def _beside_command(raw: dict[object, object], call_input: CallInput) -> None:
    directories: set[str] = set()
    for key, value in raw.items():
        name = plain(key)
        if value is None or value in ("", [], {}) or name in COMMANDS | ARGUMENTS | ASIDE:
            continue
        if name in DIRECTORIES and isinstance(value, str):
            directories.add(value)
        elif name in VARIABLES:
            _variables(value, call_input)
        elif not (name == "shell" and value in USUAL_SHELLS):
            call_input.unread = True
    call_input.unread |= len(directories) > 1
    call_input.directory = min(directories, default=None)


def _variables(value: object, call_input: CallInput) -> None:
    """`{"A": "b"}`, `[{"name": "A", "value": "b"}]` or `["A=b"]`."""
    for item in value.items() if isinstance(value, dict) else value if isinstance(value, list) else [value]:
        if isinstance(item, tuple):
            call_input.variables.append((str(item[0]), str(item[1])))
        elif isinstance(item, dict):
            call_input.variables.append((str(item.get("name")), str(item.get("value"))))
        else:
            name, _, text = str(item).partition("=")
            call_input.variables.append((name, text))


# --- anything else ---


def _others(raw: dict[object, object], call_input: CallInput) -> None:
    addresses = {value for key, value in raw.items() if plain(key) in ADDRESSES and isinstance(value, str) and value}
    call_input.unread |= len(addresses) > 1
    call_input.url = min(addresses, default=None)
    todo: list[tuple[str, object]] = []
    _keys(raw, "", todo, call_input)
    for name, value in todo:  # it grows meanwhile
        if name in HIDDEN_COMMANDS and isinstance(value, str | list | dict) and value:
            call_input.unread, call_input.command = (
                True,
                "",
            )  # it runs something, and where and how is not for us to guess
        call_input.changes |= name in CONTENTS and isinstance(value, str | list | dict)
        if isinstance(value, dict):
            _keys(value, name, todo, call_input)
        elif isinstance(value, list):
            todo += [(name, item) for item in value]
        elif isinstance(value, str) and value:
            _string(name, value, todo, call_input)
        if len(todo) > MAX_VALUES:
            call_input.unread = True
            return
    named = [value for name, value in todo if name in PATHS and isinstance(value, str)]
    for patch in call_input.patches:
        found = files_in(patch, named)
        call_input.unread |= found is None
        call_input.paths += sorted(found or ())


def _keys(raw: dict[object, object], under: str, todo: list[tuple[str, object]], call_input: CallInput) -> None:
    for key, value in raw.items():
        if under in KEYED_BY_PATH or "/" in str(key):
            call_input.paths.append(str(key))
        name = plain(key)
        # The text of a plan's entry is called `content` too, and is not written to a file.
        todo.append(("text" if under in PLANS and name == "content" else name, value))


def _string(name: str, value: str, todo: list[tuple[str, object]], call_input: CallInput) -> None:
    if name in PATHS:
        call_input.paths.append(value)
    elif name in TEXTS or name in _WRITTEN or name in ADDRESSES:
        pass
    elif name in PATCHES or _PATCH.search(value):
        if name in PATCHES and _PATCH.search(value):
            call_input.patches.append(value)
        else:
            call_input.unread |= name != "unifieddiff"
    else:
        call_input.strange |= name not in LABELS or "/" in value
        if name in SEARCHED:
            return
        if "\n" not in value and (value.startswith(("/", "~", "../", "./")) or "/../" in value):
            call_input.paths.append(value)
        elif value.lstrip()[:1] in ("{", "["):
            _inner(name, value, todo, call_input)


def _inner(name: str, value: str, todo: list[tuple[str, object]], call_input: CallInput) -> None:
    """An object written as text: some agents pass on arguments as they got them."""
    try:
        todo.append((name, msgspec.json.decode(value)))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        call_input.strange = True


def _strings(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None
