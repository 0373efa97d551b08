"""The scenarios for clients. Loading this package puts them into `SUITE`.

Modules in reading order:

    suite.py            the suite
    prompt_turn.py      permission requests, and `session/cancel`
    elicitation.py      `elicitation/create`
    failures.py         an agent that fails, exits, or does not exit
    file_system.py      `fs/…`
    initialization.py   `initialize` and the first session
    stdio.py            lines in pieces, together, long, and lines that are not messages
    json_rpc.py         ids of all kinds, unknown methods, and what the client did not offer
    sessions.py         earlier sessions, modes and config options
    authentication.py   an agent that wants a user to sign in
    updates.py          updates as the specification has them, and as real agents send them
    terminals.py        `terminal/…`
"""

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
