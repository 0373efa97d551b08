"""The messages that are stored of a session: runs of events, the row, the record of the owner.

A run is one or more events with consecutive numbers. It is one message, or several parts where it is larger than the broker takes. The
parts of a run are stored one behind the other with no other message of their subject between them; a run of which parts are missing
was cut short by the end of its writer and counts as not there: the next run has the same numbers.

Every message has the version of its format. Fields of a row that this version does not know are kept when it is written again:
neighbouring versions run side by side while a fleet is upgraded.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from antiphon.fleet.broker import StoredMessage
from antiphon.gateway.base import GatewaySession
from antiphon.protocol.base import BAD_INPUT
from antiphon.store.errors import StoreError

__all__ = [
    "ALL_OWNERS",
    "ALL_ROWS",
    "NAME",
    "NOW",
    "RUN",
    "STREAM_SUBJECT",
    "OwnerRecord",
    "RowRecord",
    "RunAssembler",
    "RunHeader",
    "StoredRun",
    "StreamRecord",
    "all_subjects",
    "encode_run",
    "events_subject",
    "fitted_row",
    "key_of",
    "name_of",
    "owner_of",
    "owner_subject",
    "row_subject",
]

FORMAT: Final = 1
"""Version of all these messages. One that is larger by 1 is read as far as it is known."""

ALL_ROWS: Final = "acp.s.*.row"
ALL_OWNERS: Final = "acp.s.*.own"

STREAM_SUBJECT: Final = "acp.s.stream.row"
"""The subject of the record about the stream itself. Gateways and workers may write rows, so it has the name of one."""

RUN: Final = "Antiphon-Run"
"""The header of a run. It is one header with several words: each costs the client of the broker more than all words of one."""

NAME: Final = "Antiphon-Name"
"""The header with the name of any other message: whether a message was stored can be seen by it."""


def events_subject(key: str) -> str:
    """Return the subject of the events of a session."""
    return f"acp.s.{key}.ev"


def row_subject(key: str) -> str:
    """Return the subject of the row of a session."""
    return f"acp.s.{key}.row"


def owner_subject(key: str) -> str:
    """Return the subject of the record of its owner."""
    return f"acp.s.{key}.own"


def all_subjects(key: str) -> str:
    """Return the pattern of all that is stored of a session."""
    return f"acp.s.{key}.*"


def key_of(subject: str) -> str:
    """Return the key of the session that a subject belongs to."""
    return subject.split(".")[2]


# Owners.


class OwnerRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last message of `acp.s.KEY.own`. Its sequence number is the epoch of the lease."""

    worker: str = ""
    """The name of the worker; empty: the session was released."""
    nonce: str = ""
    by: str = ""
    since: float = 0.0
    """Seconds since 1970 at the owner, for people. Nothing is decided by it."""
    version: int = FORMAT

    def encode(self) -> bytes:
        """Return the record as the data of a message."""
        return msgspec.json.encode(self)


def owner_of(message: StoredMessage | None) -> OwnerRecord:
    """Return the record in a message; one without a worker if there is none."""
    if message is None:
        return OwnerRecord()
    try:
        return msgspec.json.decode(message.data, type=OwnerRecord)
    except BAD_INPUT as error:
        raise _damaged(f"the record of the owner of session `{key_of(message.subject)}`") from error


# Runs of events.


class RunHeader(NamedTuple):
    """What the header of a message with events has."""

    first: int
    """The number of the first event of the run."""
    length: int
    """How many events it has."""
    time: float
    """Seconds since 1970 at their commit, as their writer gave it; 0 where it gave none."""
    name: str
    part: int = 1
    parts: int = 1
    begin: int = 0
    """The sequence number of the first part; 0 in the first part."""

    @property
    def last(self) -> int:
        """The number of the last event that is there, if this is the last message of its subject."""
        return self.first + self.length - 1 if self.part == self.parts else self.first - 1

    def encode(self) -> str:
        """Return the header as text."""
        return f"{FORMAT} {self.first} {self.length} {self.time} {self.name} {self.part}/{self.parts} {self.begin}"

    @classmethod
    def of(cls, message: StoredMessage) -> "RunHeader":
        """Return the header of a message.

        Raises:
            StoreError: it is damaged, or of a version that this one cannot read.
        """
        try:
            version, first, length, time, name, part, begin = message.headers[RUN].split(" ", 7)[:7]
            number, _, parts = part.partition("/")
            header = cls(int(first), int(length), float(time), name, int(number), int(parts), int(begin))
            format = int(version)
        except (KeyError, ValueError) as error:
            raise _damaged(f"message {message.sequence} of session `{key_of(message.subject)}`") from error
        if format > FORMAT + 1:
            raise StoreError(
                f"events of session `{key_of(message.subject)}` were stored by a newer Antiphon (format {version}, we know {FORMAT})",
                hint="update this Antiphon: neighbouring versions understand each other",
            )
        return header


def name_of(message: StoredMessage) -> str:
    """Return the name that the writer of a message gave it; empty if it has none."""
    run = message.headers.get(RUN)
    if run is None:
        return message.headers.get(NAME, "")
    words = run.split(" ", 5)
    return words[4] if len(words) > 4 else ""  # a damaged one has no name that is looked for


def encode_run(events: Sequence[bytes]) -> bytes:
    """Return events as the data of a run: each byte for byte, whatever is in it."""
    return msgspec.msgpack.encode(events)


class StoredRun(NamedTuple):
    """A run that is there whole."""

    header: RunHeader
    sequence: int
    """The number of its first message."""
    events: list[bytes]

    @property
    def last(self) -> int:
        """The number of its last event."""
        return self.header.first + self.header.length - 1


_decode_run = msgspec.msgpack.Decoder(list[bytes]).decode


class RunAssembler:
    """Puts the parts of runs together, from the messages of one session in their order."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._begin = 0

    def take(self, message: StoredMessage) -> StoredRun | None:
        """Take the next message, and return the run that is whole with it.

        Raises:
            StoreError: it is damaged.
        """
        header = RunHeader.of(message)
        if header.part == 1:  # a run before it that is not whole never will be
            self._parts, self._begin = [], message.sequence
        elif header.begin != self._begin or header.part != len(self._parts) + 1:
            self._parts, self._begin = [], 0  # its beginning was not read
            return None
        self._parts.append(message.data)
        if header.part < header.parts:
            return None
        data = self._parts[0] if header.parts == 1 else b"".join(self._parts)
        self._parts = []
        try:
            events = _decode_run(data)
        except msgspec.DecodeError as error:
            raise _damaged(f"events {header.first} on of session `{key_of(message.subject)}`") from error
        if len(events) != header.length:
            raise _damaged(f"events {header.first} on of session `{key_of(message.subject)}`")
        return StoredRun(header, self._begin, events)


def _damaged(what: str) -> StoreError:
    return StoreError(f"{what} on the broker is damaged", hint="restore the stream from a backup")


# Rows.

_PLAIN: Final = tuple(name for name in GatewaySession.__struct_fields__ if name not in ("key", "archived", "state"))
"""The fields of a row that are written as they are. Whether it is archived follows from all rows: see `replica`."""

_OWN: Final = frozenset({*_PLAIN, "state", "version", "born", "shown", "number", "deleted"})


NOW: Final = -1
"""In a message instead of its own sequence number, which its writer does not know yet."""


class RowRecord(NamedTuple):
    """The last message of `acp.s.KEY.row`."""

    row: GatewaySession
    shown: int = NOW
    """The sequence number of the message with which it was to be shown, where no later session of the agent has its id; 0: it is hidden."""
    number: int = 0
    """The number of the last event that was stored before it."""
    born: int = 0
    """The sequence number of the first message of the row: which of two sessions is later. In that message itself it is 0."""
    deleted: bool = False
    more: Mapping[str, Raw] = {}
    """What a newer version has written, and this one does not know."""

    def encode(self) -> bytes:
        """Return the record as the data of a message. Of a deleted session nothing is left but its name."""
        known: dict[str, object] = {"version": FORMAT, "born": self.born, "shown": self.shown}
        if self.deleted:
            known |= {"deleted": True, "agent": self.row.agent, "session_id": self.row.session_id}
            return msgspec.json.encode(known)
        known |= {name: getattr(self.row, name) for name in _PLAIN}
        known |= {"number": self.number, "state": Raw(self.row.state)}
        return msgspec.json.encode({**self.more, **known})

    @classmethod
    def of(cls, message: StoredMessage) -> "RowRecord":
        """Return the record in a message.

        Raises:
            StoreError: it is damaged.
        """
        key = key_of(message.subject)
        try:
            found = msgspec.json.decode(message.data, type=dict[str, Raw])
            values = {
                name: msgspec.json.decode(value) for name, value in found.items() if name in _OWN and name != "state"
            }
            state = bytes(found["state"]) if "state" in found else b"{}"
            msgspec.json.decode(state, type=dict[str, Raw])  # what reads it later takes it for an object
            given = {name: values[name] for name in _PLAIN if name in values}
            row = msgspec.convert({"cwd": "", **given, "key": key, "state": state}, GatewaySession)
            marks = msgspec.convert(values, _Marks)
        except BAD_INPUT as error:
            raise _damaged(f"the row of session `{key}`") from error
        more = {name: value for name, value in found.items() if name not in _OWN}
        shown = message.sequence if marks.shown == NOW else marks.shown
        return cls(row, shown, marks.number, marks.born or message.sequence, marks.deleted, more)


_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=NOW, le=2**63 - 1)]
"""A number that the tables of a copy can have."""


class _Marks(msgspec.Struct):
    shown: _Number = NOW
    number: _Number = 0
    born: _Number = 0
    turn_after: _Number = 0
    deleted: bool = False


def fitted_row(data: bytes, most: int) -> bytes:
    """Return the data of a row without its largest settings, if it has more bytes than the broker takes. The agent gives them again."""
    if len(data) <= most:
        return data
    found = msgspec.json.decode(data, type=dict[str, Raw])
    state = msgspec.json.decode(bytes(found.get("state", b"{}")), type=dict[str, Raw])
    for name in sorted(state, key=lambda each: len(bytes(state[each])), reverse=True):
        del state[name]
        data = msgspec.json.encode({**found, "state": state})
        if len(data) <= most:
            break
    return data


class StreamRecord(msgspec.Struct, frozen=True):
    """The record about the stream: copies of the rows are copies of this one stream."""

    id: str
    forgotten: int = 0
    """Deleted sessions may be forgotten up to this number: a copy that is older has to begin anew, or it would keep them."""
    version: int = FORMAT
