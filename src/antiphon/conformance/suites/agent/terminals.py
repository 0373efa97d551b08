"""The client's terminals: an agent survives their failures, and the user sees what they print."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, advice, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import breaks_off, ended, hold, requests, usable
from antiphon.traffic.entries import Entry, as_object, objects_in

__all__: list[str] = []

CREATE = "terminal/create"
WORD = "antiphonprinted"


@SUITE.scenario(
    "terminal-run",
    "the agent runs a command",
    files=True,
    shows=(
        advice(
            "terminal.shown",
            "What a command prints is shown: by the terminal in its tool call, or as text.",
            link="terminals#embedding-in-tool-calls",
            fix='Put `{"type": "terminal", "terminalId": …}` into the content of the tool call.',
        ),
    ),
)
async def shows_output(run: AgentRun) -> None:
    session = await run.session()
    response = await run.turn(session, "run", command=f"echo {WORD}")
    made = requests(run, CREATE, after=response.request.number)
    if not made:
        raise NotSeen("the agent created no terminal: a prompt file can name words that make it")
    shown = [one for one in run.updates(session, after=made[0].number) if _shows(one)]
    run.holds("terminal.shown", bool(shown), "no update shows the terminal or its output", *made)


def _shows(entry: Entry) -> bool:
    update = as_object(entry.params.get("update"))
    content = update.get("content")
    terminal = any("terminalId" in one for one in objects_in(content))
    return terminal or WORD in str(content) or WORD in str(update.get("rawOutput"))


@SUITE.scenario(
    "terminal-failing",
    "the agent runs a command that fails",
    files=True,
    shows=(
        should(
            "terminal.failing",
            "A turn in which a command failed is answered with a result.",
            link="terminals",
            fix="Report the exit code to the model: a command that fails is not a failure of the turn.",
        ),
    ),
)
async def failing(run: AgentRun) -> None:
    session = await run.session()
    response = await run.turn(session, "run", command="false")
    if not requests(run, CREATE, after=response.request.number):
        raise NotSeen("the agent created no terminal: a prompt file can name words that make it")
    run.holds("terminal.failing", response.error is None, "it was answered with an error", response)


@SUITE.scenario(
    "terminal-refused",
    "a client cannot make a terminal",
    files=True,
    shows=(
        must(
            "terminal.refused",
            "A turn ends if the client refuses to make a terminal.",
            link="terminals#executing-commands",
            fix="Report to the model that the command could not be run: that is not a reason for the turn to hang.",
        ),
        must(
            "terminal.refused-next",
            "After a terminal was refused the session takes another turn.",
            link="prompt-turn",
            fix="Catch the error where you asked for the terminal.",
            needs=("terminal.refused",),
        ),
    ),
)
async def refused(run: AgentRun) -> None:
    session = await run.session()
    pending, asked = await hold(run, CREATE, session, "run", command=f"echo {WORD}")
    await run.client.refuse(asked, -32603, "There are too many terminals")
    response = await ended(run, "terminal.refused", pending, "the turn did not end")
    run.holds("terminal.refused", True, "", response)
    await usable(run, "terminal.refused-next", session)


breaks_off("terminal.refused")
