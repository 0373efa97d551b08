"""`antiphon inspect`: what a recording says, in the terminal, as data, as a page, and while it is still being written."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.cli.arguments import Misused, Paragraphs, Parser, duration
from antiphon.cli.ending import ended
from antiphon.cli.inspect_choosing import Choice, span
from antiphon.cli.inspect_pen import Pen, counted
from antiphon.cli.saying import FAILED, fail
from antiphon.cli.screen import exact
from antiphon.errors import AcpError
from antiphon.recorder.telling import SLOW, Telling
from antiphon.traffic.entries import Entry, Reading

if TYPE_CHECKING:
    from antiphon.recorder.story import Shown, Story

__all__ = ["parser", "run"]

HELP_HINT: Final = "`antiphon inspect --help` shows what there is."

SHORT: Final = 40
"""Arrows that are drawn though nobody asked for a diagram."""

EPILOG: Final = """\
FILE has one JSON object per line, as `antiphon record` writes them: {"t": seconds, "dir": "c2a" or "a2c", "msg": the message}. Files of
other tools will do; lines of other kinds are skipped. `-` is stdin.

Without options: who spoke with whom, the turns with their tool calls and questions, errors, deviations from the protocol, sizes, and what
was slow. With a choice of messages: these, as a diagram; several choices narrow each other down. GLOB is compared with methods and with
kinds of updates: `fs/*`, `tool_call*`. With --json the choice is of what --messages adds.

exit status: 0, with --strict 1 if there are deviations that are more than advice or lines that cannot be decoded; 1 if there is no
recording, 2 wrong arguments.
"""


class NoRecording(AcpError):
    """There is nothing to inspect."""


class Wanted(argparse.Namespace):
    """What was said on the command line."""

    file: str
    follow: bool
    diagram: bool
    json: bool
    messages: bool
    slow: float | None
    strict: bool
    session: str | None
    turn: range | None
    method: str | None
    dir: str | None
    errors: bool
    deviations: bool
    grep: str | None
    message: range | None


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon inspect",
        usage="antiphon inspect [OPTIONS] FILE",
        description="What a recording says: turns, tool calls, waits, errors, deviations.",
        epilog=EPILOG,
        formatter_class=Paragraphs,
        allow_abbrev=False,
    )
    top.add_argument("file", metavar="FILE", help="the recording; `-` is stdin")
    top.add_argument("-f", "--follow", action="store_true", help="show messages as they are written, until Ctrl-C")
    top.add_argument("--diagram", action="store_true", help=f"draw every message, also if there are more than {SHORT}")
    top.add_argument("--json", action="store_true", help="all of it as one JSON object")
    top.add_argument("--messages", action="store_true", help="with --json, also a list of the messages")
    top.add_argument("--slow", metavar="SECONDS", type=duration, help=f"from when on something is slow ({SLOW:g})")
    top.add_argument("--strict", action="store_true", help="status 1 where the protocol was not kept")
    choice = top.add_argument_group("choice of messages")
    choice.add_argument("--session", metavar="ID", help="of this session; the beginning of its id will do")
    choice.add_argument("--turn", metavar="N[-M]", type=span, help="of this turn, or of these")
    choice.add_argument("--method", metavar="GLOB", help="of this method or kind of update, and its answers")
    choice.add_argument("--dir", choices=("c2a", "a2c"), help="from client to agent, or from agent to client")
    choice.add_argument("--errors", action="store_true", help="that are errors or noise")
    choice.add_argument("--deviations", action="store_true", help="that break a rule, with what is wrong")
    choice.add_argument("--grep", metavar="TEXT", help="that contain this text, large or small letters")
    choice.add_argument("--message", metavar="N[-M]", type=span, help="of these numbers, printed whole")
    return top


def run(arguments: list[str]) -> int:
    """Inspect a recording."""
    return ended(lambda: _inspect(arguments), HELP_HINT)


def _inspect(arguments: list[str]) -> int:
    options = parser().parse_args(arguments, namespace=Wanted())
    choice = Choice(
        options.session, options.turn, options.method, options.dir, options.errors, options.deviations, options.grep,
        options.message,
    )  # fmt: skip
    if options.messages and not options.json:
        raise Misused("--messages is for --json; --diagram draws the messages")
    if options.follow and (options.json or options.message):
        raise Misused("--follow shows messages as they come, and goes with neither --json nor --message")
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    work = _Inspection(options, choice)
    if options.follow:
        return work.follow()
    with _opened(options.file) as lines:
        work.read(lines)
    return work.show()


@contextmanager
def _opened(name: str) -> Iterator[Iterable[bytes]]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise NoRecording(f"`{name}` cannot be read: {reason}\nhint: `antiphon record` makes recordings.") from error


class _Inspection:
    """One recording, read once, and shown in the form that was asked for."""

    def __init__(self, options: Wanted, choice: Choice) -> None:
        self._options = options
        self._choice = choice
        self._reading = Reading()
        self._telling = Telling(options.file, slow=options.slow or SLOW)
        self._shown: list[Shown] = []
        self._whole: list[Entry] = []
        self._short = True
        self._keeps = bool(choice) or options.diagram or options.messages

    def _hear(self, line: bytes) -> "Shown | None":
        """How a line of the file is shown, if it is one that is wanted."""
        entry = self._reading.entry(line)
        if entry is None:
            return None
        shown = self._telling.hear(entry)
        if not self._choice.wants(shown, entry.raw):
            return None
        if self._options.message is not None:
            self._whole.append(entry)
        return shown

    def read(self, lines: Iterable[bytes]) -> None:
        """The whole file. Without a choice, no more messages are kept than a short diagram needs."""
        from antiphon.cli.inspect_diagram import Row, joined

        row, rows = None, 0
        for line in lines:
            shown = self._hear(line)
            if shown is None or (rows > SHORT and not self._keeps):
                continue
            self._shown.append(shown)
            if row is None or not joined(row, shown):
                row, rows = Row(shown), rows + 1
        self._short = rows <= SHORT

    def show(self) -> int:
        """Print what was asked for; the status."""
        story = self._telling.story(self._reading)
        if self._options.json:
            self._print_json(story)
        elif story.conversations:
            for line in self._lines(story, Pen()):
                sys.stdout.write(f"{line}\n")
        if not story.conversations:
            return self._nothing()
        return self._status(story)

    def _nothing(self) -> int:
        name = exact(self._options.file, one_line=True)
        said = f"no message in {counted(self._reading.lines, 'line')}" if self._reading.lines else "it is empty"
        return fail(f"`{name}` is no recording: {said}", 'a line is {"t": seconds, "dir": "c2a" or "a2c", "msg": …}, as `antiphon record` writes it.', FAILED)  # fmt: skip

    def _status(self, story: "Story") -> int:
        broken = story.undecodable or any(one.level != "advice" for one in story.deviations)
        return FAILED if self._options.strict and broken else 0

    def _print_json(self, story: "Story") -> None:
        document = msgspec.to_builtins(story)
        if self._options.messages:
            document["entries"] = msgspec.to_builtins(self._shown)
        sys.stdout.write(f"{msgspec.json.encode(document).decode()}\n")

    def _lines(self, story: "Story", pen: Pen) -> Iterator[str]:
        from antiphon.cli.inspect_diagram import diagram_lines
        from antiphon.cli.inspect_turns import turn_lines
        from antiphon.cli.inspect_view import overview

        if self._options.message is not None:
            yield from _whole_lines(self._whole, self._shown, pen)
        elif self._choice:
            if self._choice.only_turns:
                wanted = [turn for turn in story.turns if self._wants_turn(turn.number, turn.session)]
                yield from turn_lines(story, pen, wanted, all_of_them=True)
                yield ""
            yield from diagram_lines(self._shown, pen, texts=self._options.deviations)
            yield pen(f"\n{len(self._shown):,} of {story.messages:,} messages", "dim")
        else:
            yield from overview(story, pen)
            yield ""
            if self._options.diagram or self._short:
                yield from diagram_lines(self._shown, pen)
            else:
                yield pen("`--diagram` draws every message, `--turn N` a turn, `--message N` shows one whole.", "dim")

    def _wants_turn(self, number: int, session: str) -> bool:
        choice = self._choice
        return (choice.turn is None or number in choice.turn) and session.startswith(choice.session or "")

    # A recording that is being made.

    def follow(self) -> int:
        """Show messages as they come, then what it was all about."""
        from antiphon.cli.inspect_diagram import diagram_head
        from antiphon.cli.inspect_follow import Live, Tail
        from antiphon.cli.inspect_view import overview

        pen = Pen()
        live = Live(pen)
        lines: Iterable[bytes | None]
        if self._options.file == "-":
            lines = sys.stdin.buffer
        else:
            lines = tail = Tail(Path(self._options.file))
            tail.restarted = self._restart
            if not Path(self._options.file).exists():
                sys.stderr.write(f"waiting for `{exact(self._options.file, one_line=True)}` …\n")
        live.write(diagram_head(pen))
        try:
            for line in lines:
                shown = self._hear(line) if line is not None else None
                if shown is not None:
                    live.hear(shown)
                elif line is None:
                    live.idle(self._telling.going)
        except KeyboardInterrupt:
            pass
        live.end()
        story = self._telling.story(self._reading)
        for told in ("", *overview(story, pen)):
            sys.stdout.write(f"{told}\n")
        return self._status(story)

    def _restart(self) -> None:
        self._reading.lines = 0


def _whole_lines(entries: Sequence[Entry], shown: "Sequence[Shown]", pen: Pen) -> Iterator[str]:
    """Messages whole, with what is wrong with them above."""
    from antiphon.cli.inspect_diagram import Row, row_lines

    if not entries:
        yield pen("there is no such message", "dim")
    for number, (entry, line) in enumerate(zip(entries, shown, strict=True)):
        if number:
            yield ""
        yield from row_lines(Row(line, 1, line.size, line.t), pen, texts=True)
        text = entry.raw if entry.is_noise else msgspec.json.format(entry.raw, indent=2)
        yield exact(text.decode("utf-8", "replace"))
