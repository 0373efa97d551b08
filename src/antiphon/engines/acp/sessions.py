"""The sessions that are open at one agent, by its ids and by ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon.engines.bounded import trim

if TYPE_CHECKING:
    from antiphon.engines.acp.session import AcpSession

__all__ = ["Sessions"]


class Sessions:
    """Whom the agent means."""

    def __init__(self) -> None:
        self._by_id: dict[str, AcpSession] = {}
        """By the agent's own ids."""
        self._opening: list[AcpSession] = []
        self._other_names: dict[str, str] = {}
        """Our client's id → the agent's, where it forgot a session and has a new one in its place."""

    def all(self) -> "list[AcpSession]":
        """Every one."""
        return list(self._by_id.values())

    def put(self, session: "AcpSession", id: str) -> None:
        """It is open, by this id at the agent."""
        self._by_id[id] = session

    def forget(self, session: "AcpSession", id: str) -> None:
        """It is open no more."""
        if self._by_id.get(id) is session:
            del self._by_id[id]

    @contextmanager
    def opening(self, session: "AcpSession") -> Iterator[None]:
        """A session is being opened whose id we do not know yet."""
        self._opening.append(session)
        try:
            yield
        finally:
            self._opening.remove(session)

    # Names.

    def id_of(self, session_id: str) -> str:
        """The agent's id of a session that our client names."""
        return self._other_names.get(session_id, session_id)

    def known_as(self, id: str) -> str:
        """Our client's id of a session that the agent names."""
        return next((ours for ours, theirs in self._other_names.items() if theirs == id), id)

    def rename(self, session_id: str, id: str) -> None:
        """What our client knows by its id has another one at the agent now."""
        self._other_names[session_id] = id
        trim(self._other_names)

    def deleted(self, session_id: str) -> None:
        """Nobody will name it again."""
        self._other_names.pop(session_id, None)

    # Whom a message concerns.

    def find(self, session_id: str | None) -> "AcpSession | None":
        """The session of this id; or the one that is being opened, because agents look for their instructions before they answer."""
        found = self._by_id.get(session_id) if session_id is not None else None
        return self._opening[0] if found is None and len(self._opening) == 1 else found

    def addressed(self, params: msgspec.Raw) -> "tuple[AcpSession | None, Any]":
        """The session that params of an unknown kind name, else the only one there is; and the params with our client's id."""
        try:
            given = msgspec.json.decode(params) if bytes(params) else {}
        except msgspec.DecodeError:
            return None, None
        named = given.get("sessionId") if isinstance(given, dict) else None
        if not isinstance(named, str):
            return (self.all()[0] if len(self._by_id) == 1 else None), given
        session = self._by_id.get(named)
        return session, given if session is None else {**given, "sessionId": session.session.id}
