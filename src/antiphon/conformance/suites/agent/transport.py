"""The agent as a process: silent until it gets a message, gone when its input ends, with all that it started."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse, NotSeen, advice, must, should
from antiphon.conformance.suites.agent.suite import FENCE, SUITE, breaks
from antiphon.conformance.wire import PendingRequest
from antiphon.traffic.entries import Entry
from antiphon.transports.process import ProcessTransport

__all__: list[str] = []

END_FIX: Final = "Leave when stdin ends: a client that crashed cannot ask you to."


breaks("init.speaks-after", "wire.json", by=("process.silent",))


def _process(run: AgentRun) -> ProcessTransport:
    if not isinstance(run.wire.transport, ProcessTransport):
        raise Blocked("there is no process to look at")
    return run.wire.transport


async def _ends(run: AgentRun, requirement: str, *evidence: Entry) -> bool:
    """Judge whether the agent leaves by itself when its input ends."""
    process = _process(run)
    await process.end_input()
    limit = run.options.limit
    gone = await process.exited(limit)
    return run.holds(requirement, gone, f"it still ran {limit:g} s after the end of its input", *evidence)


@SUITE.scenario(
    "nothing-is-said",
    "a client starts the agent and goes away again",
    alone=True,
    process=True,
    shows=(
        must(
            "process.silent",
            "An agent that has received nothing sends nothing on stdout.",
            link="transports#stdio",
            fix="Write greetings and logs to stderr: stdout is for messages only.",
        ),
        should(
            "process.ends",
            "The agent leaves by itself when its input ends.",
            link="transports#stdio",
            fix=END_FIX,
        ),
        advice(
            "process.status",
            "An agent whose input ended leaves with status 0.",
            link="transports#stdio",
            fix="Take the end of stdin for what it is, not for an error.",
        ),
    ),
)
async def silent(run: AgentRun) -> None:
    process = _process(run)
    gone = await _ends(run, "process.ends")
    if gone:
        run.holds("process.status", process.status == 0, f"it left with status {process.status}")
    else:
        await process.close()
    await run.wire.silence(run.options.silence)
    run.holds("process.silent", not run.wire.received, "it printed something", *run.wire.received[:1])


@SUITE.scenario(
    "end-during-a-turn",
    "a client goes away while a turn runs, if possible with a command in it",
    alone=True,
    process=True,
    shows=(
        should(
            "process.ends-busy",
            "The agent leaves by itself when its input ends during a turn.",
            link="transports#stdio",
            fix="Cancel what runs when stdin ends, and exit: no client is left to receive the rest.",
        ),
        should(
            "process.children",
            "When the agent has left, nothing that it started runs on.",
            link="transports#stdio",
            fix="End the processes that you started before you leave, also those of a turn.",
        ),
    ),
)
async def during_a_turn(run: AgentRun) -> None:
    await run.initialize(capabilities={})  # without our terminals it has to run commands by itself
    session = await run.session()
    turn, runs = await _running(run, session)
    if not await _ends(run, "process.ends-busy", turn.request):
        raise Blocked("it did not leave by itself")
    if not runs:
        raise NotSeen("the agent started no process: a prompt file can name words that make it run a command")
    left = await _process(run).left_behind(run.options.limit)
    run.holds("process.children", not left, f"{len(left)} processes that it had started still ran", turn.request)


def _sleeps(pid: int) -> bool:
    """Whether a process is our command: an agent starts others too. Where that cannot be looked up, any may be."""
    try:
        return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists()


async def _running(run: AgentRun, session: str) -> tuple[PendingRequest, bool]:
    """A turn that runs, and whether the agent runs a command in it; if it does not want to, it works by itself."""
    process = _process(run)
    before = set(await process.left_behind(0))
    command = run.options.prompts.text("long_run", command="sleep 300")
    if command:
        turn = await run.prompt(session, command)
        for _ in range(int(run.options.limit / run.options.silence)):
            if any(_sleeps(pid) for pid in set(await process.left_behind(0)) - before):
                return turn, True
            with suppress(NoResponse):
                await turn.response(run.options.silence)
                break
        if turn.peek() is None:
            await run.cancel(session)
            await turn.response()
    turn = await run.prompt(session, run.words("long"))
    await run.first_sign(session, turn)
    return turn, False


@SUITE.scenario(
    "two-agents",
    "a client starts the agent twice, and ends one of them by a signal",
    alone=True,
    process=True,
    shows=(
        should(
            "process.beside",
            "Two agents run beside each other, and one goes on when the other ends.",
            link="transports#stdio",
            fix="Keep what two processes share (locks, ports, files) so that both can run.",
        ),
        should(
            "process.terminates",
            "The agent leaves when it gets TERM.",
            link="transports#stdio",
            fix="Do not ignore SIGTERM; clean up and leave.",
        ),
        should(
            "process.ends-idle",
            "An agent with an open session leaves by itself when its input ends.",
            link="transports#stdio",
            fix=END_FIX,
        ),
    ),
)
async def two(run: AgentRun) -> None:
    if run.another is None:
        raise Blocked("no second agent can be started")
    other = await run.another()
    for one in run, other:
        await one.initialize()
        await one.session()
    process = _process(other)
    with suppress(ProcessLookupError):  # it may have left by itself
        os.killpg(process.pid, signal.SIGTERM)
    gone = await process.exited(run.options.limit)
    run.holds("process.terminates", gone, f"it still ran {run.options.limit:g} s after TERM")
    try:
        response = await run.request(FENCE, {})
    except NoResponse as silent:
        run.holds("process.beside", False, "the other one answered no more", silent.request)
        raise Blocked("it ended together with another one") from None
    run.holds("process.beside", True, "", response)
    await _ends(run, "process.ends-idle")
