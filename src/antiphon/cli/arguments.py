"""The options of `run` and `chat`: defined once, for both, for their help and for shell completion."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from antiphon.cli.grammar import Paragraphs, Parser, count, duration
from antiphon.cli.saying import Misused

if TYPE_CHECKING:
    from antiphon.client.launch import LaunchOptions

__all__ = [
    "MODES", "Misused", "Options", "Paragraphs", "Parser", "add_agent", "add_permissions", "add_session", "add_troubles", "count", "duration",
    "run_parser", "work_place",
]  # fmt: skip

MODES: Final = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
ON_ASK: Final = ("deny", "fail", "allow")

TIMEOUT_GRACE: Final = 2.0
"""Seconds that an agent may take to end a turn that `--timeout` has cancelled: the time is over."""

EPILOG: Final = """\
The prompt is what stands in the arguments; `-` is what comes on stdin, and without any prompt stdin is it. `@path` in it sends a file
along, `@path#L10:20` some of its lines; `\\@` is only an @. After `--` everything is prompt.

stdout has what the agent says (with --json events, with --quiet its last message); all else is on stderr.

exit status: 0 the turn ended, 1 error, 2 wrong arguments, 3 the agent refused, 4 its token or turn limit was reached,
5 something was denied because nobody was there to ask, 6 one of several engines failed, 124 timeout, 130 cancelled.
"""


class Options(argparse.Namespace):
    """What was said on the command line. None and empty: nothing was said."""

    agent: str | None
    cwd: str | None
    add_dir: list[str]
    mcp_config: list[str]
    session: str | None
    continue_last: bool
    resume: str | None
    mode: str | None
    model: str | None
    set: list[tuple[str, str]]
    allow: list[str]
    deny: list[str]
    ask: list[str]
    permission_mode: str | None
    on_ask: str | None
    max_retries: int | None
    verbose: bool
    # Only of `run`:
    prompt: list[str]
    file: str | None
    attach: list[str]
    timeout: float | None
    json: bool
    quiet: bool

    def launch_options(self) -> "LaunchOptions":
        """Return what the command line says about the agent and the policy."""
        from antiphon.client.launch import LaunchOptions
        from antiphon.connection.stream import CANCEL_GRACE

        return LaunchOptions(
            self.agent,
            self.allow,
            self.deny,
            self.ask,
            self.permission_mode,
            self.on_ask,
            self.max_retries,
            CANCEL_GRACE if getattr(self, "timeout", None) is None else TIMEOUT_GRACE,
        )

    @classmethod
    def read(cls, parser: argparse.ArgumentParser, arguments: Sequence[str]) -> "Options":
        """What these arguments say.

        Raises:
            Misused: they say nothing that makes sense.
            SystemExit: help was asked for, and given.
        """
        words = list(arguments)
        # By hand: argparse forgets about it when options stand between words.
        end = words.index("--") if "--" in words else len(words)
        # Intermixed: options may stand before, behind and between the words of a prompt.
        options: Options = parser.parse_intermixed_args(words[:end], namespace=cls())
        if end < len(words):
            options.prompt = [*options.prompt, *words[end + 1 :]]
        return options


def run_parser() -> argparse.ArgumentParser:
    """The command line of `antiphon run`."""
    parser = Parser(
        prog="antiphon run",
        usage="antiphon run [OPTIONS] [PROMPT …]",
        description="Send one prompt to an agent in this directory, and print the answer.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "prompt", metavar="PROMPT", nargs="*", help="what to say; several words are joined, `-` is stdin"
    )
    parser.add_argument("-f", "--file", metavar="FILE", help="read the prompt from a file")
    parser.add_argument(
        "-a", "--attach", metavar="PATH", action="append", default=[], help="send a file along; may be repeated"
    )
    add_agent(parser)
    add_session(parser)
    add_permissions(parser)
    output = parser.add_argument_group("output")
    form = output.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON event per line, the last one the result")
    form.add_argument("-q", "--quiet", action="store_true", help="only the agent's last message, and errors")
    add_troubles(parser)
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="cancel the turn after this time: seconds, or 90s, 5m, 1h (default: never)",
    )
    return parser


def add_agent(parser: argparse.ArgumentParser) -> None:
    """Who is to work, and where."""
    group = parser.add_argument_group("agent")
    group.add_argument("--agent", metavar="NAME", help="an agent that `antiphon agents` lists, or a command in quotes")
    group.add_argument("--cwd", metavar="DIR", help="the directory to work in (default: this one)")
    group.add_argument(
        "--add-dir", metavar="DIR", action="append", default=[], help="one more directory that it may use"
    )
    group.add_argument(
        "--mcp-config", metavar="FILE", action="append", default=[], help="MCP servers, as in `.mcp.json`"
    )


def add_session(parser: argparse.ArgumentParser) -> None:
    """In which session, and how it is set."""
    group = parser.add_argument_group("session")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="NAME", help="the session of this name; made if there is none")
    which.add_argument(
        "--continue", dest="continue_last", action="store_true", help="the last session in this directory"
    )
    which.add_argument("--resume", metavar="ID", help="the session with this id")
    group.add_argument("--mode", metavar="ID", help="the agent's mode")
    group.add_argument("--model", metavar="ID", help="the agent's model")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], type=pair, help="one of the agent's settings"
    )


def add_permissions(parser: argparse.ArgumentParser) -> None:
    """What it may do."""
    group = parser.add_argument_group("permission")
    what = {
        "allow": "allow this without a question, such as 'Bash(git *)'",
        "deny": "never allow this; deny beats ask beats allow",
        "ask": "always ask about this",
    }
    for verb, help in what.items():
        group.add_argument(f"--{verb}", metavar="RULE", action="append", default=[], help=help)
    group.add_argument(
        "--permission-mode", metavar="MODE", choices=MODES, help=f"what no rule decides: {', '.join(MODES)}"
    )
    group.add_argument(
        "--on-ask",
        choices=ON_ASK,
        help="answer permission requests without asking: deny, fail or allow (default: ask; deny without a terminal)",
    )


def add_troubles(parser: argparse.ArgumentParser) -> None:
    """What to do when things go wrong."""
    group = parser.add_argument_group("problems")
    group.add_argument(
        "--max-retries", metavar="N", type=count, help="how often to ask a lost or slow agent again (default: 4)"
    )
    group.add_argument("-v", "--verbose", action="store_true", help="say what happens, on stderr too")


def pair(text: str) -> tuple[str, str]:
    """A setting and its value."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is not a setting: write `key=value`")
    return key, value


def work_place(options: Options) -> str:
    """The directory to work in.

    Raises:
        Misused: there is none.
    """
    cwd = os.path.abspath(os.path.expanduser(options.cwd or os.getcwd()))
    for folder in (cwd, *options.add_dir):
        if not os.path.isdir(os.path.expanduser(folder)):
            raise Misused(f"there is no directory `{folder}`")
    return cwd
