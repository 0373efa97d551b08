"""An agent that does something: it counts the lines of a file, after asking, and stops when told to.

It reads the file through the client (which may have unsaved changes), shows the work as a tool call, asks permission, and lets
`session/cancel` end a turn. Prompt it with the path of a file.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from antiphon import Connection, RequestRefused, Router, open_stdio, v1
from antiphon.protocol.v1 import methods as m

OPTIONS = [
    v1.PermissionOption("yes", "Count them", v1.PermissionOptionKind.ALLOW_ONCE),
    v1.PermissionOption("no", "Do not", v1.PermissionOptionKind.REJECT_ONCE),
]


class LineCounter:
    """One connection's agent."""

    def __init__(self) -> None:
        self.router = Router()
        self.connection = Connection(open_stdio(), self.router)
        self.turns: dict[str, asyncio.Task[v1.PromptResult]] = {}
        self.router.on_request(m.INITIALIZE, lambda _: v1.InitializeResult(1))
        self.router.on_request(m.NEW_SESSION, lambda _: v1.NewSessionResult("session-1"))
        self.router.on_request(m.PROMPT, self.prompt)
        self.router.on_notice(m.CANCEL, self.cancel)

    async def prompt(self, asked: v1.Prompt) -> v1.PromptResult:
        """Run the turn as a task that `session/cancel` can end; whatever happens, the client gets its answer."""
        turn = self.turns[asked.session_id] = asyncio.create_task(self.count(asked))
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # not the turn but we are being ended
                turn.cancel()
                raise
            return v1.PromptResult(v1.StopReason.CANCELLED)
        finally:
            del self.turns[asked.session_id]

    def cancel(self, told: v1.Cancel) -> None:
        """The user has had enough."""
        if (turn := self.turns.get(told.session_id)) is not None:
            turn.cancel()

    async def count(self, asked: v1.Prompt) -> v1.PromptResult:
        """Ask, read, count, tell."""
        path = "".join(block.text for block in asked.prompt if isinstance(block, v1.TextBlock)).strip()
        session, voice = asked.session_id, self.connection.voice(asked.session_id)
        await voice.update(v1.ToolCall("count", f"Count the lines of {path}", kind=v1.ToolKind.READ))
        question = v1.RequestPermission(session, v1.ToolCallPatch("count"), OPTIONS)
        answer = await self.connection.request(m.REQUEST_PERMISSION, question)
        if not isinstance(answer.outcome, v1.Selected) or answer.outcome.option_id != "yes":
            await voice.update(v1.ToolCallUpdate("count", status=v1.ToolStatus.FAILED))
            return v1.PromptResult(v1.StopReason.REFUSAL)
        try:
            content = (await self.connection.request(m.READ_TEXT_FILE, v1.ReadTextFile(session, path))).content
        except RequestRefused as refusal:
            await voice.update(v1.ToolCallUpdate("count", status=v1.ToolStatus.FAILED))
            await voice.say(f"I cannot read it: {refusal.message}")
            return v1.PromptResult(v1.StopReason.END_TURN)
        await voice.update(v1.ToolCallUpdate("count", status=v1.ToolStatus.COMPLETED))
        await voice.say(f"{len(content.splitlines())} lines")
        return v1.PromptResult(v1.StopReason.END_TURN)


async def main() -> None:
    """Serve whoever started this program until they close our stdin."""
    async with LineCounter().connection as connection:
        await connection.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
