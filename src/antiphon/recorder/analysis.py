"""The content of a recording, as data: turns, tool calls, waits, errors, deviations, sizes. Encoded, it is what `inspect --json` prints.

Only shapes; `antiphon.recorder.analysis_builder` fills them. Times are seconds as the recording has them, or since its first message where it
has times of day. Messages are named by their number, which counts the messages on the wire from 1.
"""

from msgspec import Struct, field

__all__ = [
    "Analysis",
    "ByteCount",
    "MethodCount",
    "PeerInfo",
    "RecordedCall",
    "RecordedConversation",
    "RecordedDeviation",
    "RecordedFailure",
    "RecordedMessage",
    "RecordedRequest",
    "RecordedSession",
    "RecordedTurn",
    "RecordedWait",
    "SlowSpan",
]


class PeerInfo(Struct):
    """The name and version of the client or the agent, as it sent them."""

    name: str
    title: str | None = None
    version: str | None = None


class ByteCount(Struct):
    """How many bytes each side sent."""

    c2a: int = 0
    a2c: int = 0


class RecordedConversation(Struct):
    """What begins with an `initialize`. A file may hold several, one after another; each has its own ids and sessions."""

    message: int
    version: int | None = None
    judged: bool = True
    client: PeerInfo | None = None
    agent: PeerInfo | None = None


class RecordedSession(Struct):
    """A session, and how it came to be: `new`, `load`, `resume`, `fork`, or `seen` where only its id was seen."""

    id: str
    how: str
    message: int
    title: str | None = None


class RecordedTurn(Struct):
    """One turn, from the prompt to its end."""

    number: int
    session: str
    prompt: str
    message: int
    start: float
    answer: int | None = None
    end: float | None = None
    duration: float | None = None
    first_update: float | None = None
    """Seconds after the start."""
    stop_reason: str | None = None
    error: str | None = None
    updates: int = 0
    calls: int = 0
    text: int = 0
    """Characters of the agent's messages."""
    waited: float = 0.0
    """Seconds in which the user was asked; questions at the same time count once."""


class RecordedCall(Struct):
    """A tool call: from its first word to its last status."""

    id: str
    session: str
    turn: int | None
    message: int
    start: float
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    end: float | None = None
    duration: float | None = None


class RecordedWait(Struct):
    """A question to the user: a permission or a form. The outcome is the kind of the option that was chosen, or what became of it."""

    message: int
    session: str | None
    turn: int | None
    kind: str
    start: float
    call: str | None = None
    title: str | None = None
    answer: int | None = None
    end: float | None = None
    duration: float | None = None
    outcome: str | None = None


class RecordedRequest(Struct):
    """A request and its response."""

    message: int
    method: str
    dir: str
    start: float
    answer: int | None = None
    end: float | None = None
    duration: float | None = None
    error: str | None = None


class RecordedFailure(Struct):
    """A response that is an error. `method` is that of its request, None where there was none."""

    message: int
    method: str | None
    code: int | None
    text: str


class RecordedDeviation(Struct):
    """A message that breaks a rule of the protocol."""

    rule: str
    message: int
    line: int
    text: str
    level: str
    side: str
    link: str


class MethodCount(Struct):
    """All messages of one kind. Updates are counted by their kind: `session/update agent_message_chunk`."""

    method: str
    dir: str
    kind: str
    count: int = 0
    bytes: int = 0
    largest: int = 0


class SlowSpan(Struct):
    """A span in which time passed: a silence in a turn, a slow response, or a long wait. `message` is the one that ended it."""

    message: int
    what: str
    duration: float


class Analysis(Struct):
    """The whole analysis."""

    file: str
    messages: int = 0
    undecodable: int = 0
    skipped: int = 0
    duration: float = 0.0
    bytes: ByteCount = field(default_factory=ByteCount)
    version: int | None = None
    judged: bool = True
    """Whether the rules applied to every conversation in it: there are rules for the versions 1 and 2."""
    client: PeerInfo | None = None
    agent: PeerInfo | None = None
    conversations: list[RecordedConversation] = field(default_factory=list)
    sessions: list[RecordedSession] = field(default_factory=list)
    turns: list[RecordedTurn] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    waits: list[RecordedWait] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)
    errors: list[RecordedFailure] = field(default_factory=list)
    deviations: list[RecordedDeviation] = field(default_factory=list)
    """Rules that were broken."""
    advice: list[RecordedDeviation] = field(default_factory=list)
    """Advice that was not followed, which breaks nothing."""
    methods: list[MethodCount] = field(default_factory=list)
    slow: list[SlowSpan] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)


class RecordedMessage(Struct):
    """A message as one line of a list or a diagram."""

    message: int
    line: int
    t: float
    dir: str
    kind: str
    """request, notification, answer, noise, batch or other."""
    name: str
    """The method, the kind of an update, or for a response the method of its request."""
    label: str
    """A short label: the prompt, a title, a stop reason, an error."""
    size: int
    id: str | None = None
    session: str | None = None
    turn: int | None = None
    error: bool = False
    deviations: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
