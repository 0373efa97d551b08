"""Our own client in front of the engine for Claude Code."""

from tests.engines.driving import Can, Client, Told, connected

__all__ = ["Can", "Client", "Told", "connected"]
