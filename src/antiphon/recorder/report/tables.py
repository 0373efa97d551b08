"""The tables of the report. Each row leads to its message, and lengths are drawn beside their numbers."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final

from antiphon.recorder.report.head import SECTIONS
from antiphon.recorder.report.markup import Markup, joined, tag
from antiphon.recorder.report.timeline import family
from antiphon.recorder.story import Deviation, Shown, Story, Turn
from antiphon.recorder.wording import NOTHING, counted, seconds, size

__all__ = ["tables"]

_MOST_ROWS: Final = 1000
"""Nobody reads a longer table; the messages can be filtered, and `--json` has everything."""


def tables(story: Story, entries: Sequence[Shown]) -> Markup:
    """All tables that have something in them."""
    speakers = {
        shown.message: "client" if shown.dir == "c2a" else "agent"
        for shown in entries
        if shown.deviations or shown.advice
    }
    makers: dict[str, Callable[[Story], Markup]] = {
        "turns": _turns, "calls": _calls, "waits": _waits, "errors": _errors, "slow": _slow, "methods": _methods,
        "sessions": _sessions, "deviations": lambda story: _deviations(story.deviations, speakers),
        "advice": lambda story: _deviations(story.advice, speakers),
    }  # fmt: skip
    return joined(
        *(
            tag("section", tag("h2", title, tag("small", f" {len(found):,}")), makers[name](story), id=name)
            for name, title in SECTIONS
            if (found := getattr(story, name))
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


def _turns(story: Story) -> Markup:
    longest = max((turn.duration or 0 for turn in story.turns), default=0)
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
            for turn in story.turns
        ],
    )


def _ending(turn: Turn) -> Markup:
    if turn.error:
        return tag("span", "✕ ", turn.error, class_="error")
    return tag("span", turn.stop_reason or "no end", class_=None if turn.stop_reason == "end_turn" else "unusual")


def _calls(story: Story) -> Markup:
    longest = max((call.duration or 0 for call in story.calls), default=0)
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
            for call in story.calls
        ],
    )


def _waits(story: Story) -> Markup:
    longest = max((wait.duration or 0 for wait in story.waits), default=0)
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
            for wait in story.waits
        ],
    )


def _errors(story: Story) -> Markup:
    return _table(
        ["", "Method", "Code>", "Text"],
        [
            [
                _to(error.message),
                error.method or NOTHING,
                tag("span", error.code if error.code is not None else NOTHING, class_="error"),
                tag("span", error.text, class_="words"),
            ]
            for error in story.errors
        ],
    )


def _deviations(found: Sequence[Deviation], speakers: Mapping[int, str]) -> Markup:
    """By rule, the one that was broken most often first."""
    ordered = sorted(found, key=lambda one: one.rule)
    groups = sorted((list(several) for _, several in groupby(ordered, key=lambda one: one.rule)), key=len, reverse=True)
    return joined(*(_broken(several, speakers) for several in groups))


def _broken(found: list[Deviation], speakers: Mapping[int, str]) -> Markup:
    first = found[0]
    who = " and the ".join(sorted({speakers.get(one.message, one.side) for one in found}))
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
            tag("span", f"{counted(len(found), 'time')} by the {who}", class_="quiet"),
        ),
        tag("p", spec, " · " if spec else None, tag("a", "show in the diagram", href=f"#rule={first.rule}"), class_="quiet"),
        _table(["", "Line>", "What"], [[_to(one.message), one.line or "", tag("span", one.text, class_="words")] for one in found]),
        open="",
    )  # fmt: skip


def _slow(story: Story) -> Markup:
    longest = max((slow.duration for slow in story.slow), default=0)
    return _table(
        ["", "What", "Took>", ""],
        [
            [
                _to(slow.message),
                tag("span", slow.what, class_="words"),
                seconds(slow.duration),
                _length(slow.duration, longest, "other"),
            ]
            for slow in story.slow
        ],
    )


def _methods(story: Story) -> Markup:
    ordered = sorted(story.methods, key=lambda method: method.bytes, reverse=True)
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


_SPEAKERS: Final = {"c2a": "said by the client", "a2c": "said by the agent"}


def _sessions(story: Story) -> Markup:
    return _table(
        ["", "Session", "Title", "How", "Turns>"],
        [
            [
                _to(session.message),
                tag("code", session.id),
                tag("span", session.title or NOTHING, class_="words"),
                session.how,
                sum(turn.session == session.id for turn in story.turns) or "",
            ]
            for session in story.sessions
        ],
    )
