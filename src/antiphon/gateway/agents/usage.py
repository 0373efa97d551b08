"""What an agent uses of the machine, with all the processes that it started: how many there are, and how much memory they have.

On Linux the kernel says how much of a process's memory is its own and its share of what several have mapped. That takes milliseconds for a
large process, so it is read only if the cheap number, which counts shared pages more than once, is above the limit.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from antiphon.gateway.base import HubLimits

__all__ = ["excess", "machine_memory", "memory_of"]

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MIB: Final = 1024 * 1024


def machine_memory() -> int:
    """Return the bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE


def excess(members: Sequence[int], limits: HubLimits) -> str:
    """Return what is above the limits, as the end of a sentence about the agent; empty if nothing is."""
    if len(members) > limits.agent_processes:
        return f"had {len(members)} processes (the limit is {limits.agent_processes})"
    if not limits.agent_memory:
        return ""
    memory = _memory(members, _resident)
    if memory > limits.agent_memory:
        memory = _memory(members, _proportional)
    if memory > limits.agent_memory:
        return f"used {memory // _MIB} MiB of memory (the limit is {limits.agent_memory // _MIB} MiB)"
    return ""


def memory_of(members: Sequence[int]) -> int:
    """Return the bytes of memory that processes have together, each with its share of what several have mapped."""
    return _memory(members, _proportional)


def _memory(members: Sequence[int], of: Callable[[int], int]) -> int:
    return sum(map(of, members)) if os.path.isdir("/proc/self") else _from_ps(members)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):  # it has ended
        return 0


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            line = next(line for line in file if line.startswith(b"Pss:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, IndexError, ValueError):  # it has ended, or another user's
        return _resident(pid)


def _from_ps(members: Sequence[int]) -> int:
    command = ["ps", "-o", "rss=", "-p", ",".join(map(str, members))]
    listing = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False).stdout
    return sum(int(word) for word in listing.split() if word.isdigit()) * 1024
