"""The turns of a recording, each with its time as a bar, and below it the tool calls and the questions in it, drawn to the same scale."""

from collections.abc import Iterator, Sequence
from typing import Final

from antiphon.recorder.story import Call, Story, Turn, Wait
from antiphon.recorder.views.pen import Pen
from antiphon.recorder.wording import seconds
from antiphon.text import Style, exact_line

__all__ = ["turn_lines"]

MOST_TURNS: Final = 40
MOST_PARTS: Final = 12
"""Calls and questions of one turn that are drawn; more would hide the next turn."""

GOOD: Final = ("end_turn", None)


def turn_lines(story: Story, pen: Pen, turns: Sequence[Turn], *, all_of_them: bool = False) -> Iterator[str]:
    """The part about turns."""
    if not turns:
        return
    parts: dict[int | None, list[Call | Wait]] = {}
    for one in _parts(story):
        parts.setdefault(one.turn, []).append(one)
    longest = max(_length(turn, parts.get(turn.number, ())) for turn in turns)
    yield pen.title("Turns")
    shown = turns if all_of_them else turns[-MOST_TURNS:]
    if len(shown) < len(turns):
        yield pen(f"  the last {len(shown)} of {len(turns)}; `--turn 1-{len(turns)}` shows them all", "dim")
    for turn in shown:
        yield _turn(turn, _length(turn, parts.get(turn.number, ())), longest, pen)
        inside = sorted(parts.get(turn.number, ()), key=lambda one: one.message)
        limit = len(inside) if all_of_them else MOST_PARTS
        for one in inside[:limit]:
            yield _part(turn, one, longest, pen)
        if len(inside) > limit:
            yield pen(f"{'':13}{len(inside) - limit} more; `--turn {turn.number}` shows them all", "dim")


def _bar_width(pen: Pen) -> int:
    return min(max(pen.width // 4, 12), 36)


def _parts(story: Story) -> list[Call | Wait]:
    return [*story.calls, *story.waits]


def _length(turn: Turn, parts: Sequence[Call | Wait]) -> float:
    """How long it took, or as far as is known how long it goes on."""
    if turn.duration is not None:
        return turn.duration
    return max([turn.start, *(one.start if one.end is None else one.end for one in parts)]) - turn.start


def _turn(turn: Turn, length: float, longest: float, pen: Pen) -> str:
    width = _bar_width(pen)
    bar = pen.bar(0.0, length, longest, width, pen.signs.turn)
    how, style = _end(turn, pen)
    head = f"{turn.number:>3} {seconds(turn.duration, '-'):>8} "
    note = f"{exact_line(how)} " if how else ""
    waited = f"  ({seconds(turn.waited)} waited)" if turn.waited >= 0.1 else ""
    text = pen.fit(turn.prompt or "(no text)", len(head) + width + 1 + len(note) + len(waited))
    return f"{pen(head, 'bold')}{pen(bar, 'cyan')} {pen(note, style)}{text}{pen(waited, 'dim')}".rstrip()


def _end(turn: Turn, pen: Pen) -> tuple[str, Style]:
    """How it ended, where that is worth a word."""
    if turn.error is not None:
        return f"{pen.signs.bad} {pen.cut(turn.error, pen.width // 4)} {pen.signs.between}", "red"
    if turn.end is None:
        return f"{pen.signs.going} not ended {pen.signs.between}", "yellow"
    if turn.stop_reason not in GOOD:
        return f"{str(turn.stop_reason)[:30]} {pen.signs.between}", "yellow"
    return "", ""


def _part(turn: Turn, one: Call | Wait, longest: float, pen: Pen) -> str:
    width = _bar_width(pen)
    end = one.end if one.end is not None else turn.end
    start = one.start - turn.start
    length = (end - one.start) if end is not None else 0.0
    head = f"{seconds(one.duration, '-'):>12} "
    if isinstance(one, Call):
        sign, style, text, note = _call(one, pen)
    else:
        sign, style, text, note = _wait(one, pen)
    bar = pen.bar(start, max(length, 0.0), longest, width, pen.signs.call if isinstance(one, Call) else pen.signs.wait)
    note = f"  {exact_line(note)}" if note else ""
    text = pen.fit(text, len(head) + width + len(sign) + 2 + len(note))
    return f"{pen(head, 'dim')}{pen(bar, style)} {pen(sign, style)} {text}{pen(note, 'dim')}".rstrip()


def _call(call: Call, pen: Pen) -> tuple[str, Style, str, str]:
    title = call.title or call.id
    kind = call.kind or ""
    match call.status:
        case "completed":
            return pen.signs.good, "green", title, kind
        case "failed" | "cancelled":
            return pen.signs.bad, "red", title, f"{kind} {call.status}".strip()
        case _:
            return pen.signs.going, "yellow", title, f"{kind} {call.status or ''}".strip()[:40]


def _wait(wait: Wait, pen: Pen) -> tuple[str, Style, str, str]:
    outcome = wait.outcome or "no answer"
    return pen.signs.question, "yellow", wait.title or wait.kind, outcome[:40]
