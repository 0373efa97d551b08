"""Ctrl-C: ends the process at once while a command is loaded, is a `KeyboardInterrupt` while it works, and is ignored at the end.

Imported before everything else by the program, and by nothing else: a library must not touch the signals of its user.
A `KeyboardInterrupt` in the middle of an import would be a traceback, or be lost in a callback of the import system.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports enum, in which an interrupt would be a traceback too
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

__all__ = ["begin_loading", "begin_working", "end_working", "leave_at_once"]

INTERRUPTED = 130

AGAIN = 0.01
"""Seconds after which a Ctrl-C is sent again that was lost in a callback."""


def leave_at_once(number: int = 0, frame: "FrameType | None" = None) -> None:
    """End this process with the status of an interrupted one. Nothing has been started or written yet."""
    os._exit(INTERRUPTED)


def begin_loading() -> None:
    """Have Ctrl-C end us at once, unless it is ignored (a job in the background of a script)."""
    if _signal.getsignal(_signal.SIGINT) not in (_signal.SIG_IGN, None):
        _signal.signal(_signal.SIGINT, leave_at_once)


def begin_working() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` again, which is what asyncio and every `finally` expect."""
    if _signal.getsignal(_signal.SIGINT) is leave_at_once:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        sys.unraisablehook = _report


def _report(failure: "UnraisableHookArgs") -> None:
    """Send a Ctrl-C again that was raised in a callback or a destructor: Python would print it and go on."""
    if failure.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(failure)
        return
    _signal.signal(_signal.SIGALRM, _send_again)  # by a timer: sent from here it would be lost again
    _signal.setitimer(_signal.ITIMER_REAL, AGAIN)


def _send_again(number: int, frame: "FrameType | None") -> None:
    os.kill(os.getpid(), _signal.SIGINT)


def end_working() -> None:
    """Ignore Ctrl-C: all is done but what Python does at its end, and that is not worth a traceback."""
    if _signal.getsignal(_signal.SIGINT) in (leave_at_once, _signal.default_int_handler):
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
