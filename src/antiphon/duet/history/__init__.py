"""What happened in a joint session: its events, and what is made of them.

Files in reading order:

    events.py     the events, as they are stored, and replayed as updates
    writer.py     events into the store, then updates to the client
    summary.py    a compact form of a session, for an engine that did not take part
    turns.py      a history cut into turns, and the turns of two histories paired
    catch_up.py   what an engine's own history has beyond ours
"""
