"""Commands for what version 2 of the protocol adds: one tool call is cancelled, work goes on in the background or begins by itself, ids."""

import asyncio
from typing import TYPE_CHECKING, Final

from antiphon.engines.demo.commands import command, number
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["STEP"]

STEP: Final = 0.1
"""Seconds between two steps of a count: long enough to be cancelled in the middle, short enough to watch."""


@command("count", "Count in a tool call that you can cancel alone", "[STEPS]")
async def count(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A tool call that offers to be cancelled; the turn goes on after it."""
    steps = number(rest, 50)
    tool = turn.tool(f"Count to {steps}", v1.ToolKind.OTHER, name="Count", input={"steps": steps})
    async with tool as call, call.cancellable():
        for step in range(1, steps + 1):
            await call.rename(f"Count: {step} of {steps}")
            await asyncio.sleep(STEP)
    await turn.say("You cancelled the count, and the turn goes on." if call.cancelled else f"I counted to {steps}.")
    return None


@command("background", "Count in the background, after the turn", "[STEPS]")
async def background(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A tool call that goes on beyond the turn, in the list of background work."""
    steps = number(rest, 50)
    turn.session.start_task(_count_behind(turn.session, steps), name="count in the background")
    await turn.say(f"I count to {steps} in the background.")
    return None


async def _count_behind(session: "AgentSession", steps: int) -> None:
    title = f"Count to {steps} in the background"
    async with session.background(title, name="Count", input={"steps": steps}) as call:
        for step in range(1, steps + 1):
            await call.rename(f"Count in the background: {step} of {steps}")
            await asyncio.sleep(STEP)


@command("later", "Work without a prompt, a moment after the turn", "[STEPS]")
async def later(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Work that the agent begins by itself."""
    turn.session.start_task(_work_alone(turn.session, number(rest, 5)), name="work without a prompt")
    await turn.say("I will say something by myself in a moment.")
    return None


async def _work_alone(session: "AgentSession", steps: int) -> None:
    await session.wait_idle()
    await asyncio.sleep(STEP)
    async with session.work() as turn:
        for step in range(1, steps + 1):
            await turn.say(f"By myself: {step}. ")
            await asyncio.sleep(STEP)


@command("ids", "Show the ids of your prompt and of two messages")
async def ids(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Two messages whose pieces alternate: their ids keep them apart."""
    first, second = turn.next_id("message"), turn.next_id("message")
    await turn.say(f"Your prompt is `{turn.message_id}`. ", message_id=first)
    await turn.say("This is another message. ", message_id=second)
    await turn.say(f"This is `{first}`.", message_id=first)
    await turn.say(f"It is `{second}`.", message_id=second)
    return None
