"""`antiphon setup`: Antiphon in an editor's settings, shown first, written on yes, and taken out again."""

import argparse
from pathlib import Path
from typing import Final

from antiphon.cli.grammar import Parser
from antiphon.cli.saying import Misused
from antiphon.cli.setup_changing import NAME, set_up, undo
from antiphon.cli.setup_editors import EDITORS
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

Without a terminal and without --yes nothing is written.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon setup",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    top.add_argument("editor", metavar="EDITOR", choices=[*EDITORS], help=", ".join(EDITORS))
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
    name = _name(options.name, options.engine)
    path = None if options.file is None else Path(options.file).expanduser().absolute()
    if options.undo:
        asked = None if options.name is None and options.engine is None else name
        return undo(options.editor, asked, path, yes=options.yes)
    return set_up(options.editor, name, options.engine, path, yes=options.yes)


def _name(given: str | None, engine: str | None) -> str:
    """What the editor calls us: several engines can stand beside each other."""
    if given is None:
        return NAME if engine is None else f"{NAME} ({engine})"
    if not given.strip() or not given.isprintable() or len(given) > LONGEST_NAME:
        raise Misused(f"a name has 1 to {LONGEST_NAME} letters")
    return given.strip()
