"""Remote clients of a gateway, whatever is behind it: what they send and offer, before it is handled.

Files in reading order:

    connection.py     one remote connection: its lines, its messages, what it owes
    capabilities.py   what a client offers and asks for, read from `initialize`
    translation.py    a client that speaks version 2 of ACP
    dialect.py        a client that knows the OpenCode-derived page alone: its words, and the page's fields for it
"""
