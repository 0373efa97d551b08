"""How a run is stopped from outside: Ctrl-C and other signals, and the time that it may take.

The first signal is polite: the turn is cancelled. The second ends the agent with everything it started, and us, at once. Plain
signal handlers, not the loop's: they run also while a write waits for somebody who does not read.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Literal, NoReturn

from antiphon.cli.interrupts import leave_at_once
from antiphon.transports import tree

__all__ = ["CANCELLED", "Stopping", "stopping"]

CANCELLED: Final = 130
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Why = Literal["cancelled", "timeout"]


class Stopping:
    """Whether somebody wants an end, and why. `polite` is called when they do, from whatever is being done.

    As long as no other is given, it ends this process at once: nothing but the watcher has been started, which goes with us.
    """

    def __init__(self, mark: str) -> None:
        self.why: Why | None = None
        self.polite: Callable[[], None] = leave_at_once
        self._mark = mark

    def stop(self, why: Why) -> None:
        """Ask for the end. The first reason counts."""
        if self.why is None:
            self.why = why
            self.polite()

    def heard(self, number: int, frame: FrameType | None) -> None:
        """A signal came."""
        if self.why is not None:
            self.at_once()
        self.stop("cancelled")

    def at_once(self) -> NoReturn:
        """End everything that we started, and us."""
        tree.kill_tree(0, self._mark)
        os._exit(CANCELLED)


@contextmanager
def stopping() -> Iterator[Stopping]:
    """Hear signals in this block. What is started in it carries a mark of ours, by which all of it is found."""
    mark = os.urandom(16).hex()
    state = Stopping(mark)
    outer = os.environ.get(tree.MARK)
    os.environ[tree.MARK] = tree.marked(os.environ, mark)[tree.MARK]
    # What is ignored stays so: `nohup`, and jobs in the background of a script.
    before = {number: signal.getsignal(number) for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, state.heard)
    try:
        yield state
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if outer is None:
            del os.environ[tree.MARK]
        else:
            os.environ[tree.MARK] = outer
