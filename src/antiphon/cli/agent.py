"""`antiphon agent`: the agent an editor starts, on stdin and stdout.

An editor waits for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

from antiphon.cli.saying import FAILED, MISUSED, fail
from antiphon.engines.known import ENGINES, UnknownEngine, make_engine, sign_in
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
    engines, login = asked
    try:
        if login is not None:
            sign_in(engines[0], login)
        else:
            _serve(engines)
    except AcpError as error:
        sentence, _, hint = str(error).partition("\nhint: ")
        status = MISUSED if isinstance(error, UnknownEngine) else FAILED
        return fail(sentence, hint or "`antiphon agent --help` shows what there is.", status)
    return 0


def _serve(engines: list[str]) -> None:
    if len(engines) != 1:
        from antiphon.duet.agent import joint

        joint(engines).run()
        return
    from antiphon.engines.host import Host

    Host(make_engine(engines[0])).run()


def _quickly(arguments: list[str]) -> tuple[list[str], str | None] | None:
    """The engines, if the command line is one that editors use."""
    if not arguments:
        return [], None
    names = arguments[1::2]
    if len(names) * 2 == len(arguments) and all(word == "--engine" for word in arguments[::2]):
        return (names, None) if not any(name.startswith("-") for name in names) else None
    return None


def parser() -> "argparse.ArgumentParser":
    """The command line, also for shell completion."""
    import argparse

    top = argparse.ArgumentParser(
        prog="antiphon agent",
        description="The agent an editor starts: speaks ACP on stdin and stdout.",
        epilog=f"Engines: {', '.join(ENGINES)}, any agent of `antiphon agents`, and any command that speaks ACP. Without --engine, all that are installed answer as one agent.",
        exit_on_error=False,
        allow_abbrev=False,
    )
    top.add_argument(
        "--engine",
        metavar="NAME",
        action="append",
        help="one engine alone: a name, or a whole command in quotes; given more than once, these work together",
    )
    top.add_argument(
        "--login",
        metavar="WAY",
        nargs="?",
        const="",
        help="sign in to what the engine drives, in this terminal, instead of serving; claude knows subscription and console, codex chatgpt and device",
    )
    return top


def _carefully(arguments: list[str]) -> tuple[list[str], str | None] | int:
    """The engines and, if the user wants to sign in, the way (empty: the usual one); or the status to end with."""
    import argparse

    try:
        known, unknown = parser().parse_known_args(arguments)
    except argparse.ArgumentError as error:
        return fail(str(error), "`antiphon agent --help` shows what there is.", MISUSED)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    if unknown:
        return fail(f"unknown argument `{unknown[0]}`", "`antiphon agent --help` shows what there is.", MISUSED)
    engines: list[str] = known.engine or []
    if known.login is not None and len(engines) != 1:
        return fail("`--login` is for one engine at a time", "Name it, as in `--engine claude --login`.", MISUSED)
    return engines, known.login
