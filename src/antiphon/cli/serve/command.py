"""`antiphon serve`: start a gateway, or ask the one that runs."""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon.cli.arguments import Parser, duration, split_command
from antiphon.cli.outcome import Misused
from antiphon.cli.serve.fleet import DATA, add_agent_options, add_fleet_options, check_fleet_options, fleet_source
from antiphon.cli.serve.limits import limit, limits_help, with_limits
from antiphon.cli.serve.unit import add_unit_options, print_unit, remove_unit

if TYPE_CHECKING:
    from antiphon.gateway.base import AgentSource
    from antiphon.gateway.server.program import GatewayAddress, ServeOptions
    from antiphon.transports.process import ProcessTransport

__all__ = ["agent_sources", "announce", "parser", "print_waiting", "root_directory", "run"]

PORT: Final = 8321
"""The port, unless another is given: free on most machines."""

EPILOG: Final = (
    """\
Serves the installed agents, or the one after `--`, to clients on this machine: over WebSocket and streamable HTTP at /acp (the default
agent) and /agents/NAME/acp. Clients need the token in DIR/token. A browser gets a page with all sessions: the printed address signs it
in, once and within ten minutes.

Other machines: with --host, which needs TLS (--tls-cert, --tls-key) or a proxy that has it (--behind-proxy); with SSH, no option is
needed. A permission dialog is not a sandbox: an agent can do whatever your user can. The page docs/gateway.md says more.

Limits, for --limit:

"""
    + limits_help()
    + "\n"
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon serve",
        usage="antiphon serve [OPTIONS] [COMMAND | -- PROGRAM [ARGUMENT …]]",
        description="Serve agents to clients on a network; sessions outlive connections.",
        epilog=EPILOG,
    )
    _add_options(top)
    commands = top.add_subparsers()
    json_option = {"action": "store_true", "default": argparse.SUPPRESS, "help": "as JSON"}

    status = commands.add_parser("status", help="whether a gateway runs, where, and what it does")
    status.add_argument("--launch", action="store_true", help="make another address that signs a browser in")
    tokens = commands.add_parser("tokens", help="list, create and revoke tokens")
    tokens.add_argument("--create", metavar="NAME", help="create a token with this name, and print it once")
    tokens.add_argument("--role", choices=("watch", "drive", "admin"), help="what it may do (default: drive)")
    tokens.add_argument("--for", dest="lifetime", metavar="TIME", type=duration, help="how long it is good")
    tokens.add_argument("--revoke", metavar="ID", type=_number, help="revoke one for ever")
    shares = commands.add_parser("shares", help="list, create and revoke shares of sessions")
    shares.add_argument(
        "--create", metavar="SESSION", nargs="+", help="share these sessions, and print the secret once"
    )
    shares.add_argument("--name", metavar="NAME", help="what the share is called in lists")
    shares.add_argument("--role", choices=("watch", "drive"), help="what it may do (default: watch)")
    shares.add_argument("--for", dest="lifetime", metavar="TIME", type=duration, help="how long (default: 168h)")
    shares.add_argument("--revoke", metavar="ID", type=_number, help="revoke one for ever")
    sessions = commands.add_parser("sessions", help="list and delete stored sessions")
    delete = sessions.add_subparsers(dest="action").add_parser("delete", help="delete sessions")
    delete.add_argument("sessions", metavar="SESSION", nargs="+", help="its events and the text about it are deleted")
    backup = commands.add_parser("backup", help="write a copy of all data while the gateway runs")
    backup.add_argument("file", metavar="FILE", help="the file to write; it must not exist")
    unit = commands.add_parser("unit", help="print, install or remove a unit for systemd that starts this gateway")
    add_unit_options(unit)
    for command in (status, tokens, shares, sessions, delete, backup, unit):
        command.add_argument(
            "--data", metavar="DIR", default=argparse.SUPPRESS, help="where the gateway keeps its data"
        )
        command.add_argument("--json", **json_option)
    return top


def _add_options(top: argparse.ArgumentParser) -> None:
    top.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    top.add_argument("--port", metavar="N", type=_port, default=PORT, help=f"0: a free one (default: {PORT})")
    top.add_argument("--unix", metavar="PATH", help="listen on a Unix socket instead")
    add_agent_options(top, "gateway", roots="this directory", limit=limit, limits="memory=4G or turn=2h")
    top.add_argument("--agent", metavar="NAME", help="the agent at /acp")
    add_fleet_options(top)
    top.add_argument("--no-auth", action="store_true", help="need no token; on 127.0.0.1 alone")
    top.add_argument("--tls-cert", metavar="FILE", help="serve TLS with this certificate")
    top.add_argument("--tls-key", metavar="FILE", help="the key of the certificate")
    top.add_argument("--http2", action="store_true", help="serve HTTP/2 too; needs TLS")
    top.add_argument(
        "--behind-proxy", metavar="ADDRESSES", nargs="?", const="127.0.0.1,::1",
        help="a proxy with TLS is in front; its addresses (default: this machine)",
    )  # fmt: skip
    top.add_argument("--public-url", metavar="URL", action="append", help="an address under which others reach it")
    top.add_argument("--open", action="store_true", help="open the page in the browser of this machine")
    top.add_argument("--qr", action="store_true", help="show the address of the page as a QR code, for a phone")
    top.add_argument("--json", action="store_true", help="print where it is as JSON")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"`{text}` is not the number of a token: a list shows it")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"`{text}` is not a port: give a number up to 65535")
    return int(text)


def run(arguments: list[str]) -> int:
    """Serve until a signal comes, or run the subcommand that the arguments name. Return the exit status."""
    words, program = split_command(arguments)
    options = parser().parse_args(words)
    if options.command == "unit":
        return _unit(options, words, program)
    if program is not None and (options.command or not program):
        raise Misused("PROGRAM belongs to `antiphon serve` itself", hint="antiphon serve [OPTIONS] -- PROGRAM …")
    if options.command:
        from antiphon.cli.serve.control import run_control

        return run_control(options)
    return _serve(options, program)


def _serve(options: Any, program: list[str] | None) -> int:
    from antiphon.cli.logs import logging_to_file
    from antiphon.gateway.server.program import local_gateway, serve

    check_fleet_options(options, program)
    source = fleet_source(options) if options.fleet else local_gateway(*agent_sources(options.agent, program))
    chosen = _serve_options(options)
    with logging_to_file(verbose=False, stderr=options.log):
        show = partial(announce, chosen, options.json, opens=options.open, shows_qr=options.qr)
        asyncio.run(serve(chosen, source, show, print_waiting))
    return 0


def print_waiting(turns: int, most: float = 60.0) -> None:
    """Say why the gateway, or the worker, does not end at once."""
    words = "a turn" if turns == 1 else f"{turns} turns"
    with suppress(OSError):  # a terminal that is gone keeps no turn from its end
        time = "a minute" if most == 60 else f"{most:g} seconds"
        sys.stderr.write(f"waiting for {words} to end, for {time} at most; Ctrl-C again ends at once\n")


def _serve_options(options: Any) -> "ServeOptions":
    from antiphon.config.directories import state_dir
    from antiphon.gateway.access.messages import ClientRules
    from antiphon.gateway.server.program import ServeOptions

    for url in options.public_url or ():
        if not url.startswith(("http://", "https://")) or url.count("/") > (3 if url.endswith("/") else 2):
            raise Misused(f"`--public-url` does not take `{url}`", hint="give an address such as https://example.org")
    proxies = options.behind_proxy.split(",") if options.behind_proxy else ()
    chosen = ServeOptions(
        host=options.host,
        port=options.port,
        unix=Path(options.unix) if options.unix else None,
        data=Path(options.data) if options.data else state_dir() / DATA if options.fleet else None,
        no_auth=options.no_auth,
        http2=options.http2,
        certificate=Path(options.tls_cert) if options.tls_cert else None,
        key=Path(options.tls_key) if options.tls_key else None,
        proxies=tuple(proxies),
        public_urls=tuple(options.public_url or ()),
        roots=tuple(root_directory(root) for root in options.root or (".",)),
        client_files=options.files == "client",
        client_rules=ClientRules(
            frozenset(host.lower().strip("[]") for host in options.mcp_host or ()), frozenset(options.client_meta or ())
        ),
    )
    return with_limits(chosen, options.limit or ())


def root_directory(text: str) -> str:
    """Return the real path of a directory that was typed.

    Raises:
        Misused: there is no such directory.
    """
    path = Path(text).expanduser().absolute()
    if not path.is_dir():
        raise Misused(f"`{text}` is not a directory", hint="--root takes directories that exist")
    return str(path.resolve())


def agent_sources(chosen: str | None, program: list[str] | None) -> "tuple[Mapping[str, AgentSource], str]":
    """Return how each agent is started, and the name of the one at /acp."""
    from antiphon.catalogue.agents import FoundAgent, find_all, kept_registry, start_of, user_settings
    from antiphon.catalogue.known import default_agent, keys_for
    from antiphon.gateway.agents.host import gateway_environment

    if program is not None:
        env = gateway_environment(os.environ, keys_for(program), {})
        return {"agent": partial(_start, tuple(program), env, None)}, "agent"
    settings = user_settings()
    found = {each.name: each for each in find_all(settings, registry=kept_registry()) if isinstance(each, FoundAgent)}
    default = chosen or default_agent(settings)
    if default not in found:
        found[default] = start_of(default, settings)
    return {
        name: partial(_start, agent.command, gateway_environment(os.environ, agent.keys, agent.env), agent.cwd)
        for name, agent in found.items()
        if not agent.on_demand or name == default
    }, default


async def _start(command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> "ProcessTransport":
    from antiphon.transports.process import spawn

    return await spawn(command, env=env, cwd=cwd)


async def announce(
    options: "ServeOptions",
    as_json: bool,
    address: "GatewayAddress",
    agents: Sequence[str],
    default: str,
    launch_code: Callable[[], Awaitable[str]],
    *,
    opens: bool = False,
    shows_qr: bool = False,
) -> None:
    """Print where the gateway is, and how to use it; show its page to a browser or a phone if that is wanted.

    Each of them gets a launch code of its own: a code is good once.
    """
    base = address.public_url or address.url

    async def page() -> str:
        return base if options.no_auth else f"{base}/#code={await launch_code()}"

    shows_code = bool(base) and not options.no_auth and (as_json or sys.stdout.isatty())
    _print_address(options, agents, default, as_json, address, await page() if shows_code else "")
    if base and not as_json and (shows_qr or (sys.stdout.isatty() and not _is_here(options))):
        _print_qr(await page(), wanted=shows_qr)
    if base and opens:
        _open_browser(await page())


def _is_here(options: "ServeOptions") -> bool:
    from antiphon.transports.remote import is_loopback

    return options.unix is not None or is_loopback(options.host)


def _print_qr(page: str, *, wanted: bool) -> None:
    """Print an address as a QR code. If no package makes one, say so if it was asked for."""
    try:
        import segno
    except ImportError:
        if wanted:
            sys.stderr.write("warning: a QR code needs the package `segno`\nhint: pip install 'antiphon[serve]'\n")
        return
    segno.make(page, micro=False, error="l").terminal(out=sys.stdout, border=2, compact=True)
    sys.stdout.write("        this code signs one phone in, once and within ten minutes\n")
    sys.stdout.flush()


def _open_browser(page: str) -> None:
    """Open an address in the user's browser, where there is one that has a window."""
    has_window = sys.platform == "darwin" or any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not has_window:
        sys.stderr.write("no browser can be opened without a display: open the address yourself\n")
        return
    # In a thread: some browsers are waited for until they have started.
    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()


def _print_address(
    options: "ServeOptions", agents: Sequence[str], default: str, as_json: bool, address: "GatewayAddress", page: str
) -> None:
    """Print where the gateway is. `page`: an address that signs a browser in; empty if none is to be shown."""
    from antiphon.gateway.access.tokens import TOKEN_FILE
    from antiphon.gateway.data import data_directory

    token_file = data_directory(options.data) / TOKEN_FILE
    base, shows_code = address.public_url or address.url, bool(page)
    page = page or base
    if as_json:
        found = {"url": address.url, "unix": address.unix, "page": page, "token_file": str(token_file),
                 "agents": [*agents], "default": default, "pid": address.pid}  # fmt: skip
        sys.stdout.write(f"{json.dumps(found)}\n")
    else:
        program = command_name()
        data = [] if options.data is None else ["--data", str(data_directory(options.data))]
        token = [] if options.no_auth else ["--token-file", str(token_file)]
        launch = shlex.join([*program, "serve", "status", "--launch", *data])
        first = f"{base.replace('http', 'ws', 1)}/acp" if base else f"unix://{address.unix}"
        others = first.removesuffix("/acp") if base else f"{first}:"
        signs_in = [f"        `{launch}` prints an address that signs a browser in"]
        lines = [
            *([f"page    {page}"] if page else []),
            *(["        good once, for ten minutes"] if shows_code else []),
            *(signs_in if page and not options.no_auth else []),
            f"agent   {first} ({default or 'no worker is connected'})",
            *(f"        {others}/agents/{name}/acp" for name in agents if name != default),
            "token   none is needed: every program of this machine may use it"
            if options.no_auth
            else f"token   {token_file}",
            f"chat    {shlex.join([*program, 'chat', '--agent', first, *token])}",
        ]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    if options.unix is None and options.host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        sys.stderr.write(
            "warning: it listens on every network that this machine is in\nhint: `--host ADDRESS` names one alone\n"
        )


def command_name() -> tuple[str, ...]:
    """Return the words that start this program in the user's shell: its name if the PATH leads to it, else its path."""
    from antiphon.cli.setup import program

    found, ours = shutil.which("antiphon"), program()
    return ("antiphon",) if found is not None and Path(found).absolute() == Path(ours[0]) else ours


def _unit(options: Any, words: Sequence[str], program: list[str] | None) -> int:
    """Print or install a unit for systemd with the options of this command line, or remove it."""
    from antiphon.config.directories import state_dir
    from antiphon.gateway.data import data_directory

    if options.undo:
        remove_unit("antiphon", "gateway")
        return 0
    check_fleet_options(options, program)
    more = [] if options.root is not None or options.fleet else ["--root", os.getcwd()]
    if options.data is None:
        more += ["--data", str(state_dir() / DATA if options.fleet else data_directory())]
    print_unit("serve", words, program, what="gateway", name="antiphon", more=more, install=options.install)
    return 0
