"""`antiphon inspect`: show a recording as text, JSON or a page, or follow it while it is written."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from antiphon.cli.arguments import Parser, duration, shown_time
from antiphon.cli.outcome import FAILED, Misused
from antiphon.errors import AcpError
from antiphon.text import exact, exact_line

if TYPE_CHECKING:
    from antiphon.recorder.analysis import Analysis, RecordedMessage
    from antiphon.recorder.views.filters import MessageFilter
    from antiphon.recorder.views.style import ViewStyle
    from antiphon.traffic.entries import Entry

__all__ = ["BESIDE", "SHORT", "InspectOptions", "Inspection", "parser", "run"]

EPILOG: Final = """\
FILE has one JSON object per line, as `antiphon record` writes them: {"t": seconds, "dir": "c2a" or "a2c", "msg": the message}. Lines of
other kinds are skipped.

Without options it prints the names of both peers, the turns with their tool calls and permission requests, errors, protocol violations, sizes,
and what was slow. If you choose messages, these are drawn as a diagram; several choices are combined. GLOB matches methods and kinds of
updates: `fs/*`, `tool_call*`. With --json the choice applies to the list of --messages.

exit status: 0; 1 if there is no recording, or with --strict if the protocol was violated or lines cannot be decoded; 2 wrong arguments.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""

    from antiphon.recorder.analysis_builder import SLOW
    from antiphon.recorder.views.filters import span

    top = Parser(
        prog="antiphon inspect",
        usage="antiphon inspect [OPTIONS] FILE",
        description="Analyse a recording: turns, tool calls, timings, errors and protocol violations.",
        epilog=EPILOG,
    )
    top.add_argument("file", metavar="FILE", nargs="?", help="the recording; `-` is stdin")
    top.add_argument("-f", "--follow", action="store_true", help="show messages as they are written, until Ctrl-C")
    top.add_argument("--diagram", action="store_true", help=f"draw every message, even if there are more than {SHORT}")
    top.add_argument("--json", action="store_true", help="the analysis as one JSON object")
    top.add_argument("--messages", action="store_true", help="with --json, also a list of the messages")
    top.add_argument("--html", metavar="OUT", nargs="?", const=BESIDE, help="write an HTML page (default: beside FILE)")
    top.add_argument("--slow", metavar="TIME", type=duration, help=f"what counts as slow (default: {shown_time(SLOW)})")
    top.add_argument("--strict", action="store_true", help="exit with 1 if the protocol was violated")
    choice = top.add_argument_group("choose messages")
    choice.add_argument("--session", metavar="ID", help="of this session, by the first letters of its id")
    choice.add_argument("--turn", metavar="N[-M]", type=span, help="of these turns")
    choice.add_argument("--method", metavar="GLOB", help="of this method or kind of update, and its responses")
    choice.add_argument("--dir", choices=("c2a", "a2c"), help="from client to agent, or from agent to client")
    choice.add_argument("--errors", action="store_true", help="that are errors or noise")
    choice.add_argument("--deviations", action="store_true", help="that break a rule or ignore advice, with the reason")
    choice.add_argument("--grep", metavar="TEXT", help="that contain this text; case is ignored")
    choice.add_argument("--message", metavar="N[-M]", type=span, help="with these numbers, printed whole")
    return top


def run(arguments: list[str]) -> int:
    """Inspect a recording."""

    from antiphon.recorder.views.filters import MessageFilter

    options = parser().parse_args(arguments, namespace=InspectOptions())
    if options.file is None and options.html:  # `--html FILE`: it took the word that was meant for FILE
        options.file, options.html = options.html, BESIDE
    if options.file is None:
        raise Misused("FILE is missing", hint="name a recording; `-` is stdin")
    choice = MessageFilter(
        options.session, options.turn, options.method, options.dir, options.errors, options.deviations, options.grep,
        options.message,
    )  # fmt: skip
    if options.messages and not options.json:
        raise Misused("--messages is for --json; --diagram draws the messages")
    if options.follow and (options.json or options.message or options.html is not None):
        raise Misused("--follow shows messages as they come, and goes with none of --json, --html and --message")
    if options.json and options.html is not None:
        raise Misused("--json and --html are two forms of the same: ask for one")
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    work = Inspection(options.file, options, choice)
    return work.follow() if options.follow else work.show()


# --- reading and showing a recording ---------------------------------------------------------------------------------

BESIDE: Final = ""
"""Default path of a page."""

SHORT: Final = 40
"""Arrows that are drawn without `--diagram`."""


class UnusableRecording(AcpError):
    """The recording cannot be read, or the page cannot be written."""


class InspectOptions(argparse.Namespace):
    """The options of the command."""

    file: str | None
    html: str | None
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


class Inspection:
    """One recording, read once and shown according to the options."""

    def __init__(self, file: str, options: InspectOptions, choice: "MessageFilter") -> None:
        from antiphon.recorder.analysis_builder import SLOW, AnalysisBuilder
        from antiphon.traffic.entries import RecordingReader

        self._file = file
        self._options = options
        self._choice = choice
        self._reading = RecordingReader()
        self._builder = AnalysisBuilder(file, slow=options.slow or SLOW)
        self._shown: list[RecordedMessage] = []
        self._whole: list[Entry] = []
        self._short = True
        self._keeps = bool(choice) or options.diagram or options.messages or options.html is not None

    def _take(self, line: bytes) -> "RecordedMessage | None":
        """Return how a line of the file is shown; None if it was not chosen."""
        entry = self._reading.entry(line)
        if entry is None:
            return None
        shown = self._builder.add(entry)
        if not self._choice.wants(shown, entry.raw):
            return None
        if self._options.message is not None or self._options.html is not None:
            self._whole.append(entry)
        return shown

    def _read(self, lines: Iterable[bytes]) -> None:
        """Read the whole file. Unless messages are chosen, keep only as many as a short diagram needs."""
        from antiphon.recorder.views.diagram import DiagramRow, joined

        row, rows = None, 0
        for line in lines:
            shown = self._take(line)
            if shown is None or (rows > SHORT and not self._keeps):
                continue
            self._shown.append(shown)
            if row is None or not joined(row, shown):
                row, rows = DiagramRow(shown), rows + 1
        self._short = rows <= SHORT

    def show(self) -> int:
        """Print what the options ask for, and return the exit status."""
        with _opened(self._file) as lines:
            self._read(lines)
        analysis = self._builder.analysis(self._reading)
        if not analysis.conversations:
            self._nothing()
        if self._options.json:
            self._print_json(analysis)
        elif self._options.html is not None:
            self._write_page(analysis, self._options.html)
        else:
            for number, line in enumerate(self._lines(analysis, stdout_pen())):
                sys.stdout.write((line if number else line.lstrip("\n")) + "\n")
        return self._status(analysis)

    def _nothing(self) -> NoReturn:
        from antiphon.recorder.replay.script import is_none

        wrong = is_none(exact_line(self._file), self._reading.lines)
        raise UnusableRecording(wrong.sentence, hint=wrong.hint)

    def _status(self, analysis: "Analysis") -> int:
        broken = analysis.undecodable or bool(analysis.deviations)
        return FAILED if self._options.strict and broken else 0

    def _print_json(self, analysis: "Analysis") -> None:
        document = msgspec.to_builtins(analysis)
        if self._options.messages:
            document["entries"] = msgspec.to_builtins(self._shown)
        sys.stdout.write(f"{msgspec.json.encode(document).decode()}\n")

    def _write_page(self, analysis: "Analysis", out: str) -> None:
        """Write the page, readable by its owner alone: recordings contain secrets."""
        from antiphon.recorder.report import html_report

        page = html_report(
            analysis, [(shown, entry.raw) for shown, entry in zip(self._shown, self._whole, strict=True)]
        )
        if out == "-" or (out == BESIDE and self._file == "-"):
            sys.stdout.write(page)
            return
        path = Path(out) if out else Path(self._file).with_suffix(".html")
        if path.exists() and self._file != "-" and path.samefile(self._file):
            raise Misused("the page would be written over the recording")
        try:
            with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(page)
        except OSError as error:
            reason = (error.strerror or "no reason is known").lower()
            raise UnusableRecording(
                f"`{path}` cannot be written: {reason}", hint="`--html OUT` names another place"
            ) from error
        sys.stderr.write(f"wrote `{exact_line(str(path))}`\n")

    def _lines(self, analysis: "Analysis", style: "ViewStyle") -> Iterator[str]:
        from antiphon.recorder.views.diagram import diagram_lines
        from antiphon.recorder.views.overview import overview, turn_lines

        if self._options.message is not None:
            yield from _whole_lines(self._whole, self._shown, style)
        elif self._choice:
            if self._choice.only_turns:
                wanted = [turn for turn in analysis.turns if self._wants_turn(turn.number, turn.session)]
                yield from turn_lines(analysis, style, wanted, all_of_them=True)
                yield ""
            yield from diagram_lines(self._shown, style, texts=self._options.deviations)
            yield style(f"\n{len(self._shown):,} of {analysis.messages:,} messages", "dim")
        else:
            yield from overview(analysis, style)
            yield ""
            if self._options.diagram or self._short:
                yield from diagram_lines(self._shown, style)
            else:
                yield style("`--diagram` draws every message, `--turn N` a turn, `--message N` shows one whole.", "dim")

    def _wants_turn(self, number: int, session: str) -> bool:
        choice = self._choice
        return (choice.turn is None or number in choice.turn) and session.startswith(choice.session or "")

    # A recording that is being made.

    def follow(self) -> int:
        """Show messages as they are written, then the summary."""
        from antiphon.recorder.views.diagram import FileTail, LiveView, diagram_head
        from antiphon.recorder.views.overview import overview

        style = stdout_pen()
        live = LiveView(style)
        lines: Iterable[bytes | None]
        if self._file == "-":
            lines = sys.stdin.buffer
        else:
            lines = tail = FileTail(Path(self._file))
            tail.restarted = self._restart
            if not Path(self._file).exists():
                sys.stderr.write(f"waiting for `{exact_line(self._file)}` …\n")
        live.write(diagram_head(style))
        try:
            for line in lines:
                shown = self._take(line) if line is not None else None
                if shown is not None:
                    live.add(shown)
                elif line is None:
                    live.idle(self._builder.going)
        except KeyboardInterrupt:
            pass
        live.end()
        analysis = self._builder.analysis(self._reading)
        for line in ("", *overview(analysis, style)):
            sys.stdout.write(f"{line}\n")
        return self._status(analysis)

    def _restart(self) -> None:
        self._reading.lines = 0


def _whole_lines(entries: "Sequence[Entry]", shown: "Sequence[RecordedMessage]", style: "ViewStyle") -> Iterator[str]:
    """Return the lines of whole messages, with their problems above."""
    from antiphon.recorder.views.diagram import DiagramRow, row_lines

    if not entries:
        yield style("there is no such message", "dim")
    for number, (entry, line) in enumerate(zip(entries, shown, strict=True)):
        if number:
            yield ""
        yield from row_lines(DiagramRow(line, 1, line.size, line.t), style, texts=True)
        text = entry.raw if entry.is_noise else msgspec.json.format(entry.raw, indent=2)
        yield exact(text.decode("utf-8", "replace"))


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
        raise Misused(f"`{name}` cannot be read: {reason}", hint="`antiphon record` makes recordings") from error


def stdout_pen() -> "ViewStyle":
    """Return what stdout can show: its width, its colours, and whether it takes more than ASCII."""

    from antiphon.cli.terminal import stdout_paint
    from antiphon.recorder.views.style import PLAIN, WIDTH, Signs, ViewStyle

    paint = stdout_paint()
    width = shutil.get_terminal_size((WIDTH, 24)).columns - paint.coloured
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return ViewStyle(paint, width, Signs() if encoding.startswith("utf") else PLAIN)
