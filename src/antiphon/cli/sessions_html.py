"""A session as one HTML file: no script, nothing from elsewhere, readable in light and dark and on paper."""

import base64
import re
from collections.abc import Iterator
from typing import Final

from antiphon.cli.sessions_content import Piece, pieces_of, pieces_of_call
from antiphon.cli.sessions_prose import prose, safe
from antiphon.cli.sessions_style import STYLE
from antiphon.cli.sessions_telling import Line, Told, speaker, text_of
from antiphon.protocol import v1
from antiphon.transcript.presentation import MARKS
from antiphon.transcript.transcript import CallEntry, CompactionEntry, Message, Notice, Thought

__all__ = ["page"]

# Even if some text got out of its place, a browser would run and fetch nothing.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Kinds that are shown. SVG is not among them: it is a document that may hold others."""

COLOURS: Final = 6
"""Of engines; after that they begin again."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def page(told: Told) -> str:
    """The whole file."""
    title = safe(told.about.title or "Session").replace("\n", " ")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="color-scheme" content="light dark"><meta name="generator" content="antiphon">',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<header><h1>{title}</h1>{_facts(told)}</header><main>",
        *_articles(told),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _facts(told: Told) -> str:
    about = told.about
    facts = [("Session", f"<code>{safe(about.id)}</code>"), ("Folder", f"<code>{safe(about.cwd)}</code>")]
    if about.route:
        facts.append(("Route", safe(about.route)))
    if about.engines:
        facts.append(("Engines", safe(", ".join(about.engines))))
    facts.append(("Begun", _time(about.created_at)))
    facts.append(("Last used", _time(about.updated_at)))
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts) + "</dl>"


def _articles(told: Told) -> Iterator[str]:
    """What one says is one article, until somebody else speaks."""
    engines = list(dict.fromkeys(line.engine for line in told.lines if line.engine))
    heard: str | None = None
    opened = False
    for line in told.lines:
        who, mine = speaker(line), isinstance(line.entry, Message) and line.entry.speaker == "user"
        if mine or heard != who:
            if opened:
                yield "</article>"
            colour = f" e{engines.index(line.engine) % COLOURS}" if line.engine else ""
            kind = "user" if mine else f"agent{colour}"
            at = f'<time datetime="{line.when:%Y-%m-%dT%H:%M:%SZ}">{line.when.astimezone():%Y-%m-%d %H:%M}</time>'
            yield f'<article class="{kind}"><h2>{safe(who)} {at}</h2>'
            opened, heard = True, None if mine else who
        yield from _body(line, told.about.cwd)
    if opened:
        yield "</article>"
    if told.plan:
        steps = "".join(f'<li class="{step.status.meaning}">{safe(step.content)}</li>' for step in told.plan)
        yield f'<article class="plan"><h2>Plan</h2><ul>{steps}</ul></article>'


def _body(line: Line, cwd: str) -> Iterator[str]:
    entry = line.entry
    match entry:
        case Message():
            yield from (_piece(piece) for piece in pieces_of(entry, text_of(line)))
        case Thought():
            inner = "".join(_piece(piece) for piece in pieces_of(entry, text_of(line)))
            yield f'<details class="thought"><summary>Thought</summary>{inner}</details>'
        case CallEntry():
            yield _call(entry, text_of(line), cwd)
        case Notice():
            more = f"<p>{safe(entry.description)}</p>" if entry.description else ""
            yield f'<aside class="{entry.severity.meaning}"><strong>{safe(entry.title)}</strong>{more}</aside>'
        case CompactionEntry():
            title = f"The context was shortened: {entry.status}{f' ({entry.error})' if entry.error else ''}"
            yield f"<details><summary>{safe(title)}</summary>{prose(entry.text)}</details>"


def _call(call: CallEntry, title: str, cwd: str) -> str:
    status = call.status.meaning
    word = "denied" if call.denied else str(status).replace("_", " ")
    told = "" if status is v1.ToolStatus.COMPLETED else f" <em>{word}</em>"
    head = f'<span class="mark">{MARKS[status]}</span> <code>{safe(title)}</code> <small>{safe(str(call.kind))}</small>{told}'
    shown = [piece for piece in pieces_of_call(call, cwd) if piece.text]
    if not shown:
        return f'<div class="call {status}">{head}</div>'
    opened = " open" if any(piece.kind in ("diff", "picture") for piece in shown) else ""
    return f'<details class="call {status}"{opened}><summary>{head}</summary>{"".join(map(_piece, shown))}</details>'


def _piece(piece: Piece) -> str:
    match piece.kind:
        case "prose":
            return f'<div class="prose">{prose(piece.text)}</div>' if piece.text.strip() else ""
        case "output":
            return f"<pre>{safe(piece.text)}</pre>"
        case "diff":
            return _diff(piece.text)
        case "picture":
            return _picture(piece)
        case _:
            return f'<p class="note">{safe(piece.text)}</p>'


def _diff(text: str) -> str:
    head, *lines = text.split("\n")
    kinds = {"+": "added", "-": "removed", "@": "place"}
    written = "".join(f'<span class="{kinds.get(line[:1], "same")}">{safe(line)}\n</span>' for line in lines)
    return f'<div class="diff"><div class="path">{safe(head)}</div><pre>{written}</pre></div>'


def _picture(piece: Piece) -> str:
    data = "".join(piece.data.split())
    if piece.mime_type not in PICTURES or not _BASE64.fullmatch(data):
        return f'<p class="note">{safe(piece.text)}</p>'
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return f'<p class="note">{safe(piece.text)}</p>'
    return f'<img src="data:{piece.mime_type};base64,{data}" alt="{safe(piece.text)}">'


def _time(stored: str) -> str:
    return f'<time datetime="{safe(stored)}">{safe(stored[:19].replace("T", " "))} UTC</time>'
