"""What an agent has to keep. Loading this package puts all of its scenarios into `SUITE`."""

from antiphon.conformance.suites.agent import (
    asking,
    cancelling,
    closing,
    content,
    files,
    handshake,
    listing,
    loading,
    modest,
    prompting,
    sessions,
    settings,
    terminals,
)
from antiphon.conformance.suites.agent.suite import SUITE

__all__ = [
    "SUITE",
    "asking",
    "cancelling",
    "closing",
    "content",
    "files",
    "handshake",
    "listing",
    "loading",
    "modest",
    "prompting",
    "sessions",
    "settings",
    "terminals",
]
