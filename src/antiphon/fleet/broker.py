"""What the fleet needs of a message broker, as an interface: stored messages in one order, messages that are not stored, requests.

`fleet.nats` has it from NATS with JetStream. `fleet.simulation` has it in memory, with a clock and faults of its own, for tests that play
thousands of schedules. Everything else of the fleet is written against this file and knows neither.

Rules that both keep, and that one test-suite checks for each of them:

1. Stored messages have one sequence. `append` returns the sequence number of its message once that is stored, never before.
2. `append` with a fence stores nothing unless the last message of the fence's subject has the fence's number: `Fenced` then, for ever. With
   `expects`, the same for the subject itself; 0 is a subject without a message.
3. `Unsure` says that a message may be stored or not. The caller appends it again under the same name: it is stored once.
4. `read` and `lasts` give what is stored, in the order of the sequence. A reader may be given a state that is a moment old; what one call
   gives is of one state.
5. `follow` and `subscribe` give messages as they come, in the order of their sender. They may lose some while a connection is lost, and
   say so by `reconnected`: what must not be lost is read again from what is stored.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from antiphon.errors import AcpError

__all__ = [
    "Broker",
    "BrokerAway",
    "CoreMessage",
    "Fence",
    "Fenced",
    "NoResponder",
    "StoredMessage",
    "Subscription",
    "Take",
    "TakeCore",
    "Unsure",
]

READ_LIMIT: Final = 256
"""Messages of one `read`, unless the caller gives another limit."""


class BrokerAway(AcpError):
    """There is no connection to the broker, or it does not answer. Nothing was done."""

    recoverable = True


class Unsure(BrokerAway):
    """The broker did not answer in time: what was to be stored may be stored or not."""


class Fenced(AcpError):
    """A condition of an append does not hold: another message came first. Nothing was stored, and never will be with this condition."""


class NoResponder(AcpError):
    """No process takes requests under this subject."""


class Fence(NamedTuple):
    """The message that has to be the last one of its subject, for another message to be stored."""

    subject: str
    sequence: int


class StoredMessage(NamedTuple):
    """A message as it is stored."""

    subject: str
    sequence: int
    data: bytes
    headers: Mapping[str, str]
    time: float
    """Seconds since 1970 at the broker."""


class CoreMessage(NamedTuple):
    """A message that is not stored. `reply` is the subject below `_INBOX` that an answer goes to; empty: none is expected."""

    subject: str
    data: bytes
    reply: str = ""


Take: TypeAlias = Callable[[StoredMessage], None]
TakeCore: TypeAlias = Callable[[CoreMessage], None]


class Subscription(Protocol):
    """Messages of a subject that are being taken."""

    def end(self) -> None:
        """Take no more of them."""


class Broker(Protocol):
    """One connection to a broker. Subjects are words joined by dots; `*` stands for one word and a last `>` for all that follow."""

    max_payload: int
    """Bytes of one message with its headers."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""

    @property
    def connected_since(self) -> float | None:
        """The time of `clock` at which the connection was made that there is now; None without one."""

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the connection, for people: why there is none, and what the broker does not permit."""

    def clock(self) -> float:
        """Seconds of a clock that only goes forward and that no person sets: the event loop's, or a simulated one."""

    def on_reconnect(self, call: Callable[[], None]) -> None:
        """Call a function whenever a lost connection is there again: messages may have been missed."""

    # Stored messages.

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        name: str = "",
        fence: Fence | None = None,
        expects: int | None = None,
        replaces: bool = False,
    ) -> int:
        """Store a message and return its sequence number. Of two with the same name within minutes the first is stored, and both get its number.

        `replaces`: the messages of the subject before it are removed with it. Not both of `fence` and `expects`: a broker checks one condition.

        Raises:
            Fenced: `fence` or `expects` does not hold.
            Unsure: it may be stored or not.
            BrokerAway: it is not stored.
        """

    async def last(self, subject: str) -> StoredMessage | None:
        """Return the last message of a subject, as the leader has it. One that was frozen may answer before it knows that it leads no more.

        Raises:
            BrokerAway: the broker does not answer.
        """

    async def read(self, pattern: str, after: int = 0, limit: int = READ_LIMIT) -> list[StoredMessage]:
        """Return messages whose subject fits and whose number is greater; empty where there are no more.

        Raises:
            BrokerAway: the broker does not answer.
        """

    async def lasts(self, pattern: str) -> list[StoredMessage]:
        """Return the last message of each subject that fits.

        Raises:
            BrokerAway: the broker does not answer.
        """

    async def remove(self, pattern: str) -> None:
        """Remove all messages whose subject fits, as if they had never been.

        Raises:
            BrokerAway: the broker does not answer.
        """

    def follow(self, pattern: str, take: Take) -> Subscription:
        """Call `take` with messages whose subject fits, when they are stored from now on. Some may be lost: see rule 5."""

    # Messages that are not stored.

    def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message to all that subscribe to its subject now. Without a connection it is lost."""

    def subscribe(self, pattern: str, take: TakeCore, queue: str = "") -> Subscription:
        """Call `take` with messages whose subject fits. Of the subscribers with the same `queue` one gets each message."""

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Send a message and return the answer.

        Raises:
            NoResponder: nothing subscribes to the subject.
            BrokerAway: no answer came in time, or there is no connection.
        """

    @property
    def unsent(self) -> int:
        """Bytes that were published and have not left this process."""

    async def close(self) -> None:
        """End the connection. Closing twice is fine."""
