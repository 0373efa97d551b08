"""The search: the text of messages is stored beside the journal when a turn has ended, and looked through when a client asks.

The events of a session are read once for it, some time after they were stored: what an agent sends waits for none of this. How far they
were read is stored, so a gateway that was killed, or whose file is older than the search, reads the rest when it starts.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from antiphon.errors import AcpError
from antiphon.gateway.base import SearchableText
from antiphon.gateway.events import PROMPT, TURN, UPDATE, parse_event
from antiphon.gateway.methods.rows import words_of
from antiphon.journal.base import PAGE, JournalEntry
from antiphon.rpc.envelope import BAD_INPUT
from antiphon.text import one_line

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from msgspec import Raw

    from antiphon.gateway.base import GatewaySessions, HubJournal
    from antiphon.gateway.clients.connection import GatewayConnection

__all__ = ["SearchIndex", "search_sessions", "texts_in"]

PAUSE: Final = 1.0
"""Seconds after the end of a turn until it is read for the search: a turn that follows at once is not in its way."""

PAGE_PAUSE: Final = 0.005
"""Seconds between two pages: an old file is read in the background of everything else."""

TOGETHER: Final = 1024 * 1024
"""Bytes of events that are looked at together: a message that goes on behind them is found by the words of one of its parts."""

MESSAGE: Final = 64 * 1024
"""Characters of one message that can be found."""

MOST: Final = 100
"""Matches of one search."""

SNIPPET: Final = 200
"""Characters around a match."""

_CHUNK: Final = b"_message_chunk"
_log = logging.getLogger(__name__)


class _Content(msgspec.Struct):
    text: str = ""


class _Update(msgspec.Struct, rename="camel"):
    session_update: Literal["agent_message_chunk", "user_message_chunk"]
    content: _Content


class _Params(msgspec.Struct):
    update: _Update


class _Frame(msgspec.Struct):
    params: _Params


_frame = msgspec.json.Decoder(_Frame).decode


def texts_in(entries: Sequence[JournalEntry]) -> Iterator[SearchableText]:
    """Yield the text of the messages in events: the pieces of one side until one of the other comes, or a turn begins."""
    pieces: list[str] = []
    size, first, sender = 0, 0, ""
    for number, data, _ in entries:
        kind = data[:1]
        if kind == TURN and pieces:
            yield SearchableText(first, sender, "".join(pieces))
            pieces, sender = [], ""
        if kind not in (UPDATE, PROMPT) or _CHUNK not in data:
            continue
        try:
            update = _frame(parse_event(data).frame).params.update
        except BAD_INPUT:
            continue
        found = update.session_update.partition("_")[0]
        if found != sender and pieces:
            yield SearchableText(first, sender, "".join(pieces))
            pieces = []
        if not pieces:
            size, first, sender = 0, number, found
        if size < MESSAGE:
            pieces.append(update.content.text[: MESSAGE - size])
            size += len(update.content.text)
    if pieces:
        yield SearchableText(first, sender, "".join(pieces))


class SearchedHub(Protocol):
    """What the search needs of a hub."""

    @property
    def rows(self) -> "GatewaySessions": ...

    @property
    def journal(self) -> "HubJournal": ...

    def run(self, work: "Coroutine[object, object, object]") -> None:
        """Run something by itself, until the hub is closed."""


class SearchIndex:
    """Reads what was stored for the search, in one task, one session after the other."""

    def __init__(self, hub: SearchedHub) -> None:
        self._hub = hub
        self._waiting: dict[str, None] = {}
        self._wakes: asyncio.Event | None = None

    def start(self) -> None:
        """Read from now on, first what an earlier gateway did not."""
        self._wakes = asyncio.Event()
        self._hub.run(self._work(self._wakes))

    def note(self, key: str) -> None:
        """Read the last turn of a session soon."""
        self._waiting[key] = None
        if self._wakes is not None:
            self._wakes.set()

    async def _work(self, wakes: asyncio.Event) -> None:
        await self._read_rest("")
        while True:
            await wakes.wait()
            wakes.clear()
            await asyncio.sleep(PAUSE)
            await self.settled()

    async def settled(self) -> None:
        """Read what was noted until now."""
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            await self._read_rest(key, only=True)

    async def _read_rest(self, key: str, *, only: bool = False) -> None:
        """Read what was not read of one session, or of all whose keys come behind this one."""
        try:
            while (found := await self._hub.rows.unread(key, only=only)) is not None:
                key, after = found
                await self._read(key, after)
                if only:
                    return
        except AcpError as error:
            _log.error("messages cannot be stored for the search now: %s", error.sentence)
        except Exception:  # the next turns are to be found all the same
            _log.exception("messages of session `%s` cannot be read for the search", key)

    async def _read(self, key: str, after: int) -> None:
        kept: list[JournalEntry] = []
        size = 0
        while page := await self._hub.journal.read(key, after, PAGE):
            after = page[-1].number
            wanted = [each for each in page if each.data[:1] == TURN or _CHUNK in each.data]
            kept += wanted
            size += sum(len(each.data) for each in wanted)
            if size > TOGETHER:
                await self._hub.rows.add_text(key, [*texts_in(kept)], after)
                kept, size = [], 0
            await asyncio.sleep(PAGE_PAUSE)
        await self._hub.rows.add_text(key, [*texts_in(kept)], after)


# A search of a client.


class _SearchParams(msgspec.Struct):
    query: str
    limit: int = 20


async def search_sessions(client: "GatewayConnection[Any]", params: "Raw") -> object:
    """Return the messages in which all words of a query are, of the sessions that a client may see."""
    hub = client.hub
    given = msgspec.json.decode(params, type=_SearchParams)
    words = words_of(given.query)
    if not words:
        return {"matches": []}
    found = await hub.rows.search(words, client.principal.sessions, tuple(hub.agents), min(max(given.limit, 1), MOST))
    names = ("agent", "session_id", "title", "cwd", "number")
    return {
        "matches": [
            {
                **{_CAMEL.get(name, name): getattr(each, name) for name in names},
                "from": each.sender,
                "text": _snippet(each.text, words),
            }
            for each in found
        ]
    }


_CAMEL: Final = {"session_id": "sessionId"}


def _snippet(text: str, words: Sequence[str]) -> str:
    """Return the part of a text around the first of the words, in one line."""
    folded = text.casefold()
    places = [place for word in words if (place := folded.find(word.casefold())) >= 0]
    begin = max(0, min(places, default=0) - SNIPPET // 3)
    shown = one_line(text[begin : begin + SNIPPET]).strip()
    return ("…" if begin else "") + shown + ("…" if begin + SNIPPET < len(text) else "")
