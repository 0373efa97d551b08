"""The options of a gateway whose agents run on the machines of a fleet, and those that gateways and workers share."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon.cli.arguments import duration
from antiphon.cli.outcome import Misused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from antiphon.gateway.server.program import GatewaySource

__all__ = ["BEATS", "DATA", "LEASE", "add_agent_options", "add_fleet_options", "check_fleet_options", "fleet_source"]

DATA: Final = "fleet-gateway"
"""The directory of its data in the state directory, unless another is given: the one of `antiphon serve` has sessions of its own."""

LEASE: Final = 3.0
"""What `fleet.membership` has too; it is not loaded for the help."""

BEATS: Final = 3
"""Signs of life of a worker in the time of a lease."""

_OF_WORKERS: Final = ("root", "mcp_host", "client_meta")
"""Options about agents, which are those of the workers."""

_LIMITS: Final = frozenset({"connections", "message", "days", "audit-days"})
"""Limits of a gateway in a fleet: the others are those of its workers, or of its broker."""


def add_fleet_options(top: "argparse.ArgumentParser") -> None:
    """Add the options that make a gateway one of a fleet."""
    top.add_argument(
        "--fleet",
        metavar="URL",
        action="append",
        help="serve the agents of a fleet: its broker, such as nats://host:4222 (`antiphon worker` runs them)",
    )
    top.add_argument("--credentials", metavar="FILE", help="the key for the broker (`antiphon fleet credentials`)")
    top.add_argument(
        "--lease",
        metavar="TIME",
        type=duration,
        help="without a sign of life for this long, a worker is taken for dead (default: 3s); the same in all of a fleet",
    )


def add_agent_options(
    top: "argparse.ArgumentParser", server: str, *, roots: str, limit: "Callable[[str], object]", limits: str
) -> None:
    """Add the options of what runs agents, a gateway or a worker. `roots`: the default of --root; `limits`: examples."""
    top.add_argument("--root", metavar="DIR", action="append", help=f"sessions may work in here (default: {roots})")
    top.add_argument(
        "--files",
        choices=(server, "client"),
        help="whose files and terminals agents use: this machine's (default), or those of the attached client where it offers them",
    )
    top.add_argument("--data", metavar="DIR", help=f"where to keep data (default: `{server}` in the state directory)")
    top.add_argument(
        "--limit", metavar="NAME=VALUE", type=limit, action="append", help=f"a limit, such as {limits} (below)"
    )
    top.add_argument(
        "--mcp-host",
        metavar="HOST",
        action="append",
        help="pass MCP servers of clients on that are at this host; `*`: all",
    )
    top.add_argument(
        "--client-meta", metavar="KEY", action="append", help="pass this key on in the `_meta` of a new session"
    )
    top.add_argument("--log", choices=("text", "json"), help="write the log to stderr too, in this form")


def check_fleet_options(options: Any, program: list[str] | None) -> None:
    """Refuse options that mean nothing, with a fleet or without one.

    Raises:
        Misused: there is one.
    """
    if not options.fleet:
        if options.credentials:
            raise Misused("`--credentials` is for the broker of a fleet", hint="give --fleet URL too, or leave it out")
        if options.lease is not None:
            raise Misused("`--lease` is for the workers of a fleet", hint="give --fleet URL too, or leave it out")
        return
    if program is not None:
        raise Misused(
            "with --fleet the agents run at workers", hint="antiphon worker --fleet URL -- PROGRAM …, on their machine"
        )
    if options.files:
        raise Misused(
            "`--files` is for the machine that runs the agents", hint="give it there: antiphon worker --files client"
        )
    for name in _OF_WORKERS:
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise Misused(
                f"`{option}` is for the machine that runs the agents", hint=f"give it there: antiphon worker {option} …"
            )
    for name, _ in options.limit or ():
        if name not in _LIMITS:
            known = ", ".join(sorted(_LIMITS))
            raise Misused(
                f"`--limit {name}` is not one of a gateway in a fleet, which has: {known}",
                hint=f"give it to the workers: antiphon worker --limit {name}=…",
            )


def fleet_source(options: Any) -> "GatewaySource":
    """Return what starts the gateway.

    Raises:
        Misused: the key is not one for a gateway.
        AcpError: the key cannot be read.
    """
    from antiphon.fleet.gateway.program import FleetAddress, fleet_gateway

    credentials = Path(options.credentials).expanduser() if options.credentials else None
    if credentials is not None:
        from antiphon.fleet.credentials import read_key

        role = read_key(credentials).role
        if role != "gateway":
            raise Misused(
                f"`{credentials}` is a key with the role {role}",
                hint="`antiphon fleet credentials DIR` makes one for gateways",
            )
    servers = tuple(url.strip() for given in options.fleet for url in given.split(",") if url.strip())
    lease = LEASE if options.lease is None else options.lease
    return fleet_gateway(FleetAddress(servers, credentials, options.agent or "", lease, lease / BEATS))
