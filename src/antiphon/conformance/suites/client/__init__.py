"""What a client has to keep. Loading this package puts all of its scenarios into `SUITE`."""

from antiphon.conformance.suites.client import (
    cancelling,
    elicitation,
    ending,
    files,
    handshake,
    lines,
    permission,
    requests,
    sessions,
    signing_in,
    strange_updates,
    terminals,
    updates,
)
from antiphon.conformance.suites.client.suite import SUITE

__all__ = [
    "SUITE", "cancelling", "elicitation", "ending", "files", "handshake", "lines", "permission", "requests", "sessions",
    "signing_in", "strange_updates", "terminals", "updates",
]  # fmt: skip
