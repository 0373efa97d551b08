"""The durable, numbered log of a session, as an interface with one contract: claim, append, read and tail.

Files in reading order:

    base.py     the interface, its lease and entries, and the feed that implementations share for tails
    sqlite.py   the journal of one machine: SQLite, and the lock on a session as its claim
    runs.py     the journal of a gateway: one row holds a run of events, and appends need not wait for each other
    owner.py    the owner of a session: find its worker, place a session at one, connect to it, watch the workers
"""
