"""Finding and ending every process that a command started, also those that left its group.

A process group is what a signal reaches, but a descendant may leave it (`setsid`, `nohup`, a daemon). So each spawn puts
a mark of its own into the environment, which children inherit; whoever carries the mark belongs to the tree. Standard
library only and few imports: the watcher runs this file in a bare interpreter.
"""

import os
import signal
import sys
import time

MARK = "ANTIPHON_TREE"
"""Environment variable with the marks of all trees a process belongs to, `:` between them, the outermost first."""


def marked(environment, mark):  # type: ignore[no-untyped-def]  # bare interpreter: annotations would import typing
    """The environment with one more mark."""
    outer = environment.get(MARK)
    return {**environment, MARK: f"{outer}:{mark}" if outer else mark}


def processes_with(mark):  # type: ignore[no-untyped-def]
    """The ids of all living processes that carry the mark."""
    return _from_proc(mark) if sys.platform == "linux" else _from_ps(mark)


def _from_proc(mark):  # type: ignore[no-untyped-def]
    found = []
    wanted = mark.encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
        except OSError:  # not ours, or gone
            continue
        if wanted in environment:
            found.append(int(name))
    return found


def _from_ps(mark):  # type: ignore[no-untyped-def]
    import subprocess

    listing = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], capture_output=True, text=True, check=False).stdout
    lines = [line.split(None, 1) for line in listing.splitlines() if mark in line]
    return [int(pid) for pid, *_ in lines if int(pid) != os.getpid()]


def kill_group(group, number):  # type: ignore[no-untyped-def]
    """Signal a process group. False: it has no members (any more)."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def wait_until_gone(mark, seconds):  # type: ignore[no-untyped-def]
    """Whether the whole tree ends by itself within the time."""
    deadline = time.monotonic() + seconds
    while processes_with(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def kill_tree(group, mark):  # type: ignore[no-untyped-def]
    """End the group and everything marked, at once. Repeats until nothing is left: a process may fork meanwhile."""
    kill_group(group, signal.SIGKILL)
    ended = set()
    while fresh := [pid for pid in processes_with(mark) if pid not in ended]:
        for pid in fresh:
            ended.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
    return ended
