"""`antiphon check-client`: whether a client is correct, found out by being the agent that it starts."""

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon.cli.check import add_reports
from antiphon.cli.grammar import Parser
from antiphon.cli.saying import Misused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from antiphon.conformance.results import ConformanceReport, ScenarioRecord

__all__ = ["parser", "run"]

EPILOG: Final = """\
{agent} anywhere in CMD is replaced by the command that the client has to start: one path, without spaces or arguments. CMD has to make the client open a
session, send one prompt, whichever, and end when the turn has ended. It is started about twenty times, each time in an empty directory
of its own ({cwd}), with an agent that does what is to be shown.

What else the client can do (cancel a turn, load a session, say no) is shown with commands from a file: --show-commands prints one to
start from. Without them it is told as never seen, not as wrong.

  antiphon check-client -- my-client --agent {agent} "hello"
  antiphon check-client --commands commands.toml --junit report.xml -- my-client --agent {agent} "hello"

exit status: 0 nothing that must hold was broken (with --strict: nor anything that should, and all of it was seen), 1 something was, 2 wrong arguments.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon check-client",
        usage="antiphon check-client [OPTIONS] -- CMD … {agent} …",
        description="Test a client's conformance: what it must and should do, and what it says it can, each shown by a scenario.",
        epilog=EPILOG,
    )
    top.add_argument("command", metavar="CMD", nargs="*", help="the command that makes the client send a prompt")
    top.add_argument(
        "--commands", metavar="FILE", type=Path, help="commands that make the client do other things (TOML)"
    )
    top.add_argument("--show-commands", action="store_true", help="print such a file, and end")
    add_reports(top)
    return top


def run(arguments: list[str]) -> int:
    """Check a client and report."""
    from antiphon.cli import check_doing as doing

    before, command = doing.split(arguments)
    options = doing.parsed(parser(), before)
    words = [*options.command, *command]
    from antiphon.conformance.suites.client import SUITE

    doing.check_numbers(options)
    if options.show_commands:
        return _show_commands()
    if options.list:
        return doing.show_requirements(SUITE, as_json=options.json)
    if not words:
        raise Misused("there is no client to check: give its command after `--`, with {agent} in it")
    from antiphon.conformance.agent_run import LIMIT
    from antiphon.conformance.client_check import check_client
    from antiphon.conformance.client_process import ClientCommands
    from antiphon.conformance.client_run import ClientCheckOptions

    place = ClientCommands.of(words, options.commands)
    if "{" not in words[0] and shutil.which(words[0]) is None:
        raise Misused(f"cannot start `{words[0]}`: no such program", hint="install it, or give its full path")
    wishes = ClientCheckOptions(limit=options.timeout or LIMIT, patience=options.patience)

    def check(
        only: "Sequence[str]", progress: "Callable[[ScenarioRecord], None]", _: object
    ) -> "Coroutine[Any, Any, ConformanceReport]":
        return check_client(place, wishes, only=only, jobs=options.jobs, progress=progress)

    return doing.reported(check, SUITE, options, words)


def _show_commands() -> int:
    """A file of commands to start from."""
    from antiphon.conformance.client_process import CLIENT_PURPOSES

    lines = [
        "# What makes the client do each of these: a command with {agent} in it, or a list of commands that are run in turn."
    ]
    for name, what in CLIENT_PURPOSES.items():
        if name != "prompt":
            lines += [f"\n# {what}", f"# {name} = 'my-client --agent {{agent}} …'"]
    lines += ["\n# What is typed, and the signal that makes it cancel.", "[stdin]", "[signal]", '# cancel = "INT"']
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
