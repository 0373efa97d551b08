"""What a client has to keep. Loading this package puts all of its scenarios into `SUITE`."""

# The order is that of every list of scenarios and requirements.
# isort: off
from antiphon.conformance.suites.client import prompt_turn
from antiphon.conformance.suites.client import elicitation
from antiphon.conformance.suites.client import failures
from antiphon.conformance.suites.client import file_system
from antiphon.conformance.suites.client import initialization
from antiphon.conformance.suites.client import stdio
from antiphon.conformance.suites.client import json_rpc
from antiphon.conformance.suites.client import sessions
from antiphon.conformance.suites.client import authentication
from antiphon.conformance.suites.client import updates
from antiphon.conformance.suites.client import terminals
from antiphon.conformance.suites.client.suite import SUITE
# isort: on

__all__ = [
    "SUITE", "authentication", "elicitation", "failures", "file_system", "initialization", "json_rpc", "prompt_turn", "sessions",
    "stdio", "terminals", "updates",
]  # fmt: skip
