"""Which worker takes a session: by its agent, its directories, labels and free slots. Pure: the same workers give the same choice.

Rules:

1. A new session can be where a root is above each of its directories. Whether a directory exists is for the worker to say.
2. A session that was somewhere can be on the same machine, or on one that has every shared workspace that its directories are in: a path
   below the workspace is the same path below it there. Any other session waits for its machine, and is never begun in an empty directory.
3. Among the workers that can take a session, its own machine comes first, because the agent has its files there; then the least used.
   Sessions that all move at once are spread by a hash of their keys, which gives every process that chooses the same answer.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Final

from antiphon.fleet.membership import WorkerState
from antiphon.journal.owner import NoOwner, Placement, SessionHome

__all__ = ["candidates", "could_take", "directory_at", "home_at", "is_inside", "ranked"]

STEPS: Final = 8
"""How finely workers are compared by their use when sessions move: beats differ by a session or two between the processes that choose."""


def is_inside(directory: str, root: str) -> bool:
    """Whether a directory is a root or below it, by their paths alone."""
    path, above = PurePosixPath(directory), PurePosixPath(root)
    return ".." not in path.parts and path.is_relative_to(above)


def directory_at(worker: WorkerState, directory: str, home: SessionHome | None) -> str | None:
    """Return where a directory of a session is on the machine of a worker; None: it is not there."""
    if home is None or home.host == worker.host:
        return directory if any(is_inside(directory, root) for root in _roots(worker)) else None
    shared = [
        (name, root)
        for name, root in home.workspaces.items()
        if name in worker.workspaces and is_inside(directory, root)
    ]
    if not shared:
        return None
    name, root = max(shared, key=lambda each: len(each[1]))  # the innermost: it is the nearest to what was meant
    return str(PurePosixPath(worker.workspaces[name]) / PurePosixPath(directory).relative_to(root))


def home_at(worker: WorkerState, directories: Iterable[str]) -> SessionHome:
    """Return the home of a session that has these directories at a worker."""
    given = [*directories]
    shared = {
        name: root
        for name, root in sorted(worker.workspaces.items())
        if any(is_inside(directory, root) for directory in given)
    }
    return SessionHome(worker.name, worker.host, shared)


def _roots(worker: WorkerState) -> Sequence[str]:
    return [*worker.roots, *worker.workspaces.values()]


def could_take(worker: WorkerState, placement: Placement) -> bool:
    """Whether a worker has what a session needs, however full it is now."""
    return placement.agent in worker.agents and _has_directories(worker, placement)


def _has_directories(worker: WorkerState, placement: Placement) -> bool:
    wanted = (placement.cwd, *placement.directories)
    return all(directory_at(worker, directory, placement.home) is not None for directory in wanted)


def candidates(workers: Iterable[WorkerState], placement: Placement) -> list[WorkerState]:
    """Return the workers that can take a session now, without an order.

    Raises:
        NoOwner: there are none; the error says what is missing, in the order in which people would look for it.
    """
    found = [worker for worker in workers if worker.alive and worker.is_compatible]
    if not found:
        raise NoOwner("no worker is connected", hint="start one: antiphon worker --fleet URL")
    agents = sorted({agent for worker in found for agent in worker.agents})
    found = [worker for worker in found if placement.agent in worker.agents]
    if not found:
        hint = f"the agents of the fleet are: {', '.join(agents) or 'none'}"
        raise NoOwner(f"no worker has the agent `{placement.agent}`", hint=hint)
    machines = sorted({worker.host for worker in found})
    found = [worker for worker in found if _has_directories(worker, placement)]
    if not found:
        raise _no_directory(placement, machines)
    missing = [label for label in placement.labels if not any(label in worker.labels for worker in found)]
    found = [worker for worker in found if set(placement.labels) <= set(worker.labels)]
    if not found:
        wanted = ", ".join(f"`{label}`" for label in missing or placement.labels)
        raise NoOwner(
            f"no worker with the directory has the label {wanted}",
            hint="start a worker with `--label`, or ask for none",
        )
    names = ", ".join(sorted(worker.name for worker in found))
    found = [worker for worker in found if not worker.draining]
    if not found:
        raise NoOwner(f"the workers that could take it are about to end: {names}", hint="start another one")
    free = [worker for worker in found if worker.used < worker.slots]
    if not free:
        raise NoOwner(
            f"all slots are taken at {', '.join(sorted(worker.name for worker in found))}",
            hint="close sessions, start another worker, or give one more `--slots`",
        )
    return free


def _no_directory(placement: Placement, machines: Sequence[str]) -> NoOwner:
    home = placement.home
    if home is None:
        return NoOwner(
            f"no worker with the agent `{placement.agent}` has a root above `{placement.cwd}`",
            hint=f"start one there with `--root`; those that are connected are on: {', '.join(machines)}",
        )
    if home.workspaces:
        names = ", ".join(f"`{name}`" for name in sorted(home.workspaces))
        where = f"no worker that is connected has the workspace {names}, and none is on `{home.host}`"
    else:
        where = f"`{placement.cwd}` is on `{home.host}` alone, and no worker there is connected"
    return NoOwner(f"the session waits for its machine: {where}", hint=f"start a worker on `{home.host}`")


def ranked(workers: Iterable[WorkerState], placement: Placement) -> list[WorkerState]:
    """Return the workers that can take a session now, the best one first.

    Raises:
        NoOwner: there are none; the error says why.
    """
    host = "" if placement.home is None else placement.home.host

    def place(worker: WorkerState) -> tuple[object, ...]:
        use = worker.used / worker.slots
        if not placement.key:
            return use, worker.turns, worker.name
        return worker.host != host, int(use * STEPS), _spread(placement.key, worker.name)

    return sorted(candidates(workers, placement), key=place)


def _spread(key: str, name: str) -> bytes:
    return blake2b(f"{key} {name}".encode(), digest_size=8).digest()
