"""Names of programs, as rules and lists know them."""

import re
from typing import Final

__all__ = ["base_name", "program_name"]

_VERSION: Final = re.compile(r"[-_.]?[0-9][0-9.]*[a-z]?$")


def program_name(word: str) -> str:
    """`/usr/bin/Git` → `git`. For what is denied: there a different case may be the same file."""
    return word.rpartition("/")[2].casefold()


def base_name(word: str) -> str:
    """The name of a program without directory, case and version: `/usr/bin/Python3.12` is `python`."""
    name = program_name(word)
    return _VERSION.sub("", name) or name
