"""The head of the report and its tables. Each row links to its message, and durations are drawn beside their numbers."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final

from antiphon.recorder.analysis import Analysis, PeerInfo, RecordedDeviation, RecordedMessage, RecordedTurn
from antiphon.recorder.labels import NOTHING, counted, seconds, size
from antiphon.recorder.report.markup import Markup, joined, tag
from antiphon.recorder.report.timeline import family

__all__ = ["SECTIONS", "file_name", "head", "navigation", "peer_name", "tables", "verdict"]

# --- the head of the report: client and agent, the counts, and a summary in one sentence

SECTIONS = (
    ("turns", "Turns"),
    ("calls", "Tool calls"),
    ("waits", "Waits"),
    ("errors", "Errors"),
    ("deviations", "Deviations"),
    ("advice", "Advice"),
    ("slow", "Slow spots"),
    ("methods", "Sizes"),
    ("sessions", "Sessions"),
)
"""The parts of an analysis that have a table of their own, in the order of the page."""


def file_name(path: str) -> str:
    """The last part of a path: a report is shared, and the directory of its recording is private."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def peer_name(peer: PeerInfo | None, otherwise: str) -> str:
    """A name for one side."""
    return (peer.title or peer.name or otherwise) if peer else otherwise


def head(analysis: Analysis) -> Markup:
    """Names, verdict and counts."""
    return joined(
        tag(
            "p",
            tag("span", "antiphon inspect"),
            " ",
            tag("span", file_name(analysis.file), class_="file"),
            class_="eyebrow",
        ),
        tag(
            "h1",
            _peer(analysis.client, "Client", "client"),
            tag("span", " with ", class_="with"),
            _peer(analysis.agent, "Agent", "agent"),
        ),
        _verdict_line(analysis),
        tag("dl", *_tiles(analysis), class_="tiles"),
    )


def _peer(peer: PeerInfo | None, otherwise: str, side: str) -> Markup:
    version = tag("small", f" {peer.version}") if peer and peer.version else None
    return tag("span", peer_name(peer, otherwise), version, class_=f"party {side}")


def verdict(analysis: Analysis) -> tuple[str, str]:
    """The summary, as a word and a sentence."""
    if not analysis.messages and not analysis.undecodable:
        return "fair", f"There is no message in it, and {counted(analysis.skipped, 'line')} of another kind."
    found = []
    if analysis.deviations:
        found.append(f"{counted(len(analysis.deviations), 'deviation')} from the protocol")
    if analysis.errors:
        found.append(f"{counted(len(analysis.errors), 'answer')} with an error")
    if analysis.undecodable:
        found.append(f"{counted(analysis.undecodable, 'line')} that could not be read")
    if analysis.unanswered:
        found.append(f"{counted(len(analysis.unanswered), 'request')} without an answer")
    judged = "" if analysis.judged else " Only conversations of protocol version 1 or 2 are judged by rules."
    judged += f" {counted(len(analysis.advice), 'piece')} of advice." if analysis.advice else ""
    if not found:
        return "good", f"{'No deviation from the protocol and no' if analysis.judged else 'No'} error.{judged}"
    summary = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
    return ("bad" if analysis.deviations or analysis.undecodable else "fair"), f"{summary}.{judged}"


def _verdict_line(analysis: Analysis) -> Markup:
    word, sentence = verdict(analysis)
    sign = {"good": "✓", "fair": "!", "bad": "▲"}[word]
    return tag("p", tag("span", sign, class_="sign", aria_hidden="true"), " ", sentence, class_=f"verdict {word}")


def _tiles(analysis: Analysis) -> list[Markup]:
    waited = sum(turn.waited for turn in analysis.turns)
    tiles = [
        ("Duration", seconds(analysis.duration), None),
        ("Messages", f"{analysis.messages:,}", f"→ {size(analysis.bytes.c2a)} ← {size(analysis.bytes.a2c)}"),
        (
            "Turns",
            f"{len(analysis.turns):,}",
            f"{seconds(sum(turn.duration or 0 for turn in analysis.turns))} in turns",
        ),
        ("Tool calls", f"{len(analysis.calls):,}", _failed(analysis)),
        ("Waits", f"{len(analysis.waits):,}", f"{seconds(waited)} waited" if analysis.waits else None),
        ("Errors", f"{len(analysis.errors):,}", None),
        ("Deviations", f"{len(analysis.deviations):,}", _rules(analysis)),
        ("Protocol", f"v{analysis.version}" if analysis.version is not None else NOTHING, _conversations(analysis)),
    ]
    return [
        tag(
            "div",
            tag("dt", name),
            tag("dd", value, tag("small", more) if more else None),
            class_=_tile_class(name, value),
        )
        for name, value, more in tiles
    ]


def _tile_class(name: str, value: str) -> str | None:
    return {"Errors": "bad", "Deviations": "warn"}.get(name) if value != "0" else None


def _failed(analysis: Analysis) -> str | None:
    failed = sum(call.status == "failed" for call in analysis.calls)
    return f"{failed} failed" if failed else None


def _rules(analysis: Analysis) -> str | None:
    rules = f"of {counted(len({one.rule for one in analysis.deviations}), 'rule')}" if analysis.deviations else ""
    advice = f"{counted(len(analysis.advice), 'piece')} of advice" if analysis.advice else ""
    return ", ".join(filter(None, (rules, advice))) or None


def _conversations(analysis: Analysis) -> str | None:
    return counted(len(analysis.conversations), "conversation") if len(analysis.conversations) > 1 else None


def navigation(analysis: Analysis) -> Markup:
    """The way to each part that has something in it, with how much."""
    links = [("timeline", "Timeline", None), ("messages", "Messages", analysis.messages)]
    links += [(name, title, len(getattr(analysis, name))) for name, title in SECTIONS if getattr(analysis, name)]
    return joined(
        *(
            tag("a", title, tag("small", f" {count:,}") if count is not None else None, href=f"#{name}")
            for name, title, count in links
        )
    )


_MOST_ROWS: Final = 1000
"""A longer table is not read; the messages can be filtered, and `--json` has everything."""


def tables(analysis: Analysis, entries: Sequence[RecordedMessage]) -> Markup:
    """All tables that have something in them."""
    speakers = {
        shown.message: "client" if shown.dir == "c2a" else "agent"
        for shown in entries
        if shown.deviations or shown.advice
    }
    makers: dict[str, Callable[[Analysis], Markup]] = {
        "turns": _turns, "calls": _calls, "waits": _waits, "errors": _errors, "slow": _slow, "methods": _methods,
        "sessions": _sessions, "deviations": lambda analysis: _deviations(analysis.deviations, speakers),
        "advice": lambda analysis: _deviations(analysis.advice, speakers),
    }  # fmt: skip
    return joined(
        *(
            tag("section", tag("h2", title, tag("small", f" {len(found):,}")), makers[name](analysis), id=name)
            for name, title in SECTIONS
            if (found := getattr(analysis, name))
        )
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """Columns whose name ends with a `>` hold numbers and stand at the right."""
    classes = ["number" if name.endswith(">") else None for name in columns]
    names = [name.rstrip(">") for name in columns]
    top = tag(
        "thead",
        tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in zip(names, classes, strict=True))),
    )
    body = tag(
        "tbody",
        *(
            tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, classes, strict=True)))
            for row in rows[:_MOST_ROWS]
        ),
    )
    more = tag("p", f"and {len(rows) - _MOST_ROWS:,} more", class_="more") if len(rows) > _MOST_ROWS else None
    return joined(tag("div", tag("table", top, body), class_="scroll", tabindex=0, role="group"), more)


def _to(message: int, words: object | None = None) -> Markup:
    return tag("a", f"#{message}" if words is None else words, href=f"#m={message}")


def _length(value: float | None, longest: float, kind: str, part: float = 0.0) -> Markup:
    """A bar as long as the value, of which a part may be hatched."""
    whole = 100 * (value or 0) / longest if longest else 0.0
    hatched = 100 * part / longest if longest else 0.0
    return tag(
        "svg",
        tag("rect", class_=f"bar {kind}", width=f"{whole:.2f}%", height=8, rx=2),
        tag("rect", width=f"{min(hatched, whole):.2f}%", height=8, rx=2, fill="url(#hatch)") if hatched else None,
        class_="length", width="100%", height=8, aria_hidden="true",
    )  # fmt: skip


def _turns(analysis: Analysis) -> Markup:
    longest = max((turn.duration or 0 for turn in analysis.turns), default=0)
    return _table(
        ["", "Prompt", "Took>", "", "First word>", "Waited>", "Tool calls>", "Updates>", "End"],
        [
            [
                tag("a", turn.number, href=f"#turn={turn.number}"),
                tag("span", turn.prompt, class_="words"),
                seconds(turn.duration),
                _length(turn.duration, longest, "turn", turn.waited),
                seconds(turn.first_update),
                seconds(turn.waited) if turn.waited else "",
                turn.calls or "",
                turn.updates,
                _ending(turn),
            ]
            for turn in analysis.turns
        ],
    )


def _ending(turn: RecordedTurn) -> Markup:
    if turn.error:
        return tag("span", "✕ ", turn.error, class_="error")
    return tag("span", turn.stop_reason or "no end", class_=None if turn.stop_reason == "end_turn" else "unusual")


def _calls(analysis: Analysis) -> Markup:
    longest = max((call.duration or 0 for call in analysis.calls), default=0)
    return _table(
        ["", "Turn>", "Kind", "Title", "Status", "Took>", ""],
        [
            [
                _to(call.message),
                call.turn or "",
                tag("span", call.kind or NOTHING, class_=f"kind {family(call.kind)}"),
                tag("span", call.title or call.id, class_="words"),
                tag("span", "✕ failed", class_="error") if call.status == "failed" else call.status or NOTHING,
                seconds(call.duration),
                _length(call.duration, longest, family(call.kind)),
            ]
            for call in analysis.calls
        ],
    )


def _waits(analysis: Analysis) -> Markup:
    longest = max((wait.duration or 0 for wait in analysis.waits), default=0)
    return _table(
        ["", "Turn>", "Asked for", "What", "Outcome", "Waited>", ""],
        [
            [
                _to(wait.message),
                wait.turn or "",
                wait.kind,
                tag("span", wait.title or wait.call or NOTHING, class_="words"),
                wait.outcome or tag("span", "no answer", class_="unusual"),
                seconds(wait.duration),
                _length(wait.duration, longest, "wait", wait.duration or 0),
            ]
            for wait in analysis.waits
        ],
    )


def _errors(analysis: Analysis) -> Markup:
    return _table(
        ["", "Method", "Code>", "Text"],
        [
            [
                _to(error.message),
                error.method or NOTHING,
                tag("span", error.code if error.code is not None else NOTHING, class_="error"),
                tag("span", error.text, class_="words"),
            ]
            for error in analysis.errors
        ],
    )


def _deviations(found: Sequence[RecordedDeviation], speakers: Mapping[int, str]) -> Markup:
    """Deviations by rule, the one that was broken most often first."""
    ordered = sorted(found, key=lambda one: one.rule)
    groups = sorted((list(several) for _, several in groupby(ordered, key=lambda one: one.rule)), key=len, reverse=True)
    return joined(*(_broken(several, speakers) for several in groups))


def _broken(found: list[RecordedDeviation], speakers: Mapping[int, str]) -> Markup:
    first = found[0]
    sides = " and the ".join(sorted({speakers.get(one.message, one.side) for one in found}))
    spec = (
        tag("a", "specification", href=first.link, rel="noreferrer noopener")
        if first.link.startswith("https://")
        else None
    )
    return tag(
        "details",
        tag(
            "summary",
            tag("code", first.rule), " ", tag("span", first.level, class_=f"level {first.level}"), " ",
            tag("span", f"{counted(len(found), 'time')} by the {sides}", class_="quiet"),
        ),
        tag("p", spec, " · " if spec else None, tag("a", "show in the diagram", href=f"#rule={first.rule}"), class_="quiet"),
        _table(["", "Line>", "What"], [[_to(one.message), one.line or "", tag("span", one.text, class_="words")] for one in found]),
        open="",
    )  # fmt: skip


def _slow(analysis: Analysis) -> Markup:
    longest = max((slow.duration for slow in analysis.slow), default=0)
    return _table(
        ["", "What", "Took>", ""],
        [
            [
                _to(slow.message),
                tag("span", slow.what, class_="words"),
                seconds(slow.duration),
                _length(slow.duration, longest, "other"),
            ]
            for slow in analysis.slow
        ],
    )


def _methods(analysis: Analysis) -> Markup:
    ordered = sorted(analysis.methods, key=lambda method: method.bytes, reverse=True)
    most = max((method.bytes for method in ordered), default=0)
    return _table(
        ["", "Method", "Kind", "Messages>", "Bytes>", "", "Largest>"],
        [
            [
                tag("span", "→" if method.dir == "c2a" else "←", class_=method.dir, title=_SPEAKERS.get(method.dir)),
                method.method,
                method.kind,
                f"{method.count:,}",
                size(method.bytes),
                _length(method.bytes, most, method.dir),
                size(method.largest),
            ]
            for method in ordered
        ],
    )


_SPEAKERS: Final = {"c2a": "sent by the client", "a2c": "sent by the agent"}


def _sessions(analysis: Analysis) -> Markup:
    return _table(
        ["", "Session", "Title", "How", "Turns>"],
        [
            [
                _to(session.message),
                tag("code", session.id),
                tag("span", session.title or NOTHING, class_="words"),
                session.how,
                sum(turn.session == session.id for turn in analysis.turns) or "",
            ]
            for session in analysis.sessions
        ],
    )
