"""The rules, a module for each part of the protocol. Loading this package registers them all."""

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
]
