"""`antiphon fleet`: a fleet on this machine to try it, how a fleet is, draining workers, and keys for its processes."""

import argparse
import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon.cli.arguments import Parser, count
from antiphon.cli.outcome import Misused
from antiphon.errors import AcpError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from antiphon.fleet.local import LocalFleet, LocalFleetAddress
    from antiphon.fleet.overview import FleetOverview

__all__ = ["parser", "run"]

WORKERS: Final = 3
"""Workers of a fleet to try, unless another number is given: enough to see one go."""

EPILOG: Final = """\
`up` starts a broker (nats-server), a gateway and some workers on this machine, prints the page, and ends all of it with Ctrl-C. `status`
and `drain` ask the fleet that `up` has started, or the one at --fleet. The page docs/fleet.md has a fleet of several machines.

  antiphon fleet up --workers 3
  antiphon fleet status
  antiphon fleet drain worker-2
  antiphon fleet credentials keys --worker gpu-1 --worker gpu-2
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon fleet",
        description="Run agents on many machines: try it here, look at it, drain it.",
        epilog=EPILOG,
    )
    commands = top.add_subparsers(required=True)
    up = commands.add_parser("up", help="start a whole fleet on this machine")
    up.add_argument("--workers", metavar="N", type=count, default=WORKERS, help=f"how many (default: {WORKERS})")
    up.add_argument("--port", metavar="N", help="the port of the gateway; 0: a free one (default: 8321)")
    up.add_argument(
        "--root", metavar="DIR", action="append", help="sessions may work in here (default: this directory)"
    )
    up.add_argument(
        "--agents",
        metavar="NAMES",
        help="the agents of the workers, separated by commas (default: all that are installed)",
    )
    up.add_argument("--data", metavar="DIR", help="where to keep everything (default: `fleet` in the state directory)")
    up.add_argument("--open", action="store_true", help="open the page in the browser of this machine")
    up.add_argument("--json", action="store_true", help="print where it is as JSON")

    status = commands.add_parser("status", help="workers, their load, sessions and who owns them")
    drain = commands.add_parser("drain", help="let a worker end its turns and give its sessions to others")
    drain.add_argument("worker", metavar="WORKER", help="its name, as `status` shows it")
    for command in (status, drain):
        command.add_argument(
            "--fleet", metavar="URL", help="the broker (default: the fleet that `up` has started here)"
        )
        command.add_argument("--credentials", metavar="FILE", help="the key with the role admin")
        command.add_argument("--data", metavar="DIR", help="where `up` keeps everything")
        command.add_argument("--json", action="store_true", help="as JSON")

    credentials = commands.add_parser("credentials", help="make keys, and print what the broker has to know of them")
    credentials.add_argument("directory", metavar="DIR", help="where the keys are, or are to be")
    credentials.add_argument(
        "--worker", metavar="NAME", action="append", default=[], help="the name of a worker, for each one"
    )
    return top


def run(arguments: list[str]) -> int:
    """Run the subcommand that the arguments name, and return the exit status."""
    options = parser().parse_args(arguments)
    match options.command:
        case "up":
            return asyncio.run(_up(options))
        case "status":
            return asyncio.run(_status(options))
        case "drain":
            return asyncio.run(_drain(options))
        case _:
            return _credentials(options)


def _directory(chosen: str | None) -> Path:
    from antiphon.config.directories import state_dir

    return Path(chosen).expanduser().absolute() if chosen else state_dir() / "fleet"


# Up.


async def _up(options: Any) -> int:
    from antiphon.fleet.local import LocalFleet

    roots = [word for root in options.root or (".",) for word in ("--root", root)]
    agents = ["--agents", options.agents] if options.agents else []
    serve = [*(["--port", options.port] if options.port else []), *(["--open"] if options.open else [])]
    if options.workers < 1:
        raise Misused("a fleet needs a worker", hint="--workers 1, or more")
    ended, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, lambda: (again if ended.is_set() else ended).set())
    directory = _directory(options.data)
    fleet = LocalFleet(directory, options.workers, serve=serve, work=[*roots, *agents], report=_say)
    async with _started(fleet, ended, again) as is_up:
        if is_up:
            _print_fleet(fleet, options.workers, as_json=options.json)
            await ended.wait()
        _say("ending the fleet; Ctrl-C again ends turns that run at once")
    return 0


@asynccontextmanager
async def _started(fleet: "LocalFleet", ended: asyncio.Event, again: asyncio.Event) -> "AsyncIterator[bool]":
    """Start a fleet, and end it behind the block, in a hurry when a signal comes `again`. False: one came before it had started."""
    starting, signalled = asyncio.ensure_future(fleet.start()), asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait([starting, signalled], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        yield not ended.is_set()
    finally:
        for task in (starting, signalled):
            task.cancel()
        await asyncio.gather(starting, signalled, return_exceptions=True)
        await fleet.stop(again)


def _say(line: str) -> None:
    with suppress(OSError):  # a terminal that is gone keeps nothing from its end
        sys.stderr.write(f"{line}\n")


def _print_fleet(fleet: "LocalFleet", workers: int, *, as_json: bool) -> None:
    gateway = fleet.gateway
    if as_json:
        found = {
            **gateway,
            "broker": fleet.address.broker,
            "credentials": fleet.address.credentials,
            "pid": os.getpid(),
        }
        sys.stdout.write(f"{json.dumps(found)}\n")
    else:
        lines = [
            f"page    {gateway['page']}",
            "        good once, for ten minutes",
            f"agent   {gateway['url'].replace('http', 'ws', 1)}/acp",
            f"token   {gateway['token_file']}",
            f"broker  {fleet.address.broker}",
            f"workers {', '.join(f'worker-{number}' for number in range(1, workers + 1))}",
            "        `antiphon fleet status` shows them; Ctrl-C ends all of it",
        ]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


# Status and drain.


def _address(options: Any) -> "LocalFleetAddress":
    """Return the broker and the key that a command is to use."""
    from antiphon.fleet.local import LocalFleetAddress, find_local_fleet

    url = options.fleet or ("" if options.data else os.environ.get("ANTIPHON_FLEET", ""))
    if url:
        return LocalFleetAddress(0, url, options.credentials or os.environ.get("ANTIPHON_FLEET_CREDENTIALS", ""))
    found = find_local_fleet(_directory(options.data))
    if found is None:
        raise AcpError("no fleet runs here", hint="start one with `antiphon fleet up`, or name its broker with --fleet")
    return found


async def _status(options: Any) -> int:
    from antiphon.fleet.overview import fleet_overview

    address = _address(options)
    found = await fleet_overview(address.broker, Path(address.credentials) if address.credentials else None)
    if options.json:
        import msgspec

        sys.stdout.write(f"{msgspec.json.encode(found).decode()}\n")
    else:
        sys.stdout.write(_shown(found))
    return 0


def _shown(found: "FleetOverview") -> str:
    from antiphon.text import exact_line

    broker = found.broker
    lines = [
        f"broker   {exact_line(broker.state)}, {broker.servers} server{'s' if broker.servers != 1 else ''}, {broker.messages:,} messages, {_size(broker.bytes)}"
    ]
    if broker.lag:
        lines.append(f"         {broker.lag:,} messages are not on all servers yet")
    rows = [
        ["worker", "state", "turns", "sessions", "slots", "agents", "host", "pid", "labels"],
        *(
            [
                each.name,
                each.state,
                str(each.turns),
                str(each.sessions),
                str(each.slots or "-"),
                ", ".join(each.agents),
                each.host,
                str(each.pid or "-"),
                ", ".join(each.labels),
            ]
            for each in found.workers
        ),
    ]
    if not any(each.labels for each in found.workers):
        rows = [row[:-1] for row in rows]
    lines += (
        ["", *_table(rows)] if found.workers else ["no worker is there: start one with `antiphon worker --fleet …`"]
    )
    if found.sessions:
        owned = [
            ("session", "agent", "owner", "directory"),
            *((each.id, each.agent, each.owner or "-", each.cwd) for each in found.sessions),
        ]
        lines += ["", *_table(owned)]
        if (more := found.total - len(found.sessions)) > 0:
            lines.append(f"and {more:,} that were used longer ago")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _table(rows: "Sequence[Sequence[str]]") -> list[str]:
    from antiphon.text import exact_line

    rows = [[exact_line(cell) for cell in row] for row in rows]  # agents choose ids, and clients directories
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


async def _drain(options: Any) -> int:
    from antiphon.fleet.overview import drain_worker

    address = _address(options)
    answer: Mapping[str, object] = await drain_worker(
        address.broker, Path(address.credentials) if address.credentials else None, options.worker
    )
    if options.json:
        sys.stdout.write(f"{json.dumps(answer)}\n")
    else:
        turns = answer.get("turns", 0)
        sys.stdout.write(f"{options.worker} takes no more sessions and ends when its turns have ended ({turns} now)\n")
    return 0


# Keys.


def _credentials(options: Any) -> int:
    from antiphon.fleet.credentials import make_credentials, server_users

    directory = Path(options.directory).expanduser().absolute()
    keys = make_credentials(directory, workers=options.worker)
    sys.stdout.write(server_users(directory))
    sys.stdout.flush()
    _say(f"keys: {keys.admin}, {keys.gateway}" + "".join(f", {path}" for path in keys.workers.values()))
    _say("put what was printed into the configuration of each nats-server, and each key on the machine that uses it")
    return 0
