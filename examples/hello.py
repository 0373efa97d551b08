"""An agent, whole: `python hello.py` in an editor."""

from antiphon import Agent, Turn

agent = Agent("hello", version="1.0")


@agent.on
async def prompt(turn: Turn) -> None:
    """Answer whatever the user says."""
    await turn.say(f"Hello! You said: {turn.text}")


if __name__ == "__main__":
    agent.run()
