"""What an agent may do: the questions of a client, as functions to fill in. Knows no connection and no event loop.

Every hook may be `def` or `async def`. Only `prompt` is needed; which of the others are filled in is what the client is told.
Raise `RequestError` in any of them to refuse with a code and a message of your own.
"""

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from antiphon.errors import Code, RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from antiphon.agent.session import Session
    from antiphon.agent.turn import Turn
    from antiphon.protocol import v1

    T = TypeVar("T")
    Maybe: TypeAlias = T | Awaitable[T]
    """From a `def`, or from an `async def`."""
    Outcome: TypeAlias = v1.PromptResult | v1.StopReason | None
    """How a turn ended; None is `end_turn`."""

__all__ = ["Hooks", "HooksApart"]


class HooksApart:
    """Those that concern no session that is open."""

    def list_sessions(self, query: "v1.ListSessions") -> "Maybe[v1.ListSessionsResult | Iterable[v1.SessionInfo]]":
        """The sessions there are, newest first: a page of them, or all. Of all, those of the directory that is asked for are picked."""
        raise _missing("session/list")

    def delete_session(self, session_id: str) -> "Maybe[None]":
        """Forget a session for good. One that does not exist is no error."""
        raise _missing("session/delete")

    def session_directory(self, session_id: str) -> "Maybe[str | None]":
        """The directory of an earlier session, for clients that open it without naming one. None: look into `list_sessions`."""
        return None

    def authenticate(self, method_id: str) -> "Maybe[None]":
        """Sign in by one of the methods on offer."""

    def logout(self) -> "Maybe[None]":
        """Sign out."""
        raise _missing("logout")

    def close(self) -> "Maybe[None]":
        """The last client is gone, and its sessions are closed: free what they shared. Another client may still come."""


class Hooks(HooksApart):
    """The base of `Agent`: override what you need."""

    def prompt(self, turn: "Turn") -> "Maybe[Outcome]":
        """Work on what the user says. What it returns is why the turn ended; nothing means that all is well."""
        raise _missing("session/prompt")

    def new_session(self, session: "Session") -> "Maybe[None]":
        """A session begins. Give it modes, settings or commands here; whatever is said in it leaves after the answer."""

    def load_session(self, session: "Session") -> "Maybe[None]":
        """An earlier session is opened: tell its history with `session.update`, all of it before you return."""
        raise _missing("session/load")

    def resume_session(self, session: "Session") -> "Maybe[None]":
        """An earlier session is opened, and the client does not want to hear its history."""
        raise _missing("session/resume")

    def fork_session(self, session: "Session", source: str) -> "Maybe[None]":
        """A session begins where the session `source` stands."""
        raise _missing("session/fork")

    def close_session(self, session: "Session") -> "Maybe[None]":
        """A session ends, and its turn has: free what it holds. Also when the client is gone."""

    def set_mode(self, session: "Session", mode_id: str) -> "Maybe[None]":
        """The user switches the mode, to one of those on offer. Refuse by raising."""

    def set_model(self, session: "Session", model_id: str) -> "Maybe[None]":
        """The user picks a model, in the way of older clients."""

    def set_config_option(self, session: "Session", config_id: str, value: bool | str) -> "Maybe[None]":
        """The user changes a setting, to one of the values on offer."""

    def cancel(self, session: "Session") -> "Maybe[None]":
        """The user calls off whatever runs in a session, and no prompt does. Prompts are called off by cancelling their hook."""

    def waits(self, turn: "Turn", before: int) -> "Maybe[None]":
        """A prompt has come while others run or wait, `before` of them: it is its turn when they are over. Say so, if you like."""

    def steer(self, turn: "Turn") -> "Maybe[bool]":
        """The user adds something while a turn runs: say it to the one that runs. False: it is too late, and nothing was taken."""
        raise _missing("_session/steering")


def _missing(method: str) -> RequestError:
    return RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
