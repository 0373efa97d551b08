"""What every part of a line shares: unknown fields are ignored, and what is not essential may be missing."""

import msgspec

__all__ = ["Part"]


class Part(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Base of every part. Frozen, and outside the garbage collector's rounds, because trees of them have no cycles."""
