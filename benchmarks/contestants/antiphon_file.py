"""An agent file as a user of the SDK writes it: its start-up is what is measured."""

from antiphon import Agent, AgentTurn, v1

agent = Agent("echo")


@agent.on
async def prompt(turn: AgentTurn) -> v1.StopReason:
    await turn.say(turn.text)
    return v1.StopReason.END_TURN


agent.run()
