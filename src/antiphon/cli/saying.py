"""How commands speak to people: data on stdout, words on stderr, an error and then what to do about it."""

import sys

__all__ = ["FAILED", "MISUSED", "fail"]

FAILED = 1
MISUSED = 2


def fail(sentence: str, hint: str, status: int) -> int:
    """Say on stderr what went wrong and what to do about it."""
    sys.stderr.write(f"error: {sentence}\n\nhint: {hint}\n")
    return status
