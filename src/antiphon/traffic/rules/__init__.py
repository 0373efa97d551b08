"""The rules, a module for each part of the protocol. Loading this package registers them all.

A rule says for which versions of the protocol it holds: most rules of lines and shapes for all, the others for one.

Modules in reading order:

    rpc.py            every line is one message of JSON-RPC, and responses find their requests
    schema.py         every message matches the schema
    handshake.py      `initialize` comes first
    capabilities.py   what a side has not offered is not requested from it
    sessions.py       session ids are known, and sessions are what was requested
    turns.py          turns from prompt to response, and the tool calls in them
    permission.py     permission requests and their options
    paths.py          paths are absolute, lines are counted from 1
    terminals.py      terminals of the client
    settings.py       modes and config options
    v2/               what only version 2 has: states, prompts that are inserted, messages and calls by their ids
"""

# The order of the specification, from the bytes up: it is the order of all lists of rules.
from antiphon.traffic.rules import (  # noqa: I001
    rpc,
    schema,
    handshake,
    capabilities,
    sessions,
    turns,
    permission,
    paths,
    terminals,
    settings,
    v2,
)

__all__ = [
    "capabilities",
    "handshake",
    "paths",
    "permission",
    "rpc",
    "schema",
    "sessions",
    "settings",
    "terminals",
    "turns",
    "v2",
]
