"""A complete agent: an editor starts it with `python hello.py`."""

from antiphon import Agent, AgentTurn

agent = Agent("hello", version="1.0")


@agent.on
async def prompt(turn: AgentTurn) -> None:
    """Answer a prompt of the user."""
    await turn.say(f"Hello! You said: {turn.text}")


if __name__ == "__main__":
    agent.run()
