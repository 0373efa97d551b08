"""Patterns on command lines and paths: globs, patterns of Bash rules, and the commands that they are matched with.

In the pattern of a command `*` as a word of its own stands for any number of words, also none; inside a word it stands for any
text of that word. Quotes and backslashes are read as the shell reads them, so `'*'` is a star. A pattern has no operators: it is
one command.
"""

import re
from enum import Enum
from typing import Final

import msgspec

from antiphon.policy.programs import program_name

__all__ = [
    "ANY_DIRECTORIES",
    "CommandLine",
    "CommandPattern",
    "Glob",
    "Match",
    "Piece",
    "SimpleCommand",
    "Words",
    "compile_command",
    "compile_piece",
    "compile_segments",
    "escape",
    "folded",
    "quoted",
    "segments_match",
]

# --- command lines: simple commands, and what about a line is doubtful

Words = tuple[str | None, ...]
"""The words of a command. None is one that only the shell knows: a variable, a substitution, a glob. It may become several."""


class Match(Enum):
    """Whether a deny or ask rule matches. MAYBE is for what cannot be read for sure, and never ends in an allow."""

    NO = 0
    MAYBE = 1
    YES = 2


class SimpleCommand(msgspec.Struct, frozen=True):
    """One simple command. The first `settings` words are assignments before its program (`LANG=C sort`).

    `texts` are the words as they were written, for those that only the shell knows. `fed` means that something is written to
    its standard input: it stands behind a pipe, or has a `<`.
    """

    words: Words
    settings: int = 0
    fed: bool = False
    texts: tuple[str, ...] = ()

    @property
    def command(self) -> Words:
        """The program and its arguments."""
        return self.words[self.settings :]

    @property
    def shown(self) -> str:
        """The command for people, cut short."""
        texts = self.texts or tuple(word or "…" for word in self.words)
        text = " ".join(" ".join(texts).split())
        return text if len(text) <= 60 else f"{text[:59]}…"


class CommandLine(msgspec.Struct, frozen=True):
    """A shell line, read. An empty `unclear` and an empty `special` mean: these are its commands, and there is nothing else.

    `unclear` is the reason why it cannot be read for sure, so that any rule may or may not match.
    `special` names what it has that is understood but covered by no pattern, such as a redirection into a file.
    """

    parts: tuple[SimpleCommand, ...] = ()
    unclear: str = ""
    special: str = ""

    @classmethod
    def of_words(cls, words: tuple[str, ...]) -> "CommandLine":
        """An argument list, which no shell reads."""
        if not words or not words[0] or "=" in words[0]:
            return cls(unclear="it names no program")
        if any("\0" in word for word in words):
            return cls(unclear="it has a NUL character")
        return cls((SimpleCommand(words, texts=words),))


# --- globs: time grows with the lengths and no faster (no backtracking)
# In a path glob `*` and `?` stay inside one name, `**` stands for any number of directories, `\\` takes the next character as it is.

Piece = tuple[str | None, ...]
"""Text of one name or word: strings, with None for `*` and "" for `?`."""

ANY_DIRECTORIES: Final[Piece] = (None, None)
"""What `**` compiles to."""


class Glob(msgspec.Struct, frozen=True):
    """One name, or one word, with wildcards."""

    piece: Piece

    @property
    def literal(self) -> str | None:
        """The only text that matches, if there is only one."""
        if not self.piece:
            return ""
        return self.piece[0] if len(self.piece) == 1 and self.piece[0] else None

    def matches(self, text: str) -> bool:
        """Whether all of `text` matches."""
        return _piece_matches(self.piece, text)


def compile_piece(text: str, *, question: bool = True) -> Piece:
    """Compile one name with `*`, perhaps `?`, and `\\` before a character that is meant literally."""
    parts: list[str | None] = []
    plain = ""
    characters = iter(text)
    for character in characters:
        if character == "\\":
            plain += next(characters, "\\")
        elif character == "*" or (question and character == "?"):
            parts += [plain] if plain else []
            plain = ""
            parts.append(None if character == "*" else "")
        else:
            plain += character
    return tuple(parts + ([plain] if plain else []))


def compile_segments(glob: str) -> tuple[Piece, ...]:
    """The names of a path glob. A slash at the end means everything below; `.` and empty names are ignored."""
    segments = [
        ANY_DIRECTORIES if name == "**" else compile_piece(name) for name in glob.split("/") if name not in ("", ".")
    ]
    if glob.endswith("/"):
        segments.append(ANY_DIRECTORIES)
    return tuple(segments)


def segments_match(pattern: tuple[Piece, ...], names: list[str], *, above: bool = False) -> bool:
    """Whether a whole path, as its names, matches; with `above` also whether a directory above it does."""
    end = len(pattern)
    states = _closed([0], pattern)
    for name in names:
        if above and end in states:
            return True
        reached = []
        for state in states:
            if state < end:
                piece = pattern[state]
                if piece == ANY_DIRECTORIES:
                    reached.append(state)
                elif _piece_matches(piece, name):
                    reached.append(state + 1)
        if not reached:
            return False
        states = _closed(reached, pattern)
    return end in states


def folded(path: str) -> str:
    """The path as a disk sees it that cares neither for case nor for the form of letters."""
    if path.isascii():
        return path.lower()
    import unicodedata  # late: paths are ASCII nearly always

    return unicodedata.normalize("NFKC", path).casefold()


def escape(path: str) -> str:
    """A glob that matches this path and no other."""
    return "".join(f"\\{character}" if character in "\\*?" else character for character in path)


def _closed(states: list[int], pattern: tuple[Piece, ...]) -> set[int]:
    closed = set(states)
    for state in states:
        after = state
        while after < len(pattern) and pattern[after] == ANY_DIRECTORIES:
            after += 1  # `**` may stand for no directory at all
            closed.add(after)
    return closed


def _piece_matches(piece: Piece, text: str) -> bool:
    if len(piece) == 1 and piece[0]:  # nearly every name of nearly every rule
        return piece[0] == text
    # The classic walk with one step back: only the last `*` is ever tried again.
    at = place = 0
    star = retry = -1
    while place < len(text) or at < len(piece):
        part = piece[at] if at < len(piece) else None
        if at < len(piece) and part is None:
            star, retry = at, place
            at += 1
        elif part is not None and _fits(part, text, place):
            place += len(part) or 1
            at += 1
        elif star >= 0 and retry < len(text):
            retry += 1
            at, place = star + 1, retry
        else:
            return False
    return True


def _fits(part: str, text: str, place: int) -> bool:
    return text.startswith(part, place) if part else place < len(text)


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
        """Whether the word could match, with the right values for what only the shell knows."""
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
        ValueError: it is not one simple command; the message is the reason.
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
