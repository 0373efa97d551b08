"""The context is made shorter: `status` says that it begins and how it went, `compact_boundary` that it is done."""

from typing import TYPE_CHECKING

from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.engines.claude import wire

__all__ = ["Compaction"]


class Compaction:
    """Keeps apart which one is told of."""

    def __init__(self) -> None:
        self._count = 0
        self._open: str | None = None
        self._done: str | None = None
        """The one whose summary may still come."""

    def status(self, status: "wire.Status") -> "Iterator[v1.CompactionUpdate]":
        """It begins, or it is over."""
        if status.status == "compacting":
            if self._open is None:
                yield self._begin(status.uuid)
        elif self._open is not None and status.compact_result == "failed":
            id, self._open = self._open, None
            error = status.compact_error or "Compacting failed"
            yield v1.CompactionUpdate(compaction_id=id, status=v1.CompactionStatus.FAILED, error=error)
        elif self._open is not None and status.compact_result is not None:
            yield self._finish(self._open)

    def boundary(self, boundary: "wire.CompactBoundary") -> "Iterator[v1.CompactionUpdate]":
        """The conversation goes on from here with a summary."""
        if self._open is None and self._done is None:
            self._begin(boundary.uuid)
        if self._open is not None:
            yield self._finish(self._open)

    def summary(self, text: str) -> "Iterator[v1.CompactionSummaryChunk]":
        """The first note that the CLI feeds the model after a boundary is the summary."""
        if self._done is not None and text:
            id, self._done = self._done, None
            yield v1.CompactionSummaryChunk(compaction_id=id, content=v1.TextBlock(text=text))

    def over(self) -> "Iterator[v1.CompactionUpdate]":
        """The turn is over, so nothing is being compacted any more."""
        self._done = None
        if self._open is not None:
            id, self._open = self._open, None
            yield v1.CompactionUpdate(compaction_id=id, status=v1.CompactionStatus.CANCELLED)

    def _begin(self, id: str | None) -> v1.CompactionUpdate:
        self._count += 1
        self._open, self._done = id or f"compaction-{self._count}", None
        return v1.CompactionUpdate(compaction_id=self._open, status=v1.CompactionStatus.IN_PROGRESS)

    def _finish(self, id: str) -> v1.CompactionUpdate:
        self._open, self._done = None, id
        return v1.CompactionUpdate(compaction_id=id, status=v1.CompactionStatus.COMPLETED)
