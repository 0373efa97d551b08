"""A client with handlers: it grants permission, cancels a slow turn, and prints errors.

`python examples/client.py PATH [-- COMMAND …]` asks an agent (the line counter beside this file unless a command is given) about PATH.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from antiphon import AcpError, connect, v1
from antiphon.client import Retry

TURN_TIMEOUT = 30.0
"""Seconds a turn may take."""


def permit(request: v1.RequestPermission) -> bool:
    """Allow reading. Anything else needs a person, and no person is asked here."""
    return request.tool_call.kind == v1.ToolKind.READ


def show(update: v1.Update) -> None:
    """Print messages and tool calls."""
    match update:
        case v1.AgentMessageChunk(content=v1.TextBlock(text=text)):
            print(text)
        case v1.ToolCall(title=title):
            print(f"… {title}")
        case v1.ToolCallUpdate(status=v1.ToolStatus.COMPLETED | v1.ToolStatus.FAILED as status):
            print(f"… {status}")
        case _:
            pass


async def main(path: Path, command: list[str]) -> int:
    """One session, one turn. The agent may read the directory of the file, and nothing else."""
    try:
        async with connect(command, permission=permit, retry=Retry(delays=())) as agent:
            session = await agent.new_session(path.parent)
            async with asyncio.timeout(TURN_TIMEOUT), session.prompt(str(path)) as turn:
                async for update in turn:
                    show(update)
            print(f"({turn.result.stop_reason})")
    except TimeoutError:
        print("error: the turn took too long and was cancelled", file=sys.stderr)
        return 1
    except AcpError as error:  # it did not start, ended, refused, or broke the protocol: the error has the reason
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("usage: client.py PATH [-- COMMAND …]")
    path, _, *other = sys.argv[1:] if len(sys.argv) > 2 else [*sys.argv[1:], "--"]
    command = other or [sys.executable, str(Path(__file__).with_name("tool_agent.py"))]
    with suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(main(Path(path).absolute(), command)))
