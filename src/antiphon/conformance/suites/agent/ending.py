"""The agent as a process: silent until it is spoken to, gone when its input ends, with all that it started."""

import os
import signal

from antiphon.conformance.requirements import advice, must, should
from antiphon.conformance.stage import Stage
from antiphon.conformance.suites.agent.sounding import FENCE
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import Blocked, NoAnswer
from antiphon.transports.process import ProcessTransport

__all__: list[str] = []

END_FIX = "Leave when stdin ends: a client that crashed cannot tell you to."


def _process(stage: Stage) -> ProcessTransport:
    if not isinstance(stage.wire.transport, ProcessTransport):
        raise Blocked("there is no process to look at")
    return stage.wire.transport


async def _ends(stage: Stage, requirement: str) -> bool:
    """Judge whether the agent leaves by itself when its input ends; what it left behind is judged too."""
    process = _process(stage)
    await process.end_input()
    limit = stage.wishes.limit
    gone = await process.exited(limit)
    stage.holds(requirement, gone, f"it still ran {limit:g} s after the end of its input")
    if gone:
        left = await process.left_behind(limit)
        stage.holds("process.children", not left, f"{len(left)} processes that it had started still ran")
    return gone


@SUITE.scenario(
    "nothing-is-said",
    "a client starts the agent and goes away again",
    alone=True,
    process=True,
    shows=(
        must(
            "process.silent",
            "An agent that nobody has spoken to says nothing on stdout.",
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
async def silent(stage: Stage) -> None:
    process = _process(stage)
    gone = await _ends(stage, "process.ends")
    stage.verdicts.pop("process.children", None)  # it had no reason to start any
    if gone:
        stage.holds("process.status", process.status == 0, f"it left with status {process.status}")
    else:
        await process.close()
    await stage.wire.silence(stage.wishes.patience)
    stage.holds("process.silent", not stage.wire.heard, "it said something", *stage.wire.heard[:1])


@SUITE.scenario(
    "end-during-a-turn",
    "a client goes away while a turn runs",
    alone=True,
    process=True,
    shows=(
        should(
            "process.ends-busy",
            "The agent leaves by itself when its input ends during a turn.",
            link="transports#stdio",
            fix="Cancel what runs when stdin ends, and leave: nobody is there to hear the rest.",
        ),
        must(
            "process.children",
            "When the agent has left, nothing that it started runs on.",
            link="transports#stdio",
            fix="End the processes that you started before you leave, also those of a turn.",
        ),
    ),
)
async def during_a_turn(stage: Stage) -> None:
    await stage.introduce()
    session = await stage.session()
    turn = await stage.prompt(session, stage.words("long"))
    await stage.first_sign(session, turn)
    await _ends(stage, "process.ends-busy")


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
async def two(stage: Stage) -> None:
    if stage.another is None:
        raise Blocked("no second agent can be started")
    other = await stage.another()
    for one in stage, other:
        await one.introduce()
        await one.session()
    process = _process(other)
    os.killpg(process.pid, signal.SIGTERM)
    gone = await process.exited(stage.wishes.limit)
    stage.holds("process.terminates", gone, f"it still ran {stage.wishes.limit:g} s after TERM")
    try:
        answer = await stage.ask(FENCE, {})
    except NoAnswer as silent:
        stage.holds("process.beside", False, "the other one answered no more", silent.asked)
        raise
    stage.holds("process.beside", True, "", answer)
    await _ends(stage, "process.ends-idle")
    stage.verdicts.pop("process.children", None)
