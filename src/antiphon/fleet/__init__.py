"""The fleet: agents on many machines, gateways that find them, and a broker between that stores what happens and fences who may write.

Files in reading order:

    broker.py            what is needed of a broker: stored messages, messages that are not stored, requests
    errors.py            what can be wrong with a broker
    streams.py           which subjects are stored, and where
    simulated_store.py   what the simulated broker stores
    simulation.py        a broker in memory, with faults
    wire.py              the protocol of NATS: commands as bytes, and bytes as messages
    keys.py              keys that NATS knows
    login.py             addresses of servers, and what a process shows to be let in
    program.py           where `nats-server` is on this machine
    server_link.py       a connection to one of several servers that comes back by itself
    answers.py           questions to the broker that wait for an answer
    nats_streams.py      the streams on NATS: made, checked, changed
    nats.py              the broker on NATS
    records/             what is stored of a session: formats, certain appends, the queue of a session, its history, copies of rows
    journal.py           the journal: events on the broker, under leases that the broker enforces
    membership.py        which workers live: heartbeats, and how death is judged from them
    placement.py         which worker takes a session, or why none does
    connection.py        one end of a connection that the broker carries: chunks with numbers, and a window
    carrier.py           connections of clients to workers: they are opened, accepted and watched
"""
