"""What a translator has to tell, told to the client: most of it are updates already, the rest depends on what the client can show."""

from typing import TYPE_CHECKING, Any

from antiphon.engines import news
from antiphon.engines.mirror import mirror
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from antiphon.agent.session import Session

__all__ = ["Telling"]


class Telling:
    """To one client. An engine adds what it does with news of its own."""

    def __init__(self, session: "Session", special: "Mapping[type, Callable[[Any], Awaitable[None]]]") -> None:
        self._session = session
        self._special: dict[type, Callable[[Any], Awaitable[None]]] = {
            news.Notice: self._notice,
            news.Titled: self._title,
            news.Mirror: self._mirror,
            news.SignInNeeded: self._sign_in,
            v1.CompactionUpdate: self._compaction,
            v1.CompactionSummaryChunk: self._summary,
            **special,
        }

    def tell(self, each: Any) -> "Awaitable[None]":
        """Await it: it waits while the client is slow."""
        special = self._special.get(type(each))
        return self._session.update(each) if special is None else special(each)

    async def _notice(self, notice: news.Notice) -> None:
        await self._session.notice(notice.title, notice.description, notice.severity)

    async def _title(self, titled: news.Titled) -> None:
        await self._session.entitle(titled.title)

    async def _mirror(self, command: news.Mirror) -> None:
        await mirror(self._session, command.call_id, command.output, command.exit_code)

    async def _sign_in(self, needed: news.SignInNeeded) -> None:
        await self._session.notice("Sign in first", needed.text, v1.NoticeSeverity.WARNING)

    async def _compaction(self, update: v1.CompactionUpdate) -> None:
        if self._session.client.shows_compaction:
            await self._session.update(update)
        elif update.status == v1.CompactionStatus.COMPLETED:
            await self._session.notice("The conversation was compacted", "It goes on with a summary of what was said.")
        elif update.status == v1.CompactionStatus.FAILED:
            why = update.error if isinstance(update.error, str) else None
            await self._session.notice("The conversation could not be compacted", why, v1.NoticeSeverity.WARNING)

    async def _summary(self, chunk: v1.CompactionSummaryChunk) -> None:
        if self._session.client.shows_compaction:
            await self._session.update(chunk)
