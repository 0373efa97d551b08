"""Scripts and styles without their comments and indentation, as they are sent: a third of the first load is for readers of the source.

Every line keeps its number, so that the place in a stack trace is the place in the file. Strings, templates and regular expressions stay
as they are. A text that cannot be read for sure is returned whole: it is larger then, never wrong.
"""

import re
from typing import Final

__all__ = ["without_script_comments", "without_style_comments"]

_SCRIPT: Final = re.compile(
    r"""(?P<comment>[ \t]*//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<newline>[ \t]*\n[ \t]*)
      | (?P<mark>[/`{}()])
      | (?P<code>(?:[^/"'`{}()\s]++|[ \t](?![ \t]*(?://|\n)))++)
    """,
    re.DOTALL | re.VERBOSE,
)
"""The parts of a script, but for regular expressions and what is inside of a template."""

_LAST: Final = re.compile(r"(?:[\w$]+|=>|\+\+|--|\S)(?=\s*\Z)")
"""The last word or mark of some code."""

_PATTERN: Final = re.compile(r"/(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*")
"""A regular expression. A slash inside of brackets does not end it."""

_CHUNK: Final = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
"""The text of a template up to its end or the next `${`."""

_BEFORE_PATTERN: Final = frozenset(
    ["(", ",", "=", ":", "[", "!", "&", "|", "?", "{", ";", "+", "-", "*", "%", "<", ">", "~", "^", "=>"]
)
"""Marks after which a slash begins a regular expression, not a division."""

_WORDS_BEFORE_PATTERN: Final = frozenset(
    ["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await", "yield"]
)

_HEADS: Final = frozenset(["if", "while", "for", "with"])
"""Words whose parentheses are no value: what follows them is a statement."""

_STYLE: Final = re.compile(
    r"""(?P<comment>/\*.*?\*/)
      | (?P<kept>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|url\((?:[^)\\]|\\.)*\))
      | (?P<newline>\n[ \t]*)
      | (?P<rest>[^/"'\n u]+|.)
    """,
    re.DOTALL | re.VERBOSE,
)


class _UnclearError(Exception):
    """What a slash or a quotation mark begins is not known for sure."""


def without_script_comments(text: str) -> str:
    """Return a script of this package without comments and indentation; unchanged if it cannot be read for sure."""
    try:
        return _ScriptReader(text).read()
    except _UnclearError:
        return text


def without_style_comments(text: str) -> str:
    """Return a style sheet without comments and indentation."""
    pieces: list[str] = []
    for match in _STYLE.finditer(text):
        if match.lastgroup == "comment":
            pieces.append(_trace(match.group(), text, match.start(), match.end()))
        else:
            pieces.append("\n" if match.lastgroup == "newline" else match.group())
    return "".join(pieces)


def _trace(comment: str, text: str, start: int, end: int) -> str:
    """What is left of a comment: its line breaks; without them a comment between two characters that would else touch."""
    if breaks := comment.count("\n"):
        return "\n" * breaks
    before, after = text[start - 1 : start], text[end : end + 1]
    return "" if not before or not after or before.isspace() or after.isspace() else "/**/"


class _ScriptReader:
    """Reads a script from its start to its end, once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces: list[str] = []
        self._code = ""  # the last piece that is neither a space nor a comment
        self._depths: list[int] = []  # for each template that is open: how many braces are open inside of its `${`
        self._heads: list[bool] = []  # for each parenthesis that is open: whether it is the head of a statement

    def read(self) -> str:
        """Return the script."""
        at = 0
        while at < len(self._text):
            match = _SCRIPT.match(self._text, at)
            if match is None:
                raise _UnclearError
            if match.lastgroup == "mark":
                at = self._mark(match.group(), at)
                continue
            at = match.end()
            if match.lastgroup == "newline":
                self._pieces.append("\n")
            elif match.lastgroup == "comment":
                self._leave_out(match.group(), match.start(), match.end())
            else:
                self._keep(match.group())
        if self._depths or self._heads:
            raise _UnclearError
        return "".join(self._pieces)

    def _keep(self, piece: str, code: str = "") -> None:
        self._pieces.append(piece)
        if not piece.isspace():
            self._code = code or piece

    def _leave_out(self, comment: str, start: int, end: int) -> None:
        if comment.startswith("/*"):
            self._pieces.append(_trace(comment, self._text, start, end))

    def _last(self) -> str:
        match = _LAST.search(self._code)
        return match.group() if match else ""

    def _mark(self, mark: str, at: int) -> int:
        """Read what a mark begins, and return where it ends."""
        if mark == "/":
            return self._slash(at)
        if mark == "`":
            return self._template(at + 1, mark)
        if mark == "(":
            self._heads.append(self._last() in _HEADS)
        elif mark == ")":
            if not self._heads:
                raise _UnclearError
            self._keep(mark, ";" if self._heads.pop() else mark)  # a statement follows, or what follows a value
            return at + 1
        elif self._depths:
            self._depths[-1] += 1 if mark == "{" else -1
            if self._depths[-1] < 0:
                self._depths.pop()
                return self._template(at + 1, mark)
        self._keep(mark)
        return at + 1

    def _slash(self, at: int) -> int:
        """Read a division or a regular expression, whichever the code before it calls for."""
        last = self._last()
        if not last or last in _BEFORE_PATTERN or last in _WORDS_BEFORE_PATTERN:
            match = _PATTERN.match(self._text, at)
            if match is None:
                raise _UnclearError
            self._keep(match.group(), "value")
            return match.end()
        if last in ("}", "++", "--"):
            raise _UnclearError  # behind a block a regular expression begins, behind an object a division
        self._keep("/")
        return at + 1

    def _template(self, at: int, first: str) -> int:
        """Keep the text of a template from behind its first character or behind a `}` up to its end or the next `${`."""
        match = _CHUNK.match(self._text, at)
        end = match.end() if match else at
        if self._text.startswith("${", end):
            self._depths.append(0)
            self._keep(f"{first}{self._text[at:end]}${{", "{")
            return end + 2
        if not self._text.startswith("`", end):
            raise _UnclearError
        self._keep(f"{first}{self._text[at:end]}`", "value")
        return end + 1
