"""Antiphon: the Agent Client Protocol for Python.

Importing the package loads nothing else: an editor starts us every time, so each room is imported when the first of its names is
used. What most programs need can be had from here; the messages are in `antiphon.protocol.v1`.
"""

TYPE_CHECKING = False  # typing itself would be the heaviest thing here
if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.client import sync
    from antiphon.client.connect import connect
    from antiphon.connection.connection import Connection
    from antiphon.connection.early import answer_initialize
    from antiphon.connection.router import Router
    from antiphon.errors import (
        AcpError,
        AuthRequired,
        Code,
        ConnectionClosed,
        LocalProtocolError,
        NotSupported,
        ProcessDied,
        RemoteProtocolError,
        RequestError,
        RequestRefused,
        RequestTimeout,
        ResponseError,
        SpawnFailed,
        TurnLost,
        TurnOver,
    )
    from antiphon.protocol import v1
    from antiphon.transports.memory import memory_pair
    from antiphon.transports.process import spawn
    from antiphon.transports.stdio import open_stdio

__all__ = [
    "AcpError",
    "Agent",
    "AgentSession",
    "AgentTurn",
    "AuthRequired",
    "Code",
    "Connection",
    "ConnectionClosed",
    "LocalProtocolError",
    "NotSupported",
    "ProcessDied",
    "RemoteProtocolError",
    "RequestError",
    "RequestRefused",
    "RequestTimeout",
    "ResponseError",
    "Router",
    "SpawnFailed",
    "TurnLost",
    "TurnOver",
    "__version__",
    "answer_initialize",
    "connect",
    "memory_pair",
    "open_stdio",
    "spawn",
    "sync",
    "v1",
]  # fmt: skip

__version__ = "0.1.0"

_HOMES = {
    "Agent": "antiphon.agent.agent",
    "Connection": "antiphon.connection.connection",
    "Router": "antiphon.connection.router",
    "AgentSession": "antiphon.agent.session",
    "AgentTurn": "antiphon.agent.turn",
    "answer_initialize": "antiphon.connection.early",
    "connect": "antiphon.client.connect",
    "memory_pair": "antiphon.transports.memory",
    "open_stdio": "antiphon.transports.stdio",
    "spawn": "antiphon.transports.process",
    "sync": "antiphon.client.sync.",
    "v1": "antiphon.protocol.v1.",
}
"""Name → the module it lives in; the others are errors."""

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    from antiphon.late import loader

    __getattr__ = loader(__name__, {name: _HOMES.get(name, "antiphon.errors") for name in __all__})

    def __dir__():
        return __all__
