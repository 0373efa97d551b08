"""Numbers that programs tell, as everybody can read them."""

from typing import Final

__all__ = ["MOST", "tokens"]

MOST: Final = 2**53 - 1
"""The most that everybody can count to. What is more is a slip of the pen."""


def tokens(count: int | None) -> int:
    """A number of tokens."""
    return min(max(count or 0, 0), MOST)
