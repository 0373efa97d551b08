"""One conversation on an event loop: the only room where the loop and the core meet."""
