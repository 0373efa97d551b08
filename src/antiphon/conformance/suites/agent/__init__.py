"""What an agent has to keep. Loading this package puts all of its scenarios into `SUITE`, in the order in which they are played."""

# What may end an agent comes last.
# isort: off
from antiphon.conformance.suites.agent import handshake
from antiphon.conformance.suites.agent import versions
from antiphon.conformance.suites.agent import messages
from antiphon.conformance.suites.agent import errors
from antiphon.conformance.suites.agent import extensions
from antiphon.conformance.suites.agent import signing_in
from antiphon.conformance.suites.agent import robustness
from antiphon.conformance.suites.agent import ending
from antiphon.conformance.suites.agent.suite import SUITE
# isort: on

__all__ = ["SUITE", "ending", "errors", "extensions", "handshake", "messages", "robustness", "signing_in", "versions"]
