"""Our side of the watcher: one per process, started with the first child and told of each."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

from antiphon.transports.tree import MARK

__all__ = ["forget", "watch"]

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_watcher: subprocess.Popen[bytes] | None = None
_owner = 0


def watch(group: int, mark: str) -> None:
    """From now on this tree ends with us, even if we are killed."""
    _order(f"+{group} {mark}\n")


def forget(group: int, mark: str) -> None:
    """This tree is gone."""
    _order(f"-{group} {mark}\n")


def _order(line: str) -> None:
    with _lock:
        watcher = _running()
        if watcher is None or watcher.stdin is None:
            return
        try:
            os.write(watcher.stdin.fileno(), line.encode())
        except OSError as error:
            _log.warning("the watcher is gone (%s): children may outlive a crash of this program", error)


def _running() -> subprocess.Popen[bytes] | None:
    global _watcher, _owner
    # After a fork the pipe is shared with the parent: the child needs a watcher of its own.
    if _watcher is None or _owner != os.getpid() or _watcher.poll() is not None:
        _watcher, _owner = _start(), os.getpid()
    return _watcher


def _start() -> subprocess.Popen[bytes] | None:
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
