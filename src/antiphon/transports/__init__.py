"""Transports: how frames are sent and received. Knows bytes, file descriptors and processes; knows no protocol.

Files in reading order:

    base.py      what every transport has: send, receive, close, and a fast sink
    framing.py   lines out of a stream of bytes, without I/O
    memory.py    two ends in one process
    pipes.py     two file descriptors, and the life of each
    stdio.py     our own stdin and stdout
    process.py   a child process: started, read, ended by a ladder of signals
    guard.py     the supervisor that starts a child and outlives us
    watcher.py   the program that the supervisor runs
    tree.py      the processes that a child has started, found and ended
    remote.py    the address of a remote agent, and what both profiles share
    sse.py       server-sent events out of a stream of bytes, without I/O
    websocket.py a WebSocket to a remote agent
    http.py      streamable HTTP to a remote agent
    asgi/        the server end of both, as an ASGI application
"""

import sys

from antiphon.errors import UnsupportedPlatform

if sys.platform == "win32":  # here, before a module below fails on what Windows does not have
    raise UnsupportedPlatform("Antiphon does not run on Windows yet", hint="use WSL, which is Linux")
