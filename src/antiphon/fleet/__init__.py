"""The fleet: agents on many machines, gateways that find them, and a broker between that stores what happens and fences who may write.

Files in reading order:

    broker.py            what is needed of a broker: stored messages, messages that are not stored, requests
    errors.py            what can be wrong with a broker
    streams.py           which subjects are stored, and where
    simulation/          a broker in memory, with faults
    nats/                the broker on NATS
    records/             what is stored of a session: formats, certain appends, the queue of a session, its history, copies of rows
    journal.py           the journal: events on the broker, under leases that the broker enforces
    rows.py              the rows of sessions: written to the broker, read from a copy in a file
    membership.py        which workers live: heartbeats, and how death is judged from them
    placement.py         which worker takes a session, or why none does
    connection.py        one end of a connection that the broker carries: chunks with numbers, and a window
    carrier.py           connections of clients to workers: they are opened, accepted and watched
    control.py           requests to a worker, and what is sent to all of them
    owner.py             the owners of sessions: found, chosen and connected to
    worker/              the worker: a hub whose clients come over the broker, and what keeps it a member of the fleet
    access/              who is let in at any gateway: tokens that all of them share, and what workers add to the audit log
    gateway/             the gateway: clients on a network, each session of theirs linked to its worker
    archive.py           finished turns in the file of each gateway, for when the broker has forgotten them
    credentials.py       keys for the processes of a fleet, and what each role may do at the broker
    overview.py          a fleet as people see it: broker, workers, sessions and their owners
    local.py             a whole fleet on this machine, to try it
"""
