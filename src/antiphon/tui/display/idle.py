"""Garbage is collected while nothing happens, so that no key and no frame waits for it.

A full collection looks at all that was ever loaded: with the modules of the chat that is 30 to 80 ms. So what was loaded at the start is
set aside once (`gc.freeze`), collections happen between keys, and the interpreter's own come seldom. They are never switched off: an
agent that sends without a pause must not fill the memory.
"""

import gc
from typing import Final

__all__ = ["IdleCollector"]

QUIET: Final = 0.5
"""Seconds without a key after which nothing happens."""

BEGUN: Final = 1.5
"""Seconds without a turn and without a key after which all has been loaded."""

ENOUGH: Final = 2_000
"""Objects made since the last collection for which another one is worth its time."""

THRESHOLDS: Final = (50_000, 10, 10)
"""When the interpreter collects by itself. Its own, 700 objects, come every few keys."""


class IdleCollector:
    """Collects the garbage of this process. `nothing_happens` is called a few times in a second."""

    def __init__(self) -> None:
        self._is_begun = False
        self._idle = 0.0

    def nothing_happens(self, since_key: float, tick: float = 0.2) -> None:
        """Collect, if that is worth it. `since_key` is the time since the last key."""
        self._idle = self._idle + tick if since_key > QUIET else 0.0
        if not self._is_begun:
            if self._idle >= BEGUN:
                self._is_begun = True
                gc.collect()
                gc.freeze()
                gc.set_threshold(*THRESHOLDS)
        elif self._idle >= QUIET and gc.get_count()[0] > ENOUGH:
            gc.collect()
            self._idle = 0.0
