"""The events of a session as the journal stores them, and the frames that clients get for them.

An update of the agent is stored as the frame that it sent, byte for byte: it begins with `{`. What the gateway adds begins with a capital
letter, then a header of its own as JSON, a tab, and a frame. A tab is nowhere else in a header, and a line end in no event.

    T   a turn begins         the frame is empty
    P   a part of its prompt  a `user_message_chunk` for the clients that did not send it
    R   a request of the agent that waits for a person: the agent's own frame
    A   its resolution        the response, or nothing if it was cancelled
    E   the turn ends         the response of the agent; or an error of ours, if the turn was interrupted
    M   the session moved     to another worker of a fleet; the frame is empty
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import Code
from antiphon.journal.base import JournalEntry
from antiphon.rpc.envelope import BAD_INPUT, ErrorObject, RequestId, head_of_answer
from antiphon.rpc.spans import UNREADABLE, last_params, members_of, params_values_of, replaced, values_of, with_value

__all__ = [
    "ANSWER", "END", "MOVED", "PROMPT", "REQUEST", "TURN", "UPDATE", "EventHeader", "HubEvent", "event_notification", "for_session", "history_frame",
    "member", "notice", "notification", "numbered", "numbered_event", "parse_event", "prompt_name", "prompt_text", "stored_event", "user_messages", "with_id", "with_session", "written_id",
]  # fmt: skip

NUMBER: Final = ("params", "_meta", "antiphon", "number")
TURN, PROMPT, REQUEST, ANSWER, END, MOVED = b"T", b"P", b"R", b"A", b"E", b"M"
MAX_NAME: Final = 64
"""Characters of the name of a prompt that are kept."""
UPDATE: Final = b"{"
"""The kind of an event that is a frame of the agent."""
_OPEN: Final = ord("{")

"""What reading a frame may raise."""


class EventHeader(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the gateway knows of an event besides its frame."""

    turn: str = ""
    connection: str = ""
    """The connection that sent the prompt: it does not get its own message back."""
    sender: str = ""
    """The name of the principal that sent the prompt, or that answered; the worker that a session moved from."""
    to: str = ""
    """The worker that a session moved to."""
    prompt: str = ""
    """The name that its sender gave to the prompt, to know it again on another connection."""
    request: str = ""
    """The id under which a request waits in the gateway."""
    method: str = ""
    interrupted: bool = False
    """Whether the turn ended because its agent or the gateway did."""
    time: float = 0
    """Seconds since 1970."""


class HubEvent(msgspec.Struct, frozen=True, gc=False):
    """An event of the journal, taken apart."""

    kind: bytes
    header: EventHeader
    frame: bytes


_EMPTY: Final = EventHeader()
_encode = msgspec.json.encode
_header = msgspec.json.Decoder(EventHeader).decode


def stored_event(kind: bytes, header: EventHeader, frame: bytes = b"") -> bytes:
    """Return the bytes of an event that the gateway adds."""
    return b"%b%b\t%b" % (kind, _encode(msgspec.structs.replace(header, time=round(time.time(), 3))), frame)


def parse_event(data: bytes) -> HubEvent:
    """Take an event of the journal apart."""
    kind = data[:1]
    if not kind.isalpha():
        return HubEvent(UPDATE, _EMPTY, data)
    header, _, frame = data[1:].partition(b"\t")
    return HubEvent(kind, _header(header), frame)


def numbered(frame: bytes, number: int, path: tuple[str, ...] = NUMBER, *, at: float = 0.0) -> bytes:
    """Return a frame with the number of its event in `_meta`, and the time beside it. A frame that cannot be read is sent as it is."""
    try:
        if at and path is NUMBER and (end := _end_of_params(frame)):
            return b'%b,"_meta":{"antiphon":{"number":%d,"time":%.3f}}}}' % (frame[:end], number, at)
        if not at:
            return with_value(frame, path, b"%d" % number)
        if b'"time"' in frame:  # there may be a time already where ours belongs
            return with_value(with_value(frame, path, b"%d" % number), (*path[:-1], "time"), b"%.3f" % at)
        return with_value(
            frame, path, b'%d,"time":%.3f' % (number, at)
        )  # both at once: each one costs a look for its place
    except (*UNREADABLE, ValueError):
        return frame


def _end_of_params(frame: bytes) -> int:
    """Return where a member can be added to the params of a frame that ends with them and has no `_meta`; 0 in any other."""
    if frame.find(b'"_meta"') >= 0 or frame.find(b"\\u00") >= 0:  # a key may have letters that are escaped
        return 0
    params = last_params(frame)
    if params is None or frame[params[0]] != _OPEN or frame[params[1] - 2] in b"{ \t\r\n":
        return 0
    return params[1] - 1


def numbered_event(session_id: str, frame: bytes, number: int, at: float = 0.0) -> bytes:
    """Return a frame with its number. One that cannot be read is replaced: a client that waits for the number would wait for ever."""
    found = numbered(frame, number, at=at)
    if found is not frame:
        return found
    return notification("_antiphon/session/unreadable", {"sessionId": session_id, "number": number})


_NAMES: Final = {TURN: "turn_started", END: "turn_ended", REQUEST: "requested", ANSWER: "resolved", MOVED: "moved"}


def event_notification(session_id: str, number: int, event: HubEvent, at: float = 0.0) -> bytes | None:
    """Return the notification for an event that the protocol has no message for; None for one of a later version."""
    header, name = event.header, _NAMES.get(event.kind)
    if name is None:
        return None
    params: dict[str, object] = {"sessionId": session_id, "number": number}
    if at or header.time:
        params["time"] = at or header.time
    about = {"turn": header.turn, "from": header.sender, "request": header.request, "method": header.method}
    about |= {"prompt": header.prompt, "to": header.to}
    params |= {key: value for key, value in about.items() if value}
    if header.interrupted:
        params["interrupted"] = True
    for key in ("params", "result", "error"):
        if event.frame and (written := member(event.frame, key)) is not None:
            params[key] = Raw(written)
    return notification(f"_antiphon/session/{name}", params)


def history_frame(session_id: str, entry: JournalEntry) -> bytes | None:
    """Return an event as a client with numbers gets it from the journal, whatever connection it came from."""
    event = parse_event(entry.data)
    if event.kind in (UPDATE, PROMPT):
        return numbered_event(session_id, event.frame, entry.number, entry.time or event.header.time)
    return event_notification(session_id, entry.number, event, entry.time)


def with_session(data: bytes, session_id: str) -> bytes:
    """Return an event of another session as one of this session."""
    head, frame = (b"", data) if data[:1] == UPDATE else (data[: data.find(b"\t") + 1], data[data.find(b"\t") + 1 :])
    return head + for_session(frame, session_id)


def for_session(frame: bytes, session_id: str) -> bytes:
    """Return a message about a session as one about the session with this id."""
    written = _encode(session_id)
    return replaced(frame, [(span, written) for span in params_values_of(frame, "sessionId")])


def notification(method: str, params: dict[str, object]) -> bytes:
    """Return a notification of the gateway's own."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), _encode(params))


def notice(session_id: str, title: str, description: str, severity: str = "warning") -> bytes:
    """Return an update with a notice of the gateway's own. It is no event unless it is recorded as one."""
    update = {"sessionUpdate": "notice", "title": title, "description": description, "severity": severity}
    return notification("session/update", {"sessionId": session_id, "update": update})


def user_messages(session_id: str, params: Raw, header: EventHeader) -> Iterator[bytes]:
    """Yield an update for each block of a prompt, with the block as its sender wrote it, and with who sent it."""
    about = {"from": header.sender, "turn": header.turn, **({"prompt": header.prompt} if header.prompt else {})}
    session, meta = _encode(session_id), _encode({"antiphon": about})
    for block in _blocks(bytes(params)):
        yield (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":{"sessionUpdate":"user_message_chunk",'
            b'"content":%b,"messageId":%b,"_meta":%b}}}' % (session, block, _encode(header.turn), meta)
        )


class _PromptAbout(msgspec.Struct):
    prompt: str = ""


class _PromptMeta(msgspec.Struct):
    antiphon: _PromptAbout | None = None


class _Prompt(msgspec.Struct):
    meta: _PromptMeta | None = msgspec.field(default=None, name="_meta")


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


def prompt_text(params: Raw) -> str:
    """Return the text blocks of a prompt, joined."""
    try:
        blocks = [msgspec.json.decode(block, type=_Block) for block in _blocks(bytes(params))]
    except UNREADABLE:
        return ""
    return "\n".join(block.text for block in blocks if block.type == "text")


def prompt_name(params: Raw) -> str:
    """Return the name that the sender of a prompt gave to it; empty if it gave none."""
    try:
        meta = msgspec.json.decode(params, type=_Prompt).meta
    except BAD_INPUT:
        return ""
    return meta.antiphon.prompt[:MAX_NAME] if meta is not None and meta.antiphon is not None else ""


def _blocks(params: bytes) -> list[bytes]:
    for name, (begin, end) in members_of(params, (0, len(params))):
        if name == "prompt":
            try:
                return [bytes(block) for block in msgspec.json.decode(params[begin:end], type=list[Raw])]
            except BAD_INPUT:
                return []
    return []


def member(frame: bytes, name: str) -> bytes | None:
    """Return the bytes of a member of a message, None if there is none."""
    try:
        spans = list(values_of(frame, name))
    except UNREADABLE:
        return None
    return frame[slice(*spans[-1])] if spans else None


def with_id(frame: bytes, written: bytes) -> bytes:
    """Return a frame with another id, as it is to be written. A frame that cannot be read becomes an error: its id could end another request."""
    try:
        return replaced(frame, [(span, written) for span in values_of(frame, "id")])
    except UNREADABLE:
        error = ErrorObject(Code.INTERNAL_ERROR, "Internal error", "the response cannot be read")
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (written, _encode(error))


def written_id(id: RequestId) -> bytes:
    """Return the bytes of an id."""
    return head_of_answer(id)[len(b'{"jsonrpc":"2.0","id":') : -len(b',"result":')]


# History for slow links: pieces of one message in one frame.

MERGED: Final = 64 * 1024
"""Bytes of text after which a merged message goes on in another frame."""


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Chunk(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    session_update: Literal["agent_message_chunk", "agent_thought_chunk"]
    content: _Text
    message_id: str | UnsetType | None = UNSET

    def continues(self, before: "_Chunk") -> bool:
        """Whether it is the next piece of the same message."""
        return (self.session_update, self.message_id) == (before.session_update, before.message_id)


class _ChunkParams(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    session_id: str
    update: _Chunk


class _ChunkFrame(msgspec.Struct, forbid_unknown_fields=True):
    """An update that is a piece of text and nothing more: with any other field it is not merged, because that field would be lost."""

    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _ChunkParams


_chunk = msgspec.json.Decoder(_ChunkFrame).decode


def merged(entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
    """Yield events, consecutive pieces of one message or thought as one, with the number and the time of the last of them."""
    run: list[_ChunkFrame] = []
    size, last = 0, JournalEntry(0, b"")

    def joined() -> Iterator[JournalEntry]:
        if len(run) > 1:
            run[0].params.update.content.text = "".join(each.params.update.content.text for each in run)
            yield JournalEntry(last.number, _encode(run[0]), last.time)
        elif run:
            yield last
        run.clear()

    for entry in entries:
        try:
            frame = _chunk(entry.data) if entry.data[:1] == UPDATE else None
        except BAD_INPUT:
            frame = None
        if frame is None or size > MERGED or (run and not frame.params.update.continues(run[0].params.update)):
            yield from joined()
            size = 0
        if frame is None:
            yield entry
        else:
            run.append(frame)
            size += len(entry.data)
            last = entry
    yield from joined()


class _MergeOption(msgspec.Struct):
    merged: bool | UnsetType = UNSET


class _MergeMeta(msgspec.Struct):
    antiphon: _MergeOption


class _MergeParams(msgspec.Struct, rename={"meta": "_meta"}):
    meta: _MergeMeta


def asks_for_merged(params: Raw) -> bool | None:
    """Whether a request asks for merged history, in its `_meta.antiphon.merged`; None if it says nothing about it."""
    try:
        merged = msgspec.json.decode(params, type=_MergeParams).meta.antiphon.merged
    except BAD_INPUT:
        return None
    return None if isinstance(merged, UnsetType) else merged
