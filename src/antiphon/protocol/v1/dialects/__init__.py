"""What older documents and real peers of ACP v1 send that the schema does not have, and how we read it.

    table.py        the rules in their order, each with its source
    initialize.py   the handshake, and authentication
    session.py      sessions, and the MCP servers in the requests that open them
    updates.py      session updates
    tool_calls.py   tool calls, permission requests and terminals
    content.py      content blocks

Here are the few names that every start-up needs; the rules are loaded when a message is the first to need one.
"""

from typing import Final

from antiphon.protocol.methods import Dialects, Half

__all__ = [
    "BANJO_NOTES", "BANJO_WIRE", "BRIDGE", "DIALECTS", "GO_CLIENT", "HINTS", "OPENCODE", "OWN_DIRECTORY", "PROTOCOL_PAGES",
]  # fmt: skip

# Written out, not gathered from the rules, which are only loaded when one of these is seen; a test holds the two together.
# `session/update` must have none: it is the stream, and a search in it would be paid a thousand times a second.
HINTS: Final[dict[tuple[str, Half], tuple[bytes, ...]]] = {
    ("initialize", "params"): (b'"capabilities"', b'"prompt"', b'"transport"'),
    ("initialize", "result"): (b'"capabilities"', b'"content"', b'"httpTransport"', b'"sseTransport"'),
    ("session/new", "params"): (b'"modeId"', b'"providerID"'),
    ("session/request_permission", "params"): (b'"toolKind"',),
    ("terminal/create", "params"): (b'"outputBytesLimit"',),
}
"""Names that betray a dialect which the strict decoder would let pass and lose."""

DIALECTS: Final = Dialects(HINTS, "antiphon.protocol.v1.dialects.table")

OWN_DIRECTORY: Final = "antiphon/ownDirectory"
"""In the `_meta` of a request to open an earlier session: it came without a directory, so the session's own is meant."""

# The documents that the rules come from. Real peers are named in the rules themselves, with their versions.

BANJO_NOTES: Final = "Banjo ACP notes"
BANJO_WIRE: Final = "Banjo wire formats"
OPENCODE: Final = "OpenCode-derived ACP spec"
GO_CLIENT: Final = "Go client reference"
BRIDGE: Final = "bridge reference"
PROTOCOL_PAGES: Final = "examples on the protocol's own pages"
