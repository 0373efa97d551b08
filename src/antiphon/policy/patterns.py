"""Patterns of Bash rules: the words of one simple command, some of them wildcards.

`*` as a word of its own stands for any number of words, also none; inside a word it stands for any text of that word.
Quotes and backslashes are read as the shell reads them, so `'*'` is a star. A pattern has no operators: it is one command.
"""

import re
from typing import Final

import msgspec

from antiphon.policy.globs import Glob, Piece
from antiphon.policy.names import program_name
from antiphon.policy.verdicts import Match

__all__ = ["CommandPattern", "Words", "compile_command", "quoted"]

Words = tuple[str | None, ...]
"""The words of a command. None is one that only the shell knows: a variable, a substitution, a glob. It may become several."""

_EXPANDED: Final = frozenset("$`\\'\"~")
_GLOB_PIECES: Final = re.compile(r"\{[^{}]*\}|\[[^\]]*\]|.", re.DOTALL)
_GLOB_PARTS: Final = {"*": ".*", "?": ".", "[": ".?", "{": ".*", "}": ".*", "]": ".?"}

_OPERATORS: Final = frozenset(";&|<>()$`\n\r#!")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-")


class CommandPattern(msgspec.Struct, frozen=True):
    """One command: a glob for each word, None for a `*` that stands for any words."""

    items: tuple[Glob | None, ...]

    def covers(self, words: Words, guarded: frozenset[int]) -> bool:
        """Whether this permits the command. Words in `guarded` must stand in the pattern letter by letter."""
        states = self._closed({0})
        for at, word in enumerate(words):
            if not states:
                return False
            reached = set()
            for state in states:
                if state == len(self.items):
                    continue
                item = self.items[state]
                if item is None:
                    reached |= {state} - ({state} if at in guarded else set())
                elif word is not None and (item.literal == word if at in guarded else item.matches(word)):
                    reached.add(state + 1)
            states = self._closed(reached)
        return len(self.items) in states

    def forbids(self, words: Words) -> Match:
        """Whether a deny with this pattern meets the command: for sure, perhaps, or not."""
        if not words:
            return Match.NO
        if self.covers(words, frozenset()):
            return Match.YES
        bare = (None if words[0] is None else program_name(words[0]), *words[1:])
        first = self.items[0].literal if self.items and self.items[0] else None
        own = CommandPattern((_glob(program_name(first)), *self.items[1:])) if first else self
        if own.covers(bare, frozenset()):
            return Match.MAYBE if first and "/" in first else Match.YES
        return Match.MAYBE if own._could_be(bare) or own._nearly(bare) else Match.NO

    def may_begin_with(self, glob: str) -> bool:
        """Whether a word that the shell makes of this glob may be the program that a deny with this pattern is about."""
        first = self.items[0].literal if self.items and self.items[0] else None
        if first is None or _EXPANDED & set(glob):
            return True
        name = program_name(glob)
        text = "".join(_GLOB_PARTS.get(piece[:1], re.escape(piece)) for piece in _GLOB_PIECES.findall(name))
        return re.fullmatch(text, program_name(first)) is not None

    def _could_be(self, words: Words) -> bool:
        """With the right values for what only the shell knows."""
        states = self._closed({0})
        for word in words:
            if not states:
                return False
            if word is None:
                states = set(range(min(states), len(self.items) + 1))
                continue
            reached = set()
            for state in states:
                if state < len(self.items):
                    item = self.items[state]
                    if item is None:
                        reached.add(state)
                    elif item.matches(word):
                        reached.add(state + 1)
            states = self._closed(reached)
        return len(self.items) in states

    def _nearly(self, words: Words) -> bool:
        """The same program with all the words of the pattern somewhere: `git -C . push` for `git push`, `rm -r -f` for `rm -rf`."""
        if not self.items or self.items[0] is None or words[0] is None or not self.items[0].matches(words[0]):
            return False
        rest = [word for word in words[1:] if word is not None]
        letters = {letter for word in rest if _is_cluster(word) for letter in word[1:]}
        wanted = [item for item in self.items[1:] if item is not None]
        if not wanted:
            return False
        return all(
            any(item.matches(word) for word in rest)
            or (item.literal is not None and _is_cluster(item.literal) and letters >= set(item.literal[1:]))
            for item in wanted
        )

    def _closed(self, states: set[int]) -> set[int]:
        closed = set(states)
        for state in states:
            after = state
            while after < len(self.items) and self.items[after] is None:
                after += 1
                closed.add(after)
        return closed


def compile_command(text: str) -> CommandPattern:
    """Read a pattern.

    Raises:
        ValueError: it is not one simple command; the message says why.
    """
    if text.endswith(":*"):  # the way other tools write `git *`
        text = f"{text[:-2]} *"
    items: list[Glob | None] = []
    at = 0
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        piece, at = _word(text, at)
        items.append(None if piece == (None,) else Glob(piece))
    if not items:
        raise ValueError("the pattern is empty")
    return CommandPattern(tuple(items))


def quoted(word: str) -> str:
    """The word as a pattern that matches only it."""
    return word if word and _PLAIN.issuperset(word) else "'" + word.replace("'", "'\\''") + "'"


def _word(text: str, at: int) -> tuple[Piece, int]:
    parts: list[str | None] = []
    plain = ""
    while at < len(text) and text[at] not in " \t":
        character = text[at]
        if character == "*":
            parts += [plain, None] if plain else [None]
            plain = ""
        elif character in "'\"":
            end = _closing(text, at)
            plain += _unquoted(text[at + 1 : end], character)
            at = end
        elif character == "\\":
            at += 1
            if at == len(text):
                raise ValueError("it ends with a backslash")
            plain += text[at]
        elif character in _OPERATORS:
            raise ValueError(f"it has an unquoted `{character}`, and a pattern is one simple command")
        else:
            plain += character
        at += 1
    return tuple(parts + ([plain] if plain else [])), at


def _closing(text: str, at: int) -> int:
    quote = text[at]
    end = at + 1
    while end < len(text) and text[end] != quote:
        end += 2 if quote == '"' and text[end] == "\\" else 1
    if end >= len(text):
        raise ValueError(f"a quote ({quote}) is not closed")
    return end


def _unquoted(text: str, quote: str) -> str:
    if quote == "'" or "\\" not in text:
        return text
    out = ""
    characters = iter(text)
    for character in characters:
        following = next(characters, "") if character == "\\" else ""
        out += following if following and following in '$`"\\' else character + following
    return out


def _is_cluster(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and word[1] != "-"


def _glob(text: str) -> Glob:
    return Glob((text,) if text else ())
