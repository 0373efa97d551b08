"""How a chat goes from one session to another: an earlier one, a new one, or one that is open already."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from antiphon.client.session import ClientSession
from antiphon.errors import AcpError, Code, RequestRefused
from antiphon.protocol import v1
from antiphon.transcript.transcript import Entry, Transcript
from antiphon.tui.painter import one_line

if TYPE_CHECKING:
    from antiphon.tui.chat import Begin, Chat

__all__ = ["ChatSessions"]


class ChatSessions:
    """The sessions of one chat. `enter` makes one the chat's own; `take_update` shows an update of it outside of a turn."""

    def __init__(
        self,
        chat: "Chat",
        enter: Callable[[ClientSession], Awaitable[None]],
        take_update: Callable[[v1.Update], None],
    ) -> None:
        self._chat = chat
        self._enter = enter
        self._take_update = take_update

    async def load(self, session_id: str) -> None:
        """Open another session, and show its history."""
        chat = self._chat
        if chat.opened is None:
            return
        history: list[v1.Update] = []  # kept until it is open; if it never is, nothing has changed here
        is_open = False

        def collect(update: v1.Update) -> None:
            if is_open:
                self._take_update(update)
            else:
                history.append(update)

        try:
            session = await chat.opened.load(session_id, collect)
        except RequestRefused as error:
            if error.code != Code.RESOURCE_NOT_FOUND:
                raise
            raise AcpError(f"there is no session `{one_line(session_id)}`", hint="/sessions lists them") from error
        is_open = True
        chat.screen.begin(session.cwd)
        chat.note(f"session {one_line(session_id)}")
        for update in history:
            chat.screen.apply(update)
        await self._enter(session)

    async def begin_anew(self) -> None:
        """Open a new session."""
        chat = self._chat
        if chat.opened is not None:
            session = await chat.opened.new(self._take_update)
            chat.screen.begin(session.cwd)
            await self._enter(session)
            chat.note("a new session")

    async def open(self, open_it: "Begin") -> ClientSession:
        """Open a session whose updates are shown, without going there yet."""
        return await open_it(self._take_update)

    async def switch_to(self, session: ClientSession, shown: list[Entry]) -> None:
        """Go to a session that is open already. `shown` is what stands on the screen of it."""
        screen = self._chat.screen
        screen.begin(session.cwd)
        screen.transcript = Transcript.of(shown)
        session.transcript = Transcript.of(shown, session.transcript)
        await self._enter(session)
