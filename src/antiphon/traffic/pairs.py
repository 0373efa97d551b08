"""Who answered whom. Ids are compared as JSON: `1`, `1.0` and `"1"` are three ids, and each side counts for itself."""

from antiphon.traffic.entries import Direction, Entry

__all__ = ["Pairs"]

Key = tuple[Direction, str, object]


class Pairs:
    """The open questions of both sides."""

    def __init__(self) -> None:
        self._open: dict[Key, Entry] = {}

    def asked(self, entry: Entry) -> Entry | None:
        """The open question of the other side that this answer is for."""
        return self._open.get(_key(entry.dir.other, entry)) if entry.is_answer else None

    def again(self, entry: Entry) -> Entry | None:
        """The open question of the same side that has the id of this one."""
        return self._open.get(_key(entry.dir, entry)) if entry.is_request else None

    def alike(self, entry: Entry) -> Entry | None:
        """The open question of the other side whose id only looks like that of this answer: `1` and `"1"`."""
        id = entry.msg.get("id")
        looks: list[object] = []
        if isinstance(id, str) and len(id) < 20:
            looks = [int(id)] if id.isdecimal() else []
        elif isinstance(id, int | float) and abs(id) < 2**64:
            looks = [str(id), str(int(id)), int(id), float(id)]
        found = (self._open.get((entry.dir.other, type(one).__name__, one)) for one in looks)
        return next((one for one in found if one is not None), None)

    def hear(self, entry: Entry) -> Entry | None:
        """Take note of a line; the question it answers, if it does."""
        if entry.is_request:
            self._open[_key(entry.dir, entry)] = entry
        elif entry.is_answer:
            return self._open.pop(_key(entry.dir.other, entry), None)
        return None

    @property
    def open(self) -> list[Entry]:
        """What nobody has answered yet, in the order it was asked."""
        return sorted(self._open.values(), key=lambda entry: entry.number)


def _key(direction: Direction, entry: Entry) -> Key:
    """Python takes 1, 1.0 and True for the same key, so the type is part of it. Lists and objects are no ids: all are one."""
    id = entry.msg.get("id")
    return direction, type(id).__name__, id if isinstance(id, str | int | float) else None
