"""`antiphon completion`: a script for bash, zsh or fish, made from the same definitions that read the command line."""

import argparse
import sys
from typing import Final

from antiphon.cli.completion_tree import tree
from antiphon.cli.grammar import Parser
from antiphon.cli.main import COMMANDS

__all__ = ["SHELLS", "parser", "run"]

SHELLS: Final = ("bash", "zsh", "fish")

EPILOG: Final = """\
To have it in every shell:
  bash  echo 'eval "$(antiphon completion bash)"' >> ~/.bashrc
  zsh   echo 'eval "$(antiphon completion zsh)"' >> ~/.zshrc       (after compinit)
  fish  antiphon completion fish > ~/.config/fish/completions/antiphon.fish
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon completion",
        description="Print a script that completes the words of antiphon's command line.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    return top


def run(arguments: list[str]) -> int:
    """Print the script."""
    options = parser().parse_args(arguments)
    from antiphon.cli import completion_scripts

    sys.stdout.write(getattr(completion_scripts, options.shell)(tree(COMMANDS)))
    return 0
