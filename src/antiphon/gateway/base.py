"""What the parts of the gateway agree on: principals and their roles, rows of sessions, limits, and how an agent is started."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from antiphon.journal.base import PAGE, JournalEntry, Lease
from antiphon.journal.owner import SessionHome
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.transports.base import Transport

__all__ = [
    "EXTENSION",
    "MAX_PENDING",
    "AccessRole",
    "AgentSource",
    "Gates",
    "GatewaySession",
    "GatewaySessions",
    "HubAudit",
    "HubJournal",
    "HubLimits",
    "HubPlace",
    "HubSpan",
    "HubTraces",
    "Principal",
]

EXTENSION: Final = 1
"""Version of the extension: the methods `_antiphon/…` and the key `antiphon` in `_meta`."""

MAX_PENDING: Final = 256
"""Requests of the agent that may wait for people in one session. More is a loop in the agent, and no person could answer them."""


class AccessRole(IntEnum):
    """What a principal may do. Each role may do all that the one before it may."""

    WATCH = 1
    """See sessions."""
    DRIVE = 2
    """Prompt, cancel, answer permission requests, open and close sessions."""
    ADMIN = 3
    """Manage tokens, shares and stored data."""


class Principal(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection, as the token of its first request says."""

    name: str
    role: AccessRole = AccessRole.WATCH
    sessions: frozenset[str] | None = None
    """The keys of the sessions that a share is for; None: all of them."""
    token_id: str = ""
    root_id: str = ""
    """The number of the token that a browser signed in with, else `token_id`: limits count for it."""
    address: str = ""
    """Where the connection comes from, for the audit log."""

    @property
    def identity(self) -> tuple[str, str]:
        """What two connections of one principal have in common, wherever they come from: a client may return from another address."""
        return self.token_id, self.name

    def may(self, role: AccessRole, key: str | None = None) -> bool:
        """Whether it may do what needs this role, with the session of this key if one is named."""
        if self.role < role:
            return False
        return self.sessions is None or (key is not None and key in self.sessions)


class GatewaySession(msgspec.Struct, frozen=True):
    """One session as it is stored. `key` is its name in the journal, because an agent may use its own id twice."""

    key: str
    agent: str
    session_id: str
    """The id that the agent gave it, and that clients know it by."""
    cwd: str
    directories: tuple[str, ...] = ()
    title: str = ""
    created: float = 0
    updated: float = 0
    """Seconds since 1970 at the last turn."""
    state: bytes = b"{}"
    """The settings now: the members `modes`, `models` and `configOptions` of a result, as JSON."""
    turn: str = ""
    """The id of the turn that runs; empty if none does."""
    turn_after: int = 0
    """The number of the last event before that turn."""
    archived: bool = False
    owner: str = ""
    """The name of the principal that opened it; empty for one that was stored before owners were."""
    agent_title: str = ""
    """The title that the agent gave it last. `title` is another one where a person has renamed the session."""
    renamed: bool = False
    """Whether a person has renamed it: the titles of the agent are not shown then."""
    failed: bool = False
    """Whether its last turn ended with an error, or was interrupted."""
    text: str = ""
    """The first line of the last prompt."""

    @property
    def is_unused(self) -> bool:
        """Whether it has had no prompt yet, so that the agent may have stored nothing of it."""
        return not self.updated


class SessionQuery(msgspec.Struct, frozen=True):
    """Which rows a list is to have, those used last first."""

    agents: tuple[str, ...]
    keys: frozenset[str] | None = None
    """The sessions that may be in it; None: all of them."""
    words: tuple[str, ...] = ()
    """Each of them has to be in the title, the last prompt, the directory or the name of the agent."""
    before: tuple[float, int] | None = None
    """The place of the row behind which the list goes on."""
    limit: int = 100


class ListedRow(NamedTuple):
    """A row of a list. It is without its settings, which may be large."""

    row: GatewaySession
    number: int
    """The number of the last event."""
    place: tuple[float, int]
    """When it was last used, and its place among those of the same time."""


class SearchableText(NamedTuple):
    """The text of a message, as it is stored for the search."""

    number: int
    """The number of the event with which it begins."""
    sender: str
    """`user` or `agent`."""
    text: str


class FoundText(NamedTuple):
    """A message in which the words of a search are."""

    key: str
    agent: str
    session_id: str
    title: str
    cwd: str
    number: int
    sender: str
    text: str


class LiveSession(NamedTuple):
    """A session that is in memory, as a list shows it."""

    row: GatewaySession
    """Its row as it is now, stored or not."""
    last: int
    """The number of its last event."""
    waiting: int
    """How many requests of the agent wait for people."""
    is_running: bool
    """Whether a turn runs."""
    is_hidden: bool = False
    """Whether lists are without it."""

    @property
    def key(self) -> str:
        """The key of its row."""
        return self.row.key


class GatewaySessions(Protocol):
    """The stored rows. Jobs are done in the order of the calls, those of the journal included."""

    removed: Callable[[str, str, str], None] | None
    """Called with the key, the agent and the id of each session that was deleted."""

    async def create(
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        owner: str = "",
        *,
        hidden: bool = False,
    ) -> GatewaySession:
        """Store a new row under a random key. An older row with the same agent and id is archived in the same transaction.

        A `hidden` row is as an archived one until it is shown.
        """

    async def show(self, key: str) -> None:
        """Show a hidden row. An older row with the same agent and id is archived in the same transaction; beside a later one it stays hidden."""

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        """Return the row of a session that is not archived."""

    async def list(self, agent: str, *, cwd: str | None = None) -> list[GatewaySession]:
        """Return the rows that are not archived, those used last first."""

    async def listed(self, query: SessionQuery) -> Sequence[ListedRow]:
        """Return the rows that a list shows."""

    async def settings(self, agent: str) -> bytes:
        """Return the settings of the session of an agent that was used last, as its row has them; `{}` without a session."""

    async def interrupted(self) -> Sequence[GatewaySession]:
        """Return the rows in which a turn ran when the gateway ended."""

    def save(self, row: GatewaySession) -> None:
        """Store a row in the place of the one with its key. Not waited for."""

    async def delete(self, key: str) -> None:
        """Delete a session with its events, and its text for the search."""

    # The search.

    async def unread(self, key: str, *, only: bool = False) -> tuple[str, int] | None:
        """Return a session of which events were not read for the search yet, with the last number that was: this one, or the next behind it."""

    async def add_text(self, key: str, texts: Sequence[SearchableText], number: int) -> None:
        """Store the text of messages for the search, and that events were read up to a number."""

    async def search(
        self, words: Sequence[str], keys: frozenset[str] | None, agents: tuple[str, ...], limit: int
    ) -> Sequence[FoundText]:
        """Return messages with all of these words, those of sessions used last first."""


class HubJournal(Protocol):
    """What the hub needs of a journal; `journal.runs.RunJournal` is one. The rules are those of `journal.base.Journal`."""

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        """Take the right to append."""

    async def release(self, lease: Lease) -> None:
        """Give the right back."""

    def append(self, lease: Lease, events: Sequence[bytes], at: float = 0.0) -> Awaitable[int]:
        """Store events of a time; the result is the number of the last one, after the commit."""

    def store(
        self,
        lease: Lease,
        events: Sequence[bytes],
        then: Callable[[int, BaseException | None], None],
        at: float = 0.0,
    ) -> None:
        """Store events of a time, and call `then` after the commit: with the number of the last one, or with the error."""

    async def read(self, session: str, after: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        """Return the entries after a number."""

    async def length(self, session: str) -> int:
        """Return the number of the last event; 0 if there is none."""


AgentSource: TypeAlias = Callable[[], Awaitable[Transport]]
"""Starts the program of an agent and returns the transport to it."""

HubAudit: TypeAlias = Callable[[Principal, str, str, str], None]
"""Takes what was done: by whom, the action, the key of the session, and more about it."""


class HubSpan(Protocol):
    """Something of the hub that takes time, for those who trace it."""

    def event(self, name: str, attributes: Mapping[str, str]) -> None:
        """Add something that happened."""

    def end(self, outcome: str, *, failed: bool) -> None:
        """End the span."""


class HubTraces(Protocol):
    """Where spans go."""

    def begin(self, name: str, attributes: Mapping[str, str], parent: Mapping[str, str]) -> HubSpan:
        """Begin a span under the `traceparent` of a message, or one of its own."""


class HubLinks(Protocol):
    """What the program around a hub does for clients: links to its page, and the requests of admins."""

    async def administer(self, params: msgspec.Raw, principal: Principal) -> Mapping[str, object]:
        """Do what an admin asks for. Who may is checked by the caller, here as for all."""

    async def share(
        self, row: GatewaySession, principal: Principal, *, role: str, lifetime: float | None, name: str
    ) -> Mapping[str, object]:
        """Make a link that shows one session to a person without a token."""

    async def launch(self, principal: Principal, role: str) -> Mapping[str, object]:
        """Make a link that signs another device in, with at most the role of the principal."""


class HubPlace(Protocol):
    """The place of a hub in a fleet: its worker, and the directories that are there. A gateway on one machine has none.

    With a place, sessions come from other workers and go to them, and a session that the agent cannot open again goes on in a new one.
    """

    worker: str
    """The name of the worker: one for each start of it."""
    host: str
    """The name of the machine."""

    def home_of(self, directories: Sequence[str]) -> SessionHome:
        """Return what is stored of a session with these directories, to know later where else it can be."""

    def localized(self, row: GatewaySession) -> GatewaySession:
        """Return a row with its directories as they are here.

        Raises:
            OwnedElsewhere: one of them is not.
        """


class SharedQuotas(Protocol):
    """What principals use at all workers of a fleet together. A gateway on one machine has none: it counts for itself."""

    async def refuse_prompt(self, principal: Principal) -> str:
        """Count a prompt that is about to be sent to an agent, and return why it is refused; empty if it is not."""

    async def refuse_session(self, token: str, more: int = 0) -> str:
        """Count the sessions that a token has open here and `more`, and return why they are too many; empty if they are not."""

    def closed(self, token: str) -> None:
        """Count a session of a token no more."""


class ServedHub(Protocol):
    """What the program around a hub needs of it: the hub of one machine has that, and the one of a fleet."""

    links: HubLinks | None
    """Makes links and answers admins; set when the gateway can be reached."""

    async def serve(self, transport: Transport, principal: Principal, agent: str) -> None:
        """Serve one connection until it ends."""

    def drop_prompts(self, token_id: str, why: str) -> None:
        """Drop the prompts that wait of a token that is good no longer."""

    def counts(self) -> Mapping[str, int]:
        """Return numbers for people who watch the gateway."""

    async def agents_now(self) -> Sequence[Mapping[str, object]]:
        """Return how the agents are now, and what they use of the machine."""

    @property
    def health(self) -> str:
        """`ok`, or what is wrong."""

    async def delete_stored(self, row: GatewaySession) -> None:
        """Delete a session, whether it is in memory or not."""

    async def drain(self) -> None:
        """Wait for the turns that end with this process, and begin no more."""

    async def close(self) -> None:
        """End all connections, and what runs in this process."""


class HubFacts(msgspec.Struct, frozen=True):
    """What the program around a hub knows of itself, for clients that ask."""

    default: str = ""
    """The name of the agent that `/acp` leads to."""
    page: str = ""
    """The hash of the files of the page."""


class HubLimits(msgspec.Struct, frozen=True):
    """How much the hub may hold and how long it waits."""

    agents: int = 16
    """Agents whose processes run at the same time. One that is idle ends for another that is needed."""
    agent_processes: int = 1000
    """Processes of one agent, with all that it started. One that has more is ended."""
    agent_memory: int | None = None
    """Bytes of memory that they have together. One that has more is ended; None: no limit."""
    usage_interval: float = 5.0
    """Seconds between two looks at what an agent uses."""
    turn_timeout: float | None = None
    """Seconds after which a turn is cancelled; None: it may go on."""
    cancel_timeout: float = 30.0
    """Seconds that an agent has to end a turn that was cancelled because of its time."""
    connections: int = 1000
    sessions: int = 10_000
    """Sessions that are open in memory."""
    token_sessions: int = 2500
    """Those of them that one token has brought there: others find room beside it."""
    prompts_per_minute: int = 30
    """Prompts of one principal."""
    changes_per_minute: int = 600
    """Settings and titles that one principal changes: each is in the audit log, which is kept for long."""
    queue: int = 32
    """Prompts that may wait in one session."""
    waiting: int = 64 * 1024 * 1024
    """Bytes of the prompts of one principal that wait, in all sessions. One prompt waits however large it is."""
    unsent: int = 8 * 1024 * 1024
    """Bytes that wait for one client. A slower one is given the rest from the journal."""
    uncommitted: int = 4 * 1024 * 1024
    """Bytes of one agent that wait for the disk, before it is read on."""
    answer_timeout: float | None = None
    """Seconds after which a permission request is answered with an option that rejects; None: it waits."""
    idle: float = 900.0
    """Seconds without a client and a turn after which the process of an agent is ended."""
    session_idle: float = 3600.0
    """Seconds without a client and a turn after which a session is closed, at the agent too if it can. It stays stored."""
    first_delay: float = 1.0
    longest_delay: float = 60.0
    """Seconds before an agent that crashed is started again: doubled each time, up to the longest."""
    healthy: float = 60.0
    """Seconds after which a process that still runs counts as healthy: the next crash begins with the first delay again."""
    start_timeout: float = 60.0
    """Seconds for the response to `initialize`."""


Gates: TypeAlias = Callable[[str, str, Ask], Awaitable[PermissionGate]]
"""Makes the policy for a session of an agent of this name in this directory. What it leaves open is asked with the function."""
