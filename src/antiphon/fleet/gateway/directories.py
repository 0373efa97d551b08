"""The directories of a fleet, for a person who looks for one: the roots of all workers, and what is in them on their machines."""

import asyncio
import os
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.errors import AcpError, Code, RequestError
from antiphon.fleet.control import WorkerControl, WorkerRequest
from antiphon.fleet.placement import is_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from antiphon.fleet.membership import WorkerState

__all__ = ["FleetDirectories"]

LIST_TIMEOUT: Final = 5.0
"""Seconds for a worker to list a directory: its disk may be asleep."""

MOST_MACHINES: Final = 8
"""Machines that list one directory: those that share a path may have different things there."""


class _DirectoryList(msgspec.Struct):
    path: str
    directories: list[str] = []


class FleetDirectories:
    """The directories in which sessions may be opened, on any machine: `methods.base.ServedDirectories`."""

    def __init__(self, control: WorkerControl, workers: "Callable[[], Collection[WorkerState]]") -> None:
        self._control = control
        self._workers = workers

    @property
    def roots(self) -> "Sequence[str]":
        """The roots and the shared workspaces of all workers."""
        return sorted({root for worker in self._workers() for root in _roots(worker)})

    async def usable(self, directories: "Sequence[str]") -> "Sequence[str]":
        """Return those of some directories that are below a root. Whether they exist is for their machines to say."""
        roots = self.roots
        return [each for each in directories if any(is_inside(each, root) for root in roots)]

    async def directories(self, path: str) -> "Mapping[str, object]":
        """Return the directories in a directory, of all machines that have it.

        Raises:
            RequestError: no worker has it, or none can read it.
        """
        roots = self.roots
        if not path and len(roots) != 1:
            return {"path": "", "parent": None, "directories": roots}
        wanted = path or roots[0]
        found = await asyncio.gather(*(self._ask(worker, wanted) for worker in self._with(wanted)))
        lists = [each for each in found if isinstance(each, _DirectoryList)]
        if not lists:
            failed = next((each for each in found if isinstance(each, AcpError)), None)
            why = f"`{wanted}` is below no root of a worker" if failed is None else failed.sentence
            raise RequestError(Code.INVALID_PARAMS, why, hint=f"the roots are: {', '.join(roots) or 'none'}")
        real = lists[0].path
        above = "" if len(roots) > 1 else None
        parent = above if real in roots else os.path.dirname(real)
        names = sorted({name for each in lists if each.path == real for name in each.directories})
        return {"path": real, "parent": parent, "directories": names}

    def _with(self, path: str) -> "list[str]":
        """Return a worker of each machine that has a root above a path."""
        by_host = {
            worker.host: worker.name
            for worker in self._workers()
            if any(is_inside(path, root) for root in _roots(worker))
        }
        return [by_host[host] for host in sorted(by_host)][:MOST_MACHINES]

    async def _ask(self, worker: str, path: str) -> _DirectoryList | AcpError:
        try:
            answer = await self._control.ask(worker, WorkerRequest("list", (path,)), LIST_TIMEOUT)
            return msgspec.convert(answer, _DirectoryList)
        except AcpError as error:
            return error
        except msgspec.ValidationError as error:
            return AcpError(f"the answer of worker `{worker}` cannot be read: {error}")


def _roots(worker: "WorkerState") -> "list[str]":
    return [*worker.roots, *worker.workspaces.values()]
