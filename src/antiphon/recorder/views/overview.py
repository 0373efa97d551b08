"""The overview of a recording: client and agent, the turns, what went wrong, what was big and what was slow."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from antiphon.recorder.analysis import (
    Analysis,
    MethodCount,
    PeerInfo,
    RecordedCall,
    RecordedDeviation,
    RecordedTurn,
    RecordedWait,
)
from antiphon.recorder.labels import counted, seconds, size
from antiphon.recorder.views.style import ViewStyle, many
from antiphon.text import Style, exact_line

__all__ = ["deviation_lines", "error_lines", "head_lines", "overview", "turn_lines"]

# --- turns: each with its time as a bar, and below it its tool calls and waits, drawn to the same scale

MOST_TURNS: Final = 40
MOST_PARTS: Final = 12
"""Calls and waits of one turn that are drawn; more would hide the next turn."""

GOOD: Final = ("end_turn", None)


def turn_lines(
    analysis: Analysis, style: ViewStyle, turns: Sequence[RecordedTurn], *, all_of_them: bool = False
) -> Iterator[str]:
    """The part about turns."""
    if not turns:
        return
    parts: dict[int | None, list[RecordedCall | RecordedWait]] = {}
    for one in _parts(analysis):
        parts.setdefault(one.turn, []).append(one)
    longest = max(_length(turn, parts.get(turn.number, ())) for turn in turns)
    yield style.title("Turns")
    shown = turns if all_of_them else turns[-MOST_TURNS:]
    if len(shown) < len(turns):
        yield style(f"  the last {len(shown)} of {len(turns)}; `--turn 1-{len(turns)}` shows them all", "dim")
    for turn in shown:
        yield _turn(turn, _length(turn, parts.get(turn.number, ())), longest, style)
        inside = sorted(parts.get(turn.number, ()), key=lambda one: one.message)
        limit = len(inside) if all_of_them else MOST_PARTS
        for one in inside[:limit]:
            yield _part(turn, one, longest, style)
        if len(inside) > limit:
            yield style(f"{'':13}{len(inside) - limit} more; `--turn {turn.number}` shows them all", "dim")


def _bar_width(style: ViewStyle) -> int:
    return min(max(style.width // 4, 12), 36)


def _parts(analysis: Analysis) -> list[RecordedCall | RecordedWait]:
    return [*analysis.calls, *analysis.waits]


def _length(turn: RecordedTurn, parts: Sequence[RecordedCall | RecordedWait]) -> float:
    """How long it took, or as far as is known how long it goes on."""
    if turn.duration is not None:
        return turn.duration
    return max([turn.start, *(one.start if one.end is None else one.end for one in parts)]) - turn.start


def _turn(turn: RecordedTurn, length: float, longest: float, style: ViewStyle) -> str:
    width = _bar_width(style)
    bar = style.bar(0.0, length, longest, width, style.signs.turn)
    how, colour = _end(turn, style)
    head = f"{turn.number:>3} {seconds(turn.duration, '-'):>8} "
    note = f"{exact_line(how)} " if how else ""
    waited = f"  ({seconds(turn.waited)} waited)" if turn.waited >= 0.1 else ""
    text = style.fit(turn.prompt or "(no text)", len(head) + width + 1 + len(note) + len(waited))
    return f"{style(head, 'bold')}{style(bar, 'cyan')} {style(note, colour)}{text}{style(waited, 'dim')}".rstrip()


def _end(turn: RecordedTurn, style: ViewStyle) -> tuple[str, Style]:
    """How it ended, where that is worth a word."""
    if turn.error is not None:
        return f"{style.signs.bad} {style.cut(turn.error, style.width // 4)} {style.signs.between}", "red"
    if turn.end is None:
        return f"{style.signs.going} not ended {style.signs.between}", "yellow"
    if turn.stop_reason not in GOOD:
        return f"{str(turn.stop_reason)[:30]} {style.signs.between}", "yellow"
    return "", ""


def _part(turn: RecordedTurn, one: RecordedCall | RecordedWait, longest: float, style: ViewStyle) -> str:
    width = _bar_width(style)
    end = one.end if one.end is not None else turn.end
    start = one.start - turn.start
    length = (end - one.start) if end is not None else 0.0
    head = f"{seconds(one.duration, '-'):>12} "
    if isinstance(one, RecordedCall):
        sign, colour, text, note = _call(one, style)
    else:
        sign, colour, text, note = _wait(one, style)
    bar = style.bar(
        start, max(length, 0.0), longest, width, style.signs.call if isinstance(one, RecordedCall) else style.signs.wait
    )
    note = f"  {exact_line(note)}" if note else ""
    text = style.fit(text, len(head) + width + len(sign) + 2 + len(note))
    return f"{style(head, 'dim')}{style(bar, colour)} {style(sign, colour)} {text}{style(note, 'dim')}".rstrip()


def _call(call: RecordedCall, style: ViewStyle) -> tuple[str, Style, str, str]:
    title = call.title or call.id
    kind = call.kind or ""
    match call.status:
        case "completed":
            return style.signs.good, "green", title, kind
        case "failed" | "cancelled":
            return style.signs.bad, "red", title, f"{kind} {call.status}".strip()
        case _:
            return style.signs.going, "yellow", title, f"{kind} {call.status or ''}".strip()[:40]


def _wait(wait: RecordedWait, style: ViewStyle) -> tuple[str, Style, str, str]:
    outcome = wait.outcome or "no answer"
    return style.signs.question, "yellow", wait.title or wait.kind, outcome[:40]


MOST: Final = 12
"""Lines of a table, where the rest is small change."""

WEIGHT: Final = ("must", "capability", "should", "advice")
"""What matters most comes first."""

TEXTS: Final = 3
"""Different sentences that are shown of one broken rule."""


def overview(analysis: Analysis, style: ViewStyle) -> Iterator[str]:
    """The whole summary except the diagram."""
    yield from head_lines(analysis, style)
    yield from turn_lines(analysis, style, analysis.turns)
    yield from error_lines(analysis, style)
    yield from deviation_lines(analysis.deviations, style)
    yield from deviation_lines(analysis.advice, style, "Advice")
    yield from _size_lines(analysis, style)
    yield from _slow_lines(analysis, style)


def head_lines(analysis: Analysis, style: ViewStyle) -> Iterator[str]:
    """The two peers, the duration, and the counts of everything."""
    dot = f" {style.signs.between} "
    peers = f"{_peer_name(analysis.client, 'a client')} {style.signs.both} {_peer_name(analysis.agent, 'an agent')}"
    version = f"{dot}version {analysis.version}" if analysis.version is not None else ""
    yield style(style.fit(f"{peers}{version}"), "bold")
    parts = [
        seconds(analysis.duration),
        counted(analysis.messages, "message"),
        f"client {size(analysis.bytes.c2a)}",
        f"agent {size(analysis.bytes.a2c)}",
    ]
    yield style.fit(dot.join(parts))
    what = [
        counted(len(analysis.conversations), "conversation") if len(analysis.conversations) > 1 else "",
        counted(len(analysis.sessions), "session"),
        counted(len(analysis.turns), "turn"),
        counted(len(analysis.calls), "tool call"),
        counted(len(analysis.waits), "question"),
    ]
    yield style.fit(dot.join(filter(None, what)))
    yield from _troubles(analysis, style)


def _troubles(analysis: Analysis, style: ViewStyle) -> Iterator[str]:
    parts = [
        style(counted(len(analysis.errors), "error"), "red" if analysis.errors else "dim"),
        style(counted(len(analysis.deviations), "deviation"), "yellow" if analysis.deviations else "dim"),
    ]
    if analysis.advice:
        parts.append(counted(len(analysis.advice), "piece of advice", "pieces of advice"))
    if analysis.unanswered:
        parts.append(style(f"{len(analysis.unanswered)} unanswered", "yellow"))
    if analysis.undecodable:
        parts.append(style(f"{counted(analysis.undecodable, 'line')} undecodable", "yellow"))
    yield f" {style.signs.between} ".join(parts)
    if not analysis.judged:
        yield style(f"{style.signs.warning} not judged: there are rules for versions 1 and 2 only", "yellow")


def _peer_name(peer: PeerInfo | None, unknown: str) -> str:
    if peer is None:
        return unknown
    return f"{peer.title or peer.name}{f' {peer.version}' if peer.version else ''}"


def error_lines(analysis: Analysis, style: ViewStyle) -> Iterator[str]:
    """The errors, each once, with the messages that have it."""
    if not analysis.errors:
        return
    groups: dict[tuple[str, int | None, str], list[int]] = {}
    for error in analysis.errors:
        groups.setdefault((error.method or "no request", error.code, error.text), []).append(error.message)
    yield style.title("Errors", str(len(analysis.errors)))
    widest = min(max(len(method) for method, _, _ in groups), style.width // 3)
    for (method, code, text), messages in list(groups.items())[:MOST]:
        where = many(messages, 4 if style.width >= 80 else 1)
        head = f"  {code if code is not None else '?':>6}  "
        words = style.fit(text, len(head) + widest + len(where) + 4)
        yield f"{style(head, 'red')}{style.cell(method, widest)}  {words}  {style(where, 'dim')}"
    if len(groups) > MOST:
        yield style(f"  {len(groups) - MOST} more; `--errors` shows them all", "dim")


def deviation_lines(
    deviations: Iterable[RecordedDeviation], style: ViewStyle, title: str = "Deviations"
) -> Iterator[str]:
    """The rules that were broken, or the advice that was not followed, each with the messages in which it was."""
    groups: dict[str, list[RecordedDeviation]] = {}
    for one in deviations:
        groups.setdefault(one.rule, []).append(one)
    if not groups:
        return
    yield style.title(title, str(sum(map(len, groups.values()))))
    for rule, broken in sorted(groups.items(), key=lambda group: WEIGHT.index(group[1][0].level)):
        first = broken[0]
        where = many(sorted({one.message for one in broken}), 8)
        yield f"  {style(rule, 'yellow')}  {style(f'{first.level}  {where}', 'dim')}"
        texts = list(dict.fromkeys(one.text for one in broken))
        for text in texts[:TEXTS]:
            yield f"      {style.fit(text, 6)}"
        if len(texts) > TEXTS:
            yield style(f"      and {len(texts) - TEXTS} more", "dim")
        yield style(f"      {first.link}", "dim")


def _size_lines(analysis: Analysis, style: ViewStyle) -> Iterator[str]:
    if not analysis.methods:
        return
    yield style.title("Sizes")
    methods = analysis.methods[:MOST]
    beside = 42 if style.width >= 76 else 24  # less where there is no room for the largest
    widest = min(max(len(_name(method)) for method in methods), style.width - beside - 8)
    largest = methods[0].bytes
    width = min(max(style.width - widest - beside, 6), 24)
    for method in methods:
        arrow = style.signs.to_agent if method.dir == "c2a" else style.signs.to_client
        numbers = f"{method.count:>6,} {style.signs.times} {size(method.bytes):>8}"
        bar = style.bar(0.0, method.bytes, largest, width, style.signs.turn)
        top = f"  largest {size(method.largest)}" if method.count > 1 and beside > 24 else ""
        yield f"  {arrow} {style.cell(_name(method), widest)} {numbers} {style(bar, 'cyan')}{style(top, 'dim')}".rstrip()
    if len(analysis.methods) > MOST:
        rest = analysis.methods[MOST:]
        yield style(f"    {len(rest)} more with {size(sum(method.bytes for method in rest))}", "dim")


def _name(method: MethodCount) -> str:
    name = method.method.removeprefix("session/update ")
    return f"answer to {name}" if method.kind == "answer" else name


def _slow_lines(analysis: Analysis, style: ViewStyle) -> Iterator[str]:
    if not analysis.slow:
        return
    yield style.title("Slow")
    slow = analysis.slow[:MOST]
    width = min(max(style.width // 5, 10), 30)
    for one in slow:
        where = f"  message {one.message}"
        bar = style.bar(0.0, one.duration, slow[0].duration, width, style.signs.turn)
        text = style.fit(one.what, width + 14 + len(where))
        yield f"  {seconds(one.duration):>9} {style(bar, 'yellow')}  {text}{style(where, 'dim')}"
