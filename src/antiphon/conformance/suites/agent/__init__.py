"""What an agent has to keep. Loading this package puts all of its scenarios into `SUITE`, in the order in which they are played."""

# In the order of a session; what may end an agent comes last.
# isort: off
from antiphon.conformance.suites.agent import initialization
from antiphon.conformance.suites.agent import json_rpc
from antiphon.conformance.suites.agent import extensibility
from antiphon.conformance.suites.agent import authentication
from antiphon.conformance.suites.agent import session_setup
from antiphon.conformance.suites.agent import settings
from antiphon.conformance.suites.agent import prompt_turn
from antiphon.conformance.suites.agent import content
from antiphon.conformance.suites.agent import permission
from antiphon.conformance.suites.agent import file_system
from antiphon.conformance.suites.agent import terminals
from antiphon.conformance.suites.agent import cancellation
from antiphon.conformance.suites.agent import earlier_sessions
from antiphon.conformance.suites.agent import capabilities
from antiphon.conformance.suites.agent import robustness
from antiphon.conformance.suites.agent import transport
from antiphon.conformance.suites.agent.suite import SUITE
# isort: on

__all__ = [
    "SUITE", "authentication", "cancellation", "capabilities", "content", "earlier_sessions", "extensibility", "file_system",
    "initialization", "json_rpc", "permission", "prompt_turn", "robustness", "session_setup", "settings", "terminals", "transport",
]  # fmt: skip
