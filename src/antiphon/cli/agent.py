"""`antiphon agent`: the agent an editor starts, on stdin and stdout.

An editor waits for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

from antiphon.cli.saying import FAILED, MISUSED, fail
from antiphon.engines.known import DEFAULT, ENGINES, make_engine, sign_in
from antiphon.errors import AcpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

__all__ = ["parser", "run"]


def run(arguments: list[str]) -> int:
    """Serve until stdin is closed; with `--login`, let the user sign in instead."""
    asked = _quickly(arguments) or _carefully(arguments)
    if isinstance(asked, int):
        return asked
    engine, login = asked
    try:
        if login is not None:
            sign_in(engine, login)
        else:
            from antiphon.engines.host import Host

            Host(make_engine(engine)).run()
    except AcpError as error:
        sentence, _, hint = str(error).partition("\nhint: ")
        return fail(sentence, hint or "`antiphon agent --help` shows what there is.", FAILED)
    return 0


def _quickly(arguments: list[str]) -> tuple[str, str | None] | None:
    """The engine, if the command line is one that editors use."""
    if not arguments:
        return DEFAULT, None
    if len(arguments) == 2 and arguments[0] == "--engine" and arguments[1] in ENGINES:
        return arguments[1], None
    return None


def parser() -> "argparse.ArgumentParser":
    """The command line, also for shell completion."""
    import argparse

    top = argparse.ArgumentParser(
        prog="antiphon agent",
        description="The agent an editor starts: speaks ACP on stdin and stdout.",
        epilog=f"Engines: {', '.join(ENGINES)}. Without --engine, {DEFAULT}.",
        exit_on_error=False,
        allow_abbrev=False,
    )
    top.add_argument("--engine", metavar="NAME", choices=[*ENGINES], default=DEFAULT, help="what answers the prompts")
    top.add_argument(
        "--login",
        metavar="WAY",
        nargs="?",
        const="",
        help="sign in to what the engine drives, in this terminal, instead of serving; claude knows subscription and console, codex chatgpt and device",
    )
    return top


def _carefully(arguments: list[str]) -> tuple[str, str | None] | int:
    """The engine and, if the user wants to sign in, the way (empty: the usual one); or the status to end with."""
    import argparse

    try:
        known, unknown = parser().parse_known_args(arguments)
    except argparse.ArgumentError as error:
        return fail(str(error), "`antiphon agent --help` shows what there is.", MISUSED)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    if unknown:
        return fail(f"unknown argument `{unknown[0]}`", "`antiphon agent --help` shows what there is.", MISUSED)
    return known.engine, known.login
