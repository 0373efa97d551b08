"""Antiphon: the Agent Client Protocol for Python.

Importing the package loads nothing else: an editor starts us every time, so each room is imported when the first of its names is
used. What most programs need can be had from here; the messages are in `antiphon.protocol.v1`.
"""

TYPE_CHECKING = False  # typing itself would be the heaviest thing here
if TYPE_CHECKING:
    from antiphon.connection.connection import Connection
    from antiphon.connection.early import answer_initialize
    from antiphon.connection.router import Router
    from antiphon.errors import (
        AcpError,
        Code,
        ConnectionClosed,
        LocalProtocolError,
        ProcessDied,
        RemoteProtocolError,
        RequestError,
        RequestRefused,
        SpawnFailed,
    )
    from antiphon.protocol import v1
    from antiphon.transports.memory import memory_pair
    from antiphon.transports.process import spawn
    from antiphon.transports.stdio import open_stdio

__all__ = [
    "AcpError", "Code", "Connection", "ConnectionClosed", "LocalProtocolError", "ProcessDied", "RemoteProtocolError",
    "RequestError", "RequestRefused", "Router", "SpawnFailed", "__version__", "answer_initialize", "memory_pair", "open_stdio",
    "spawn", "v1",
]  # fmt: skip

__version__ = "0.1.0"

_HOMES = {
    "Connection": "connection.connection",
    "Router": "connection.router",
    "answer_initialize": "connection.early",
    "memory_pair": "transports.memory",
    "open_stdio": "transports.stdio",
    "spawn": "transports.process",
}
"""Name → the module it lives in; the errors are all in `errors`."""

if not TYPE_CHECKING:  # a checker that saw these would believe in any name

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"antiphon has no `{name}`")
        from importlib import import_module

        if name == "v1":
            value = import_module("antiphon.protocol.v1")
        else:
            value = getattr(import_module(f"antiphon.{_HOMES.get(name, 'errors')}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return __all__
