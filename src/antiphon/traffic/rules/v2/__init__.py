"""The rules that only version 2 has, or has in its own way. Loading this package registers them.

Modules in reading order:

    handshake.py      versions are settled, logins are those that were offered
    capabilities.py   what a side has not offered is not requested from it
    sessions.py       sessions are opened, resumed and closed
    prompts.py        a prompt is answered when its message is inserted
    states.py         the session says what it does: running, requires_action, idle
    tools.py          tool calls, terminals, diffs and their cancellation
    permission.py     permission requests
    settings.py       commands and config options
    places.py         paths are absolute, lines are counted from 1
"""

# The order of the specification.
from antiphon.traffic.rules.v2 import (  # noqa: I001
    handshake,
    capabilities,
    sessions,
    prompts,
    states,
    tools,
    permission,
    settings,
    places,
)

__all__ = [
    "capabilities",
    "handshake",
    "permission",
    "places",
    "prompts",
    "sessions",
    "settings",
    "states",
    "tools",
]
