"""What we say ourselves in a joint session: answers to our own commands, notices, a title."""

import itertools
import os
from typing import TYPE_CHECKING, Any

from antiphon.duet.events import PromptEvent, now, update_event
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.protocol import v1
from antiphon.store.errors import StoreError

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.duet.journal import HistoryWriter
    from antiphon.store.sessions import SessionStore

__all__ = ["Saying", "failure_of", "notice_update", "told"]


class Saying:
    """In one session. All of it is kept like the engines' words."""

    def __init__(self, outer: "Session", journal: "HistoryWriter", store: "SessionStore") -> None:
        self._outer = outer
        self._journal = journal
        self._store = store
        self._numbers = itertools.count(1)
        self._series = os.urandom(3).hex()
        self.title: str | None = None
        """Of the session; None: it has none yet."""
        self._kept_title: str | None = None

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
        update = notice_update(self._outer, title, description, severity, self.new_id())
        await (self._journal.tell(update) if kept else self._journal.pass_on(update))

    async def failed(self, who: str, error: AcpError, *, kept: bool = True) -> None:
        """An engine could not do its part."""
        await self.notice(*failure_of(who, error), v1.NoticeSeverity.ERROR, kept=kept)

    def note_failure(self, who: str, error: AcpError) -> None:
        """Keep it for those who read the history: whoever was there has heard of it by the answer."""
        self._journal.note(update_event(v1.NoticeUpdate(v1.NoticeSeverity.ERROR, *failure_of(who, error))))

    async def as_user(self, text: str, by: str) -> None:
        """Something that we say to the engines for the user, who sees it."""
        event = PromptEvent(now(), [v1.TextBlock(text)], self.new_id(), by)
        await self._journal.show(event, v1.UserMessageChunk(v1.TextBlock(text), event.message_id))

    async def entitled(self, title: str) -> None:
        """Tell the title that the session has."""
        self.title = self._kept_title = title
        await self._journal.tell(v1.SessionInfoUpdate(title=title))

    async def entitle(self, title: str) -> None:
        """Give the session a title."""
        if title == self.title:
            return
        self.title = title
        await self._journal.tell(v1.SessionInfoUpdate(title=title))
        await self.keep_title()

    async def keep_title(self) -> None:
        """Keep the title, once there is something that it could be the title of."""
        await self._journal.settled()
        if self.title is None or self.title == self._kept_title or self._journal.empty:
            return
        try:
            await self._store.rename(self._outer.id, self.title)
            self._kept_title = self.title
        except StoreError as error:
            await self._journal.unsaved(error)


def notice_update(
    outer: "Session",
    title: str,
    description: str | None,
    severity: v1.NoticeSeverity,
    id: str,
    meta: dict[str, Any] | None = None,
) -> v1.Update:
    """A notice as the client can show it: one without notices gets a message with this id."""
    if outer.client.shows_notices:
        return v1.NoticeUpdate(severity, title, description, meta=meta)
    text = f"*{title}*: {description}\n\n" if description else f"*{title}*\n\n"
    return v1.AgentMessageChunk(v1.TextBlock(text), id)


def failure_of(who: str, error: AcpError) -> tuple[str, str | None]:
    """Return the sentence that reports the error of an engine, with its name, and the hint if there is one."""
    sentence, hint = told(error)
    return sentence if sentence.startswith(who) else f"{who} failed: {sentence}", hint or None


def told(error: AcpError) -> tuple[str, str]:
    """An error in a sentence for people, and what to do about it, if that is known."""
    sentence, hint = sentence_and_hint(error)
    return sentence, hint or ""
