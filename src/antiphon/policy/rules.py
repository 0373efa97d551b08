"""Rules as people write them: `Bash(git *)`, `Edit(src/**)`, `Read`, `kind:edit`, `mcp__server__tool`."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from antiphon.errors import AcpError
from antiphon.policy.globs import Piece, compile_segments, folded
from antiphon.policy.patterns import CommandPattern, compile_command
from antiphon.policy.tools import KINDS, PATH_TOOLS, canonical

__all__ = ["PathPattern", "Rule", "RuleError", "Rules"]

_SHAPE: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(?:\((.*)\))?", re.DOTALL)
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*")
_MCP: Final = "mcp__"


class RuleError(AcpError):
    """A rule that means nothing. It is refused where it is read: a deny that never matches would protect nobody."""

    def __init__(self, text: str, why: str, hint: str) -> None:
        self.text = text
        super().__init__(f"`{text}` is not a rule: {why}", hint=hint)


class PathPattern(msgspec.Struct, frozen=True):
    """A glob on whole paths. `base` says from where: "/" the root of the disk, "~" the home, "" each of the session's roots.

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
    """All that is allowed, denied and asked. The order never matters."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()

    @classmethod
    def parse(
        cls, *, allow: Iterable[str] = (), deny: Iterable[str] = (), ask: Iterable[str] = (), source: str = ""
    ) -> "Rules":
        """Read all rules of one source.

        Raises:
            RuleError: one of them is none.
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
            text, "it goes up with `..`", "relative patterns stay inside the session's folders; write the whole path"
        )
    if any("**" in name.replace("\\*", "") and name != "**" for name in names):
        raise RuleError(
            text, "`**` stands beside other text", "write src/**/*.py: `**` is a whole name between slashes"
        )
    if names[0].startswith("~") and names[0] != "~":
        raise RuleError(text, "it names somebody else's home", "write the whole path, or ~/… for your own")
    base = "/" if pattern.startswith("/") else "~" if names[0] == "~" else ""
    glob = pattern[1:] if base == "~" else pattern
    return PathPattern(base, compile_segments(glob), compile_segments(folded(glob)))
