"""What a recording says, for people: who spoke with whom, the turns, what went wrong, what was big and what was slow."""

from collections.abc import Iterable, Iterator
from typing import Final

from antiphon.recorder.story import Deviation, Method, Party, Story
from antiphon.recorder.views.pen import Pen, many
from antiphon.recorder.views.turns import turn_lines
from antiphon.recorder.wording import counted, seconds, size

__all__ = ["deviation_lines", "error_lines", "head_lines", "overview"]

MOST: Final = 12
"""Lines of a table, where the rest is small change."""

WEIGHT: Final = ("must", "capability", "should", "advice")
"""What matters most comes first."""

TEXTS: Final = 3
"""Different sentences that are shown of one broken rule."""


def overview(story: Story, pen: Pen) -> Iterator[str]:
    """All but the diagram."""
    yield from head_lines(story, pen)
    yield from turn_lines(story, pen, story.turns)
    yield from error_lines(story, pen)
    yield from deviation_lines(story.deviations, pen)
    yield from deviation_lines(story.advice, pen, "Advice")
    yield from _size_lines(story, pen)
    yield from _slow_lines(story, pen)


def head_lines(story: Story, pen: Pen) -> Iterator[str]:
    """Who with whom, how long, and how much of everything."""
    dot = f" {pen.signs.between} "
    who = f"{_party(story.client, 'a client')} {pen.signs.both} {_party(story.agent, 'an agent')}"
    version = f"{dot}version {story.version}" if story.version is not None else ""
    yield pen(pen.fit(f"{who}{version}"), "bold")
    told = [
        seconds(story.duration),
        counted(story.messages, "message"),
        f"client {size(story.bytes.c2a)}",
        f"agent {size(story.bytes.a2c)}",
    ]
    yield pen.fit(dot.join(told))
    what = [
        counted(len(story.conversations), "conversation") if len(story.conversations) > 1 else "",
        counted(len(story.sessions), "session"),
        counted(len(story.turns), "turn"),
        counted(len(story.calls), "tool call"),
        counted(len(story.waits), "question"),
    ]
    yield pen.fit(dot.join(filter(None, what)))
    yield from _troubles(story, pen)


def _troubles(story: Story, pen: Pen) -> Iterator[str]:
    parts = [
        pen(counted(len(story.errors), "error"), "red" if story.errors else "dim"),
        pen(counted(len(story.deviations), "deviation"), "yellow" if story.deviations else "dim"),
    ]
    if story.advice:
        parts.append(counted(len(story.advice), "piece of advice", "pieces of advice"))
    if story.unanswered:
        parts.append(pen(f"{len(story.unanswered)} unanswered", "yellow"))
    if story.undecodable:
        parts.append(pen(f"{counted(story.undecodable, 'line')} undecodable", "yellow"))
    yield f" {pen.signs.between} ".join(parts)
    if not story.judged:
        yield pen(f"{pen.signs.warning} not judged: the rules are those of version 1", "yellow")


def _party(party: Party | None, unknown: str) -> str:
    if party is None:
        return unknown
    return f"{party.title or party.name}{f' {party.version}' if party.version else ''}"


def error_lines(story: Story, pen: Pen) -> Iterator[str]:
    """The errors, each once, with the messages that said it."""
    if not story.errors:
        return
    groups: dict[tuple[str, int | None, str], list[int]] = {}
    for error in story.errors:
        groups.setdefault((error.method or "nobody asked", error.code, error.text), []).append(error.message)
    yield pen.title("Errors", str(len(story.errors)))
    widest = min(max(len(method) for method, _, _ in groups), pen.width // 3)
    for (method, code, text), messages in list(groups.items())[:MOST]:
        where = many(messages, 4 if pen.width >= 80 else 1)
        head = f"  {code if code is not None else '?':>6}  "
        words = pen.fit(text, len(head) + widest + len(where) + 4)
        yield f"{pen(head, 'red')}{pen.cell(method, widest)}  {words}  {pen(where, 'dim')}"
    if len(groups) > MOST:
        yield pen(f"  {len(groups) - MOST} more; `--errors` shows them all", "dim")


def deviation_lines(deviations: Iterable[Deviation], pen: Pen, title: str = "Deviations") -> Iterator[str]:
    """The rules that were broken, or the advice that was not followed, each with the messages in which it was."""
    groups: dict[str, list[Deviation]] = {}
    for one in deviations:
        groups.setdefault(one.rule, []).append(one)
    if not groups:
        return
    yield pen.title(title, str(sum(map(len, groups.values()))))
    for rule, broken in sorted(groups.items(), key=lambda group: WEIGHT.index(group[1][0].level)):
        first = broken[0]
        where = many(sorted({one.message for one in broken}), 8)
        yield f"  {pen(rule, 'yellow')}  {pen(f'{first.level}  {where}', 'dim')}"
        texts = list(dict.fromkeys(one.text for one in broken))
        for text in texts[:TEXTS]:
            yield f"      {pen.fit(text, 6)}"
        if len(texts) > TEXTS:
            yield pen(f"      and {len(texts) - TEXTS} more", "dim")
        yield pen(f"      {first.link}", "dim")


def _size_lines(story: Story, pen: Pen) -> Iterator[str]:
    if not story.methods:
        return
    yield pen.title("Sizes")
    methods = story.methods[:MOST]
    beside = 42 if pen.width >= 76 else 24  # less where there is no room for the largest
    widest = min(max(len(_name(method)) for method in methods), pen.width - beside - 8)
    largest = methods[0].bytes
    width = min(max(pen.width - widest - beside, 6), 24)
    for method in methods:
        arrow = pen.signs.to_agent if method.dir == "c2a" else pen.signs.to_client
        numbers = f"{method.count:>6,} {pen.signs.times} {size(method.bytes):>8}"
        bar = pen.bar(0.0, method.bytes, largest, width, pen.signs.turn)
        top = f"  largest {size(method.largest)}" if method.count > 1 and beside > 24 else ""
        yield f"  {arrow} {pen.cell(_name(method), widest)} {numbers} {pen(bar, 'cyan')}{pen(top, 'dim')}".rstrip()
    if len(story.methods) > MOST:
        rest = story.methods[MOST:]
        yield pen(f"    {len(rest)} more with {size(sum(method.bytes for method in rest))}", "dim")


def _name(method: Method) -> str:
    name = method.method.removeprefix("session/update ")
    return f"answer to {name}" if method.kind == "answer" else name


def _slow_lines(story: Story, pen: Pen) -> Iterator[str]:
    if not story.slow:
        return
    yield pen.title("Slow")
    slow = story.slow[:MOST]
    width = min(max(pen.width // 5, 10), 30)
    for one in slow:
        where = f"  message {one.message}"
        bar = pen.bar(0.0, one.duration, slow[0].duration, width, pen.signs.turn)
        text = pen.fit(one.what, width + 14 + len(where))
        yield f"  {seconds(one.duration):>9} {pen(bar, 'yellow')}  {text}{pen(where, 'dim')}"
