"""Names that betray a dialect which the strict decoder would let pass and lose. A leaf: every start-up loads it."""

from collections.abc import Callable
from typing import Literal

__all__ = ["HINTS", "METHOD_ALIASES", "OWN_DIRECTORY", "Half", "Reply"]

Half = Literal["params", "result"]
Reply = Callable[[bytes], bytes]
"""Turns our answer, as the schema has it, into the words of whoever asked in a dialect."""

# Written out, not gathered from the rules, which are only loaded when one of these is seen; a test holds the two together.
# `session/update` must have none: it is the stream, and a search in it would be paid a thousand times a second.
HINTS: dict[tuple[str, str], tuple[bytes, ...]] = {
    ("initialize", "params"): (b'"capabilities"', b'"prompt"', b'"transport"'),
    ("initialize", "result"): (b'"capabilities"', b'"content"', b'"httpTransport"', b'"sseTransport"'),
    ("session/new", "params"): (b'"modeId"', b'"providerID"'),
    ("session/request_permission", "params"): (b'"toolKind"',),
    ("terminal/create", "params"): (b'"outputBytesLimit"',),
}
"""(method, half) → byte strings; if one occurs in the message the dialects are tried before the strict decoder."""

METHOD_ALIASES: dict[str, str] = {"unstable_resumeSession": "session/resume"}
"""Older names of methods → today's."""

OWN_DIRECTORY = "antiphon/ownDirectory"
"""In the `_meta` of a request to open an earlier session: it came without a directory, so the session's own is meant."""
