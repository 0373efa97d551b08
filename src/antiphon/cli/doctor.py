"""`antiphon doctor`: what is installed, signed in and reachable, in which version; what is wrong, and what to do about it."""

import argparse
import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Final

from antiphon.catalogue.known import KNOWN
from antiphon.cli.grammar import Offered, Parser, duration
from antiphon.cli.saying import FAILED, Misused, did_you_mean
from antiphon.errors import AcpError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.doctor.findings import Check, Ward
    from antiphon.doctor.runner import Result

__all__ = ["parser", "run"]

LIMIT: Final = 10.0
"""Seconds that a program may take for an answer, unless told otherwise."""

START_LIMIT: Final = 60.0
"""Seconds that an agent may take to start, unless told otherwise."""

SILENCE: Final = 1.0
"""Seconds after which somebody at a terminal is told what we wait for."""

NAMES: Final = ("install", "config", "state", "environment", "engines", "agents", "editors", "demo", *KNOWN)
"""What is offered to be named."""

EPILOG: Final = """\
NAME is a part (install, config, state, environment, engines, agents, editors), an engine, an agent, an editor, or the id of a check.
What is asked for by name and is missing is a problem; else it is only told. One engine that works is enough: what is wrong with the other one is
then only told, unless you asked for it by name, here or in your config file.

Nothing is changed, and no connection is made unless --network asks for it: then each engine's model address is tried, without a key. --start
really starts demo, claude and codex, and agents that are named: initialize, a session in a directory of its own, and the end. No prompt
is sent; what a program does by itself when it is started is its own.

exit status: 0 all is well, 1 there is a problem, 2 wrong arguments.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon doctor",
        description="Diagnose the installation: what is installed, signed in and reachable; what is wrong, and what to do.",
        epilog=EPILOG,
    )
    top.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        choices=Offered(NAMES),
        help="look only at this (default: at everything)",
    )
    top.add_argument("--json", action="store_true", help="the report as one JSON object")
    top.add_argument("--network", action="store_true", help="also try the addresses of the models")
    top.add_argument("--start", action="store_true", help="also really start the agents")
    top.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="how long a program may take to answer and an agent to start (default: 10s and 60s)",
    )
    return top


def run(arguments: list[str]) -> int:
    """Look at everything, or at what is named, and report."""
    options = parser().parse_intermixed_args(arguments)
    log = logging.getLogger("antiphon")
    log.addHandler(logging.NullHandler())  # what is wrong is in the report; the rooms below would say it once more
    log.propagate = False
    return asyncio.run(_visit(options))


async def _visit(options: argparse.Namespace) -> int:
    from antiphon.doctor.checks import checks_of, selected
    from antiphon.doctor.engines import one_is_enough

    ward = await _admitted(options)
    if ward is None:
        raise AcpError(
            "the configuration could not be read in time", hint="look whether a disk is busy or stuck, and try again"
        )
    checks, unknown = selected(checks_of(ward, network=options.network, start=options.start), options.names)
    if unknown:
        raise Misused(f"there is nothing named `{unknown[0][:80]}` to look at", hint=f"{_meant(unknown[0], ward)}")
    return _tell(options, one_is_enough(await _examined(checks, ward), ward))


async def _admitted(options: argparse.Namespace) -> "Ward | None":
    from antiphon.doctor.context import admit
    from antiphon.doctor.runner import in_thread

    limit, start_limit = (options.timeout, options.timeout) if options.timeout else (LIMIT, START_LIMIT)
    try:
        async with asyncio.timeout(LIMIT):
            return await in_thread(lambda: admit(options.names, limit, start_limit))
    except TimeoutError:
        return None


async def _examined(checks: "Sequence[Check]", ward: "Ward") -> "tuple[Result, ...]":
    """Do the checks, and say on a terminal what we wait for if it takes long."""
    from antiphon.cli.screen import Screen
    from antiphon.doctor.runner import examine

    waiting = {check.id: check.title for check in checks}
    screen = Screen()

    def done(check: "Check") -> None:
        waiting.pop(check.id, None)

    async def say() -> None:
        while True:
            await asyncio.sleep(SILENCE)
            screen.status(f"waiting for {', '.join(waiting.values())}")

    telling = asyncio.create_task(say())
    try:
        return await examine(checks, ward, done)
    finally:
        telling.cancel()
        screen.status(None)


def _tell(options: argparse.Namespace, results: "tuple[Result, ...]") -> int:
    from antiphon.cli.doctor_report import encode, report_of, write

    report = report_of(results, network=options.network, start=options.start)
    if options.json:
        sys.stdout.write(f"{encode(report).decode()}\n")
    else:
        write(report, named=bool(options.names))
    return FAILED if report.status == "problem" else 0


def _meant(word: str, ward: "Ward") -> str:
    from antiphon.doctor.checks import PARTS, checks_of

    checks = checks_of(ward, network=True, start=True)
    for name, option in (("network", "--network"), ("start", "--start")):
        if word.partition(".")[0] == name:
            return f"`{option}` looks at that"
    known = dict.fromkeys((*PARTS, *(name for check in checks for name in (*check.about, check.id))))
    return f"{did_you_mean(word, known)}name a part ({', '.join(PARTS)}), an engine or an agent"
