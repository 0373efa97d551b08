"""One word of a shell line, unquoted as bash does it. Knows characters; knows no grammar.

This is a second reading: the grammar says where a word begins and ends, and here every character between has to make sense
as one word. Where the two disagree the line counts as unclear.
"""

from collections.abc import Mapping
from typing import Final

__all__ = ["Unclear", "unquote"]

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-^]}")
_GLOB: Final = frozenset(b"*?[")
_KEPT_BEHIND_BACKSLASH: Final = frozenset(b'$`"\\')
_BACKSLASH, _SINGLE, _DOUBLE, _DOLLAR, _BACKTICK, _NEWLINE = b"\\'\"$`\n"


class Unclear(Exception):
    """The text is not one word, or not one that we know how to read."""


def unquote(text: bytes, expansions: Mapping[int, int]) -> str | None:
    """The text that the shell makes of a word, or None if only the shell can know.

    `expansions` says where in `text` the grammar saw substitutions and variables, start → end; they are passed over.

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
