"""The front door: reads the first words of the command line. Knows no protocol and loads nothing it does not need.

Nothing here, nor anything it imports at the top, may need a POSIX system: the refusal on Windows has to be readable.
"""

import sys

from antiphon import __version__

__all__ = ["main"]

FAILED = 1
MISUSED = 2
DESCRIPTION = "The Agent Client Protocol (ACP) for Python. This version is a library and has no commands yet."
HELP_HINT = "`antiphon --help` shows what there is."


def main(arguments: list[str] | None = None, *, platform: str = sys.platform) -> int:
    """Run the program and return its exit status."""
    if arguments is None:
        arguments = sys.argv[1:]
    if platform == "win32":
        return fail("Antiphon does not run on Windows yet.", "use it inside WSL, or on Linux.", FAILED)
    if arguments == ["--version"]:  # argparse would take most of the time this answer needs
        sys.stdout.write(f"antiphon {__version__}\n")
        return 0
    return parse(arguments)


def parse(arguments: list[str]) -> int:
    """Answer everything but the plain `--version`."""
    import argparse

    parser = argparse.ArgumentParser(prog="antiphon", description=DESCRIPTION, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"antiphon {__version__}")
    try:
        _, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        return fail(str(error), HELP_HINT, MISUSED)
    if unknown:
        kind = "option" if unknown[0].startswith("-") else "command"
        return fail(f"unknown {kind} `{unknown[0]}`", HELP_HINT, MISUSED)
    parser.print_help()
    return 0


def fail(sentence: str, hint: str, status: int) -> int:
    """Say on stderr what went wrong and what to do about it."""
    sys.stderr.write(f"error: {sentence}\n\nhint: {hint}\n")
    return status
