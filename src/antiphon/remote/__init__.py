"""A remote agent as a local one: what `antiphon agent --connect` puts between an editor's stdin and a server.

Files in reading order:

    paths.py          directories of this machine and where they are on the other, for paths and `file://` URIs
    messages.py       the places of paths in messages, so that they are replaced and all other bytes stay
    sessions.py       what is remembered of each session and request, to go on after a lost connection
    requests.py       the requests of the agent that the client has
    held_messages.py  what the client has sent and no server has
    reconnection.py   opens one connection after the other
    numbers.py        the numbers of events, which the client does not get unless it asked for them
    connection.py     one connection to the server, and what it waits for before the client can use it
    address.py        an address whose connections are such links, for our own clients
    translation.py    a client of version 2, here and at a gateway: the translator that knows the numbers of events
    link.py           the transport to the server that outlives its connections
"""
