"""`antiphon agent`: serve ACP on stdin and stdout, for editors.

An editor waits for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

from antiphon.cli.outcome import Misused, require_streams
from antiphon.engines.known import ENGINES, make_engine, sign_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

__all__ = ["parser", "run"]


def run(arguments: list[str]) -> int:
    """Serve until stdin is closed; with `--login`, let the user sign in instead."""
    engines, login = _quickly(arguments) or _carefully(arguments)
    if login is not None:
        sign_in(engines[0], login)
    else:
        _serve(engines)
    return 0


def _serve(engines: list[str]) -> None:
    require_streams()
    if len(engines) != 1:
        from antiphon.duet.agent import joint_agent

        joint_agent(engines).run()
        return
    from antiphon.engines.base import Host

    Host(make_engine(engines[0])).run()


def _quickly(arguments: list[str]) -> tuple[list[str], str | None] | None:
    """Return the engines of a command line that editors use; None for any other."""
    if not arguments:
        return [], None
    names = arguments[1::2]
    if len(names) * 2 == len(arguments) and all(word == "--engine" for word in arguments[::2]):
        return (names, None) if not any(name.startswith("-") for name in names) else None
    return None


def parser() -> "argparse.ArgumentParser":
    """Return the parser of the command."""
    from antiphon.cli.arguments import Parser

    top = Parser(
        prog="antiphon agent",
        description="Serve ACP on stdin and stdout. Editors start this.",
        epilog=f"Engines: {', '.join(ENGINES)}, any agent of `antiphon agents`, and the command of any ACP agent.",
    )
    top.add_argument(
        "--engine",
        metavar="NAME",
        action="append",
        help="use this engine: a name, or a command in quotes; repeat it for several (default: all that are installed)",
    )
    top.add_argument(
        "--login",
        metavar="WAY",
        nargs="?",
        const="",
        help="sign in to what the engine drives, in this terminal, instead of serving; claude knows subscription and console, codex chatgpt and device",
    )
    return top


def _carefully(arguments: list[str]) -> tuple[list[str], str | None]:
    """Return the engines and the login method; an empty one means the default, None no login."""
    known = parser().parse_args(arguments)
    engines: list[str] = known.engine or []
    if known.login is not None and len(engines) != 1:
        raise Misused("`--login` is for one engine at a time", hint="name it, as in `--engine claude --login`")
    return engines, known.login
