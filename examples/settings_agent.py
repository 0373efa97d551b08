"""An agent with settings, a question and a command: it runs the project's tests, in the way the user has set.

`/setup` asks for the command with a form; anything else runs it.
"""

from antiphon import Agent, AgentSession, AgentTurn, v1

agent = Agent("tester", version="1.0")

SETTINGS = (
    v1.SelectConfig(
        id="verbosity",
        name="How much to show",
        category=v1.ConfigCategory.MODEL_CONFIG,
        current_value="result",
        options=[v1.SelectOption("result", "The result"), v1.SelectOption("output", "All of the output")],
    ),
    v1.BooleanConfig(id="stop", name="Stop at the first failure", current_value=False),
)


@agent.on
async def new_session(session: AgentSession) -> None:
    """Set what the user can change, and the state of the session."""
    session.config_options = SETTINGS
    session.state = {"command": "true"}
    await session.offer(v1.Command("setup", "Set the command that runs the tests"))


@agent.on
async def set_config_option(session: AgentSession, config_id: str, value: bool | str) -> None:
    """Store a value that is on offer; this agent refuses none."""
    session.state[config_id] = value


@agent.on
async def prompt(turn: AgentTurn) -> None:
    """Ask for the command, or run it."""
    state = turn.session.state
    if turn.command is not None and turn.command[0] == "setup":
        answers = await turn.ask("How are the tests run?", command=v1.StringProperty(title="Command", min_length=1))
        state["command"] = state["command"] if answers is None else answers["command"]
        await turn.say(f"I will run `{state['command']}`.")
        return
    async with turn.tool(f"Run {state['command']}", v1.ToolKind.EXECUTE, input={"command": state["command"]}) as call:
        if not await call.permitted():
            return
        finished = await call.run(state["command"])
        if not finished.ok:
            call.fail()
    if state.get("verbosity") == "output":
        await turn.say(finished.output)
    await turn.say("They pass." if finished.ok else f"They fail ({finished.exit_code or finished.signal}).")


if __name__ == "__main__":
    agent.run()
