"""An agent on stdin and stdout: the handshake before the event loop, the rest after it."""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from antiphon.connection.early import answer_initialize
from antiphon.errors import LocalProtocolError

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.protocol.v1.initialize import Initialize, InitializeResult

__all__ = ["run"]

EXIT_GRACE: Final = 2.0
"""Seconds that what still runs may take to end after the client is gone and everything was cancelled."""


def run(agent: "Agent") -> None:
    """Answer `initialize`, import the rest, and serve until stdin is closed."""
    asked: Initialize | None = None

    def initialize(question: "Initialize") -> "InitializeResult":
        nonlocal asked
        answer = agent.initialize(question)
        asked = question
        return answer

    if not agent.does("prompt"):
        raise LocalProtocolError("an agent needs `prompt`", hint="fill it in, in a subclass or with `@agent.on`")
    if os.isatty(0):
        sys.stderr.write(
            f"{agent.info.name} speaks ACP and waits for a client on stdin: start it from an editor. Ctrl-D ends it.\n"
        )
    with suppress(KeyboardInterrupt):
        already_read = answer_initialize(initialize)

        import asyncio

        from antiphon.agent.service import serve
        from antiphon.transports.stdio import open_stdio

        async def converse() -> None:
            await serve(agent, open_stdio(already_read=already_read), asked)
            await _leave()

        asyncio.run(converse())


async def _leave() -> None:
    """The client is gone, and so are we: a task that will not end does not keep the process."""
    import asyncio
    import logging

    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    stuck = (await asyncio.wait(rest, timeout=EXIT_GRACE))[1] if rest else ()
    if stuck:
        names = ", ".join(task.get_name() for task in stuck)
        logging.getLogger(__name__).error("ending although these ignore their cancellation: %s", names)
        logging.shutdown()
        os._exit(1)
