"""What an agent has to keep. Loading this package puts all of its scenarios into `SUITE`, in the order in which they are played."""

# In the order of a conversation; what may end an agent comes last.
# isort: off
from antiphon.conformance.suites.agent import handshake
from antiphon.conformance.suites.agent import versions
from antiphon.conformance.suites.agent import messages
from antiphon.conformance.suites.agent import errors
from antiphon.conformance.suites.agent import extensions
from antiphon.conformance.suites.agent import signing_in
from antiphon.conformance.suites.agent import sessions
from antiphon.conformance.suites.agent import settings
from antiphon.conformance.suites.agent import prompting
from antiphon.conformance.suites.agent import content
from antiphon.conformance.suites.agent import asking
from antiphon.conformance.suites.agent import files
from antiphon.conformance.suites.agent import terminals
from antiphon.conformance.suites.agent import cancelling
from antiphon.conformance.suites.agent import listing
from antiphon.conformance.suites.agent import loading
from antiphon.conformance.suites.agent import closing
from antiphon.conformance.suites.agent import modest
from antiphon.conformance.suites.agent import unoffered
from antiphon.conformance.suites.agent import robustness
from antiphon.conformance.suites.agent import ending
from antiphon.conformance.suites.agent.suite import SUITE
# isort: on

__all__ = [
    "SUITE", "asking", "cancelling", "closing", "content", "ending", "errors", "extensions", "files", "handshake", "listing", "loading",
    "messages", "modest", "prompting", "robustness", "sessions", "settings", "signing_in", "terminals", "unoffered", "versions",
]  # fmt: skip
