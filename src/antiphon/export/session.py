"""The history of a joint session folded into entries for export. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from antiphon.catalogue.known import KNOWN
from antiphon.config.shapes import is_script
from antiphon.duet.history.events import EndEvent, Event, HistoryView, PromptEvent, UpdateEvent, unpack
from antiphon.protocol import v1
from antiphon.transcript.presentation import is_label
from antiphon.transcript.transcript import CallEntry, Entry, Message, Thought, Transcript

if TYPE_CHECKING:
    from antiphon.store.sessions import SessionRow

__all__ = [
    "ExportedLine",
    "ExportedSession",
    "SessionFacts",
    "SessionFolder",
    "about",
    "announced_engine",
    "read_lines",
    "read_session",
    "speaker",
    "text_of",
    "title_of",
]


class SessionFacts(msgspec.Struct, frozen=True, rename="camel"):
    """The facts about a session besides its history, as `--json` prints them."""

    id: str
    title: str | None
    cwd: str
    directories: tuple[str, ...]
    created_at: str
    updated_at: str
    route: str | None
    engines: tuple[str, ...]
    turns: int
    client: str | None = None
    """The client that made it, by its name; None if that is not known."""
    script: bool = False
    """Whether that is a script."""


class ExportedLine(msgspec.Struct, frozen=True):
    """An entry of a session, with its engine and the time when it began."""

    entry: Entry
    engine: str = ""
    at: float = 0.0
    by: str = ""
    """What wrote the prompt, if it was not the user."""

    @property
    def when(self) -> datetime:
        """The time when it began, in UTC."""
        return datetime.fromtimestamp(self.at, UTC)


class ExportedSession(msgspec.Struct, frozen=True):
    """A session with everything that is exported."""

    about: SessionFacts
    lines: list[ExportedLine]
    plan: list[v1.PlanEntry] = msgspec.field(default_factory=list)


class SessionFolder:
    """Folds what happened in a session into entries, each with its engine."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.lines: list[ExportedLine] = []
        self._last = ""  # the engine of the last message

    def take(self, event: Event, update: v1.Update | None) -> None:
        """Take an event of a stored session."""
        match event:
            case PromptEvent():
                self.prompted(event.prompt, event.at, "" if event.by == "command" else event.by)
            case UpdateEvent():
                if update is not None:
                    self.shown(update, event.at, event.engine or announced_engine(update))
            case EndEvent():
                self._ended(event)
            case _:
                pass  # internal: the prompt that an engine received

    def prompted(self, prompt: Sequence[v1.ContentBlock], at: float, by: str = "") -> None:
        """Take a prompt; `by` is what wrote it, if it was not the user."""
        self.transcript.turn_ended()
        self._enter(self.transcript.add_prompt(prompt), "", at, by)

    def shown(self, update: v1.Update, at: float, engine: str = "") -> None:
        """Take an update of an engine; empty: the one before goes on, or it is our own."""
        if engine and self._last and engine != self._last:
            self.transcript.turn_ended()  # engines that answer at once do not continue each other's messages
        self._last = engine or self._last
        if is_label(update):  # an entry has its engine already
            self.transcript.turn_ended()
        else:
            self._enter(self.transcript.apply(update), engine, at)

    def asked(self, call: v1.ToolCallPatch, at: float, engine: str) -> None:
        """Take the call that a permission request is about."""
        self._enter(self.transcript.asked(call), engine, at)

    def _ended(self, event: EndEvent) -> None:
        engine_title = title_of(event.engine)
        if event.stop_reason in ("", v1.StopReason.END_TURN):  # a failure has a notice of its own
            return
        notice = v1.NoticeUpdate(
            v1.NoticeSeverity.INFO, f"{engine_title} stopped: {event.stop_reason.replace('_', ' ')}"
        )
        self._enter(self.transcript.apply(notice), event.engine, event.at)

    def _enter(self, entry: Entry | None, engine: str, at: float, by: str = "") -> None:
        if entry is not None and entry.key == len(self.lines):  # entries are never moved: a line's place is its key
            self.lines.append(ExportedLine(entry, engine, at, by))


def announced_engine(update: v1.Update) -> str:
    """Return the engine that a label announces."""
    ours = (getattr(update, "meta", None) or {}).get("antiphon")
    name = ours.get("engine") if isinstance(ours, dict) else None
    return name if isinstance(name, str) else ""


def read_lines(history: Iterable[bytes]) -> tuple[list[ExportedLine], list[v1.PlanEntry]]:
    """Return the entries of a history since the last `/clear`, and the last plan."""
    folded = SessionFolder()
    for step in HistoryView(unpack(history)):
        folded.take(*step)
    return folded.lines, folded.transcript.plan


def read_session(about: SessionFacts, history: Iterable[bytes]) -> ExportedSession:
    """Return the whole session."""
    lines, plan = read_lines(history)
    return ExportedSession(about, lines, plan)


def about(row: "SessionRow", state: bytes, engines: Sequence[str], turns: int) -> SessionFacts:
    """Return the facts about a stored session; `state` is what the agent stores with it."""
    return SessionFacts(
        row.id,
        row.title,
        row.cwd,
        row.directories,
        row.created_at,
        row.updated_at,
        _route(state),
        tuple(engines),
        turns,
        row.client or None,
        is_script(row.client),
    )


def title_of(engine: str) -> str:
    """Return the name of an engine for people."""
    return KNOWN[engine].title if engine in KNOWN else engine or "Antiphon"


def speaker(line: ExportedLine) -> str:
    """Return the speaker of a line, for people."""
    if isinstance(line.entry, Message) and line.entry.speaker == "user":
        return f"You (by {line.by})" if line.by else "You"
    return title_of(line.engine)


def text_of(line: ExportedLine) -> str:
    """Return the text of an entry, or the title of a call, without the engine's name."""
    entry = line.entry
    match entry:
        case Message() | Thought():
            label = f"**{title_of(line.engine)}**\n"
            text = entry.text.lstrip("\n")  # a label was separated from earlier messages by an empty line
            return text[len(label) :].lstrip("\n") if line.engine and text.startswith(label) else entry.text
        case CallEntry():
            return entry.label.removeprefix(f"{title_of(line.engine)}: ") if line.engine else entry.label
        case _:
            return ""


def _route(state: bytes) -> str | None:
    try:
        kept = msgspec.json.decode(state) if state else None
    except msgspec.DecodeError:
        return None
    route = kept.get("route") if isinstance(kept, dict) else None
    return route if isinstance(route, str) and route else None
