"""A broker in memory, for tests: the interface of `fleet.broker` with a clock and faults of its own, repeatable from a seed.

Files in reading order:

    store.py    what it stores: messages in one sequence, their names, and the states of a moment ago
    server.py   the server with its faults, and connections to it
"""

from antiphon.fleet.simulation.server import SimulatedBroker, SimulatedServer

__all__ = ["SimulatedBroker", "SimulatedServer"]
