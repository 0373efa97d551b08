"""A picture for the tests."""

import base64
from typing import Final

__all__ = ["DOT"]

DOT: Final = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c636800000082008177cd72b6"
        "0000000049454e44ae426082"
    )
).decode()
"""The smallest PNG there is: one grey dot."""
