"""A gateway of a fleet: clients on a network, and for each of their sessions the worker that owns it.

Files in reading order:

    address.py      where the connections of a link lead: the owner of a session, a worker for a new one, or the history alone
    link.py         a link to a session: what it gives to a client, and what a client over HTTP is given again
    list_pages.py   `session/list` from all machines, page by page
    router.py       one client: which of its links a message is for
    reader.py       the history of sessions that no worker can open now
    routes.py       finds workers: the owner of a session, one for a new session, any with an agent
    directories.py  the directories of all machines, for a person who looks for one
    hub.py          the clients of one gateway, and the fleet as they see it
    program.py      starts a gateway: the copy of what is stored, the tokens, the ways to workers
"""
