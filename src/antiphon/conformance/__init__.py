"""Whether an agent or a client is correct: requirements as data, scenarios that show them, and reports that people believe.

Nothing here uses our own message types, our agent or our client: what is judged is the wire.
"""
