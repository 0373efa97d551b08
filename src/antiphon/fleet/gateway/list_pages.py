"""`session/list` in a fleet: the stored sessions, then those that only the agents have, machine by machine.

What only an agent has is in files of its machine. So a list goes on from one machine to the next, by the cursor of its pages: the name of
the machine, and the cursor of the agent there. Machines are in the order of their names, which stays; one that is gone is passed over.
Its first page has all stored sessions, which every worker knows. A session that two machines list is shown once on a connection.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from antiphon.errors import Code, RequestError
from antiphon.rpc.envelope import RequestId, head_of_answer
from antiphon.rpc.spans import with_value

__all__ = ["ListPlace", "SessionListPages"]

ROWS: Final = ("params", "_meta", "antiphon", "rows")
"""Where a gateway says to a worker whether stored sessions are to be in its list."""


class ListPlace(NamedTuple):
    """Where a list goes on."""

    host: str
    cursor: str = ""
    """The cursor of the agent there; empty: from the beginning."""
    is_first: bool = False
    """Whether this is the first page, which has the stored sessions."""


class _ListParams(msgspec.Struct):
    cursor: str | None = None


class _Listed(msgspec.Struct, rename="camel"):
    session_id: str = ""


class _About(msgspec.Struct):
    lists: bool = False


class _Meta(msgspec.Struct):
    antiphon: _About = msgspec.field(default_factory=_About)


class _Page(msgspec.Struct, rename={"next_cursor": "nextCursor", "meta": "_meta"}):
    sessions: list[Raw] = []
    next_cursor: str | None = None
    meta: _Meta | None = None


class _Answer(msgspec.Struct):
    id: RequestId
    result: _Page


class ListedPage(NamedTuple):
    """A page as the client gets it."""

    frame: bytes
    ids: list[str]
    """The sessions on it."""


class SessionListPages:
    """The list that one client reads, page by page."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def place(self, params: Raw, machines: Mapping[str, str]) -> ListPlace | None:
        """Return where a request goes on; None: there is nothing more.

        Raises:
            RequestError: its cursor is not one of ours.
        """
        cursor = msgspec.json.decode(params, type=_ListParams).cursor
        if not cursor:
            self._shown.clear()
            return ListPlace(min(machines), is_first=True)
        try:
            place = ListPlace(*msgspec.json.decode(cursor, type=tuple[str, str]))
        except msgspec.DecodeError as error:
            hint = "give the `nextCursor` of the page before"
            raise RequestError(Code.INVALID_PARAMS, "this cursor is not one of a list here", hint=hint) from error
        if place.host in machines:
            return place
        return _next(place.host, machines)

    @staticmethod
    def for_worker(line: bytes, place: ListPlace) -> bytes:
        """Return a request as the worker gets it."""
        line = with_value(line, ("params", "cursor"), msgspec.json.encode(place.cursor or None))
        return with_value(line, ROWS, b"true" if place.is_first else b"false")

    def page(self, frame: bytes, host: str, machines: Mapping[str, str]) -> ListedPage:
        """Return the response of a worker as the client gets it."""
        answer = msgspec.json.decode(frame, type=_Answer)
        result = answer.result
        found = {msgspec.json.decode(each, type=_Listed).session_id: each for each in result.sessions}
        new = {id: each for id, each in found.items() if id not in self._shown}
        self._shown.update(new)
        follows = ListPlace(host, result.next_cursor) if result.next_cursor else None
        if follows is None and result.meta is not None and result.meta.antiphon.lists:
            follows = _next(host, machines)
        page: dict[str, object] = {"sessions": [*new.values()]}
        if follows is not None:
            page["nextCursor"] = msgspec.json.encode(follows[:2]).decode()
        return ListedPage(b"%b%b}" % (head_of_answer(answer.id), msgspec.json.encode(page)), [*found])


def _next(host: str, machines: Mapping[str, str]) -> ListPlace | None:
    return next((ListPlace(each) for each in sorted(machines) if each > host), None)
