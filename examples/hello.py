"""An agent, whole: `python hello.py` in an editor."""

from antiphon import Agent, AgentTurn

agent = Agent("hello", version="1.0")


@agent.on
async def prompt(turn: AgentTurn) -> None:
    """Answer whatever the user says."""
    await turn.say(f"Hello! You said: {turn.text}")


if __name__ == "__main__":
    agent.run()
