"""One thing an agent wants to do, in the form that rules are matched with. Built from messages; touches no disk.

Links are the caller's business: `resolve` is given an absolute path and returns the real one. Without it paths are only
tidied up, which is right for a test and wrong for a decision about a disk.
"""

import posixpath
from collections.abc import Iterable
from typing import Final

import msgspec

from antiphon.policy.inputs import LABELS, PATHS, CallInput, plain, read_input
from antiphon.policy.paths import Exists, PathResolver, Resolve, nothing_exists, through_process
from antiphon.policy.patterns import CommandLine
from antiphon.policy.programs import BASH_LIKE, is_harmless
from antiphon.policy.rules import FILE_KINDS, KIND_OF, QUIET_KINDS, TOOL_OF_KIND, canonical, worst
from antiphon.protocol.v1.client_services import CreateTerminal, ReadTextFile, WriteTextFile
from antiphon.protocol.v1.tools import Diff, ToolCall, ToolCallPatch, ToolKind

__all__ = ["Action", "FileWork", "file_work", "looks_like_file_work"]

# --- plain file work: lines of nothing but `mkdir`, `rm` and `mv`, which `acceptEdits` allows inside the roots

_OPTIONS: Final = {
    "mkdir": frozenset({"-p", "-v", "-pv", "-vp", "--parents", "--verbose"}),
    "mv": frozenset({"-f", "-i", "-n", "-v", "--force", "--interactive", "--no-clobber", "--verbose"}),
    "rm": frozenset({"--dir", "--force", "--recursive", "--verbose"}),
}
_RM_LETTERS: Final = frozenset("dfirRv")


def looks_like_file_work(text: str) -> bool:
    """A cheap look, so that other lines are not parsed for this."""
    return text.lstrip().partition(" ")[0] in _OPTIONS


class FileWork(msgspec.Struct, frozen=True):
    """The paths that a line makes, removes or moves."""

    paths: tuple[str, ...]
    made: tuple[str, ...] = ()
    """Paths that only `mkdir` names: directories."""
    moved: tuple[str, ...] = ()
    """Paths that `mv` names."""


def file_work(line: CommandLine) -> FileWork | None:
    """What the line does to files; None if it does anything else or anything more."""
    if line.unclear or line.special or not line.parts:
        return None
    found: dict[str, list[str]] = {"mkdir": [], "rm": [], "mv": []}
    for part in line.parts:
        operands = _operands(tuple(word for word in part.words if word is not None), len(part.words))
        if not operands:
            return None
        found[part.words[0] or ""] += operands
    made, moved = tuple(found["mkdir"]), tuple(found["mv"])
    others = {*moved, *found["rm"]}
    return FileWork((*made, *found["rm"], *moved), tuple(path for path in made if path not in others), moved)


def _operands(words: tuple[str, ...], count: int) -> list[str] | None:
    if len(words) != count or words[0] not in _OPTIONS:
        return None
    program, *arguments = words
    operands: list[str] = []
    for at, word in enumerate(arguments):
        if word == "--":
            return operands + arguments[at + 1 :]
        if not word.startswith("-"):
            operands.append(word)
        elif not _harmless(program, word):
            return None
    # An empty path is an error for the program and a directory for us.
    return operands if all(operands) else None


def _harmless(program: str, option: str) -> bool:
    if option in _OPTIONS[program]:
        return True
    return program == "rm" and len(option) > 1 and option[1] != "-" and _RM_LETTERS.issuperset(option[1:])


_PATCHERS: Final = frozenset({"apply_patch", "patch"})
_BESIDE_PATCHES: Final = PATHS | LABELS | {"changes", "description"}
_SYNTAX: Final = frozenset(" \t\n|&;<>()$`\\\"'*?[#~=%{}!")
_SHELL_FLAGS: Final = frozenset({"-c", "-lc"})


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be decided.

    `paths` are absolute and real; `spellings` are other names of the same, which only a deny looks at. `unread` means that it
    may do more than is listed here. `variables` names environment variables it sets. `plain_files` means that it is a command
    line of nothing but `mkdir`, `rm` and `mv`, and `paths` are what that touches. `made_directories` are names of directories that are made, `moved` names of
    what is moved and where to.
    """

    kind: str = "other"
    claimed: tuple[str, ...] = ()
    name: str | None = None
    command: str | None = None
    words: tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    url: str | None = None
    variables: tuple[str, ...] = ()
    unread: bool = False
    plain_files: bool = False
    made_directories: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    cwd: str = "/"
    roots: tuple[str, ...] = ()
    home: str | None = None
    resolve: Resolve = posixpath.normpath
    """How links are followed: what a command touches is only worked out if a rule needs it."""
    exists: Exists = nothing_exists
    """Whether there is a file: git runs what it finds in some, and takes the name of a directory for a remote."""
    raw: object = None
    title: str = ""
    """The agent's title of the call, for people. No rule looks at it."""

    @property
    def tool(self) -> str | None:
        """The name rules know it by: that of the call, or without one that of its kind."""
        return canonical(self.name) if self.name is not None else TOOL_OF_KIND.get(self.kind)

    @classmethod
    def of_tool_call(
        cls,
        call: ToolCall | ToolCallPatch,
        cwd: str,
        roots: Iterable[str],
        *,
        home: str | None = None,
        resolve: Resolve = posixpath.normpath,
        exists: Exists = nothing_exists,
    ) -> "Action":
        """What a tool call wants to do. Give it whole: a patch without what was sent before has too little, and the user is asked."""
        resolver = PathResolver(cwd, tuple(roots), home, resolve, exists)
        raw = call.input if call.raw_input is msgspec.UNSET else call.raw_input
        call_input = read_input(None if raw is msgspec.UNSET else raw)
        name = call.name if isinstance(call.name, str) and call.name else None
        claimed = tuple(kind.meaning.value for kind in (call.kind, call.tool_kind) if isinstance(kind, ToolKind))
        diffs = [item.path for item in call.content or () if isinstance(item, Diff)]
        kind = _effective(name, claimed or ("other",), call_input, edits=bool(diffs))
        if kind == "execute":
            variables = tuple(variable for variable, value in call_input.variables if not is_harmless(variable, value))
            return _command(call_input, resolver, name=name, claimed=claimed, variables=variables, raw=raw)
        paths = [*call_input.paths, *diffs, *(place.path for place in call.locations or ())]
        paths += _searched(raw, paths) if kind == "search" else []
        return cls(
            kind=kind, claimed=claimed, name=name, paths=resolver.real(paths), spellings=resolver.spelled(paths), url=call_input.url,
            unread=call_input.unread or through_process(paths) or (kind in FILE_KINDS and (call_input.strange or _is_patch(name, raw))),
            moved=resolver.names(paths) if kind == "move" else (),
            cwd=resolver.real_cwd, roots=resolver.all_roots, home=home, resolve=resolve, exists=exists, raw=raw,
        )  # fmt: skip

    @classmethod
    def of_write(
        cls,
        request: WriteTextFile,
        cwd: str,
        roots: Iterable[str],
        *,
        home: str | None = None,
        resolve: Resolve = posixpath.normpath,
    ) -> "Action":
        """The action of `fs/write_text_file`."""
        return _file("Write", "edit", request.path, PathResolver(cwd, tuple(roots), home, resolve))

    @classmethod
    def of_read(
        cls,
        request: ReadTextFile,
        cwd: str,
        roots: Iterable[str],
        *,
        home: str | None = None,
        resolve: Resolve = posixpath.normpath,
    ) -> "Action":
        """The action of `fs/read_text_file`."""
        return _file("Read", "read", request.path, PathResolver(cwd, tuple(roots), home, resolve))

    @classmethod
    def of_terminal(
        cls,
        request: CreateTerminal,
        cwd: str,
        roots: Iterable[str],
        *,
        home: str | None = None,
        resolve: Resolve = posixpath.normpath,
        exists: Exists = nothing_exists,
    ) -> "Action":
        """`terminal/create`: a program with its arguments, or a whole line for the shell if that is what `command` looks like."""
        call_input = CallInput(directory=request.cwd)
        if request.args or not _SYNTAX & set(request.command):
            call_input.words = (request.command, *request.args)
        else:
            call_input.command = request.command
        variables = tuple(v.name for v in request.env if not is_harmless(v.name, v.value))
        resolver = PathResolver(cwd, tuple(roots), home, resolve, exists)
        return _command(call_input, resolver, name="Bash", claimed=("execute",), variables=variables)


def _effective(name: str | None, claimed: tuple[str, ...], call_input: CallInput, *, edits: bool) -> str:
    """The worst of what the name, the claim and the input mean. A `read` with a command in it is no read."""
    kinds = list(claimed)
    tool = canonical(name) if name is not None else None
    if tool is not None:
        kinds = [kind for kind in kinds if kind != "other"] + [KIND_OF[tool]]
    elif name is not None and name.startswith("mcp__"):
        kinds.append("other")  # a server's tool is what its name says; that it only reads is a claim
    if call_input.command is not None or call_input.words is not None:
        kinds.append("execute")
    if edits or (call_input.changes and worst(*kinds) in QUIET_KINDS):
        kinds.append("edit")
    if call_input.opaque:
        kinds.append("other")
    return worst(*kinds)


def _is_patch(name: str | None, raw: object) -> bool:
    """Whether there is text that may be a patch, which is not read. Some agents list its paths separately, as `changes`."""
    if name is None or name.casefold() not in _PATCHERS or not isinstance(raw, dict):
        return False
    return not all(plain(key) in _BESIDE_PATCHES for key in raw)


def _file(name: str, kind: str, path: str, resolver: PathResolver) -> Action:
    return Action(
        kind=kind, claimed=(kind,), name=name, unread=through_process([path]), paths=resolver.real([path]), spellings=resolver.spelled([path]),
        cwd=resolver.real_cwd, roots=resolver.all_roots, home=resolver.home, resolve=resolver.resolve,
    )  # fmt: skip


def _searched(raw: object, named: list[str]) -> list[str]:
    """Directories that a search looks in besides the files it names: its own if it names none, and those its pattern leads to."""
    pattern = raw.get("pattern") if isinstance(raw, dict) else None
    leads_away = isinstance(pattern, str) and (pattern.startswith(("/", "~")) or "../" in pattern)
    return ([] if named else ["."]) + ([pattern] if isinstance(pattern, str) and leads_away else [])


def _command(
    call_input: CallInput,
    resolver: PathResolver,
    *,
    name: str | None,
    claimed: tuple[str, ...],
    variables: tuple[str, ...] = (),
    raw: object = None,
) -> Action:
    there = resolver.at(call_input.directory)
    line, words = call_input.command, call_input.words
    if words is not None and len(words) == 3 and _runs_a_line(words):
        line, words = _without_cd(words[2], there.real_cwd, call_input.directory), None
    work = None if variables else _file_work(line, words)
    files = work or FileWork(())
    return Action(
        kind="execute", claimed=claimed, name=name, command=line, words=words, url=call_input.url, variables=variables,
        unread=call_input.unread, plain_files=work is not None, paths=there.real(files.paths), spellings=there.spelled(files.paths),
        made_directories=there.names(files.made), moved=there.names(files.moved),
        cwd=there.real_cwd, roots=resolver.all_roots, home=resolver.home, resolve=resolver.resolve, exists=resolver.exists, raw=raw,
    )  # fmt: skip


def _runs_a_line(words: tuple[str, ...]) -> bool:
    """`bash -lc '…'` as an argument list: the way some agents send a line."""
    directory, _, program = words[0].rpartition("/")
    return program in BASH_LIKE and directory in ("", "/bin", "/usr/bin") and words[1] in _SHELL_FLAGS


def _without_cd(line: str, *directories: str | None) -> str:
    """The line without a `cd` to where it is run anyway, which some agents put before every line. Nothing but those very words goes."""
    for directory in directories:
        if directory and "'" not in directory and (rest := line.removeprefix(f"cd '{directory}' && ")) != line:
            return rest
    return line


def _file_work(line: str | None, words: tuple[str, ...] | None) -> FileWork | None:
    if words is not None:
        return file_work(CommandLine.of_words(words))
    if line is None or not looks_like_file_work(line):
        return None
    from antiphon.policy.shell import (
        read_line,
    )  # the grammar is loaded for lines that begin with mkdir, rm or mv, and no others

    return file_work(read_line(line))
