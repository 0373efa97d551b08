"""Globs on paths and on single words. Text in, yes or no out; time grows with the lengths, never beyond (no backtracking).

In a path glob `*` and `?` stay inside one name, `**` stands for any number of folders, `\\` takes the next character as it is.
"""

from typing import Final

import msgspec

__all__ = ["ANY_FOLDERS", "Glob", "Piece", "compile_piece", "compile_segments", "escape", "folded", "segments_match"]

Piece = tuple[str | None, ...]
"""Text of one name or word: strings, with None for `*` and "" for `?`."""

ANY_FOLDERS: Final[Piece] = (None, None)
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
    """One name with `*`, perhaps `?`, and `\\` before what is meant as it is."""
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
    """The names of a path glob. A slash at the end means everything below; `.` and empty names say nothing."""
    segments = [
        ANY_FOLDERS if name == "**" else compile_piece(name) for name in glob.split("/") if name not in ("", ".")
    ]
    if glob.endswith("/"):
        segments.append(ANY_FOLDERS)
    return tuple(segments)


def segments_match(pattern: tuple[Piece, ...], names: list[str], *, above: bool = False) -> bool:
    """Whether a whole path, as its names, matches; with `above` also whether a folder above it does."""
    end = len(pattern)
    states = _closed([0], pattern)
    for name in names:
        if above and end in states:
            return True
        reached = []
        for state in states:
            if state < end:
                piece = pattern[state]
                if piece == ANY_FOLDERS:
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
        while after < len(pattern) and pattern[after] == ANY_FOLDERS:
            after += 1  # `**` may stand for no folder at all
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
