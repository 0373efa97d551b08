"""One end of a connection on an event loop, of any version of the protocol: order, tasks, cancellation, back-pressure.

Files in reading order:

    connection.py   the connection: requests and responses, streams of updates, its life
    answers.py      requests of the peer: handled, answered once, cancelled
    router.py       which handler takes which method
    inbox.py        how much may wait to be read, and when reading pauses
    outbox.py       frames that leave, senders that wait for a slow peer; frames with their session for routed transports
    updates.py      session updates, read in whole blocks and sent from templates
    stream.py       the updates of one turn as an iterator, and its response
    reports.py      what an observer learns besides messages
    early.py        `initialize` answered before the event loop is imported
    adapter.py      a transport that speaks one version of the protocol above and another one below
    negotiation.py  a transport that finds out in the handshake whether it has to translate
    bridge.py       raw frames forwarded between two transports, with the ids of requests rewritten
"""
