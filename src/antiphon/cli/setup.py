"""`antiphon setup`: Antiphon in an editor's settings, shown first, written on yes, and taken out again."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Final

from antiphon.cli.agreeing import answered_yes
from antiphon.cli.grammar import Offered, Parser, check_choice
from antiphon.cli.saying import FAILED, Misused
from antiphon.cli.screen import Screen
from antiphon.cli.setup_changing import set_up, undo
from antiphon.editors.known import EDITORS, NAME, OTHER_NAMES, editors_here, place_of
from antiphon.editors.records import records
from antiphon.engines.known import ENGINES

__all__ = ["parser", "run"]

LONGEST_NAME: Final = 60
"""Letters of a name in an editor's menu."""

DESCRIPTION: Final = """\
Put Antiphon into the settings of an editor. The change is shown first, and made when you say yes; everything else in the file stays as
it is, comments too.

  antiphon setup zed
  antiphon setup zed --engine claude
  antiphon setup zed --undo
"""

EPILOG: Final = """\
zed, jetbrains and vscode have settings in JSON, and get an entry there. neovim and emacs have programs for settings: a file of our own is
written beside them, and you are told the line to add.

Without a terminal and without --yes nothing is written, and the exit status is 1; so it is if you say no.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon setup",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    top.add_argument(
        "editor",
        metavar="EDITOR",
        nargs="?",
        choices=Offered(EDITORS),
        help=f"{', '.join(EDITORS)} (default: list those that are found here, and offer on a terminal to set them up)",
    )
    top.add_argument(
        "--engine",
        metavar="NAME",
        choices=[*ENGINES],
        help="one engine alone (default: all that are installed, as one agent)",
    )
    top.add_argument("--name", metavar="TEXT", help=f"what the editor calls it (default: {NAME})")
    top.add_argument("--file", metavar="FILE", help="the settings (default: in the usual place)")
    top.add_argument("-y", "--yes", action="store_true", help="do not ask")
    top.add_argument("--undo", action="store_true", help="take out what was put in")
    return top


def run(arguments: list[str]) -> int:
    """Set an editor up, or take that back."""
    options = parser().parse_args(arguments)
    if options.editor is None:
        return _without_editor(arguments)
    _check_editor(options.editor)
    name = _name(options.name, options.engine)
    path = None if options.file is None else Path(options.file).expanduser().absolute()
    if options.undo:
        asked = None if options.name is None and options.engine is None else name
        return undo(options.editor, asked, path, yes=options.yes)
    return set_up(options.editor, name, options.engine, path, yes=options.yes)


def _without_editor(arguments: list[str]) -> int:
    """List the editors and which of them are here, and offer on a terminal to set those up; with options, one has to be named."""
    from antiphon.cli.asking import terminal_of

    here = editors_here()
    example = f"`antiphon setup {here[0] if here else 'zed'}` sets it up"
    if arguments:
        found = f"found here: {', '.join(here)}; " if here else ""
        raise Misused("EDITOR is missing", hint=f"{found}{example.removesuffix(' sets it up')}")
    waiting = [name for name in here if next(records(name), None) is None]
    for name, editor in EDITORS.items():
        done = "found" if name in waiting else "not found" if name not in here and not any(records(name)) else "set up"
        sys.stdout.write(f"{name:<11}{done:<11}{editor.title}\n")
    sys.stdout.flush()
    screen = Screen()
    terminal = terminal_of(screen)
    if terminal is None or not waiting:
        sys.stderr.write(f"next: {example}\n")
        return 0
    wanted = [
        name for name in waiting if answered_yes(screen, terminal, f"Set up {EDITORS[name].title}? (y yes, n no): ")
    ]
    if not wanted:
        screen.note("nothing was written")
        return FAILED
    return max([set_up(name, NAME, None, None, yes=False) for name in wanted])


def _check_editor(word: str) -> None:
    if word.lower() in OTHER_NAMES:
        name, folder = OTHER_NAMES[word.lower()]
        file = place_of(name, NAME).parents[2] / folder / "User" / "settings.json"
        where = f" --file {shlex.quote(str(file))}" if folder else ""
        raise Misused(f"unknown editor `{word}`", hint=f"did you mean `antiphon setup {name}{where}`?")
    check_choice(word, EDITORS, "editor")


def _name(given: str | None, engine: str | None) -> str:
    """What the editor calls us: several engines can stand beside each other."""
    if given is None:
        return NAME if engine is None else f"{NAME} ({engine})"
    if not given.strip() or not given.isprintable() or len(given) > LONGEST_NAME:
        raise Misused(f"a name has 1 to {LONGEST_NAME} letters")
    return given.strip()
