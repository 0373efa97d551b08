"""`antiphon help`: the help of the program, or of one command."""

import argparse
import sys
from typing import Final

from antiphon.cli.arguments import Paragraphs, Parser
from antiphon.cli.main import COMMANDS, GROUPS, load
from antiphon.cli.outcome import COLORS, STATUSES, Misused, did_you_mean, invocation

__all__ = ["parser", "run"]

DESCRIPTION: Final = "The Agent Client Protocol (ACP): run agents, serve editors, test both."

EXAMPLES: Final = """\
examples:
  antiphon chat                          chat with Claude Code and Codex, or the demo
  antiphon run "explain this project"    send one prompt, print the answer
  antiphon run --agent codex -f task.md --json
  antiphon setup zed                     use Antiphon in an editor
  antiphon doctor                        find problems, and what to do
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of `antiphon help`."""
    top = Parser(prog="antiphon help", description="Show the help of a command, as its --help does.")
    top.add_argument(
        "command", metavar="COMMAND", nargs="?", choices=(*COMMANDS,), help="the command (default: all of them)"
    )
    top.add_argument("subcommand", metavar="SUBCOMMAND", nargs="*", help="one of its subcommands")
    return top


def run(arguments: list[str]) -> int:
    """Print the help of a command, or of all."""
    words = [word for word in arguments if word not in ("-h", "--help")]
    unknown = next((word for word in words if word.startswith("-")), None)
    if unknown is not None:
        raise Misused(f"unknown option `{unknown}`", hint="`antiphon help COMMAND` shows the help of a command")
    if not words:
        sys.stdout.write(_everything())
        return 0
    name = words[0]
    if name not in COMMANDS:
        meant = did_you_mean(name, COMMANDS)
        raise Misused(f"unknown command `{name}`", hint=f"{meant}`antiphon --help` lists the commands")
    if name == "help":
        parser().print_help(sys.stdout)
        return 0
    command = load(name)
    subcommands = _subcommands(words, command.parser())
    invocation.prog = f"antiphon {name}"
    return command.run([*subcommands, "--help"])


def _subcommands(words: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """Return the words that name a subcommand, up to one that there is not.

    Raises:
        Misused: a word stands where there are no subcommands.
    """
    for number, word in enumerate(words[1:], 1):
        levels = (each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        if (choices := next(levels, None)) is None:
            hint = f"`antiphon help {words[0]}` shows the help of the command"
            raise Misused(f"unexpected argument `{word}`", hint=hint)
        if word not in choices:
            return words[1 : number + 1]
        parser = choices[word]
    return words[1:]


def _everything() -> str:
    """Return what `antiphon --help` prints."""
    statuses = ", ".join(f"{number} {what}" for number, what in STATUSES.items())
    top = _Everything(
        prog="antiphon",
        usage="antiphon [OPTIONS] COMMAND …",
        description=DESCRIPTION,
        epilog=f"{EXAMPLES}\n`antiphon help COMMAND` shows the options of a command.\n\nexit status of every command: {statuses}.",
        formatter_class=_Written,
        add_help=False,
    )
    top.add_argument("-h", "--help", action="store_true", help="show this help")
    top.add_argument("-V", "--version", action="store_true", help="show the version")
    top.add_argument(
        "--color", metavar="WHEN", choices=COLORS, help=f"when to use colours: {', '.join(COLORS)} (default: auto)"
    )
    return top.format_help()


class _Written(Paragraphs):
    """Fills paragraphs, and keeps those with an indented second line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.rstrip().split("\n\n")
        return "\n\n".join(
            part if "\n  " in part else super(_Written, self)._fill_text(part, width, indent) for part in parts
        )


class _Everything(argparse.ArgumentParser):
    """The help of the program: groups of commands, then the options."""

    def format_help(self) -> str:
        text = super().format_help()
        listed = "\n\n".join(
            "\n".join((f"{title}:", *(f"  {name:<14}{what}" for name, what in group.items())))
            for title, group in GROUPS.items()
        )
        head, options, tail = text.partition("options:\n")
        return f"{head}{listed}\n\n{options}{tail}"
