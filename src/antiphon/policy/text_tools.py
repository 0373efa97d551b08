"""`sed` and `awk`: programs whose argument is a program that may run others and write files. Knows which are plainly harmless.

A sed script is harmless if the parser below can read all of it. It reads less than any sed does, and gives up where versions of
sed differ: a `/` inside `[…]` ends a regular expression for some and not for others.
"""

import re
from typing import Final

from antiphon.policy.grammar import RunContext, WordRisk
from antiphon.policy.patterns import Words

__all__ = ["AWKS", "awk_levels", "is_harmless_sed", "sed_levels"]

AWKS: Final = frozenset({"awk", "gawk", "mawk", "nawk"})

_AWK_STARTS: Final = re.compile(r"system|getline|[|@]")
_AWK_OPTIONS: Final = re.compile(r"-[Fv].*|--", re.DOTALL)

_SED_FLAGS: Final = frozenset("nErsuz")
_SED_LONG: Final = frozenset({
    "--debug", "--null-data", "--posix", "--quiet", "--regexp-extended", "--sandbox", "--separate", "--silent", "--unbuffered",
})  # fmt: skip

_SED_IN_PLACE: Final = re.compile(r"--in-place(?:=.*)?", re.DOTALL)

_MEMBER: Final = r"(?:\[:[a-z]+:\]|[^\]\[\\\n])"
_BRACKET: Final = re.compile(rf"\[(?:\^?\]{_MEMBER}*|\^(?!\]){_MEMBER}+|(?![\^\]]){_MEMBER}+)\]")
_NUMBER: Final = re.compile(r"[0-9]+")
_LABEL: Final = re.compile(r"[ ]*[A-Za-z0-9_]+(?=[ ]*(?:[;\n]|\Z))")
_BRANCH: Final = re.compile(r"[ ]*[A-Za-z0-9_]*(?=[ ]*(?:[;\n}]|\Z))")
_TEXT: Final = re.compile(r"[ ]+[^\\\n]+(?=\n|\Z)")
_FLAGS: Final = re.compile(r"[gpiImM0-9]*")
_SIMPLE: Final = frozenset("=dDgGhHnNpPxzF")
_ENDS: Final = re.compile(r"[ ]*(?:[;\n]|\Z|(?=\}))")
_BLANKS: Final = re.compile(r"[ ;\n]*")


def sed_levels(words: Words, _: RunContext) -> dict[int, WordRisk]:
    """The words of a sed command that are not fine: scripts that do more than edit text, and options other than a few."""
    found: dict[int, WordRisk] = {}
    scripts: list[tuple[int, str]] = []
    operands: list[int] = []
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            operands += range(at + 1, len(words))
            break
        if word is None:
            found[at] = WordRisk.RUNS
        elif not word.startswith("-") or word == "-":
            operands.append(at)
        elif (script := _sed_script(word)) is None:
            found[at] = _sed_option(word)
        else:
            at += 0 if script else 1  # `-e` alone: its script is the next word
            scripts.append((at, script or (words[at] if at < len(words) else None) or "e"))
        at += 1
    if not scripts:
        scripts = [(at, words[at] or "e") for at in operands[:1]]
    if not is_harmless_sed("\n".join(text for _, text in scripts)):
        found |= dict.fromkeys((at for at, _ in scripts if at < len(words)), WordRisk.RUNS)
    found |= {at: WordRisk.RUNS for at in operands if words[at] is None}
    return {at: level for at, level in found.items() if level}


def _sed_script(option: str) -> str | None:
    """The script in an option, empty if it is the next word; None if the option has none."""
    if option.startswith("--expression="):
        return option.partition("=")[2] or "e"
    letters = option[1:].lstrip("".join(_SED_FLAGS))
    return letters[1:] if letters.startswith("e") and not option.startswith("--") else None


def _sed_option(option: str) -> WordRisk:
    if option.startswith("--"):
        return (
            WordRisk.FINE
            if option in _SED_LONG
            else WordRisk.REACHES
            if _SED_IN_PLACE.fullmatch(option)
            else WordRisk.RUNS
        )
    letters = option[1:].lstrip("".join(_SED_FLAGS))
    return WordRisk.FINE if not letters else WordRisk.REACHES if letters.startswith("i") else WordRisk.RUNS


def is_harmless_sed(script: str) -> bool:
    """Whether every sed reads this script as nothing but printing, deleting, moving and replacing text."""
    return script.isascii() and _Script(script).harmless()


class _Stop(Exception):
    """Raised where it is not known what follows."""


class _Script:
    """A sed script, read from the left. Anything unknown stops the reading."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def harmless(self) -> bool:
        try:
            while self._command():
                pass
        except _Stop:
            return False
        return self.depth == 0

    def _command(self) -> bool:
        """Read one command. False at the end."""
        self._take(_BLANKS)
        if self.at == len(self.text):
            return False
        if self._next() == "}":
            self.at += 1
            self.depth -= 1
            if self.depth < 0:
                raise _Stop
            self._take(_ENDS)
            return True
        self._address()
        self._function(self._letter())
        return True

    def _function(self, letter: str) -> None:
        if letter == "{":
            self.depth += 1
            return
        if letter in _SIMPLE:
            pass
        elif letter in "lqQ":
            self._spaces()
            self._maybe(_NUMBER)
        elif letter == ":":
            self._take(_LABEL)
        elif letter in "btT":
            self._take(_BRANCH)
        elif letter in "aic":
            self._take(_TEXT)
        elif letter == "s":
            self._replace()
        elif letter == "y":
            delimiter = self._delimiter()
            self._until(delimiter, regex=False)
            self._until(delimiter, regex=False)
        else:
            raise _Stop
        self._take(_ENDS)

    def _replace(self) -> None:
        delimiter = self._delimiter()
        self._until(delimiter, regex=True)
        self._until(delimiter, regex=False)
        self._take(_FLAGS)

    def _address(self) -> None:
        if self._place():
            self._spaces()
            if self._next() == ",":
                self.at += 1
                self._spaces()
                if self._next() in ("+", "~"):
                    self.at += 1
                    self._take(_NUMBER)
                elif not self._place():
                    raise _Stop
        self._spaces()
        while self._next() == "!":
            self.at += 1
            self._spaces()

    def _place(self) -> bool:
        character = self._next()
        if character == "$":
            self.at += 1
        elif character == "/":
            self.at += 1
            self._until("/", regex=True)
            while self._next() in ("I", "M"):
                self.at += 1
        elif self._maybe(_NUMBER):
            if self._next() == "~":
                self.at += 1
                self._take(_NUMBER)
        else:
            return False
        return True

    def _until(self, delimiter: str, *, regex: bool) -> None:
        """Pass over a part up to its delimiter. Where two seds could see different ends, stop."""
        while True:
            character = self._letter()
            if character == delimiter:
                return
            if character == "\n":
                raise _Stop
            if character == "\\":
                if self._letter() in "\nc":  # `\cX` takes one more character in some versions
                    raise _Stop
            elif character == "[" and regex:
                self.at -= 1
                start = self.at
                self._take(_BRACKET)
                if delimiter in self.text[start : self.at]:
                    raise _Stop

    def _delimiter(self) -> str:
        character = self._letter()
        if character.isalnum() or character in "\\\n \t[]{};\"'":
            raise _Stop
        return character

    def _letter(self) -> str:
        if self.at == len(self.text):
            raise _Stop
        self.at += 1
        return self.text[self.at - 1]

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _spaces(self) -> None:
        while self._next() == " ":
            self.at += 1

    def _maybe(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        return True

    def _take(self, pattern: re.Pattern[str]) -> None:
        if not self._maybe(pattern):
            raise _Stop


def awk_levels(words: Words, _: RunContext) -> dict[int, WordRisk]:
    """Programs that may start others, options that bring in programs from elsewhere, and a `>`, which compares or writes."""
    found: dict[int, WordRisk] = {}
    for at, word in enumerate(words):
        if not at:
            continue
        if word is None or _AWK_STARTS.search(word) or (_is_option(word) and not _AWK_OPTIONS.fullmatch(word)):
            found[at] = WordRisk.RUNS
        elif ">" in word:
            found[at] = WordRisk.REACHES
    return found


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"
