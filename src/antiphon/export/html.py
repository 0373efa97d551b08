"""A session as one HTML file: no script, nothing from elsewhere, readable in light and dark and on paper."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Final

from antiphon.export.content import ContentPart, pieces_of, pieces_of_call
from antiphon.export.session import ExportedLine, ExportedSession, speaker, text_of
from antiphon.protocol import v1
from antiphon.text import prose
from antiphon.transcript.presentation import MARKS
from antiphon.transcript.transcript import CallEntry, CompactionEntry, Message, NoticeEntry, Thought

__all__ = ["STYLE", "document", "html_of_diff", "html_of_markdown", "page", "safe"]

# --- Markdown as HTML; what is not known stays text ------------------------------------------------------------------
# Everything is escaped before anything is marked up, so no text of a user or agent becomes a tag. Each pattern reads a line once, whatever is in it.

DEEPEST: Final = 4
"""Nesting of quotes and of lists; deeper levels are shown as this one."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_HEADING: Final = re.compile(r" {0,3}(#{1,6}) +(.*)$")
_ITEM: Final = re.compile(r"( *)([-*+]|\d{1,9}[.)]) +(.*)$")
_RULE: Final = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,}) *$")
_CODE: Final = re.compile(r"``(?!`)(.+?)``|`([^`\n]+)`")
_BOLD: Final = re.compile(r"\*\*(?=\S)([^*\n]+)\*\*")
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,300})\]\((https?://[^\s()<>]{1,2000})\)")


def safe(text: str) -> str:
    """Return escaped text, with invisible characters and direction marks shown."""
    return escape(prose(text.encode("utf-8", "replace").decode()))


def html_of_markdown(text: str, depth: int = 0) -> str:
    """Return a message in Markdown as HTML."""
    return "\n".join(_blocks(text.replace("\r\n", "\n").split("\n"), depth))


def _blocks(lines: list[str], depth: int) -> Iterator[str]:
    place = 0
    while place < len(lines):
        line = lines[place]
        if not line.strip():
            place += 1
        elif fence := _FENCE.match(line):
            end = _end_of_fence(lines, place + 1, fence.group(1))
            yield f"<pre><code>{safe(chr(10).join(lines[place + 1 : end]))}</code></pre>"
            place = end + 1
        elif _RULE.match(line):
            yield "<hr>"
            place += 1
        elif heading := _HEADING.match(line):
            level = min(len(heading.group(1)) + 2, 6)
            yield f"<h{level}>{_inline(heading.group(2))}</h{level}>"
            place += 1
        else:
            kind, end = _run(lines, place, depth)
            yield kind(lines[place:end])
            place = end


def _run(lines: list[str], place: int, depth: int) -> tuple[Callable[[list[str]], str], int]:
    """How to write the lines from here on, and where that ends."""
    first = lines[place]
    if first.startswith("|"):
        return _table, _while(lines, place, lambda line: line.startswith("|"))
    if first.startswith(">") and depth < DEEPEST:
        return lambda quoted: _quote(quoted, depth), _while(lines, place, lambda line: line.startswith(">"))
    if _ITEM.match(first):
        return _list, _while(lines, place, lambda line: bool(_ITEM.match(line)) or line.startswith("  "))
    return _paragraph, _while(lines, place, lambda line: not _begins_block(line), at_least=1)


def _while(lines: list[str], place: int, goes_on: Callable[[str], bool], at_least: int = 0) -> int:
    end = place + at_least
    while end < len(lines) and lines[end].strip() and goes_on(lines[end]):
        end += 1
    return max(end, place + 1)


def _begins_block(line: str) -> bool:
    return bool(_FENCE.match(line) or _HEADING.match(line) or _ITEM.match(line) or _RULE.match(line)) or line[:1] in (
        "|",
        ">",
    )


def _end_of_fence(lines: list[str], place: int, fence: str) -> int:
    while place < len(lines):
        found = _FENCE.match(lines[place])
        if found and found.group(1)[0] == fence[0] and len(found.group(1)) >= len(fence) and not found.group(2).strip():
            break
        place += 1
    return place


def _paragraph(lines: list[str]) -> str:
    return f"<p>{_inline(chr(10).join(lines))}</p>"


def _table(lines: list[str]) -> str:
    """A table as it was written: most have their columns aligned already."""
    return f"<pre>{safe(chr(10).join(lines))}</pre>"


def _quote(lines: list[str], depth: int) -> str:
    inner = "\n".join(line[1:].removeprefix(" ") for line in lines)
    return f"<blockquote>{html_of_markdown(inner, depth + 1)}</blockquote>"


def _list(lines: list[str]) -> str:
    written: list[str] = []
    lists: list[tuple[int, str]] = []  # those that are open: how far each is indented, and its tag
    for depth, tag, text in _items(lines):
        while lists and lists[-1][0] > depth:
            written.append(f"</li></{lists.pop()[1]}>")
        if lists and lists[-1] == (depth, tag[:2]):
            written.append("</li>")
        else:
            if lists and lists[-1][0] == depth:  # the other kind of list
                written.append(f"</li></{lists.pop()[1]}>")
            lists.append((depth, tag[:2]))
            written.append(f"<{tag}>")
        written.append(f"<li>{_inline(text)}")
    return "".join([*written, *(f"</li></{tag}>" for _, tag in reversed(lists))])


def _items(lines: list[str]) -> list[tuple[int, str, str]]:
    """Each item: how deep it is, the tag that begins its list, its text with the lines below it."""
    items: list[tuple[int, str, str]] = []
    for line in lines:
        if found := _ITEM.match(line):
            space, mark, text = found.groups()
            tag = f'ol start="{int(mark[:-1])}"' if mark[0].isdigit() else "ul"
            items.append((min(len(space) // 2, DEEPEST), tag, text))
        else:
            depth, tag, text = items[-1]
            items[-1] = (depth, tag, f"{text}\n{line.strip()}")
    return items


def _inline(text: str) -> str:
    written, place = [], 0
    for found in _CODE.finditer(text):
        written.append(_marked(text[place : found.start()]))
        written.append(f"<code>{safe(found.group(1) or found.group(2))}</code>")
        place = found.end()
    return "".join([*written, _marked(text[place:])])


def _marked(text: str) -> str:
    """Bold and links, of text without code."""
    text = _BOLD.sub(r"<strong>\1</strong>", safe(text))
    return _LINK.sub(r'<a href="\2" rel="noopener noreferrer">\1</a>', text)


# --- the style sheet, inside of the page -----------------------------------------------------------------------------

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2328; --faint: #656d76; --line: #d8dee4; --card: #fff;
  --user: #eef4ff; --code: #f3f4f6; --added: #dafbe1; --removed: #ffebe9; --place: #ddf4ff; --link: #0550ae; --bad: #b42318;
  --warn: #8a5a00; --e0: #b4552d; --e1: #0f766e; --e2: #6d28d9; --e3: #a16207; --e4: #be185d; --e5: #1d4ed8; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e3e6ea; --faint: #9aa4b0; --line: #363c44;
  --card: #1d2025; --user: #1c2a44; --code: #272b32; --added: #12361f; --removed: #4a1d1f; --place: #172f45;
  --link: #79b8ff; --bad: #ff8f85; --warn: #e3b341; --e0: #f0a07c; --e1: #5eead4; --e2: #c4b5fd; --e3: #fcd34d;
  --e4: #f9a8d4; --e5: #93c5fd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 58rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
dl { display: flex; flex-wrap: wrap; gap: .35rem 1.75rem; margin: 0 0 2rem; font-size: .85rem; color: var(--faint); }
dt, dd { display: inline; margin: 0; } dt::after { content: " "; } dd { color: var(--ink); }
article { margin: 0 0 1.1rem; padding: .85rem 1.15rem; background: var(--card); border: 1px solid var(--line);
  border-left: 4px solid var(--who, var(--line)); border-radius: 8px; }
article.user { background: var(--user); --who: var(--link); }
.e0 { --who: var(--e0); } .e1 { --who: var(--e1); } .e2 { --who: var(--e2); } .e3 { --who: var(--e3); }
.e4 { --who: var(--e4); } .e5 { --who: var(--e5); }
h2 { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; margin: 0 0 .4rem; font-size: .95rem;
  color: var(--who, var(--ink)); }
h2 time { font-weight: 400; font-size: .8rem; color: var(--faint); white-space: nowrap; }
h3, h4, h5, h6 { margin: 1.1rem 0 .4rem; font-size: 1.05rem; }
p, ul, ol, blockquote { margin: .5rem 0; } p, li { white-space: pre-line; }
blockquote { padding-left: .9rem; border-left: 3px solid var(--line); color: var(--faint); }
ul, ol { padding-left: 1.5rem; } li ul, li ol { margin: 0; }
hr { border: 0; border-top: 1px solid var(--line); margin: 1rem 0; }
a { color: var(--link); }
code, pre, .path { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .86em; }
code { background: var(--code); padding: .1em .3em; border-radius: 4px; }
pre { margin: .5rem 0; padding: .65rem .8rem; background: var(--code); border-radius: 6px; overflow-x: auto; line-height: 1.45;
  overflow-wrap: normal; } pre code { padding: 0; background: none; font-size: 1em; }
details > pre { max-height: 28rem; overflow-y: auto; }
.call, .thought { margin: .45rem 0; font-size: .92rem; } summary { cursor: pointer; }
.call summary code, div.call > code { background: none; padding: 0; }
.call small, .thought summary, .call em { color: var(--faint); } .call .mark { color: var(--e1); }
.call.failed .mark, .call.failed em { color: var(--bad); }
.thought > .prose { margin-left: 1.1rem; color: var(--faint); font-style: italic; }
.diff { margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
.diff .path { padding: .35rem .8rem; background: var(--code); color: var(--faint); }
.diff pre { margin: 0; padding: .4rem 0; background: none; border-radius: 0; max-height: 36rem; overflow: auto; }
.diff span { display: block; min-width: max-content; padding: 0 .8rem; }
.added { background: var(--added); } .removed { background: var(--removed); } .place { background: var(--place); color: var(--faint); }
aside { margin: .5rem 0; padding: .5rem .8rem; border-radius: 6px; border: 1px solid var(--line); color: var(--faint); font-size: .92rem; }
aside.error { color: var(--bad); border-color: var(--bad); } aside.warning { color: var(--warn); border-color: var(--warn); }
aside p { margin: .2rem 0 0; }
.note { color: var(--faint); font-style: italic; } .plan .completed { color: var(--faint); text-decoration: line-through; }
.plan .in_progress { font-weight: 600; }
img { display: block; max-width: 100%; height: auto; border-radius: 6px; margin: .5rem 0; }
@media print { body { max-width: none; padding: 0; } article { break-inside: avoid-page; } pre { white-space: pre-wrap; } }
"""


# Even if some text got out of its place, a browser would run and fetch nothing.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Kinds that are shown. SVG is not among them: it is a document that may hold others."""

COLOURS: Final = 6
"""Colours of engines; after the last the first is used again."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def page(session: ExportedSession) -> str:
    """Return the whole page."""
    return document(session.about.title or "Session", _facts(session), _articles(session))


def document(title: str, about: str, articles: Iterable[str], style: str = "") -> str:
    """Return a page of one file. `title` is text; what stands below it, the articles and further style are HTML and CSS."""
    shown = safe(title).replace("\n", " ")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="color-scheme" content="light dark"><meta name="generator" content="antiphon">',
        f"<title>{shown}</title><style>{STYLE}{style}</style></head><body>",
        f"<header><h1>{shown}</h1>{about}</header><main>",
        *articles,
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _facts(session: ExportedSession) -> str:
    about = session.about
    facts = [("Session", f"<code>{safe(about.id)}</code>"), ("Folder", f"<code>{safe(about.cwd)}</code>")]
    if about.route:
        facts.append(("Route", safe(about.route)))
    if about.engines:
        facts.append(("Engines", safe(", ".join(about.engines))))
    facts.append(("Begun", _time(about.created_at)))
    facts.append(("Last used", _time(about.updated_at)))
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts) + "</dl>"


def _articles(session: ExportedSession) -> Iterator[str]:
    """Yield an article for each run of entries of one speaker."""
    engines = list(dict.fromkeys(line.engine for line in session.lines if line.engine))
    last_speaker: str | None = None
    opened = False
    for line in session.lines:
        speaker_name, mine = speaker(line), isinstance(line.entry, Message) and line.entry.speaker == "user"
        if mine or last_speaker != speaker_name:
            if opened:
                yield "</article>"
            colour = f" e{engines.index(line.engine) % COLOURS}" if line.engine else ""
            kind = "user" if mine else f"agent{colour}"
            at = f'<time datetime="{line.when:%Y-%m-%dT%H:%M:%SZ}">{line.when.astimezone():%Y-%m-%d %H:%M}</time>'
            yield f'<article class="{kind}"><h2>{safe(speaker_name)} {at}</h2>'
            opened, last_speaker = True, None if mine else speaker_name
        yield from _body(line, session.about.cwd)
    if opened:
        yield "</article>"
    if session.plan:
        steps = "".join(f'<li class="{step.status.meaning}">{safe(step.content)}</li>' for step in session.plan)
        yield f'<article class="plan"><h2>Plan</h2><ul>{steps}</ul></article>'


def _body(line: ExportedLine, cwd: str) -> Iterator[str]:
    entry = line.entry
    match entry:
        case Message():
            yield from (_piece(piece) for piece in pieces_of(entry, text_of(line)))
        case Thought():
            inner = "".join(_piece(piece) for piece in pieces_of(entry, text_of(line)))
            yield f'<details class="thought"><summary>Thought</summary>{inner}</details>'
        case CallEntry():
            yield _call(entry, text_of(line), cwd)
        case NoticeEntry():
            more = f"<p>{safe(entry.description)}</p>" if entry.description else ""
            yield f'<aside class="{entry.severity.meaning}"><strong>{safe(entry.title)}</strong>{more}</aside>'
        case CompactionEntry():
            title = f"The context was shortened: {entry.status}{f' ({entry.error})' if entry.error else ''}"
            yield f"<details><summary>{safe(title)}</summary>{html_of_markdown(entry.text)}</details>"


def _call(call: CallEntry, title: str, cwd: str) -> str:
    status = call.status.meaning
    word = "denied" if call.denied else str(status).replace("_", " ")
    suffix = "" if status is v1.ToolStatus.COMPLETED else f" <em>{word}</em>"
    head = f'<span class="mark">{MARKS[status]}</span> <code>{safe(title)}</code> <small>{safe(str(call.kind))}</small>{suffix}'
    shown = [piece for piece in pieces_of_call(call, cwd) if piece.text]
    if not shown:
        return f'<div class="call {status}">{head}</div>'
    opened = " open" if any(piece.kind in ("diff", "picture") for piece in shown) else ""
    return f'<details class="call {status}"{opened}><summary>{head}</summary>{"".join(map(_piece, shown))}</details>'


def _piece(piece: ContentPart) -> str:
    match piece.kind:
        case "prose":
            return f'<div class="prose">{html_of_markdown(piece.text)}</div>' if piece.text.strip() else ""
        case "output":
            return f"<pre>{safe(piece.text)}</pre>"
        case "diff":
            return html_of_diff(piece.text)
        case "picture":
            return _picture(piece)
        case _:
            return f'<p class="note">{safe(piece.text)}</p>'


def html_of_diff(text: str) -> str:
    """Return the diff of one file as HTML. Its first line is shown as the heading."""
    head, *lines = text.split("\n")
    kinds = {"+": "added", "-": "removed", "@": "place"}
    written = "".join(f'<span class="{kinds.get(line[:1], "same")}">{safe(line)}\n</span>' for line in lines)
    return f'<div class="diff"><div class="path">{safe(head)}</div><pre>{written}</pre></div>'


def _picture(piece: ContentPart) -> str:
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
