"""A conversation between a client and an agent as it was on the wire, and what the specification says of it.

Pure: no I/O, no event loop, and none of our own message types. Whoever judges others must not judge them by his own habits, so
every verdict here comes from the schema's facts (`facts.json`) and from rules that are written down with a link each.
"""
