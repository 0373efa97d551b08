"""JSON-RPC 2.0 as plain functions of bytes: no event loop, no sockets, no ACP.

Files in reading order:

    envelope.py   one frame ⇄ one message, with params and result left as bytes
    peer.py       the requests that are open in both directions; frames in, events out
    spans.py      where the members of a message stand in its bytes, to replace one and keep all others
"""
