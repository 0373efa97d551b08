"""An agent with a tool: it counts the lines of a file, after asking, and can be cancelled.

It reads the file through the client (which may have unsaved changes) and shows the work as a tool call. Prompt it with the path of a
file.
"""

from antiphon import Agent, AgentTurn, RequestRefused, v1

agent = Agent("line-counter", version="1.0")


@agent.on
async def prompt(turn: AgentTurn) -> v1.StopReason | None:
    """Ask for permission, read the file, count its lines, send the number."""
    path = turn.text.strip()
    async with turn.tool(f"Count the lines of {path}", v1.ToolKind.READ, at=[path]) as call:
        if not await call.permitted():
            return v1.StopReason.REFUSAL
        try:
            content = await turn.read(path)
        except RequestRefused as refusal:
            call.fail()
            await turn.say(f"I cannot read it: {refusal.message}")
            return None
    await turn.say(f"{len(content.splitlines())} lines")
    return None


if __name__ == "__main__":
    agent.run()
