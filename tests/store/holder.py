"""A process that wants the lock of a session. `hold DIR ID`: takes it and waits. `leave DIR ID`: takes it, starts a program that outlives it.
`look DIR ID`: shares it, as a process does that only looks. `serve DIR -`: runs the commands that it reads.
`older DIR ID`: takes it as an Antiphon did before there was a table.
`race DIR ID COUNT`: takes and releases it when it is started, and writes a file that only one may write at a time."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

from antiphon.store.locks import FOLDER, TABLE, LiveElsewhere, SessionLock, byte_of, holder, path_of


def hold(directory: Path, id: str) -> None:
    with SessionLock.take(directory, id, "Zed"):
        print("held", flush=True)
        sys.stdin.readline()
    print("free", flush=True)
    sys.stdin.readline()


def older(directory: Path, id: str) -> None:
    """A lock of its own on the session's file, as before there was a table."""
    path = path_of(directory, id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(file, json.dumps({"session_id": id, "pid": os.getpid(), "who": "Zed", "since": 1.0}).encode())
    print("held", flush=True)
    sys.stdin.readline()
    path.unlink()
    os.close(file)
    print("free", flush=True)
    sys.stdin.readline()


def leave(directory: Path, id: str) -> None:
    SessionLock.take(directory, id, "Zed")
    # It gets every descriptor that a program can get.
    words = [sys.executable, "-c", "import signal; signal.pause()"]
    child = subprocess.Popen(words, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()


def look(directory: Path, id: str) -> None:
    """Shares the lock, as a process that only looks, until it is ended."""
    table = os.open(directory / FOLDER / TABLE, os.O_RDWR)
    fcntl.lockf(table, fcntl.LOCK_SH, 1, byte_of(id))
    print("looking", flush=True)
    sys.stdin.readline()
    os.close(table)
    print("free", flush=True)
    sys.stdin.readline()


def serve(directory: Path) -> None:
    """Runs the commands that it reads: `take ID`, `release ID`, `look ID`."""
    held: dict[str, SessionLock] = {}
    for line in sys.stdin:
        what, id = line.split()
        match what:
            case "take":
                try:
                    held[id] = SessionLock.take(directory, id, "a worker")
                    print("taken", flush=True)
                except LiveElsewhere:
                    print("refused", flush=True)
            case "release":
                if id in held:
                    held.pop(id).release()
                print("done", flush=True)
            case _:
                found = holder(directory, id)
                print("free" if found is None else found.pid, flush=True)


def race(directory: Path, id: str, count: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    took = refused = 0
    for _ in range(count):
        try:
            lock = SessionLock.take(directory, id, f"racer {took}")
        except LiveElsewhere:
            refused += 1
            holder(directory, id)  # a process that only looks blocks no other
            continue
        # Would fail if another one were between these two lines.
        (directory / "alone").mkdir()
        (directory / "alone").rmdir()
        lock.release()
        took += 1
    print(took, refused, flush=True)


if __name__ == "__main__":
    what, where, name, *rest = sys.argv[1:]
    match what:
        case "hold":
            hold(Path(where), name)
        case "older":
            older(Path(where), name)
        case "leave":
            leave(Path(where), name)
        case "look":
            look(Path(where), name)
        case "serve":
            serve(Path(where))
        case _:
            race(Path(where), name, int(rest[0]))
