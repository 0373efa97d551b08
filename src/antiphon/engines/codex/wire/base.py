"""What every part of a line shares: names in camelCase, unknown fields ignored, and what is not essential may be missing."""

import msgspec

__all__ = ["OfThread", "Part"]


class Part(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every part. Frozen, and outside the garbage collector's rounds, because trees of them have no cycles."""


class OfThread(Part, frozen=True):
    """Something that is said about one thread, or about none in particular."""

    thread_id: str | None = None
    turn_id: str | None = None
