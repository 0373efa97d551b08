"""The command line of `antiphon run`: its parser, and the end of its help."""

import argparse
from typing import Final

from antiphon.cli.arguments import (
    Parser,
    add_agent,
    add_permissions,
    add_problems,
    add_session,
    amount,
    duration,
    number_from,
)
from antiphon.cli.outcome import RUN_STATUSES

__all__ = ["KEEP", "OUTPUTS", "add_limits", "add_policy", "run_parser"]

OUTPUTS: Final = ("text", "json", "stream-json")
KEEP: Final = ("changed", "always", "never")

EPILOG: Final = """\
The prompt is taken from the arguments, or from stdin without them; `-` in the arguments is replaced by stdin. `@path` in the prompt
attaches a file, `@path:10-20` some of its lines; `\\@` is a plain @. Everything after `--` is the prompt.

  antiphon run "What does this project do?"
  git diff | antiphon run "Review this" --quiet > review.md
  antiphon run "Fix the tests" --agent claude --allow 'Bash(pytest *)' --json

stdout has the agent's messages (events with --json, the last message with --quiet), stderr everything else.

exit status: {statuses}.
"""


def _statuses() -> str:
    return ", ".join(f"{status} {what.partition(':')[0]}" for status, what in RUN_STATUSES.items())


def run_parser() -> argparse.ArgumentParser:
    """Return the parser of `antiphon run`."""
    parser = Parser(
        prog="antiphon run",
        usage="antiphon run [OPTIONS] [PROMPT …]",
        description="Send one prompt to an agent in this directory, and print the answer.",
        epilog=EPILOG.format(statuses=_statuses()),
    )
    parser.add_argument(
        "prompt", metavar="PROMPT", nargs="*", help="the prompt; several words are joined, `-` is stdin"
    )
    parser.add_argument("-f", "--file", metavar="FILE", help="read the prompt from a file")
    parser.add_argument(
        "-a", "--attach", metavar="PATH", action="append", default=[], help="send a file along; may be repeated"
    )
    add_agent(parser)
    add_session(parser)
    _add_more_session(parser)
    add_permissions(parser)
    add_policy(parser)
    _add_output(parser)
    _add_worktree(parser)
    add_limits(parser)
    add_problems(parser)
    return parser


def _add_more_session(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session of this run")
    group.add_argument("--ephemeral", action="store_true", help="delete the session at the end")
    group.add_argument(
        "--append-system-prompt", metavar="TEXT", help="add this to the agent's system prompt, if the agent can"
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the options for a machine without settings of its own, such as one of a CI."""
    group = parser.add_argument_group("permission without settings")
    group.add_argument("--policy", metavar="FILE", help="a file with a `[policy]`, which counts beside your own")
    group.add_argument(
        "--trust-project",
        action="store_true",
        help="trust the project's files as they are, like `antiphon policy trust`",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--output",
        metavar="FORM",
        choices=OUTPUTS,
        default="text",
        help="text, json (the result as one object), or stream-json (an event per line, the last one the result)",
    )
    form.add_argument(
        "--json", dest="output", action="store_const", const="stream-json", help="the same as `--output stream-json`"
    )
    form.add_argument("-q", "--quiet", action="store_true", help="only the agent's last message, and errors")
    group.add_argument("-o", "--output-file", metavar="FILE", help="also write the agent's last message to a file")
    group.add_argument(
        "--output-schema",
        metavar="FILE",
        help="the answer has to be JSON that matches this JSON schema; asks up to 3 times",
    )
    group.add_argument("--patch", metavar="FILE", help="write all changes to files as one git patch")
    group.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML")
    group.add_argument(
        "--github", action="store_true", help="annotations, step summary and step outputs of GitHub Actions"
    )


def _add_worktree(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("worktree")
    group.add_argument("--worktree", action="store_true", help="work in a new git worktree, on a branch of its own")
    group.add_argument(
        "--keep-worktree",
        metavar="WHEN",
        choices=KEEP,
        help="keep the worktree if something changed in it (changed, the default), always, or never",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that bound what a run may use."""
    group = parser.add_argument_group("limits")
    group.add_argument("--max-cost", metavar="USD", type=amount, help="stop before the run costs more than this")
    group.add_argument("--max-tokens", metavar="N", type=number_from(1), help="stop before it uses more tokens")
    group.add_argument(
        "--max-turns", metavar="N", type=number_from(1), help="stop before it sends more requests to the model"
    )
    group.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="cancel the turn after this time: seconds, or 90s, 5m, 1h (default: never)",
    )
