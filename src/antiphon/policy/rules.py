"""Rules as people write them: `Bash(git *)`, `Edit(src/**)`, `Read`, `kind:edit`, `mcp__server__tool`.

Also the terms that they are made of: modes and verdicts, and the names of tools with the kind of work that each does.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from antiphon.errors import AcpError
from antiphon.policy.patterns import CommandPattern, Piece, compile_command, compile_segments, folded

__all__ = [
    "FILE_KINDS",
    "KINDS",
    "KIND_OF",
    "PATH_TOOLS",
    "QUIET_KINDS",
    "TOOL_OF_KIND",
    "PathPattern",
    "PolicyMode",
    "Rule",
    "RuleError",
    "Rules",
    "Verdict",
    "also_forbidden_as",
    "canonical",
    "permitted_as",
    "worst",
]

# --- modes and verdicts


class PolicyMode(StrEnum):
    """How much is done without asking, where no rule matches."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


class Verdict(StrEnum):
    """What becomes of an action."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


# --- tools: their names as agents write them, and the kind of work each does

KINDS: Final = ("think", "read", "search", "switch_mode", "fetch", "other", "edit", "move", "delete", "execute")
"""Kinds from harmless to dangerous. Where an agent claims two kinds for one call, the later one counts."""

QUIET_KINDS: Final = frozenset({"think", "read", "search"})
FILE_KINDS: Final = frozenset({"edit", "move", "delete"})

KIND_OF: Final = {
    "Bash": "execute", "Delete": "delete", "Edit": "edit", "ExitPlanMode": "switch_mode", "Glob": "search", "Grep": "search",
    "LS": "read", "Move": "move", "MultiEdit": "edit", "NotebookEdit": "edit", "Read": "read", "TodoWrite": "think",
    "WebFetch": "fetch", "WebSearch": "fetch", "Write": "edit",
}  # fmt: skip

TOOL_OF_KIND: Final = {
    "delete": "Delete", "edit": "Edit", "execute": "Bash", "fetch": "WebFetch", "move": "Move", "read": "Read", "search": "Grep",
}  # fmt: skip
"""What a call without a name is taken for."""

PATH_TOOLS: Final = frozenset({
    "Delete", "Edit", "Glob", "Grep", "LS", "Move", "MultiEdit", "NotebookEdit", "Read", "Write",
})  # fmt: skip

_ALIASES: Final = {
    "apply_patch": "Edit", "bash": "Bash", "delete_file": "Delete", "edit": "Edit", "edit_file": "Edit", "exec_command": "Bash",
    "execute_command": "Bash", "fetch": "WebFetch", "find_files": "Glob", "glob": "Glob", "grep": "Grep", "list_directory": "LS",
    "list_files": "LS", "local_shell": "Bash", "ls": "LS", "move_file": "Move", "multi_edit": "MultiEdit", "multiedit": "MultiEdit",
    "patch": "Edit", "read": "Read", "read_file": "Read", "read_many_files": "Read", "read_text_file": "Read", "replace": "Edit",
    "run_command": "Bash", "run_shell_command": "Bash", "run_terminal_cmd": "Bash", "search_file_content": "Grep", "shell": "Bash",
    "shell_command": "Bash", "str_replace": "Edit", "str_replace_editor": "Edit", "terminal": "Bash", "todo_write": "TodoWrite",
    "update_plan": "TodoWrite", "web_fetch": "WebFetch", "web_search": "WebSearch", "webfetch": "WebFetch",
    "websearch": "WebSearch", "write": "Write", "write_file": "Write", "write_text_file": "Write",
}  # fmt: skip

_COVERS: Final = {
    "Edit": frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"}),
    "Read": frozenset({"Glob", "Grep", "LS", "Read"}),
}


def canonical(name: str) -> str | None:
    """`run_shell_command` → `Bash`; None for a tool that we do not know."""
    return name if name in KIND_OF else _ALIASES.get(name.casefold())


def worst(*kinds: str) -> str:
    """The most dangerous of several kinds."""
    return max(kinds, key=KINDS.index)


def permitted_as(tool: str) -> frozenset[str]:
    """The rules' names that permit a call of this tool: its own, and the one for its family."""
    return frozenset({tool, *(family for family, members in _COVERS.items() if tool in members)})


def also_forbidden_as(kind: str, named: bool) -> frozenset[str]:
    """The rules' names that forbid a call of this kind, whatever the call's own name. Without a name it may be any of them."""
    names = {tool for tool, sort in KIND_OF.items() if sort == kind} if not named else set()
    if kind in FILE_KINDS:
        names.add("Edit")
    elif kind in ("read", "search"):
        names.add("Read")
    elif kind in TOOL_OF_KIND:
        names.add(TOOL_OF_KIND[kind])
    return frozenset(names)


_SHAPE: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(?:\((.*)\))?", re.DOTALL)
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*")
_MCP: Final = "mcp__"


class RuleError(AcpError):
    """A rule that means nothing. It is refused where it is read: a deny that never matches protects nothing."""

    def __init__(self, text: str, why: str, hint: str) -> None:
        self.text = text
        super().__init__(f"`{text}` is not a rule: {why}", hint=hint)


class PathPattern(msgspec.Struct, frozen=True):
    """A glob on whole paths. `base` is where it begins: "/" the root of the disk, "~" the home, "" each of the session's roots.

    `folded` is the same for disks that take upper and lower case, or two forms of an accent, for the same name.
    """

    base: str
    segments: tuple[Piece, ...]
    folded: tuple[Piece, ...]


class Rule(msgspec.Struct, frozen=True):
    """One rule, read. At most one of the patterns is set; `text` is what was written and `source` where."""

    text: str
    source: str = ""
    kind: str | None = None
    tool: str | None = None
    command: CommandPattern | None = None
    path: PathPattern | None = None
    host: str | None = None

    @classmethod
    def parse(cls, text: str, source: str = "") -> "Rule":
        """Read a rule.

        Raises:
            RuleError: it is not one.
        """
        text = text.strip()
        if text.startswith("kind:"):
            kind = text.removeprefix("kind:")
            if kind not in KINDS:
                raise RuleError(text, f"there is no kind `{kind}`", f"use one of {', '.join(sorted(KINDS))}")
            return cls(text, source, kind=kind)
        shape = _SHAPE.fullmatch(text.removesuffix("__*") if text.startswith(_MCP) else text)
        if shape is None:
            raise RuleError(text, "it has another form", "write Tool, Tool(pattern), kind:edit or mcp__server__tool")
        name, pattern = shape[1], shape[2]
        tool = name if name.startswith(_MCP) else canonical(name) or name
        return cls(text, source, tool=tool) if pattern is None else _with_pattern(text, source, tool, pattern.strip())

    @property
    def bare(self) -> bool:
        """Whether it has no pattern."""
        return self.command is None and self.path is None and self.host is None

    def __str__(self) -> str:
        return self.text


class Rules(msgspec.Struct, frozen=True):
    """The allow, deny and ask rules. Their order never matters."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()

    @classmethod
    def parse(
        cls, *, allow: Iterable[str] = (), deny: Iterable[str] = (), ask: Iterable[str] = (), source: str = ""
    ) -> "Rules":
        """Read all rules of one source.

        Raises:
            RuleError: a text is not a valid rule.
        """
        return cls(*(tuple(Rule.parse(text, source) for text in texts) for texts in (allow, deny, ask)))

    def merged(self, other: "Rules") -> "Rules":
        """Both, each rule with its source."""
        return Rules(self.allow + other.allow, self.deny + other.deny, self.ask + other.ask)


def _with_pattern(text: str, source: str, tool: str, pattern: str) -> Rule:
    if tool == "Bash":
        try:
            return Rule(text, source, tool=tool, command=compile_command(pattern))
        except ValueError as error:
            hint = "write one command, such as Bash(git *); quote what the shell would take for an operator"
            raise RuleError(text, str(error), hint) from None
    if tool in PATH_TOOLS:
        return Rule(text, source, tool=tool, path=_path(text, pattern))
    if tool == "WebFetch":
        host = pattern.removeprefix("domain:").strip().casefold()
        if not pattern.startswith("domain:") or not _HOST.fullmatch(host):
            raise RuleError(
                text, "its pattern is no domain", "write WebFetch(domain:example.org) or WebFetch(domain:*.example.org)"
            )
        return Rule(text, source, tool=tool, host=host)
    raise RuleError(text, f"`{tool}` takes no pattern", f"write {tool} alone")


def _path(text: str, pattern: str) -> PathPattern:
    names = pattern.split("/")
    if not pattern or "\0" in pattern:
        raise RuleError(text, "the pattern is empty", "write Edit(src/**), or Edit alone for all files")
    if ".." in names:
        raise RuleError(
            text,
            "it goes up with `..`",
            "relative patterns stay inside the session's directories; write the whole path",
        )
    if any("**" in name.replace("\\*", "") and name != "**" for name in names):
        raise RuleError(
            text, "`**` stands beside other text", "write src/**/*.py: `**` is a whole name between slashes"
        )
    if names[0].startswith("~") and names[0] != "~":
        raise RuleError(text, "it names the home of another user", "write the whole path, or ~/… for your own")
    base = "/" if pattern.startswith("/") else "~" if names[0] == "~" else ""
    glob = pattern[1:] if base == "~" else pattern
    return PathPattern(base, compile_segments(glob), compile_segments(folded(glob)))
