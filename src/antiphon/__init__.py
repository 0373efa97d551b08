"""Antiphon: the Agent Client Protocol for Python.

Importing the package loads nothing else: an editor starts an agent every time, so each module is imported when the first of its names is
used. `__all__` is the public interface: every name in it is described in docs/api.md, and nothing else is promised to stay. The messages
of the protocol are in `v1`, a client without `async` in `sync`, helpers for tests of agents and clients in `antiphon.testing`.
"""

TYPE_CHECKING = False  # typing itself would be the heaviest thing here
if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.client import ConnectedClient
    from antiphon.agent.commands import FinishedCommand, RunningCommand
    from antiphon.agent.questions import Permission
    from antiphon.agent.session import AgentSession
    from antiphon.agent.tools import LiveCall
    from antiphon.agent.turn import AgentTurn
    from antiphon.client import sync
    from antiphon.client.agent import ConnectedAgent
    from antiphon.client.connect import connect
    from antiphon.client.files import Files
    from antiphon.client.handlers import Elicitation, allow_always, allow_once, reject
    from antiphon.client.link import Retry
    from antiphon.client.session import ClientSession
    from antiphon.client.terminals import Terminals
    from antiphon.client.turn import ClientTurn
    from antiphon.connection.connection import Connection
    from antiphon.connection.early import answer_initialize
    from antiphon.connection.router import Router
    from antiphon.errors import (
        AcpError,
        AuthRequired,
        Code,
        ConnectionClosed,
        ExtraMissing,
        LocalProtocolError,
        NotSupported,
        ProcessDied,
        ProtocolError,
        RemoteProtocolError,
        RequestError,
        RequestRefused,
        RequestTimeout,
        ResponseError,
        SpawnFailed,
        TurnLost,
        TurnOver,
        UnsupportedPlatform,
    )
    from antiphon.permission.gate import PermissionGate
    from antiphon.protocol import v1
    from antiphon.protocol.extension import OpenWork, WorkState
    from antiphon.transcript.transcript import Transcript, fold
    from antiphon.transports.memory import memory_pair
    from antiphon.transports.process import spawn
    from antiphon.transports.stdio import open_stdio

__all__ = [  # noqa: RUF022 - by subject, in the order of docs/api.md
    # For agents.
    "Agent", "AgentSession", "AgentTurn", "LiveCall", "Permission", "RunningCommand", "FinishedCommand", "ConnectedClient",
    # For clients.
    "connect", "sync", "ConnectedAgent", "ClientSession", "ClientTurn", "Files", "Terminals", "Elicitation", "Retry",
    "allow_once", "allow_always", "reject", "PermissionGate", "Transcript", "fold", "WorkState", "OpenWork",
    # For both: the messages, and the connection below the SDKs.
    "v1", "Connection", "Router", "memory_pair", "open_stdio", "spawn", "answer_initialize",
    # Errors.
    "AcpError", "AuthRequired", "Code", "ConnectionClosed", "ExtraMissing", "LocalProtocolError", "NotSupported", "ProcessDied",
    "ProtocolError", "RemoteProtocolError", "RequestError", "RequestRefused", "RequestTimeout", "ResponseError", "SpawnFailed", "TurnLost", "TurnOver",
    "UnsupportedPlatform",
    "__version__",
]  # fmt: skip

__version__ = "0.1.0"

_HOMES = {
    "Agent": "antiphon.agent.agent",
    "AgentSession": "antiphon.agent.session",
    "AgentTurn": "antiphon.agent.turn",
    "ClientSession": "antiphon.client.session",
    "ClientTurn": "antiphon.client.turn",
    "ConnectedAgent": "antiphon.client.agent",
    "ConnectedClient": "antiphon.agent.client",
    "Connection": "antiphon.connection.connection",
    "Elicitation": "antiphon.client.handlers",
    "Files": "antiphon.client.files",
    "FinishedCommand": "antiphon.agent.commands",
    "LiveCall": "antiphon.agent.tools",
    "OpenWork": "antiphon.protocol.extension",
    "Permission": "antiphon.agent.questions",
    "PermissionGate": "antiphon.permission.gate",
    "Retry": "antiphon.client.link",
    "Router": "antiphon.connection.router",
    "RunningCommand": "antiphon.agent.commands",
    "Terminals": "antiphon.client.terminals",
    "Transcript": "antiphon.transcript.transcript",
    "WorkState": "antiphon.protocol.extension",
    "allow_always": "antiphon.client.handlers",
    "allow_once": "antiphon.client.handlers",
    "answer_initialize": "antiphon.connection.early",
    "connect": "antiphon.client.connect",
    "fold": "antiphon.transcript.transcript",
    "memory_pair": "antiphon.transports.memory",
    "open_stdio": "antiphon.transports.stdio",
    "reject": "antiphon.client.handlers",
    "spawn": "antiphon.transports.process",
    "sync": "antiphon.client.sync.",
    "v1": "antiphon.protocol.v1.",
}
"""Name → the module it lives in; the others are errors."""

if not TYPE_CHECKING:  # a type checker that saw this would accept any name
    from antiphon.late import loader

    __getattr__ = loader(__name__, {name: _HOMES.get(name, "antiphon.errors") for name in __all__})

    def __dir__():
        return __all__
