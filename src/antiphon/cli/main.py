"""The entry point: reads the first words of the command line, and runs one command.

Nothing here, nor anything it imports at the top, may need a POSIX system: the refusal on Windows has to be readable.
"""

import os
import sys

from antiphon import __version__
from antiphon.cli.interrupts import begin_working
from antiphon.cli.outcome import COLORS, FAILED, Misused, did_you_mean, fail, invocation, run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

__all__ = ["COMMANDS", "GROUPS", "LoadedCommand", "load", "main"]

GROUPS = {
    "use an agent": {
        "run": "Send one prompt and print the answer",
        "chat": "Chat in the terminal",
        "compare": "Give several agents the same prompt",
        "sessions": "List, search and export saved sessions",
    },
    "manage": {
        "agents": "List, check and add agents",
        "policy": "Explain and manage permissions",
        "doctor": "Diagnose the installation",
    },
    "serve a network": {
        "serve": "Serve agents to clients on a network",
        "worker": "Run agents for a fleet of machines",
        "fleet": "Try a fleet of machines, look at it, drain it",
    },
    "serve editors": {
        "agent": "Serve ACP on stdio (for editors)",
        "setup": "Configure an editor",
        "bridge": "Connect clients and agents across transports, versions",
    },
    "test and debug": {
        "check": "Test an agent's conformance",
        "check-client": "Test a client's conformance",
        "record": "Record the traffic of an agent",
        "inspect": "Analyse a recording",
        "replay": "Replay a recording as agent or client",
    },
    "more": {
        "completion": "Print a shell completion script",
        "help": "Show the help of a command",
    },
}
"""What the commands are for, each with a line about it."""

_NAME_FILES = frozenset(
    {"bridge", "check", "check-client", "completion", "fleet", "help", "inspect", "record", "replay", "serve", "worker"}
)
"""Commands whose arguments may be any bytes: names of files and commands. Those of the others are sent, stored and shown as text."""

COMMANDS = {name: what for group in GROUPS.values() for name, what in group.items()}
"""Name → what it does."""

_ELSEWHERE = {
    "run": ("run.command", "parser", "run"),
    "compare": ("run.compare", "parser", "run"),
    "bridge": ("debug.bridge", "parser", "run"),
    "serve": ("serve.command", "parser", "run"),
    "worker": ("serve.worker", "parser", "run"),
    "fleet": ("serve.fleet_command", "parser", "run"),
    "check": ("debug.check", "parser", "run"),
    "check-client": ("debug.check", "client_parser", "run_client"),
    "record": ("debug.record", "parser", "run"),
    "inspect": ("debug.inspect", "parser", "run"),
    "replay": ("debug.replay", "parser", "run"),
}
"""Commands that are not in a module of their own name: the module, and what `Command` has of it."""


class LoadedCommand:
    """The two functions of a command: `parser` returns its parser, `run` takes the arguments and returns the exit status.

    Every error that `run` raises becomes a sentence, a hint and a status: see `ended`.
    """

    def __init__(self, parser: "Callable[[], ArgumentParser]", run: "Callable[[list[str]], int]") -> None:
        self.parser, self.run = parser, run


def load(name: str) -> LoadedCommand:
    """Import a command. Each is imported when it is used: an editor starts this program every time."""
    from importlib import import_module

    module, parser, run = _ELSEWHERE.get(name, (name, "parser", "run"))
    loaded = import_module(f"antiphon.cli.{module}")
    return LoadedCommand(getattr(loaded, parser), getattr(loaded, run))


def main(arguments: list[str] | None = None, *, platform: str = sys.platform) -> int:
    """Run the program and return its exit status."""
    if arguments is None:
        arguments = sys.argv[1:]
    if platform == "win32":
        return fail("Antiphon does not run on Windows yet", "use it inside WSL, or on Linux", FAILED)
    invocation.begin()
    end = arguments.index("--") if "--" in arguments else len(arguments)
    invocation.json = _wants_json(arguments[:end])
    return run_command(lambda: _run(arguments))


def _wants_json(words: list[str]) -> bool:
    """Whether stdout is to have JSON, also if the rest of the arguments is wrong."""
    values = ("json", "stream-json")
    return any(
        word == "--json"
        or word in [f"--output={value}" for value in values]
        or (word == "--output" and after in values)
        for word, after in zip(words, [*words[1:], ""], strict=False)
    )


def _run(arguments: list[str]) -> int:
    words = _without_color(arguments)
    if words in (["--version"], ["-V"]):  # argparse would take most of the time this answer needs
        sys.stdout.write(f"antiphon {__version__}\n")
        return 0
    name = words[0] if words else "help"
    if name in ("-h", "--help"):
        name = "help"
    if name.startswith("-"):
        meant = did_you_mean(name, ("--help", "--version", "--color"))
        raise Misused(f"unknown option `{name}`", hint=f"{meant}`antiphon --help` lists the commands")
    if name not in COMMANDS:
        raise Misused(f"unknown command `{name}`", hint=f"{_meant(name)}`antiphon --help` lists the commands")
    if name not in _NAME_FILES:
        _check_text([*words[1:], *_directory(words)])
    invocation.prog = f"antiphon {name}"
    command = load(name)
    begin_working()
    return command.run(words[1:])


def _directory(words: list[str]) -> list[str]:
    """Return the current directory, if the command sends it to the agent."""
    if words[0] not in ("chat", "compare", "run") or any(word.startswith("--cwd") for word in words):
        return []
    try:
        return [os.getcwd()]
    except OSError:  # the directory is gone; the command reports it
        return []


def _check_text(words: list[str]) -> None:
    """Raise `Misused` for an argument that is not UTF-8: it can be neither sent nor stored."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word[:60].encode(errors="surrogateescape").decode(errors="replace")
            raise Misused(f"`{shown}` is not text in UTF-8", hint="type it again, or rename what it names") from None


def _without_color(arguments: list[str]) -> list[str]:
    """Remove `--color WHEN` from the arguments before `--`: it is an option of every command."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ours, words = list(arguments[:end]), []
    while ours:
        word = ours.pop(0)
        name, equals, when = word.partition("=")
        if name != "--color":
            words.append(word)
            continue
        if not equals:
            when = ours.pop(0) if ours else ""
        if when not in COLORS:
            from antiphon.cli.arguments import check_choice

            check_choice(when, COLORS, "--color")
        invocation.color = when
    return [*words, *arguments[end:]]


def _meant(word: str) -> str:
    if " " in word:
        return '`antiphon run "…"` sends a prompt; '
    return did_you_mean(word, COMMANDS)
