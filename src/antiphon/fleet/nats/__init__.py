"""The broker of a fleet on NATS with JetStream. Nothing but a `nats-server` is needed for it, and `cryptography` where there are keys.

Files in reading order:

    wire.py          the protocol of NATS: commands as bytes, and bytes as messages
    keys.py          keys that NATS knows
    login.py         addresses of servers, and what a process shows to be let in
    program.py       where `nats-server` is on this machine
    server_link.py   a connection to one of several servers that comes back by itself
    answers.py       questions to the broker that wait for an answer
    streams.py       the streams: made, checked, changed
    broker.py        the broker: what is stored, read, followed, sent and requested
"""

from antiphon.fleet.nats.broker import NatsBroker, connect_broker

__all__ = ["NatsBroker", "connect_broker"]
