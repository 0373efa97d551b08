"""What is remembered of sessions and requests, to go on where a lost connection stopped, and how messages say that."""

from secrets import token_hex
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import AcpError, Code, RequestError, RequestRefused, ResponseError, sentence_and_hint
from antiphon.remote.messages import OPENING
from antiphon.rpc.envelope import BAD_INPUT, RequestId
from antiphon.rpc.spans import values_of, with_value
from antiphon.transports.remote import MessageHead

if TYPE_CHECKING:
    from antiphon.remote.held_messages import HeldMessage

__all__ = [
    "ATTACH", "CANCELLED", "DETACH", "Attached", "EditorRequest", "FollowedSession", "MessageMark", "ServerOffer", "error_code", "error_member", "failed_member", "follow",
    "hello_frame", "lost_member", "mark_of", "notification_frame", "outcome_of", "refusal_of", "request_frame", "wants_numbers",
]  # fmt: skip


ATTACH: Final = "_antiphon/session/attach"
DETACH: Final = "_antiphon/session/detach"

MAX_NAME: Final = 64
"""Characters of the name of a prompt that a gateway keeps."""


class FollowedSession:
    """A session that the editor has opened."""

    __slots__ = (
        "again", "first", "id", "is_open", "is_replaying", "known", "last", "loads", "opening", "queue", "rewinds", "target", "waiting",
    )  # fmt: skip

    def __init__(self, id: str, opening: bytes = b"{}") -> None:
        self.id = id
        self.is_open = False
        """Whether the editor has it: a session that is being loaded for the first time is not opened again after a lost connection."""
        self.last = 0
        """The number of the last event that the editor was given."""
        self.first = 0
        """The number of the event after which the editor began to follow it."""
        self.again = 0
        """Up to this number the editor is given again what it was given before, because it asked for that."""
        self.rewinds = 0
        """Requests under way that have the server begin again after an earlier event: what comes before their responses comes again."""
        self.queue = b"[]"
        """The prompts that waited when we attached again, as the server wrote them."""
        self.loads = 0
        """Requests to load it that are under way: their replay begins with the first event again."""
        self.target: int | None = None
        """The last event that it had when we attached again; None once the editor has all up to it."""
        self.known: frozenset[str] = frozenset()
        """The names of our prompts that ran or waited when we attached again."""
        self.waiting: frozenset[str] = frozenset()
        """The names of the agent's requests that waited then."""
        self.opening = opening
        """The params with which it was opened, for a server that keeps no numbers."""
        self.is_replaying = False
        """Whether its updates are a replay that the editor has seen."""

    def takes(self, number: int) -> bool:
        """Whether an event is new to the editor; it is then counted as seen."""
        if self.loads and number <= self.last:  # the replay: the number of its first message is that of a merged one
            self.last = 0
        if number <= self.last:
            return False
        self.last = number
        return True


class EditorRequest:
    """A request of the editor without a response."""

    __slots__ = (
        "cancellation", "cwd", "deadline", "frame", "generation", "has_begun", "key", "method", "name", "number", "order", "outcome", "session_id", "tries",
    )  # fmt: skip

    def __init__(self, key: bytes, method: str, session_id: str | None, frame: bytes, order: int = 0) -> None:
        self.key = key
        """Its id as it is written."""
        self.method = method
        self.session_id = session_id
        self.frame = frame
        """The request as the server gets it."""
        self.order = order
        """Its place among all that the editor sent."""
        self.cwd = ""
        """The directory that it names, in the paths of the editor."""
        self.name = ""
        """The name of a prompt, by which the server knows it on another connection."""
        self.generation = 0
        """The connection on which it was sent; 0: it waits for one."""
        self.tries = 0
        """How often it was sent."""
        self.deadline = 0.0
        """Until when it waits for a connection, by the clock of the event loop."""
        self.has_begun = False
        """Whether the turn of the prompt has begun, or some of what a load sends has come. It is never sent again."""
        self.number = 0
        """The number of the event that its response is."""
        self.cancellation: HeldMessage | None = None
        """The cancellation of the prompt. It is sent again after a lost connection: it may have been lost too."""
        self.outcome = b""
        """How the turn ended, as a member of a response, if the response itself has not come yet."""

    def give_name(self) -> None:
        """Name a prompt, unless its client has given it a name that the server keeps whole."""
        self.name = _prompt_name(self.frame)
        if not self.name:
            self.name = token_hex(8)
            written = b'"%b"' % self.name.encode()
            self.frame = with_value(self.frame, ("params", "_meta", "antiphon", "prompt"), written)

    @property
    def id(self) -> RequestId:
        """Its id as a value."""
        return msgspec.json.decode(self.key, type=int | float | str | None)

    def prompts(self, session_id: str) -> bool:
        """Whether it is a prompt in this session."""
        return self.method == "session/prompt" and self.session_id == session_id


class ServerOffer(msgspec.Struct):
    """What the result of `initialize` says about sessions: the gateway's extension, or what else opens a session again."""

    resumes: bool = False
    loads: bool = False
    numbers: bool = False
    roots: tuple[str, ...] = ()
    wants_token: bool = False
    """Whether it lets nothing happen before it has its token."""

    @classmethod
    def read(cls, result: bytes) -> "ServerOffer":
        """Read a result. What makes no sense offers nothing."""
        try:
            found = msgspec.json.decode(result, type=_Initialized)
        except BAD_INPUT:
            return cls()
        about = found.meta.antiphon if found.meta is not None and found.meta.antiphon is not None else _About()
        can_attach = ATTACH in about.methods
        offers = found.agent_capabilities or _Capabilities()
        return cls(
            offers.session_capabilities is not None and offers.session_capabilities.resume is not None,
            offers.load_session,
            about.numbers and can_attach,
            tuple(about.roots),
            about.wants_token,
        )


class _About(msgspec.Struct, rename="camel"):
    methods: list[str] = []
    roots: list[str] = []
    numbers: bool = False
    wants_token: bool = False


class _AboutMeta(msgspec.Struct):
    antiphon: _About | None = None


class _SessionOffers(msgspec.Struct):
    resume: dict[str, object] | None = None


class _Capabilities(msgspec.Struct, rename="camel"):
    load_session: bool = False
    session_capabilities: _SessionOffers | None = None


class _Initialized(msgspec.Struct, rename={"agent_capabilities": "agentCapabilities", "meta": "_meta"}):
    agent_capabilities: _Capabilities | None = None
    meta: _AboutMeta | None = None


class _Hello(msgspec.Struct):
    meta: _AboutMeta | None = msgspec.field(default=None, name="_meta")


def wants_numbers(params: Raw | UnsetType) -> bool:
    """Whether the params of `initialize` ask for the numbers of events."""
    try:
        meta = msgspec.json.decode(b"{}" if isinstance(params, UnsetType) else params, type=_Hello).meta
    except BAD_INPUT:
        return False
    return meta is not None and meta.antiphon is not None and meta.antiphon.numbers


def _prompt_name(frame: bytes) -> str:
    """Return the name that the client itself gave to a prompt; empty if it gave none, or one that the server would not keep whole."""
    try:
        meta = next((_marked.decode(frame[slice(*at)]).meta for at in values_of(frame, "params")), None)
    except BAD_INPUT:
        return ""
    name = meta.antiphon.prompt if meta is not None and meta.antiphon is not None else ""
    return name if len(name) <= MAX_NAME else ""


class Attached(msgspec.Struct):
    """The result of `_antiphon/session/attach`."""

    number: int = 0
    after: int = 0
    prompts: list[str] = []
    requests: list[str] = []
    queue: Raw = Raw(b"[]")

    @classmethod
    def read(cls, result: Raw | UnsetType) -> "Attached | None":
        """Return a result that can be read, or None."""
        try:
            return None if isinstance(result, UnsetType) else msgspec.json.decode(result, type=cls)
        except BAD_INPUT:
            return None


class _MarkAbout(msgspec.Struct):
    number: int = 0
    request: str = ""
    prompt: str = ""
    after: int | UnsetType = UNSET


class _MarkMeta(msgspec.Struct):
    antiphon: _MarkAbout | None = None


class _MarkUpdate(msgspec.Struct):
    meta: _MarkMeta | None = msgspec.field(default=None, name="_meta")


class MessageMark(
    msgspec.Struct,
    rename={
        "session_id": "sessionId",
        "request_id": "requestId",
        "sender": "from",
        "attached_after": "after",
        "meta": "_meta",
    },
):
    """What params or a result say about their session, their event and what it is about."""

    session_id: str = ""
    number: int = 0
    prompt: str = ""
    request: str = ""
    sender: str = ""
    request_id: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    update: _MarkUpdate | None = None
    cwd: str = ""
    attached_after: int = 0
    meta: _MarkMeta | None = None

    @property
    def event(self) -> int:
        """The number of the event that a result is; 0 if it is no event."""
        return self._about.number

    def number_of(self, method: str) -> int:
        """Return the number of the event that a message with this method is; 0 if it is no event.

        Where the gateway made the message it is a field of its own; in a message of the agent that field would be the agent's.
        """
        return self._about.number or (self.number if method.startswith("_antiphon/") else 0)

    @property
    def waiting(self) -> str:
        """The name of a request that waits at the server."""
        return self._about.request

    @property
    def after(self) -> int | None:
        """The number after which the events of an opened session begin."""
        return None if isinstance(self._about.after, UnsetType) else self._about.after

    @property
    def own_prompt(self) -> str:
        """The name of the prompt that a message of a user is from."""
        meta = self.update.meta if self.update is not None else None
        return meta.antiphon.prompt if meta is not None and meta.antiphon is not None else ""

    @property
    def outcome(self) -> bytes:
        """The end of a turn, as a member of a response."""
        for name, value in (("result", self.result), ("error", self.error)):
            if not isinstance(value, UnsetType):
                return b'"%b":%b' % (name.encode(), bytes(value))
        return b""

    @property
    def _about(self) -> _MarkAbout:
        return self.meta.antiphon if self.meta is not None and self.meta.antiphon is not None else _NOTHING


_NOTHING: Final = _MarkAbout()
_marks: Final = msgspec.json.Decoder(MessageMark)
_marked: Final = msgspec.json.Decoder(_MarkUpdate)
_EMPTY: Final = MessageMark()


def mark_of(part: Raw | UnsetType) -> MessageMark:
    """Read what params or a result say; nothing where they are of another form."""
    if isinstance(part, UnsetType):
        return _EMPTY
    try:
        return _marks.decode(part)
    except BAD_INPUT:
        return _by_members(part)


class _Scope(msgspec.Struct, rename="camel"):
    session_id: str = ""


def _by_members(part: Raw) -> MessageMark:
    """Another agent may use our names with values of its own: the session is still read."""
    try:
        return MessageMark(session_id=msgspec.json.decode(part, type=_Scope).session_id)
    except BAD_INPUT:
        return _EMPTY


def follow(sessions: dict[str, FollowedSession], request: EditorRequest, mark: MessageMark) -> None:
    """Remember what the result of a request says about its session."""
    id = mark.session_id or request.session_id
    if id is None:
        return
    session = sessions.get(id)
    if request.method in OPENING:
        if session is None:
            session = sessions[id] = FollowedSession(id)
        session.is_open = True
        session.opening = next((request.frame[slice(*at)] for at in values_of(request.frame, "params")), b"{}")
        if request.method == "session/load":
            session.loads = max(0, session.loads - 1)
        if mark.after is not None:
            session.last = session.first = mark.after
    elif request.method == ATTACH:
        after = mark.attached_after
        if session is None:
            session = sessions[id] = FollowedSession(id)
        session.first = min(session.first, after) if session.is_open else after
        session.is_open, session.last = True, after
    elif request.method in ("session/close", "session/delete", DETACH):
        sessions.pop(id, None)
    elif session is not None and mark.event:
        session.takes(mark.event)


# Frames.


def hello_frame(frame: bytes, *, offers_files: bool) -> bytes:
    """Return an `initialize` that asks for the numbers of events, and offers files and terminals only if they are to be offered."""
    if not offers_files:
        frame = with_value(frame, ("params", "clientCapabilities", "fs"), b"{}")
        frame = with_value(frame, ("params", "clientCapabilities", "terminal"), b"false")
    return with_value(frame, ("params", "_meta", "antiphon", "numbers"), b"true")


class _ErrorCode(msgspec.Struct):
    code: int = 0


CANCELLED: Final = b'"result":{"stopReason":"cancelled"}'
"""The outcome of a prompt that was cancelled, as a member of a response."""


class _Error(_ErrorCode):
    message: str = ""
    data: object = None


def refusal_of(error: Raw | UnsetType) -> RequestRefused:
    """Return the error of a response as one that can be raised."""
    try:
        found = _Error() if isinstance(error, UnsetType) else msgspec.json.decode(error, type=_Error)
    except BAD_INPUT:
        found = _Error()
    return RequestRefused(found.code or Code.INTERNAL_ERROR, found.message or "Internal error", found.data)


def error_code(error: Raw | UnsetType) -> int:
    """Return the code of the error of a response; 0 for a response with a result."""
    try:
        return 0 if isinstance(error, UnsetType) else msgspec.json.decode(error, type=_ErrorCode).code
    except BAD_INPUT:
        return 0


def request_frame(method: str, params: object) -> bytes:
    """Return a request whose id is to be replaced."""
    return b'{"jsonrpc":"2.0","id":0,"method":"%b","params":%b}' % (method.encode(), msgspec.json.encode(params))


def notification_frame(method: str, params: object) -> bytes:
    """Return a notification."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), msgspec.json.encode(params))


def error_member(error: RequestError) -> bytes:
    """Return the member of a response that has this error."""
    wrong = {"code": int(error.code), "message": error.message, **({} if error.data is None else {"data": error.data})}
    return b'"error":%b' % msgspec.json.encode(wrong)


def lost_member(title: str, why: AcpError, what: str) -> bytes:
    """Return the error for a request that a lost connection ended: another try can succeed."""
    reason, hint = sentence_and_hint(why)
    data = {"hint": hint or "try again", "recoverable": True, "action": "reconnect"}
    message = f"{title} is not connected: {reason} ({what})"
    return error_member(RequestError(Code.INTERNAL_ERROR, message, data))


def failed_member(error: AcpError) -> bytes:
    """Return the error for a request that an error ended for good."""
    if isinstance(error, ResponseError):
        return error_member(RequestError(error.code, error.message, error.data))
    sentence, hint = sentence_and_hint(error)
    data = {"hint": hint or "check the address and the token", "recoverable": bool(error.recoverable)}
    return error_member(RequestError(Code.INTERNAL_ERROR, sentence, data))


def outcome_of(head: MessageHead) -> bytes:
    """Return the member of a response that has its result or its error."""
    if not isinstance(head.result, UnsetType):
        return b'"result":%b' % bytes(head.result)
    return b'"error":%b' % (
        bytes(head.error) if not isinstance(head.error, UnsetType) else b'{"code":-32603,"message":"Internal error"}'
    )
