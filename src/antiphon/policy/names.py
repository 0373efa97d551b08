"""Names of programs, as rules and lists know them."""

import re
from typing import Final

__all__ = ["base_name", "program_name"]

_VERSION: Final = re.compile(r"[-_.]?[0-9][0-9.]*[a-z]?$")


def program_name(word: str) -> str:
    """`/usr/bin/Git` → `git`. For what is denied: there a different case may be the same file."""
    return word.rpartition("/")[2].casefold()


_ENDS_WITH_A_DIGIT = ("m4",)
"""Interpreters whose own name ends with a digit, which is no version: what begins like them is taken for them."""


def base_name(word: str) -> str:
    """The name of a program without directory, case and version: `/usr/bin/Python3.12` is `python`."""
    name = program_name(word)
    if name.startswith(_ENDS_WITH_A_DIGIT):
        return next(each for each in _ENDS_WITH_A_DIGIT if name.startswith(each))
    return _VERSION.sub("", name) or name
