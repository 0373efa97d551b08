"""A client with handlers: it grants permission, serves files, and gives up on a slow turn.

`python examples/client.py PATH [-- COMMAND …]` asks an agent (the line counter beside this file unless a command is given) about PATH.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from antiphon import AcpError, Code, Connection, RequestError, Router, spawn, v1
from antiphon.protocol.v1 import methods as m

PATIENCE = 30.0
"""Seconds a turn may take."""


def permit(asked: v1.RequestPermission) -> v1.PermissionResult:
    """Allow once what may be allowed once; anything else is up to a person, and there is none here."""
    for option in asked.options:
        if option.kind == v1.PermissionOptionKind.ALLOW_ONCE:
            return v1.PermissionResult(v1.Selected(option.option_id))
    return v1.PermissionResult(v1.Cancelled())


def read(asked: v1.ReadTextFile) -> v1.ReadTextFileResult:
    """Read a file for the agent."""
    try:
        return v1.ReadTextFileResult(Path(asked.path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(Code.RESOURCE_NOT_FOUND, error.strerror or "cannot be read", asked.path) from None


def show(update: v1.Update) -> None:
    """Print what a person would want to see."""
    match update:
        case v1.AgentMessageChunk(content=v1.TextBlock(text=text)):
            print(text)
        case v1.ToolCall(title=title):
            print(f"… {title}")
        case v1.ToolCallUpdate(status=status) if status is not v1.UNSET:
            print(f"… {status}")
        case _:
            pass


async def main(path: str, command: list[str]) -> int:
    """One session, one turn."""
    router = Router()
    router.on_request(m.REQUEST_PERMISSION, permit)
    router.on_request(m.READ_TEXT_FILE, read)
    try:
        async with Connection(await spawn(command), router) as agent:
            files = v1.FileCapabilities(read_text_file=True)
            await agent.request(m.INITIALIZE, v1.Initialize(1, client_capabilities=v1.ClientCapabilities(fs=files)))
            session = (await agent.request(m.NEW_SESSION, v1.NewSession(str(Path.cwd()), []))).session_id
            async with (
                asyncio.timeout(PATIENCE),
                agent.stream(m.PROMPT, v1.Prompt(session, [v1.TextBlock(path)])) as turn,
            ):
                async for news in turn:
                    show(news.update)
            print(f"({turn.result.stop_reason})")
    except TimeoutError:
        print("error: the turn took too long and was cancelled", file=sys.stderr)
        return 1
    except AcpError as error:  # it did not start, died, refused, or spoke nonsense: each says what and why
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    what, _, *other = sys.argv[1:] if len(sys.argv) > 2 else [*sys.argv[1:], "--"]
    with suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(main(what, other or [sys.executable, str(Path(__file__).with_name("tool_agent.py"))])))
