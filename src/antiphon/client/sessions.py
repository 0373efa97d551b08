"""The sessions of one agent by their ids: who gets an update, and whose directories count."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from antiphon.aio import maybe_await
from antiphon.client.early_updates import EarlyUpdates
from antiphon.client.questions import Questions
from antiphon.errors import Code, RequestError

if TYPE_CHECKING:
    from antiphon.client.place import Place
    from antiphon.client.session import Session
    from antiphon.local.files import Roots
    from antiphon.protocol.v1.session import SessionUpdate

__all__ = ["Sessions"]

T = TypeVar("T")


class Sessions:
    """Every session that is open here."""

    def __init__(self) -> None:
        self.early = EarlyUpdates()
        self.strangers = Questions()
        """Questions that belong to no session we know."""
        self._by_id: dict[str, Session] = {}
        self._opening: list[Place] = []

    def get(self, session_id: str | None) -> "Session | None":
        """The session, if it is open here."""
        return self._by_id.get(session_id) if session_id is not None else None

    def put(self, session: "Session") -> "Session | None":
        """From now on this session hears what is told of its id, first what was told already. Returns who heard it before."""
        before = self._by_id.get(session.id)
        self._by_id[session.id] = session
        for update in self.early.claim(session.id):
            session.hearing.heard(update)
        return before

    def forget(self, session: "Session") -> None:
        """It hears no more."""
        if self._by_id.get(session.id) is session:
            del self._by_id[session.id]

    def heard(self, news: "SessionUpdate") -> None:
        """An update that no turn is waiting for."""
        session = self._by_id.get(news.session_id)
        if session is None:
            self.early.keep(news)
        else:
            session.hearing.heard(news.update)

    @contextmanager
    def opening(self, place: "Place") -> Iterator[None]:
        """A session is being opened whose id we do not know yet."""
        self._opening.append(place)
        try:
            yield
        finally:
            self._opening.remove(place)

    def roots(self, session_id: str) -> "Roots":
        """Where this session may read, write and run.

        Raises:
            RequestError: there is no such session.
        """
        if (place := self.workspace(session_id)) is not None:
            return place.roots
        raise RequestError(Code.INVALID_PARAMS, "there is no such session here", session_id)

    def workspace(self, session_id: str) -> "Place | None":
        """Where this session works, if we know it."""
        session = self._by_id.get(session_id)
        if session is not None:
            return session.place
        # Agents look for their instructions before they answer `session/new`.
        return self._opening[0] if len(self._opening) == 1 else None

    def running_turn(self, session_id: str) -> object:
        """Return the turn that runs in a session, if any."""
        session = self._by_id.get(session_id)
        runs = session.hearing.runs if session is not None else []
        return next((run for run in runs if run.sent and not run.over), None)

    async def ask(self, session_id: str | None, ask: Callable[[], T | Awaitable[T]], instead: T) -> T:
        """Ask the user, unless the turn is being cancelled; stop asking when it is. Then the answer is `instead`."""
        session = self.get(session_id)
        if session is not None and session.hearing.being_cancelled:
            return instead
        questions = self.strangers if session is None else session.questions
        return await questions.wait_for(maybe_await(ask()), instead)
