"""A session as Markdown: messages with their author, calls as compact blocks, changes as diffs."""

import re
from collections.abc import Iterator
from typing import Final

from antiphon.export.content import ContentPart, pieces_of, pieces_of_call
from antiphon.export.session import ExportedLine, ExportedSession, speaker, text_of
from antiphon.protocol import v1
from antiphon.text import fenced, one_line, prose
from antiphon.transcript.presentation import MARKS
from antiphon.transcript.transcript import CallEntry, CompactionEntry, Message, NoticeEntry, Thought

__all__ = ["markdown"]

OUTPUT_LINES: Final = 20
"""Lines of what a call printed. The rest is in the JSON."""

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_BOXES: Final = {v1.PlanStatus.PENDING: "[ ]", v1.PlanStatus.IN_PROGRESS: "[~]", v1.PlanStatus.COMPLETED: "[x]"}


def markdown(session: ExportedSession, *, thoughts: bool = False, calls: bool = True) -> str:
    """Return a session as Markdown, without control characters."""
    blocks = [*_head(session)]
    last_speaker = None
    for line in session.lines:
        if (isinstance(line.entry, Thought) and not thoughts) or (isinstance(line.entry, CallEntry) and not calls):
            continue
        speaker_name, mine = speaker(line), isinstance(line.entry, Message) and line.entry.speaker == "user"
        if mine or (speaker_name != last_speaker and not isinstance(line.entry, NoticeEntry)):
            blocks.append(f"## {one_line(speaker_name)} · {line.when.astimezone():%Y-%m-%d %H:%M}")
            last_speaker = None if mine else speaker_name
        blocks += _body(line, session.about.cwd)
    if session.plan:
        steps = [f"- {_BOXES[step.status.meaning]} {one_line(step.content)}" for step in session.plan]
        blocks += ["## Plan", "\n".join(steps)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _head(session: ExportedSession) -> Iterator[str]:
    about = session.about
    yield f"# {one_line(about.title or 'Session')}"
    facts = [f"- session {_code(about.id)} in {_code(about.cwd)}"]
    if about.route or about.engines:
        names = " and ".join(_code(name) for name in about.engines)
        facts.append(
            f"- route {_code(about.route)}{f', with {names}' if names else ''}" if about.route else f"- with {names}"
        )
    facts.append(f"- begun {about.created_at[:19]}Z, last used {about.updated_at[:19]}Z")
    yield "\n".join(facts)


def _body(line: ExportedLine, cwd: str) -> Iterator[str]:
    entry = line.entry
    match entry:
        case Message():
            yield from (_piece(piece) for piece in pieces_of(entry, text_of(line)))
        case Thought():
            text = "".join(piece.text for piece in pieces_of(entry, text_of(line)))
            yield _quoted(f"*thought:* {prose(text).strip()}")
        case CallEntry():
            status = entry.status.meaning
            word = "denied" if entry.denied else str(status).replace("_", " ")
            ended = "" if status is v1.ToolStatus.COMPLETED else f", {word}"
            yield f"{MARKS[status]} {_code(text_of(line))} ({entry.kind}{ended})"
            yield from (_piece(piece) for piece in pieces_of_call(entry, cwd) if piece.text)
        case NoticeEntry():
            more = f": {prose(entry.description).strip()}" if entry.description else ""
            yield _quoted(f"**{entry.severity}: {one_line(entry.title)}**{more}")
        case CompactionEntry():
            more = f" ({prose(entry.error)})" if entry.error else ""
            summary = prose(entry.text).strip()
            yield _quoted(
                f"**the context was shortened: {entry.status}**{more}{f'{chr(10)}{chr(10)}{summary}' if summary else ''}"
            )


def _piece(piece: ContentPart) -> str:
    text = prose(piece.text)
    match piece.kind:
        case "prose":
            return _closed(text.strip("\n"))
        case "diff":
            head, _, changes = text.partition("\n")
            return fenced(f"{head}\n{changes}" if changes else head, "diff")
        case "output":
            lines = text.split("\n")
            more = [f"… {len(lines) - OUTPUT_LINES} more lines"] if len(lines) > OUTPUT_LINES else []
            return fenced("\n".join([*lines[:OUTPUT_LINES], *more]))
        case _:
            return f"*[{one_line(piece.text)}]*"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _code(text: str) -> str:
    """Return a text as inline code, whatever backticks it contains."""
    text = one_line(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{text}{room}{ticks}" if text else ""


def _closed(text: str) -> str:
    """Return a text with an open fence closed: it would swallow the rest of the page."""
    fence = None
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found.groups()
        if fence is None:
            fence = marks
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
            fence = None
    return text if fence is None else f"{text}\n{fence}"
