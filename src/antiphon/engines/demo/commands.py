"""Acts that run commands, for real and only after permission."""

import asyncio
from typing import TYPE_CHECKING, Final

from antiphon.engines.demo.acts import act
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.commands import FinishedCommand
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__: list[str] = []

LONGEST: Final = 3600.0
"""Seconds that `/limit` waits at most."""


@act("run", "Run a command, after you allowed it", "CMD")
async def run(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """In the client's terminal where it has one. The line is the shell's, because it was typed by a person."""
    if not rest.strip():
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "say what to run, such as `/run ls`")
    async with turn.tool(f"Run `{rest}`", v1.ToolKind.EXECUTE, name="Bash", input={"command": rest}) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.EXECUTE, rest):
            return None
        finished = await call.run(rest)
        if not finished.ok:
            call.fail()
    await turn.say(_ending(rest, finished))
    return None


@act("limit", "Run a command, but no longer than that many seconds", "SECONDS CMD")
async def limit(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """What it writes is told as it comes; when the time is over it is killed and its output stays."""
    seconds, line = _timed(rest)
    title = f"Run `{line}` for {seconds:g} s"
    asked = {"command": line, "timeout": seconds}
    async with turn.tool(title, v1.ToolKind.EXECUTE, name="Bash", input=asked) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.EXECUTE, line):
            return None
        async with turn.run(line) as running:
            try:
                async with asyncio.timeout(seconds):
                    async for piece in running:
                        await turn.say(piece)
            except TimeoutError:
                await running.kill()
                call.fail()
            finished = await running.finish()
    await turn.say(_ending(line, finished))
    return None


def _timed(rest: str) -> tuple[float, str]:
    words = rest.split(maxsplit=1)
    try:
        return min(float(words[0]), LONGEST), words[1]
    except (IndexError, ValueError):
        wrong = "say how long and what, such as `/limit 2 make`"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong) from None


def _ending(line: str, finished: "FinishedCommand") -> str:
    if finished.signal is not None:
        return f"`{line}` ended by {finished.signal}."
    if finished.exit_code is not None:
        return f"`{line}` ended with {finished.exit_code}."
    return f"`{line}` ended, and the client does not say how."  # both are optional in the protocol
