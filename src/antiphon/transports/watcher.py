"""A tiny process that outlives ours for a moment, to end what we started if we are killed without warning.

It holds the reading end of a pipe; only we hold the other. Lines on it are orders: `+GROUP MARK` watch, `-GROUP MARK` forget (group 0: not known yet).
End of file means that we are gone, whatever the reason, and everything still watched is ended. It runs as
`python -I -S watcher.py` so that it starts in a few milliseconds and takes little memory.
"""

import os
import signal
import sys


def main() -> None:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from tree import kill_tree  # type: ignore[import-not-found]  # now: the package may be gone when we need it

    # A terminal's Ctrl-C and a polite TERM are for our owner to handle; we go when the pipe closes.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    watched: set[tuple[int, str]] = set()
    with os.fdopen(0, "rb", buffering=0, closefd=False) as orders:
        pending = b""
        while chunk := orders.read(4096):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                number, mark = line[1:].decode().split()
                (watched.add if line[:1] == b"+" else watched.discard)((int(number), mark))
    for group, mark in watched:
        kill_tree(group, mark)


if __name__ == "__main__":
    main()
