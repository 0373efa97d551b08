"""The limit of a wait in a test: it bounds a hang and nothing else, so it grows with the load of the machine."""

import os

__all__ = ["limit"]


def limit(seconds: float = 60.0) -> float:
    """Return how long a test waits for something that has to come, as the machine is now."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
