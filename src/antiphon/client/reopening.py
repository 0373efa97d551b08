"""Opening a session again after it expired or its agent was lost: resumed, else loaded, else a new one in its place."""

import logging
from typing import TYPE_CHECKING

from antiphon.errors import AcpError, Code, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.client.session import Session
    from antiphon.client.sessions import Sessions
    from antiphon.connection.connection import Connection

__all__ = ["reopen"]

_log = logging.getLogger(__name__)


async def reopen(session: "Session", connection: "Connection", sessions: "Sessions") -> v1.NoticeUpdate:
    """Open it on this connection, the best way there is. Returns what the user should know.

    Raises:
        RequestRefused: the agent refuses every way.
        AcpError: only a new session is left, and that is not wanted.
    """
    abilities = session.link.abilities
    refusal: RequestRefused | None = None
    ways: list[Callable[[Session, Connection, Sessions], Awaitable[v1.NoticeUpdate]]] = []
    if abilities.has("session/resume"):
        ways.append(_resume)
    if abilities.has("session/load"):
        ways.append(_load)
    for way in ways:
        try:
            return await way(session, connection, sessions)
        except RequestRefused as error:
            # Which code says that there is no such session differs from agent to agent.
            if (
                error.wants_sign_in or error.says_closed or error.code == Code.REQUEST_TIMEOUT
            ):  # another way is no better
                raise
            _log.info("session `%s` cannot be opened again this way: %s", session.id, error)
            refusal = error
    if not session.link.retry.start_over:
        raise AcpError(f"session `{session.id}` is lost: the agent does not remember it") from refusal
    return await _new(session, connection, sessions)


async def _resume(session: "Session", connection: "Connection", sessions: "Sessions") -> v1.NoticeUpdate:
    answer = await connection.request(m.RESUME_SESSION, session.place.resume(session.id))
    session.opened(connection, answer)
    return _notice("The session was resumed", "It was no longer open; it goes on where it stood.")


async def _load(session: "Session", connection: "Connection", sessions: "Sessions") -> v1.NoticeUpdate:
    session.hearing.replaying = True
    try:
        answer = await connection.request(m.LOAD_SESSION, session.place.load(session.id))
    finally:
        session.hearing.replaying = False
    session.opened(connection, answer)
    return _notice("The session was loaded again", "It was no longer open; it goes on where it stood.")


async def _new(session: "Session", connection: "Connection", sessions: "Sessions") -> v1.NoticeUpdate:
    with sessions.opening(session.place):
        answer = await connection.request(m.NEW_SESSION, session.place.new())
    sessions.forget(session)
    if session.terminals is not None:
        await session.terminals.release_session(session.id)  # nobody can name them any more
    session.id = answer.session_id
    session.opened(connection, answer)
    sessions.put(session)
    return _notice(
        "A new session was started",
        "The earlier one could not be opened again: the agent does not remember it, and its settings are the agent's defaults.",
    )


def _notice(title: str, description: str) -> v1.NoticeUpdate:
    return v1.NoticeUpdate(v1.NoticeSeverity.WARNING, title, description)
