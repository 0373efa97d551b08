"""`sed` and `awk`: programs whose argument is a program that may run others and write files. Knows which are plainly harmless."""

import re
from typing import Final

__all__ = ["awk_escapes", "awk_writes", "sed_escapes", "sed_writes"]

Words = tuple[str | None, ...]

_PLACE: Final = r"(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^\n])+/)"
_CHANGE: Final = "|".join(
    rf"s[{d}](?:[^{d}\\\n]|\\[^\n])*[{d}](?:[^{d}\\\n]|\\[^\n])*[{d}][gpiI0-9]*" for d in "/|#,@:"
)
_STEP: Final = rf"(?:{_PLACE}(?:,{_PLACE})?)?!?(?:[pdq=]|{_CHANGE})"
_SED: Final = re.compile(rf"[ \t]*{_STEP}(?:[ \t]*[;\n][ \t]*{_STEP})*[ \t]*")
_SED_OPTIONS: Final = re.compile(r"-[nErsuz]*e?|--quiet|--silent|--regexp-extended")
_AWK_STARTS: Final = re.compile(r"system|getline|[|@]")
_AWK_OPTIONS: Final = re.compile(r"-[Fv].*", re.DOTALL)


def sed_escapes(words: Words) -> frozenset[int]:
    """Scripts that do more than print, delete and replace: `e` and `s///e` run commands, `w` writes files."""
    scripts = {at for at in range(2, len(words)) if re.fullmatch(r"-[nErsuz]*e", words[at - 1] or "")}
    if not scripts:
        scripts = {at for at, word in enumerate(words) if at and not (word or "").startswith("-")}
        scripts = {min(scripts)} if scripts else set()
    return frozenset(at for at in scripts if not _SED.fullmatch(words[at] or ""))


def sed_writes(words: Words) -> frozenset[int]:
    """Options other than the few that only change how lines are read: `-i` writes, `-f` reads a script that nobody sees."""
    return frozenset(
        at for at, word in enumerate(words) if at and _option(word) and not _SED_OPTIONS.fullmatch(word or "")
    )


def awk_escapes(words: Words) -> frozenset[int]:
    """Programs that may start others, and options that bring in programs from elsewhere."""
    return frozenset(
        at
        for at, word in enumerate(words)
        if at and (_AWK_STARTS.search(word or "") or (_option(word) and not _AWK_OPTIONS.fullmatch(word or "")))
    )


def awk_writes(words: Words) -> frozenset[int]:
    """Programs with a `>`: it compares, or it writes."""
    return frozenset(at for at, word in enumerate(words) if at and (word is None or ">" in word))


def _option(word: str | None) -> bool:
    return word is None or (word.startswith("-") and word != "-")
