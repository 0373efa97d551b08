"""Finding and ending every process that a command started, also those that left its group.

A process group is what a signal reaches, but a descendant may leave it (`setsid`, `nohup`, a daemon). So each spawn puts
a mark of its own into the environment, which children inherit; a process that carries the mark belongs to the tree. On Linux the
descendants of the child's supervisor belong to it as well, with or without the mark. Standard library only and few imports: the
watcher runs this file in a bare interpreter.
"""

import os
import signal

TYPE_CHECKING = False  # importing typing for it would cost the watcher half its start
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MARK = "ANTIPHON_TREE"
"""Environment variable with the marks of all trees a process belongs to, `:` between them, the outermost first."""


def marked(environment: "Mapping[str, str]", mark: str, outer: "str | None" = None) -> "dict[str, str]":
    """The environment with one more mark. `outer` are our own marks, in case the environment was made from nothing."""
    outer = environment.get(MARK) or outer
    return {**environment, MARK: f"{outer}:{mark}" if outer else mark}


def processes_with(mark: str, supervisor: int = 0) -> "list[int]":
    """The ids of all living processes that descend from the supervisor; without one (0), of those that carry the mark."""
    if supervisor:
        return descendants(supervisor)
    return _from_proc(mark) if os.path.isdir("/proc/self") else _from_ps(mark)


def _from_proc(mark: str) -> "list[int]":
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


def _from_ps(mark: str) -> "list[int]":
    import subprocess

    listing = subprocess.run(
        ["ps", "-axEww", "-o", "pid=,command="], capture_output=True, encoding="utf-8", errors="replace", check=False
    ).stdout
    lines = [line.split(None, 1) for line in listing.splitlines() if mark in line]
    return [int(pid) for pid, *_ in lines if int(pid) != os.getpid()]


def all_processes() -> "Iterator[tuple[int, int, str]]":
    """The id, the parent and the state (`Z` for a zombie) of every process that can be seen; nothing without `/proc`."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    _, _, fields = file.read().rpartition(b")")  # the name before it may hold anything
                state, parent = fields.split(None, 2)[:2]
            except (OSError, ValueError):  # gone
                continue
            yield int(name), int(parent), state.decode()


def descendants(ancestor: int) -> "list[int]":
    """The ids of all living descendants of a process, parents before their children.

    The kernel's lists of children are read, which takes microseconds. A process that ends meanwhile hands its children to one whose list
    may have been read already: a second reading finds those that the first one missed. Where there are no such lists, every process is
    looked at.
    """
    try:
        found = dict.fromkeys((*_read_descendants(ancestor), *_read_descendants(ancestor)))
    except NotImplementedError:
        return _scanned(ancestor)
    return [pid for pid in found if _state_of(pid) not in "ZX"]


def _read_descendants(ancestor: int) -> "list[int]":
    found = [ancestor]
    for pid in found:  # grows as it goes
        found += _children_of(pid)
    return found[1:]


def _children_of(parent: int) -> "list[int]":
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{parent}/task")
    except OSError:  # it has ended
        return found
    for task in tasks:
        try:
            with open(f"/proc/{parent}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if os.path.isdir(f"/proc/{parent}/task/{task}"):  # a kernel without these lists
                raise NotImplementedError from None
        except OSError:
            pass
    return found


def _state_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split(None, 1)[0].decode()
    except (OSError, IndexError):
        return "X"


def _scanned(ancestor: int) -> "list[int]":
    children: dict[int, list[int]] = {}
    zombies = set()
    for pid, parent, state in all_processes():
        children.setdefault(parent, []).append(pid)
        if state in "ZX":
            zombies.add(pid)
    found = list(children.get(ancestor, ()))
    for pid in found:  # grows as it goes
        found += children.get(pid, ())
    return [pid for pid in found if pid not in zombies]


def signal_tree(group: int, mark: str, number: int, supervisor: int = 0) -> "list[int]":
    """Signal the group (0: not known yet) and what is outside it but belongs to the tree: the ids of those that were there."""
    members = processes_with(mark, supervisor)
    try:
        if group:
            os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # empty, or only zombies that macOS does not let us signal
    for pid in members:
        try:
            if os.getpgid(pid) != group:
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass
    return members


def stop_tree(group: int, mark: str, supervisor: int = 0) -> "set[int]":
    """Stop all of it, without ending it. Repeats until nothing new is found: a process that is not stopped yet may fork."""
    stopped: set[int] = set()
    while fresh := set(signal_tree(group, mark, signal.SIGSTOP, supervisor)) - stopped:
        stopped |= fresh
    return stopped


def kill_tree(group: int, mark: str, supervisor: int = 0) -> "set[int]":
    """End all of it at once. Repeats until nothing new is found: a process may fork meanwhile."""
    ended: set[int] = set()
    while fresh := set(signal_tree(group, mark, signal.SIGKILL, supervisor)) - ended:
        ended |= fresh
    return ended
