"""Words of others inside our own, so that they cannot pass for ours: each of their lines begins with a mark, and none of ours does. Pure."""

from typing import Final

from antiphon.text import prose

__all__ = ["MARK", "one_line", "quoted"]

MARK: Final = "| "
"""What a line of others begins with. Text cannot get out of it: whatever it holds, its next line has it again."""


def quoted(text: str) -> str:
    """Every line with the mark. What breaks a line for anybody breaks it here, and what nobody can see is shown."""
    return "\n".join(f"{MARK}{line}".rstrip() for line in _plain(text).splitlines())


def one_line(text: str, limit: int = 200) -> str:
    """All of it in one line, at most so long."""
    line = " ".join(_plain(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _plain(text: str) -> str:
    return prose(text.encode("utf-8", "replace").decode("utf-8"))
