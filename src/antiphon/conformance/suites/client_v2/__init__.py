"""The scenarios for clients of version 2. Loading this package puts them into `CLIENT_SUITE_V2`.

Modules in reading order:

    suite.py            the suite, and scenarios that it takes over from version 1
    initialization.py   `initialize`, the first session and logins
    turns.py            prompts and states
    updates.py          updates as the specification has them, and unexpected ones
    permission.py       permission requests, cancellation and elicitation
    requests.py         ids, unknown methods, cancelled requests and batches
    sessions.py         earlier sessions, pages of a list, and options
"""

# The order is that of every list of scenarios and requirements.
# isort: off
from antiphon.conformance.suites.client_v2 import initialization
from antiphon.conformance.suites.client_v2 import turns
from antiphon.conformance.suites.client_v2 import updates
from antiphon.conformance.suites.client_v2 import permission
from antiphon.conformance.suites.client_v2 import requests
from antiphon.conformance.suites.client_v2 import sessions
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, take_over
# isort: on

__all__ = ["CLIENT_SUITE_V2", "initialization", "permission", "requests", "sessions", "turns", "updates"]

for _name in ("lines", "noise", "no-session", "agent-leaves", "agent-stays"):
    take_over(_name)

# A client that leaves when its prompt is answered can show nothing else of a turn.
CLIENT_SUITE_V2.follows["turn.answer"] = (
    "turn.stays",
    *(
        one.id
        for scenario in CLIENT_SUITE_V2.scenarios.values()
        for one in scenario.shows
        if one.id not in ("prompt.comes", "turn.answer")
    ),
)
