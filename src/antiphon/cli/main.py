"""The front door: reads the first words of the command line. Knows no protocol and loads nothing it does not need.

Nothing here, nor anything it imports at the top, may need a POSIX system: the refusal on Windows has to be readable.
"""

import sys

from antiphon import __version__
from antiphon.cli.saying import FAILED, MISUSED, fail

__all__ = ["main"]

COMMANDS = {
    "run": "one prompt in this directory: what a script types",
    "chat": "a conversation in the terminal",
    "agents": "the agents there are: found, checked, added",
    "sessions": "conversations with our agent: listed, shown, searched, exported, resumed",
    "policy": "what is allowed, why, and what was decided",
    "doctor": "what is installed and signed in, what is wrong, what to do",
    "check": "whether an agent is correct: what it must, should and says it can do",
    "check-client": "whether a client is correct, by being the agent that it starts",
    "record": "a tap in place of an agent: what was said, line by line",
    "inspect": "what a recording says: turns, tool calls, waits, errors, deviations",
    "replay": "a recording as a stand-in for an agent or a client",
    "agent": "the agent an editor starts: speaks ACP on stdin and stdout",
    "setup": "Antiphon in an editor: Zed, JetBrains, Neovim, Emacs, VS Code",
    "completion": "completion for bash, zsh and fish",
}
"""Name → what it is. Each is a module of this room (`_` for `-`) with a function `run`."""

DESCRIPTION = "The Agent Client Protocol (ACP): agents, clients and what is between them."
HELP_HINT = "`antiphon --help` shows what there is."


def main(arguments: list[str] | None = None, *, platform: str = sys.platform) -> int:
    """Run the program and return its exit status."""
    if arguments is None:
        arguments = sys.argv[1:]
    if platform == "win32":
        return fail("Antiphon does not run on Windows yet.", "use it inside WSL, or on Linux.", FAILED)
    if arguments and arguments[0] in COMMANDS:
        from importlib import import_module

        status: int = import_module(f"antiphon.cli.{arguments[0].replace('-', '_')}").run(arguments[1:])
        return status
    if arguments in (["--version"], ["-V"]):  # argparse would take most of the time this answer needs
        sys.stdout.write(f"antiphon {__version__}\n")
        return 0
    return parse(arguments)


def parse(arguments: list[str]) -> int:
    """Answer everything that is neither a command nor the plain `--version`."""
    if arguments and not arguments[0].startswith("-") and arguments[0] != "help":
        return fail(f"unknown command `{arguments[0]}`", f"{_meant(arguments[0])}{HELP_HINT}", MISUSED)
    import argparse

    listed = "\n".join(f"  {name:<14}{what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="antiphon",
        usage="antiphon [--help] [--version] COMMAND …",
        description=DESCRIPTION,
        epilog=f"commands:\n{listed}\n\n`antiphon COMMAND --help` says more about one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        exit_on_error=False,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"antiphon {__version__}")
    try:
        _, unknown = parser.parse_known_args([word for word in arguments if word != "help"])
    except argparse.ArgumentError as error:
        return fail(str(error), HELP_HINT, MISUSED)
    if unknown:
        return fail(f"unknown option `{unknown[0]}`", HELP_HINT, MISUSED)
    parser.print_help()
    return 0


def _meant(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    return f"did you mean `{near[0]}`? " if near else ""
