"""What can stand on the command line, as completion needs it: read off the parsers of the commands, so that it is never a second list."""

import argparse
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.cli.saying import COLORS

__all__ = ["Node", "Option", "Value", "tree"]

Value: TypeAlias = Literal["file", "directory", "agent", "anything"] | tuple[str, ...]
"""What can stand for a value: something of this kind, or one of these words."""

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Words that mean themselves in every shell; others are not offered."""

_BY_METAVAR: Final[Mapping[str, Value]] = {
    "FILE": "file",
    "PATH": "file",
    "FILE|URL": "file",
    "PROMPT": "file",
    "DIR": "directory",
    "AGENT": "agent",
}


class Option(msgspec.Struct, frozen=True):
    """An option. Without a `value` it takes none."""

    names: tuple[str, ...]
    help: str
    value: Value | None = None


class Node(msgspec.Struct, frozen=True):
    """A command: its words from `antiphon` on, and what can follow."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...] = ()
    value: Value | None = None
    """What its first argument is, if it has any."""
    commands: tuple["Node", ...] = ()

    def walk(self) -> Iterator["Node"]:
        """This command and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def tree(commands: Mapping[str, str]) -> Node:
    """The whole command line. `commands`: name → what it is."""
    nodes = tuple(_node(("antiphon", name), help, _parser_of(name)) for name, help in commands.items())
    options = (
        Option(("-h", "--help"), "show this help"),
        Option(("--version",), "show the version"),
        Option(("--color",), "when to use colours", COLORS),
    )
    return Node(("antiphon",), "", options, commands=nodes)


def _parser_of(name: str) -> argparse.ArgumentParser | None:
    """The parser of a command: `parser` in its module, or `<name>_parser` where those of several commands are."""
    shared = import_module("antiphon.cli.arguments")
    make = getattr(shared, f"{name}_parser", None)
    if make is None:
        try:
            make = getattr(import_module(f"antiphon.cli.{name.replace('-', '_')}"), "parser", None)
        except ImportError:  # a part of the program that is not installed
            return None
    made = make() if callable(make) else None
    return made if isinstance(made, argparse.ArgumentParser) else None


def _node(path: tuple[str, ...], help: str, parser: argparse.ArgumentParser | None) -> Node:
    if parser is None:
        return Node(path, help, (Option(("-h", "--help"), "show this help"),))
    options: list[Option] = []
    commands: list[Node] = []
    value: Value | None = None
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands += [_node((*path, name), helps.get(name, ""), below) for name, below in action.choices.items()]
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            takes = None if action.nargs == 0 else _value(action)
            options.append(Option(tuple(action.option_strings), _sentence(action.help), takes))
        elif value is None:
            value = _value(action)
    return Node(path, help, tuple(options), value, tuple(commands))


def _value(action: argparse.Action) -> Value:
    if action.choices is not None:
        return tuple(word for word in map(str, action.choices) if _SAFE.fullmatch(word))
    if {"--agent", "--engine"} & set(action.option_strings):
        return "agent"
    return _BY_METAVAR.get(str(action.metavar), "anything")


def _sentence(help: str | None) -> str:
    return (help or "").replace("%%", "%").partition("; ")[0]
