"""The scenarios for agents. Loading this package puts them into `SUITE`, in the order in which they are run.

Modules in reading order:

    suite.py              the suite, and what scenarios with odd messages share
    turns.py              what scenarios with turns share
    initialization.py     `initialize`, and versions that the agent does not know
    json_rpc.py           ids, requests at the same time, and errors
    extensibility.py      `_meta`, unknown fields, nulls
    authentication.py     signing in and out
    session_setup.py      `session/new`
    settings.py           modes and config options
    prompt_turn.py        turns, plans and commands
    content.py            the content of a prompt
    permission.py         permission requests
    file_system.py        the client's files
    terminals.py          the client's terminals
    cancellation.py       `session/cancel`
    earlier_sessions.py   `session/list`, `delete`, `load`, `resume`, `fork` and `close`
    capabilities.py       a client that offers nothing, and requests for what the agent does not offer
    robustness.py         lines that are not messages
    transport.py          the agent as a process
"""

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
