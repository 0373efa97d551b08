"""A whole session as one document: the changes that were made to files in it, and exports for people and programs."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from antiphon.errors import AcpError, Code, RequestError
from antiphon.export.html import page
from antiphon.export.json import document
from antiphon.export.markdown import markdown
from antiphon.export.session import ExportedSession, SessionFacts, SessionFolder, announced_engine
from antiphon.gateway.answers import decision_in
from antiphon.gateway.events import ANSWER, END, PROMPT, REQUEST, TURN, UPDATE, HubEvent, member, parse_event
from antiphon.journal.base import PAGE, JournalEntry
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.store.database import stamp
from antiphon.transcript.transcript import CallEntry

if TYPE_CHECKING:
    from antiphon.gateway.base import GatewaySession
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.session import HubSession

__all__ = ["export_session", "exported", "session_changes"]

MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of events that one document is made of."""

NAME: Final = 60
"""Characters of a title in the name of a file."""


async def _events(session: "HubSession", wanted: "Callable[[bytes], bool]") -> list[JournalEntry]:
    """Return all events of a session that are wanted.

    Raises:
        RequestError: they are too large.
    """
    found: list[JournalEntry] = []
    size = after = 0
    while page := await session.hub.journal.read(session.key, after, PAGE):
        after = page[-1].number
        kept = [each for each in page if wanted(each.data)]
        found += kept
        size += sum(len(each.data) for each in kept)
        if size > MOST_BYTES:
            hint = f"events of up to {MOST_BYTES // 1024**2} MiB make a document"
            raise RequestError(Code.INVALID_REQUEST, "the session is too large for one document", hint=hint)
    return found


class _Folded:
    """The events of a session, folded into entries."""

    def __init__(self, row: "GatewaySession") -> None:
        self.folder = SessionFolder()
        self.turns = 0
        self._row = row
        self._engine = row.agent
        """What answers now: the agent, or the engine behind it that it names."""
        self._prompt: list[v1.ContentBlock] = []
        self._prompted = 0.0, ""
        self._rejecting: dict[str, tuple[str, set[str]]] = {}
        """The calls of permission requests, by the ids of those, with the options that reject them."""

    def take_all(self, entries: "Iterable[JournalEntry]") -> None:
        """Take events."""
        for entry in entries:
            event = parse_event(entry.data)
            try:
                self._take(event, entry.time or event.header.time)
            except (AcpError, msgspec.DecodeError):
                continue  # what cannot be read is not shown to clients either
        self._end_prompt()

    def _take(self, event: HubEvent, at: float) -> None:
        if event.kind == PROMPT:
            update = _update(event.frame)
            if isinstance(update, v1.UserMessageChunk):
                sender = event.header.sender
                self._prompted = at, "" if sender == self._row.owner else sender
                self._prompt.append(update.content)
            return
        self._end_prompt()
        if event.kind == UPDATE:
            if (update := _update(event.frame)) is not None:
                self._engine = announced_engine(update) or self._engine
                self.folder.shown(update, at, self._engine)
        elif event.kind == REQUEST and event.header.method == m.REQUEST_PERMISSION.name:
            request = m.REQUEST_PERMISSION.decode_params(member(event.frame, "params") or b"{}")
            self.folder.asked(request.tool_call, at, self._engine)
            rejecting = {str(each.option_id) for each in request.options if each.kind.startswith("reject")}
            self._rejecting[event.header.request] = request.tool_call.tool_call_id, rejecting
        elif event.kind == ANSWER:
            self._take_answer(event)
        elif event.kind == TURN:
            self.turns += 1
        elif event.kind == END:
            self._take_end(event, at)

    def _take_answer(self, event: HubEvent) -> None:
        """Note that a person rejected a call: it has not failed."""
        id, rejecting = self._rejecting.pop(event.header.request, ("", set[str]()))
        call = self.folder.transcript.call(id)
        if call is not None and decision_in(event.frame) in rejecting:
            call.denied = True

    def _take_end(self, event: HubEvent, at: float) -> None:
        """Show why a turn ended, unless it ended as it should."""
        ended = msgspec.json.decode(event.frame or b"{}", type=_Ended)
        if ended.error is not None:
            notice = v1.NoticeUpdate(v1.NoticeSeverity.ERROR, ended.error.message)
        elif ended.result.stop_reason in ("", "end_turn"):
            return
        else:
            reason = ended.result.stop_reason.replace("_", " ")
            notice = v1.NoticeUpdate(v1.NoticeSeverity.INFO, f"The turn ended: {reason}")
        self.folder.shown(notice, at)

    def _end_prompt(self) -> None:
        if self._prompt:
            self.folder.prompted(self._prompt, *self._prompted)
            self._prompt = []


class _EndedError(msgspec.Struct):
    message: str = ""


class _EndedResult(msgspec.Struct, rename="camel"):
    stop_reason: str = ""


class _Ended(msgspec.Struct):
    result: _EndedResult = msgspec.field(default_factory=_EndedResult)
    error: _EndedError | None = None


def _update(frame: bytes) -> v1.Update | None:
    if member(frame, "method") != b'"session/update"':
        return None
    return m.SESSION_UPDATE.decode_params(member(frame, "params") or b"{}").update


# Changes.


async def session_changes(client: "RemoteClient", session: "HubSession", params: Raw) -> object:
    """Return what the calls of a session changed in files: for each file what was there before and after, as far as the calls say it."""
    found = await _events(session, lambda data: b'"tool_call' in data or data[:1] == REQUEST)
    return {"changes": await asyncio.to_thread(_changes, session.row, found)}


def _changes(row: "GatewaySession", entries: Sequence[JournalEntry]) -> list[dict[str, object]]:
    """Return the diffs of calls that completed. One that begins where another of its file ended goes on with that one."""
    folded = _Folded(row)
    folded.take_all(entries)
    found: list[dict[str, object]] = []
    last: dict[str, dict[str, object]] = {}
    """The last change of each file. Not looked for in the list: an agent may have changed a hundred thousand files."""
    for call in folded.folder.transcript.entries:
        if not isinstance(call, CallEntry) or not call.finished or call.status.meaning is v1.ToolStatus.FAILED:
            continue
        for diff in call.content:
            if not isinstance(diff, v1.Diff):
                continue
            before = last.get(diff.path)
            if before is not None and before["new"] == diff.old_text:
                before["new"] = diff.new_text
            else:
                last[diff.path] = {"path": diff.path, "old": diff.old_text, "new": diff.new_text}
                found.append(last[diff.path])
    return [each for each in found if each["old"] != each["new"]]


# Exports.

_FORMATS: Final[dict[str, tuple[str, str, "Callable[[ExportedSession], str]"]]] = {
    "markdown": (".md", "text/markdown", lambda session: markdown(session)),
    "html": (".html", "text/html", page),
    "json": (".json", "application/json", lambda session: document(session).decode()),
}


class _ExportParams(msgspec.Struct):
    format: str = "markdown"


async def export_session(client: "RemoteClient", session: "HubSession", params: Raw) -> object:
    """Return a session as a document, with a name for its file."""
    wanted = msgspec.json.decode(params, type=_ExportParams).format
    if wanted not in _FORMATS:
        raise RequestError(
            Code.INVALID_PARAMS, f"there is no format `{wanted[:64]}`", hint=f"one of: {', '.join(_FORMATS)}"
        )
    ending, mime_type, write = _FORMATS[wanted]
    found = await _events(session, lambda data: True)
    row = session.row
    text = await asyncio.to_thread(lambda: write(exported(row, found)))
    return {"name": _file_name(row) + ending, "mimeType": mime_type, "text": text}


def exported(row: "GatewaySession", entries: Sequence[JournalEntry]) -> ExportedSession:
    """Return a session with these events, for export."""
    folded = _Folded(row)
    folded.take_all(entries)
    used = row.updated or row.created
    created, updated = (stamp(datetime.fromtimestamp(each, UTC)) for each in (row.created, used))
    title = row.title or row.text or None
    facts = SessionFacts(
        row.session_id, title, row.cwd, row.directories, created, updated, None, (row.agent,), folded.turns
    )
    return ExportedSession(facts, folded.folder.lines, folded.folder.transcript.plan)


def _file_name(row: "GatewaySession") -> str:
    words = re.findall(r"\w+", row.title or row.text or row.session_id)
    return "-".join(words)[:NAME].strip("-") or "session"
