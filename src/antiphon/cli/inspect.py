"""`antiphon inspect`: what a recording says, in the terminal, as data, as a page, and while it is still being written."""

import argparse
import sys
from typing import Final

from antiphon.cli.grammar import Parser, duration, shown_time
from antiphon.cli.inspect_doing import BESIDE, SHORT, Inspection, Wanted
from antiphon.cli.saying import Misused
from antiphon.recorder.story_builder import SLOW
from antiphon.recorder.views.filters import MessageFilter, span

__all__ = ["parser", "run"]

EPILOG: Final = """\
FILE has one JSON object per line, as `antiphon record` writes them: {"t": seconds, "dir": "c2a" or "a2c", "msg": the message}. Files of
other tools will do; lines of other kinds are skipped. `-` is stdin.

Without options: who spoke with whom, the turns with their tool calls and questions, errors, deviations from the protocol, sizes, and what
was slow. With a choice of messages: these, as a diagram; several choices narrow each other down. GLOB is compared with methods and with
kinds of updates: `fs/*`, `tool_call*`. With --json the choice is of what --messages adds.

exit status: 0, with --strict 1 if there are deviations that are more than advice or lines that cannot be decoded; 1 if there is no
recording, 2 wrong arguments.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon inspect",
        usage="antiphon inspect [OPTIONS] FILE",
        description="Analyse a recording: turns, tool calls, waits, errors, deviations.",
        epilog=EPILOG,
    )
    top.add_argument("file", metavar="FILE", nargs="?", help="the recording; `-` is stdin")
    top.add_argument("-f", "--follow", action="store_true", help="show messages as they are written, until Ctrl-C")
    top.add_argument("--diagram", action="store_true", help=f"draw every message, also if there are more than {SHORT}")
    top.add_argument("--json", action="store_true", help="all of it as one JSON object")
    top.add_argument("--messages", action="store_true", help="with --json, also a list of the messages")
    top.add_argument(
        "--html", metavar="OUT", nargs="?", const=BESIDE, help="write a page with pictures; without OUT, beside FILE"
    )
    top.add_argument(
        "--slow", metavar="TIME", type=duration, help=f"from when on something is slow (default: {shown_time(SLOW)})"
    )
    top.add_argument("--strict", action="store_true", help="status 1 where the protocol was not kept")
    choice = top.add_argument_group("choice of messages")
    choice.add_argument("--session", metavar="ID", help="of this session; the beginning of its id will do")
    choice.add_argument("--turn", metavar="N[-M]", type=span, help="of this turn, or of these")
    choice.add_argument("--method", metavar="GLOB", help="of this method or kind of update, and its answers")
    choice.add_argument("--dir", choices=("c2a", "a2c"), help="from client to agent, or from agent to client")
    choice.add_argument("--errors", action="store_true", help="that are errors or noise")
    choice.add_argument(
        "--deviations", action="store_true", help="that break a rule or do not follow advice, with what is wrong"
    )
    choice.add_argument("--grep", metavar="TEXT", help="that contain this text, large or small letters")
    choice.add_argument("--message", metavar="N[-M]", type=span, help="of these numbers, printed whole")
    return top


def run(arguments: list[str]) -> int:
    """Inspect a recording."""
    options = parser().parse_args(arguments, namespace=Wanted())
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
