"""What we say ourselves in a joint session: answers to our own commands, notices, a title."""

import itertools
import os
from typing import TYPE_CHECKING

from antiphon.duet.events import Prompted, now
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.duet.journal import Journal
    from antiphon.errors import AcpError
    from antiphon.store.sessions import SessionStore

__all__ = ["Saying"]


class Saying:
    """In one session. All of it is kept like the engines' words."""

    def __init__(self, outer: "Session", journal: "Journal", store: "SessionStore") -> None:
        self._outer = outer
        self._journal = journal
        self._store = store
        self._numbers = itertools.count(1)
        self._series = os.urandom(3).hex()
        self.title: str | None = None
        """Of the session; None: it has none yet."""

    def new_id(self) -> str:
        """The id of a message that no other has."""
        return f"antiphon-{self._series}-{next(self._numbers)}"

    async def say(self, text: str) -> None:
        """Words of our own."""
        await self._journal.tell(v1.AgentMessageChunk(v1.TextBlock(text), self.new_id()))

    async def notice(
        self,
        title: str,
        description: str | None = None,
        severity: v1.NoticeSeverity = v1.NoticeSeverity.INFO,
        *,
        kept: bool = True,
    ) -> None:
        """Something that the user should know. A client without notices gets it as a message. What only matters now is not kept."""
        update: v1.Update
        if self._outer.client.shows_notices:
            update = v1.NoticeUpdate(severity, title, description)
        else:
            text = f"*{title}*: {description}\n\n" if description else f"*{title}*\n\n"
            update = v1.AgentMessageChunk(v1.TextBlock(text), self.new_id())
        await (self._journal.tell(update) if kept else self._journal.pass_on(update))

    async def failed(self, who: str, error: "AcpError") -> None:
        """An engine could not do its part."""
        sentence, _, hint = str(error).partition("\nhint: ")
        await self.notice(f"{who} failed: {sentence}", hint or None, v1.NoticeSeverity.ERROR)

    async def as_user(self, text: str, by: str) -> None:
        """Something that we say to the engines for the user, who sees it."""
        event = Prompted(now(), [v1.TextBlock(text)], self.new_id(), by)
        await self._journal.show(event, v1.UserMessageChunk(v1.TextBlock(text), event.message_id))

    async def entitled(self, title: str) -> None:
        """Tell the title that the session has."""
        self.title = title
        await self._journal.tell(v1.SessionInfoUpdate(title=title))

    async def entitle(self, title: str) -> None:
        """Give the session a title."""
        if title == self.title:
            return
        self.title = title
        await self._journal.settled()
        if not self._journal.empty:
            await self._store.rename(self._outer.id, title)
        await self._journal.tell(v1.SessionInfoUpdate(title=title))
