"""The documents that the rules come from. Real peers are named in the rules themselves, with their versions."""

from typing import Final

__all__ = ["BANJO_NOTES", "BANJO_WIRE", "BRIDGE", "GO_CLIENT", "OPENCODE", "PROTOCOL_PAGES"]

BANJO_NOTES: Final = "Banjo ACP notes"
BANJO_WIRE: Final = "Banjo wire formats"
OPENCODE: Final = "OpenCode-derived ACP spec"
GO_CLIENT: Final = "Go client reference"
BRIDGE: Final = "bridge reference"
PROTOCOL_PAGES: Final = "examples on the protocol's own pages"
