"""The context is made shorter: an item says that it begins and that it is done. Older servers only say the latter."""

from collections.abc import Iterator

from antiphon.protocol import v1

__all__ = ["Compaction"]

_STATUS = v1.CompactionStatus


class Compaction:
    """Keeps apart which one is told of."""

    def __init__(self) -> None:
        self._open: str | None = None
        self._done: set[str] = set()
        """Those of the running turn."""

    def turn_began(self) -> None:
        """What was done before is over."""
        self._done.clear()

    def started(self, id: str) -> Iterator[v1.CompactionUpdate]:
        """It begins."""
        if id not in self._done and id != self._open:
            self._open = id
            yield v1.CompactionUpdate(compaction_id=id, status=_STATUS.IN_PROGRESS)

    def completed(self, id: str) -> Iterator[v1.CompactionUpdate]:
        """It is done."""
        if id in self._done:
            return
        self._done.add(id)
        if self._open == id:
            self._open = None
        yield v1.CompactionUpdate(compaction_id=id, status=_STATUS.COMPLETED)

    def told_at_last(self, turn_id: str | None) -> Iterator[v1.CompactionUpdate]:
        """The older word for it, which newer servers say beside the other."""
        if self._open is None and not self._done:
            yield from self.completed(turn_id or "compaction")

    def over(self, *, interrupted: bool) -> Iterator[v1.CompactionUpdate]:
        """The turn is over, so nothing is being compacted any more."""
        if self._open is not None:
            id, self._open = self._open, None
            status = _STATUS.CANCELLED if interrupted else _STATUS.FAILED
            yield v1.CompactionUpdate(compaction_id=id, status=status)
