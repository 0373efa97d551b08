"""`antiphon worker`: run agents for a fleet."""

import argparse
import asyncio
import json
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon.cli.arguments import Parser, duration, number_from, split_command
from antiphon.cli.outcome import Misused
from antiphon.cli.serve.command import agent_sources, print_waiting, root_directory
from antiphon.cli.serve.fleet import BEATS, LEASE, add_agent_options
from antiphon.cli.serve.limits import hub_limit, hub_limits, hub_limits_help
from antiphon.cli.serve.unit import add_unit_options, print_unit, remove_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.fleet.worker.program import WorkerProgram
    from antiphon.fleet.worker.worker import FleetWorker
    from antiphon.gateway.base import AgentSource

__all__ = ["parser", "run"]

SLOTS: Final = 100
DRAIN: Final = 60.0
"""What `fleet.worker` has too; it is not loaded for the help."""

EPILOG: Final = (
    """\
Joins a fleet of machines through its broker (nats-server), and runs agents for the gateways of it (`antiphon serve --fleet`). Sessions
are where their directory is: below a --root of this machine, or in a --workspace that others have too, under the same name. If this
worker is gone for three seconds, another one that has the directory takes its sessions. SIGTERM lets turns end and gives the sessions
to others; a second signal ends at once. The page docs/fleet.md says more.

  antiphon worker --fleet nats://broker:4222 --root ~/code
  antiphon worker --fleet nats://broker:4222 --credentials build-1.key --agents claude,codex --slots 20 --label gpu
  antiphon worker --fleet nats://broker:4222 --workspace shop=/mnt/shop --data /var/lib/antiphon/second

Limits, for --limit:

"""
    + hub_limits_help()
    + "\n"
)

SHORTEST_KEPT: Final = 3600.0
"""Seconds for which events are kept at least: a turn is copied by gateways when it has ended, and those may be away for a while."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon worker",
        usage="antiphon worker --fleet URL [OPTIONS] [unit | -- PROGRAM [ARGUMENT …]]",
        description="Run agents for a fleet of machines.",
        epilog=EPILOG,
    )
    top.add_argument(
        "--fleet", metavar="URL", action="append", required=True, help="the broker, such as nats://host:4222"
    )
    top.add_argument("--credentials", metavar="FILE", help="the key for the broker (`antiphon fleet credentials`)")
    top.add_argument(
        "--name", metavar="NAME", type=_name, help="its name (default: that of its key, else of the machine)"
    )
    top.add_argument(
        "--agents", metavar="NAMES", help="the agents that it runs, separated by commas (default: all installed)"
    )
    top.add_argument(
        "--slots", metavar="N", type=number_from(1), default=SLOTS, help=f"sessions in use at a time (default: {SLOTS})"
    )
    top.add_argument(
        "--label", metavar="WORD", type=_label, action="append", help="what this machine has, for sessions that need it"
    )
    _add_options(top)
    _add_times(top)
    return top


def _add_options(top: argparse.ArgumentParser) -> None:
    top.add_argument(
        "--workspace", metavar="NAME=DIR", action="append", help="a directory that other machines have too, by one name"
    )
    roots = "this directory, unless there is a --workspace"
    add_agent_options(top, "worker", roots=roots, limit=hub_limit, limits="memory=4G")
    top.add_argument(
        "--machine",
        metavar="NAME",
        type=_name,
        help="the name of this machine (default: found out); for containers with one disk",
    )


def _add_times(top: argparse.ArgumentParser) -> None:
    top.add_argument(
        "--drain",
        metavar="TIME",
        type=duration,
        default=DRAIN,
        help="how long turns may go on when it ends (default: 60s)",
    )
    top.add_argument(
        "--lease",
        metavar="TIME",
        type=duration,
        default=LEASE,
        help="without a sign of life for this long, a worker is taken for dead (default: 3s); the same in all of a fleet",
    )
    top.add_argument(
        "--keep-events",
        metavar="TIME",
        type=_kept,
        help="how long the broker keeps events, 1h or more; gateways keep finished turns (default: as long as the session)",
    )
    top.add_argument("--json", action="store_true", help="print what it is as JSON")
    unit = top.add_subparsers().add_parser(
        "unit", help="print, install or remove a unit for systemd that starts this worker"
    )
    add_unit_options(unit)


def _kept(text: str) -> float:
    seconds = duration(text)
    if seconds < SHORTEST_KEPT:
        raise argparse.ArgumentTypeError(
            f"`{text}` is too short: gateways need time to copy events, so give `1h` or more"
        )
    return seconds


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"`{text}` cannot be a name: use letters, digits, `-` and `_`")
    return text


def _label(text: str) -> str:
    if not text.isprintable() or not text.strip() or "," in text:
        raise argparse.ArgumentTypeError(f"`{text}` cannot be a label: give a word, such as `gpu`")
    return text


def run(arguments: list[str]) -> int:
    """Work until a signal comes. Return the exit status."""
    from antiphon.cli.logs import logging_to_file
    from antiphon.fleet.worker.program import run_worker

    words, command = split_command(arguments)
    options = parser().parse_args(words)
    if options.command == "unit":
        return _unit(options, words, command)
    sources = _sources(options.agents, command)
    program = _program(options)
    with logging_to_file(verbose=False, stderr=options.log):
        waiting = partial(print_waiting, most=options.drain)
        asyncio.run(run_worker(program, sources, partial(_announce, options.json), waiting))
    return 0


def _unit(options: Any, words: "Sequence[str]", command: list[str] | None) -> int:
    """Print or install a unit for systemd with the options of this command line, after they were checked; or remove it."""
    from antiphon.fleet.worker.program import worker_directory

    if options.undo:
        remove_unit("antiphon-worker", "worker")
        return 0
    _program(options)
    more = [] if options.root is not None or options.workspace else ["--root", os.getcwd()]
    if options.data is None:
        more += ["--data", str(worker_directory())]
    print_unit(
        "worker",
        words,
        command,
        what="worker",
        name="antiphon-worker",
        more=more,
        drain=options.drain,
        install=options.install,
    )
    return 0


def _program(options: Any) -> "WorkerProgram":
    from antiphon.fleet.worker.program import WorkerProgram
    from antiphon.fleet.worker.worker import WorkerOptions
    from antiphon.gateway.access.messages import ClientRules

    workspaces = _workspaces(options.workspace or ())
    roots = options.root if options.root is not None else [] if workspaces else ["."]
    credentials = Path(options.credentials).expanduser() if options.credentials else None
    return WorkerProgram(
        tuple(url.strip() for given in options.fleet for url in given.split(",") if url.strip()),
        credentials,
        Path(options.data) if options.data else None,
        WorkerOptions(
            _chosen_name(options.name, credentials),
            options.machine or "",
            labels=tuple(options.label or ()),
            roots=tuple(root_directory(root) for root in roots),
            workspaces=workspaces,
            slots=options.slots,
            limits=hub_limits(options.limit or ()),
            lease=options.lease,
            interval=options.lease / BEATS,
            drain=options.drain,
        ),
        ClientRules(
            frozenset(host.lower().strip("[]") for host in options.mcp_host or ()), frozenset(options.client_meta or ())
        ),
        options.files == "client",
        options.keep_events,
    )


def _chosen_name(name: str | None, credentials: Path | None) -> str:
    """Return the name of the worker. With a key it is that of the key, which may do nothing under another one."""
    if credentials is None:
        return name or ""
    from antiphon.fleet.credentials import read_key

    key = read_key(credentials)
    if key.role != "worker":
        hint = "`antiphon fleet credentials DIR --worker NAME` makes one for a worker"
        raise Misused(f"`{credentials}` is a key with the role {key.role}", hint=hint)
    if name is not None and name != key.name:
        raise Misused(f"`{credentials}` is the key of `{key.name}`", hint="leave out --name, or give another key")
    return key.name


def _workspaces(given: "Sequence[str]") -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, directory = text.partition("=")
        if not equals or not _NAME.fullmatch(name) or not directory:
            raise Misused(f"`--workspace` does not take `{text}`", hint="give a name and a directory: shop=/mnt/shop")
        if name in found:
            raise Misused(f"the workspace `{name}` is given twice", hint="each has a name of its own")
        found[name] = root_directory(directory)
    return found


def _sources(names: str | None, command: list[str] | None) -> "Mapping[str, AgentSource]":
    """Return how each agent is started: those that were named, or all that are installed."""
    if names is None:
        return agent_sources(None, command)[0]
    if command is not None:
        raise Misused("`--agents` and a PROGRAM cannot be given together", hint="the PROGRAM is the one agent then")
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise Misused("`--agents` names no agent", hint="--agents claude,codex")
    found: dict[str, AgentSource] = {}
    for name in wanted:
        found[name] = agent_sources(name, None)[0][name]
    return found


def _announce(as_json: bool, worker: "FleetWorker") -> None:
    """Print what the worker is, once it is a member of the fleet."""
    state = worker.state()
    if as_json:
        about = {"worker": state.name, "host": state.host, "agents": [*state.agents], "labels": [*state.labels],
                 "roots": [*state.roots], "workspaces": state.workspaces, "slots": state.slots, "pid": os.getpid()}  # fmt: skip
        sys.stdout.write(f"{json.dumps(about)}\n")
    else:
        shared = [f"{name} = {directory}" for name, directory in sorted(state.workspaces.items())]
        lines = [
            f"worker     {state.name} on {state.host}",
            f"agents     {', '.join(state.agents)}",
            *(f"label      {label}" for label in state.labels),
            *(f"root       {root}" for root in state.roots),
            *(f"workspace  {each}" for each in shared),
            f"slots      {state.slots}",
        ]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
