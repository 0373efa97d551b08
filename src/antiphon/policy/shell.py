"""Read a shell line with a real grammar (tree-sitter-bash), and believe it only where a second reading agrees.

The grammar finds the commands; `unquote` reads every word again, and the text between words has to be blank. A line
with an error, a construct that is not listed here, or characters that do not add up, is `unclear`. Nothing is run or expanded.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from antiphon.policy.patterns import CommandLine, SimpleCommand
from antiphon.policy.programs import RESERVED

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["INSTALL", "MAX_DEPTH", "MAX_LINE", "Unclear", "read_line", "unquote"]

# --- words, unquoted as bash does it
# This is a second reading: the grammar finds where a word begins and ends, and here every character between has to make sense
# as one word. Where the two disagree the line counts as unclear.

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-^]}")
_GLOB: Final = frozenset(b"*?[")
_KEPT_BEHIND_BACKSLASH: Final = frozenset(b'$`"\\')
_BACKSLASH, _SINGLE, _DOUBLE, _DOLLAR, _BACKTICK, _NEWLINE = b"\\'\"$`\n"


class Unclear(Exception):
    """The text is not one word, or not one that we know how to read."""


def unquote(text: bytes, expansions: Mapping[int, int]) -> str | None:
    """The text that the shell makes of a word, or None if only the shell can know.

    `expansions` are the substitutions and variables that the grammar found in `text`, start → end; they are skipped.

    Raises:
        Unclear: a character that should not be there.
    """
    reader = _Word(text, expansions)
    reader.read()
    return None if reader.dynamic else reader.out.decode("utf-8", "surrogateescape")


class _Word:
    def __init__(self, text: bytes, expansions: Mapping[int, int]) -> None:
        self.text = text
        self.expansions = expansions
        self.out = bytearray()
        self.dynamic = False
        self.at = 0

    def read(self) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == _SINGLE:
                self._single()
            elif character == _DOUBLE:
                self._double()
            elif character == _BACKSLASH:
                self._escaped()
            elif self.at in self.expansions:
                self._pass_over()
            else:
                self._bare(character)

    def _bare(self, character: int) -> None:
        if character in _GLOB or (character == ord("=") and self.at == 0):  # `=ls` is a path in zsh
            self.dynamic = True
        elif character == ord("~"):
            # A home directory at the start, after `=` or `:`; elsewhere a letter, as in `HEAD~1`.
            self.dynamic |= self.at == 0 or self.text[self.at - 1] in b"=:"
        elif character == ord("{"):
            # `{a,b}` and `{1..3}` become several words; `{}` and `@{u}` stay.
            self.dynamic |= b"," in self.text or b".." in self.text
        elif character not in _PLAIN and not (character == ord("#") and self.at):
            raise Unclear(f"`{chr(character)}` stands where it may mean something else")
        self.out.append(character)
        self.at += 1

    def _escaped(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following or not 0x20 <= following[0] < 0x7F:
            raise Unclear("a backslash stands before a line end or a special character")
        self.out += following
        self.at += 2

    def _single(self) -> None:
        end = self.text.find(b"'", self.at + 1)
        if end < 0:
            raise Unclear("a quote is not closed")
        self.out += self.text[self.at + 1 : end]
        self.at = end + 1

    def _double(self) -> None:
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != _DOUBLE:
            character = self.text[self.at]
            if self.at in self.expansions:
                self._pass_over()
            elif character in (_DOLLAR, _BACKTICK):
                raise Unclear("a `$` or a backtick in quotes is not where the grammar sees one")
            elif character == _BACKSLASH:
                self._escaped_in_double()
            else:
                self.out.append(character)
                self.at += 1
        if self.at >= len(self.text):
            raise Unclear("a quote is not closed")
        self.at += 1

    def _escaped_in_double(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following or following[0] == _NEWLINE:
            raise Unclear("a backslash stands before a line end")
        self.out += following if following[0] in _KEPT_BEHIND_BACKSLASH else b"\\" + following
        self.at += 2

    def _pass_over(self) -> None:
        self.dynamic = True
        self.at = self.expansions[self.at]


MAX_LINE: Final = 8 * 1024
"""Bytes of a line that is judged: longer than people can check. The grammar needs 0.2 s for the worst that fits."""

MAX_DEPTH: Final = 40
"""Levels of nesting that are followed. People write three."""

INSTALL: Final = "the shell grammar is not installed (pip install 'antiphon[policy]')"

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_ASCII: Final = bytes(range(128)) + b"x" * 128
"""The grammar sees a letter for every byte that is not ASCII: its scanner looks such characters up in tables that end before
them, and may crash (tree-sitter-bash issue 337). Words are read from the true text."""
_BLANK: Final = re.compile(rb"[ \t]*\Z")
_LINES: Final = re.compile(rb"[ \t\n]*\Z")
_VARIABLE: Final = re.compile(rb"\$\{[A-Za-z_][A-Za-z_0-9]*\}|\$([A-Za-z_][A-Za-z_0-9]*|[0-9?#$!@*-])")
_DESCRIPTOR: Final = re.compile(rb"[0-9]?(>&|<&)[0-9]")
_NOWHERE: Final = re.compile(rb"(?:[0-9]?>>?|&>>?) ?/dev/null")

_NO_INPUT: Final = re.compile(rb"0?<[ \t]*/dev/null|[0-9]?<&-")

_CONTAINERS: Final = frozenset({"program", "list", "subshell"})
_JOINTS: Final = frozenset({b";", b"&&", b"||", b"|", b"(", b")", b"\n"})
_LOOSE_JOINTS: Final = frozenset({b"&", b"|&"})
_KEYWORDS: Final = frozenset(
    {b"!", b"do", b"done", b"elif", b"else", b"fi", b"for", b"if", b"in", b"then", b"until", b"while", b"{", b"}"}
)
_STRUCTURES: Final = {
    "compound_statement": "a group", "do_group": "a loop", "elif_clause": "a condition", "else_clause": "a condition",
    "for_statement": "a loop", "if_statement": "a condition", "negated_command": "a `!`", "while_statement": "a loop",
}  # fmt: skip
_DECLARATIONS: Final = frozenset({"declaration_command", "unset_command"})
_WORDS: Final = frozenset({
    "ansi_c_string", "arithmetic_expansion", "brace_expression", "command_substitution", "concatenation", "expansion",
    "number", "process_substitution", "raw_string", "simple_expansion", "string", "translated_string", "variable_name", "word",
})  # fmt: skip
_EXPANSIONS: Final = {
    "ansi_c_string": "a `$'…'` string", "arithmetic_expansion": "", "brace_expression": "",
    "command_substitution": "", "expansion": "an expansion with an operator", "process_substitution": "a process substitution",
    "simple_expansion": "", "translated_string": 'a `$"…"` string',
}  # fmt: skip


@cache
def _language() -> "Language | None":
    # Here and not above: reading rules, and judging everything but a Bash pattern, works without these packages.
    try:
        import tree_sitter_bash
        from tree_sitter import Language
    except ImportError:
        return None
    return Language(tree_sitter_bash.language())


def read_line(line: str) -> CommandLine:
    """The commands of a line and what is doubtful about it. Never raises: what cannot be read is unclear."""
    language = _language()
    if language is None:
        return CommandLine(unclear=INSTALL)
    try:
        source = line.encode()
    except UnicodeEncodeError:
        return CommandLine(unclear="it is not text")
    if len(source) > MAX_LINE:
        return CommandLine(unclear=f"it is longer than {MAX_LINE} bytes")
    found = _Reader(source).read(language)
    if b"\\\n" not in source:
        return found
    # The shell joins continued lines before anything else; the grammar does not. So commands are looked for in both readings.
    joined = _Reader(source.replace(b"\\\n", b"")).read(language)
    return CommandLine(
        found.parts + joined.parts, found.unclear or joined.unclear or "a line is continued with a backslash"
    )


class _Reader:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.parts: list[SimpleCommand] = []
        self.unclear = ""
        self.special = ""
        self.fed = False

    def read(self, language: "Language") -> CommandLine:
        from tree_sitter import Parser

        if _CONTROL.search(self.source):
            self.unclear = "it has a control character"
        root = Parser(language).parse(self.source.translate(_ASCII)).root_node
        if root.has_error:
            self.unclear = self.unclear or "it cannot be parsed"
        self._blank(0, root.start_byte, _LINES)
        self._blank(root.end_byte, len(self.source), _LINES)
        self._statement(root, 0)
        return CommandLine(tuple(self.parts), self.unclear, self.special)

    # --- statements ---

    def _statement(self, node: "Node", depth: int) -> None:
        kind = node.type
        if depth > MAX_DEPTH:
            self._doubt("it is nested too deeply")
        elif kind in _CONTAINERS:
            self._inside(node, depth, _JOINTS)
        elif kind in ("pipeline", "redirected_statement"):
            self._feeding(node, depth)
        elif kind == "command" or kind in _DECLARATIONS:
            self._command(node, depth)
        elif kind == "file_redirect":
            self._redirect(node, depth)
        elif kind == "variable_assignment":
            self._assignment(node, depth)
        elif kind in _STRUCTURES:
            self._special(f"it has {_STRUCTURES[kind]}")
            self._inside(node, depth, _JOINTS | _KEYWORDS)
        elif kind == "comment":
            self._comment(node)
        elif kind in _WORDS:
            self._word(node, depth)
        else:
            self._doubt(f"it has a construct that is not judged ({kind.replace('_', ' ')})")
            self._nested(node, depth)

    def _feeding(self, node: "Node", depth: int) -> None:
        """What stands behind a `|` is fed by what stands before it, and a `<` feeds everything that it stands behind."""
        before = self.fed
        pipe = node.type == "pipeline"
        self.fed = before or any(self._feeds(child) for child in node.children)
        end = node.start_byte
        for child in node.children:
            self._blank(end, child.start_byte, _LINES)
            end = child.end_byte
            if child.is_named:
                self._statement(child, depth + 1)
                self.fed |= pipe
            else:
                self._joint(child, _JOINTS if pipe else frozenset())
        self.fed = before

    def _assignment(self, node: "Node", depth: int) -> None:
        self._special("it sets a variable")
        if [child.type for child in node.children[:2]] == ["variable_name", "="] and node.children[-1].type in _WORDS:
            text = self._text(node).decode(errors="replace")
            self.parts.append(SimpleCommand((self._word(node, depth),), 1, texts=(text,)))
        else:
            # An index is arithmetic, which runs what is in it: `a['q[$(rm x)]']=1`.
            if node.children[-1].type != "array" or b"[" in self._text(node):
                self._doubt("it sets a variable in a special way")
            self._nested(node, depth)

    def _inside(self, node: "Node", depth: int, joints: frozenset[bytes]) -> None:
        end = node.start_byte
        for child in node.children:
            self._blank(end, child.start_byte, _LINES)
            end = child.end_byte
            if child.is_named:
                self._statement(child, depth + 1)
            else:
                self._joint(child, joints)

    def _joint(self, node: "Node", joints: frozenset[bytes]) -> None:
        token = self._text(node)
        if token in _LOOSE_JOINTS:
            self._special(f"it has `{token.decode()}`")
        elif token not in joints:
            self._doubt(f"it has `{token.decode(errors='replace')}`")

    def _comment(self, node: "Node") -> None:
        before = self.source[node.start_byte - 1 : node.start_byte]
        if b"\n" in self._text(node) or before not in (b"", b" ", b"\t", b"\n", b";"):
            self._doubt("it has a comment in a strange place")
        self._special("it has a comment")

    def _nested(self, node: "Node", depth: int) -> None:
        """Look for commands in whatever this is, so that a deny finds them."""
        for child in node.children:
            if depth > MAX_DEPTH:
                return self._doubt("it is nested too deeply")
            if child.type == "command" or child.type in _DECLARATIONS:
                self._command(child, depth + 1)
            else:
                self._nested(child, depth + 1)
        return None

    # --- commands ---

    def _command(self, node: "Node", depth: int) -> None:
        words: list[str | None] = []
        texts: list[str] = []
        settings = 0
        fed = self.fed
        end = node.start_byte
        for at, child in enumerate(node.children):
            self._blank(end, child.start_byte, _BLANK, some=at > 0)
            end = child.end_byte
            if child.type == "variable_assignment" and node.type == "command":
                words.insert(settings, self._setting(child, depth))
                texts.insert(settings, self._text(child).decode(errors="replace"))
                settings += 1
            elif child.type in _WORDS or child.type in ("command_name", "variable_assignment") or not child.is_named:
                words.append(self._word(child, depth))
                texts.append(self._text(child).decode(errors="replace"))
            else:  # a redirection
                fed = fed or self._feeds(child)
                self._statement(child, depth + 1)
        part = SimpleCommand(tuple(words), settings, fed, tuple(texts))
        self._check_program(node, part)
        self.parts.append(part)

    def _check_program(self, node: "Node", part: SimpleCommand) -> None:
        first = part.command[0] if part.command else None
        if first is None:
            self._special("only the shell knows which program it runs")
        elif not first or "=" in first or first in RESERVED:
            self._doubt(f"`{first}` is no program")
        elif node.type in _DECLARATIONS:
            self._special(f"it has `{first}`")

    def _setting(self, node: "Node", depth: int) -> str | None:
        if [child.type for child in node.children[:2]] != ["variable_name", "="] or len(node.children) > 3:
            self._doubt("it sets a variable in a special way")
        return self._word(node, depth)

    def _redirect(self, node: "Node", depth: int) -> None:
        text = self._text(node)
        if not _DESCRIPTOR.fullmatch(text) and not _NOWHERE.fullmatch(text):
            self._special("it has a redirection")
            words = [self._word(child, depth) for child in node.children if child.type in _WORDS]
            if len(words) > 1:  # `rm >x -rf y`: the grammar takes arguments of the command for places to write to
                self._doubt("it has words behind a redirection")

    def _feeds(self, node: "Node") -> bool:
        """Whether this is a redirection that gives a command something to read."""
        if node.type in ("heredoc_redirect", "herestring_redirect"):
            return True
        return node.type == "file_redirect" and b"<" in self._text(node) and not _NO_INPUT.fullmatch(self._text(node))

    # --- words ---

    def _word(self, node: "Node", depth: int) -> str | None:
        expansions: dict[int, int] = {}
        self._expansions(node, node.start_byte, expansions, depth)
        try:
            return unquote(self._text(node), expansions)
        except Unclear as why:
            self._doubt(str(why))
            return None

    def _expansions(self, node: "Node", base: int, found: dict[int, int], depth: int) -> None:
        kind = node.type
        if depth > MAX_DEPTH:
            self._doubt("it is nested too deeply")
        elif kind in _EXPANSIONS:
            text = self._text(node)
            # The grammar counts a blank before `${` to the expansion.
            start = node.start_byte + len(text) - len(text.lstrip())
            found[start - base] = node.end_byte - base
            self._expansion(node, text.lstrip(), depth)
        else:
            for child in node.children:
                self._expansions(child, base, found, depth + 1)

    def _expansion(self, node: "Node", text: bytes, depth: int) -> None:
        if node.type == "command_substitution" and text.startswith(b"$("):
            self._inside(node, depth + 1, _JOINTS | {b"$("})
        elif node.type == "command_substitution":
            self._special("it has backticks")
            if b"\\" in text:
                self._doubt("it has backslashes in backticks")
            self._inside(node, depth + 1, _JOINTS | {b"`"})
        elif node.type == "arithmetic_expansion":
            # `$((rm x))` is arithmetic here, and to some shells a subshell in a substitution when it makes no sense as that.
            self._doubt("it has arithmetic")
            self._nested(node, depth + 1)
        elif node.type in ("simple_expansion", "expansion") and _VARIABLE.fullmatch(text):
            pass
        elif node.type == "expansion":
            # `${x@P}` runs what is in the variable, and so does an index or an offset.
            self._doubt(f"it has {_EXPANSIONS[node.type]}")
            self._nested(node, depth + 1)
        else:
            self._special(f"it has {_EXPANSIONS[node.type] or 'a special expansion'}")
            before, self.fed = self.fed, self.fed or text.startswith(b">(")
            if node.type == "process_substitution":
                self._inside(node, depth + 1, _JOINTS | {b"<(", b">("})
            else:
                self._nested(node, depth + 1)
            self.fed = before

    # --- small things ---

    def _text(self, node: "Node") -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def _blank(self, start: int, end: int, allowed: re.Pattern[bytes], *, some: bool = False) -> None:
        if not allowed.match(self.source, start, end) or (some and start == end):
            self._doubt("the grammar passes over some of it")

    def _doubt(self, why: str) -> None:
        self.unclear = self.unclear or why

    def _special(self, what: str) -> None:
        self.special = self.special or what
