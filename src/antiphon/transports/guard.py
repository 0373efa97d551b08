"""Our side of the watcher: one per process, started with the first child and told of each."""

import atexit
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from antiphon.transports.tree import MARK

__all__ = ["forget", "watch"]

_log = logging.getLogger(__name__)
GOODBYE: Final = 2.0
"""Seconds that the watcher may take, when we exit, to end what is still watched."""

_lock = threading.Lock()
_watcher: subprocess.Popen[bytes] | None = None
_watched: set[str] = set()


def watch(group: int, mark: str) -> None:
    """From now on this tree ends with us, even if we are killed."""
    global _watcher
    with _lock:
        _watched.add(f"{group} {mark}")
        if _watcher is None or _watcher.poll() is not None:  # the first child, or somebody killed the watcher
            _watcher = _start()
            _order("".join(f"+{tree}\n" for tree in _watched))
        else:
            _order(f"+{group} {mark}\n")


def forget(group: int, mark: str) -> None:
    """This tree is gone."""
    with _lock:
        _watched.discard(f"{group} {mark}")
        _order(f"-{group} {mark}\n")


def _order(lines: str) -> None:
    if _watcher is None or _watcher.stdin is None:
        return
    try:
        os.write(_watcher.stdin.fileno(), lines.encode())
    except OSError as error:
        _log.warning("the watcher is gone (%s): children may outlive a crash of this program", error)


def _start() -> "subprocess.Popen[bytes] | None":
    script = Path(__file__).with_name("watcher.py")
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env={MARK: os.environ[MARK]} if MARK in os.environ else {},
        )
    except (OSError, ValueError) as error:
        _log.warning("no watcher (%s): children may outlive a crash of this program", error)
        return None


def _dismiss() -> None:
    """We exit: the watcher ends what is left and goes."""
    if _watcher is not None and _watcher.stdin is not None:
        _watcher.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            _watcher.wait(GOODBYE)


def _disown() -> None:
    """We are a fork. The watcher is our parent's, and holding its pipe would hide our parent's death from it."""
    global _watcher, _lock
    _lock = threading.Lock()
    if _watcher is not None and _watcher.stdin is not None:
        _watcher.stdin.close()
        _watcher.returncode = 0  # not ours to wait for
        _watcher = None
    _watched.clear()


atexit.register(_dismiss)
os.register_at_fork(after_in_child=_disown)
