"""What an agent has to keep. Loading this package puts all of its scenarios into `SUITE`, in the order in which they are played."""

from antiphon.conformance.suites.agent import (
    handshake,
    versions,
    messages,
    errors,
    extensions,
    signing_in,
    robustness,
    ending,
)  # isort: skip - this is the order: what may end an agent comes last
from antiphon.conformance.suites.agent.suite import SUITE

__all__ = [
    "SUITE", "ending", "errors", "extensions", "handshake", "messages", "robustness", "signing_in", "versions",
]  # fmt: skip
