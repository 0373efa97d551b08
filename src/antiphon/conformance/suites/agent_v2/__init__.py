"""The scenarios for agents of version 2. Loading this package puts them into `SUITE_V2`, in the order in which they are run.

Modules in reading order:

    suite.py            the suite, and how its requirements are written
    initialization.py   `initialize`, other versions, logins
    messages.py         methods, ids, cancelled requests, odd messages
    sessions.py         `session/new`, `resume`, `list` and `close`
    prompts.py          prompts, states and content
    cancellation.py     `session/cancel`, and what it covers
    actions.py          permission, forms, options, tool calls
"""

# In the order of a session.
# isort: off
from antiphon.conformance.suites.agent_v2 import initialization
from antiphon.conformance.suites.agent_v2 import messages
from antiphon.conformance.suites.agent_v2 import sessions
from antiphon.conformance.suites.agent_v2 import prompts
from antiphon.conformance.suites.agent_v2 import cancellation
from antiphon.conformance.suites.agent_v2 import actions
from antiphon.conformance.suites.agent_v2.suite import SUITE_V2
# isort: on

__all__ = ["SUITE_V2", "actions", "cancellation", "initialization", "messages", "prompts", "sessions"]
