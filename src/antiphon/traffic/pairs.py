"""Who answered whom. Ids are compared as JSON: `1`, `1.0` and `"1"` are three ids, and each side counts for itself."""

import msgspec

from antiphon.traffic.entries import Direction, Entry

__all__ = ["Pairs"]


class Pairs:
    """The open questions of both sides."""

    def __init__(self) -> None:
        self._open: dict[tuple[Direction, bytes], Entry] = {}

    def asked(self, entry: Entry) -> Entry | None:
        """The open question of the other side that this answer is for."""
        return self._open.get((entry.dir.other, _key(entry))) if entry.is_answer else None

    def again(self, entry: Entry) -> Entry | None:
        """The open question of the same side that has the id of this one."""
        return self._open.get((entry.dir, _key(entry))) if entry.is_request else None

    def hear(self, entry: Entry) -> Entry | None:
        """Take note of a line; the question it answers, if it does."""
        if entry.is_request:
            self._open[entry.dir, _key(entry)] = entry
        elif entry.is_answer:
            return self._open.pop((entry.dir.other, _key(entry)), None)
        return None

    @property
    def open(self) -> list[Entry]:
        """What nobody has answered yet, in the order it was asked."""
        return sorted(self._open.values(), key=lambda entry: entry.number)


def _key(entry: Entry) -> bytes:
    return msgspec.json.encode(entry.msg.get("id"))
