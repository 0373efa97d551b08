"""`antiphon agent`: serve ACP on stdin and stdout, for editors.

An editor waits for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

from antiphon.cli.outcome import Misused, require_streams
from antiphon.engines.known import ENGINES, make_engine, sign_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from msgspec import Raw

    from antiphon.protocol.exchange import Adapter

__all__ = ["parser", "run"]


def run(arguments: list[str]) -> int:
    """Serve until stdin is closed; with `--login`, let the user sign in instead."""
    usual = _quickly(arguments)
    if usual is None:
        known = parser().parse_args(arguments)
        if known.connect is not None:
            return _connect(known)
        usual = _checked(known)
    engines, login = usual
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
    from antiphon.cli.arguments import Parser, add_token

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
    top.add_argument("--connect", metavar="URL", help="serve a remote agent, such as one behind `antiphon serve`")
    add_token(top)
    top.add_argument(
        "--map",
        metavar="LOCAL=REMOTE",
        action="append",
        help="a directory of this machine, and where it is on the other; repeat it for several",
    )
    top.add_argument(
        "--offer-files",
        action="store_true",
        help="let the server of URL use the files and terminals of the editor, as far as the editor offers them",
    )
    return top


def _connect(known: "argparse.Namespace") -> int:
    """Connect the editor with a remote agent until it closes stdin."""
    import sys

    from antiphon.cli.debug.bridge import bridge_stdio, remote_address, run_until_signal
    from antiphon.errors import LocalProtocolError
    from antiphon.remote.link import RemoteLink
    from antiphon.remote.paths import PathMap

    if known.engine or known.login is not None:
        raise Misused("`--connect` is in place of `--engine` and `--login`", hint="the server has its own agents")
    require_streams()
    try:
        maps = PathMap.parse(known.map or [])
    except LocalProtocolError as error:
        raise Misused(error.sentence, hint=error.hint) from error
    address = remote_address(known)

    def report(sentence: str) -> None:
        sys.stderr.write(f"antiphon: {sentence}\n")
        sys.stderr.flush()

    async def open_link() -> RemoteLink:
        return RemoteLink(address, maps, report=report, offers_files=known.offer_files)

    return run_until_signal(bridge_stdio(open_link, keep_requests=True, choose=_translator))


def _translator(params: "Raw") -> "Adapter | None":
    """Return what translates for an editor of version 2: the link to a server speaks version 1, in which it goes on after a lost connection."""
    import asyncio

    from antiphon.protocol.translate.choice import by_request

    def make(clock: "Callable[[], float]") -> "Adapter":
        from antiphon.remote.translation import NumberedTranslator

        return NumberedTranslator(clock)

    return by_request(asyncio.get_running_loop().time, (1, 2), params, make)


def _checked(known: "argparse.Namespace") -> tuple[list[str], str | None]:
    """Return the engines and the login method; an empty one means the default, None no login."""
    if known.map or known.token_file is not None or known.offer_files or known.plaintext:
        raise Misused("`--map`, `--token-file`, `--plaintext` and `--offer-files` are for `--connect`")
    engines: list[str] = known.engine or []
    if known.login is not None and len(engines) != 1:
        raise Misused("`--login` is for one engine at a time", hint="name it, as in `--engine claude --login`")
    return engines, known.login
