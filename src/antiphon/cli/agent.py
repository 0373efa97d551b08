"""`antiphon agent`: the agent an editor starts, on stdin and stdout.

An editor waits for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

from antiphon.cli.saying import FAILED, MISUSED, fail
from antiphon.engines.known import DEFAULT, ENGINES, make_engine
from antiphon.errors import AcpError

__all__ = ["run"]


def run(arguments: list[str]) -> int:
    """Serve until stdin is closed."""
    engine = _quickly(arguments) or _carefully(arguments)
    if isinstance(engine, int):
        return engine
    from antiphon.engines.host import Host

    try:
        Host(make_engine(engine)).run()
    except AcpError as error:
        sentence, _, hint = str(error).partition("\nhint: ")
        return fail(sentence, hint or "`antiphon agent --help` shows what there is.", FAILED)
    return 0


def _quickly(arguments: list[str]) -> str | None:
    """The engine, if the command line is one that editors use."""
    if not arguments:
        return DEFAULT
    if len(arguments) == 2 and arguments[0] == "--engine" and arguments[1] in ENGINES:
        return arguments[1]
    return None


def _carefully(arguments: list[str]) -> str | int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="antiphon agent",
        description="The agent an editor starts: speaks ACP on stdin and stdout.",
        epilog=f"Engines: {', '.join(ENGINES)}. Without --engine, {DEFAULT}.",
        exit_on_error=False,
        allow_abbrev=False,
    )
    parser.add_argument("--engine", metavar="NAME", default=DEFAULT, help="what answers the prompts")
    try:
        known, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        return fail(str(error), "`antiphon agent --help` shows what there is.", MISUSED)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    if unknown:
        return fail(f"unknown argument `{unknown[0]}`", "`antiphon agent --help` shows what there is.", MISUSED)
    if known.engine not in ENGINES:
        return fail(f"there is no engine `{known.engine}`", f"choose one of {', '.join(ENGINES)}.", MISUSED)
    return str(known.engine)
