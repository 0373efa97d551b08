"""Failures of the agent: when it responds with errors, when it exits, when it does not exit."""

from typing import Final

from antiphon.conformance.client_run import ClientRun, NotAsked
from antiphon.conformance.requirements import Blocked, advice, should
from antiphon.conformance.shim_socket import AgentProcessStart
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerRefusal
from antiphon.errors import Code
from antiphon.traffic.entries import JsonObject

__all__: list[str] = []

FLOOD: Final = 1024 * 1024

STDIO = "transports#stdio"
ERRORS = "overview#error-handling"
SHOW_ERROR = "Show the user what the agent answered, and exit with a status that is not 0."


def _ended(status: int | None) -> str:
    return "the client did not end" if status is None else "the client ended with status 0"


@SUITE.scenario(
    "no-session",
    "the agent answers `session/new` with an error",
    shows=(
        should(
            "errors.session",
            "A client that gets no session sends no prompt, and does not wait for ever.",
            link=ERRORS,
            fix="Take an error in answer to `session/new` as the end of what you were about to do.",
        ),
        advice(
            "errors.session-status",
            "It ends with a status that is not 0.",
            link=ERRORS,
            fix=SHOW_ERROR,
            needs=("errors.session",),
        ),
    ),
)
async def no_session(run: ClientRun) -> None:
    async def new(agent: object, params: JsonObject) -> object:
        raise PeerRefusal(Code.INTERNAL_ERROR, "there is no room")

    run.script.does["session/new"] = new
    await run.start()
    try:
        turn = await run.next_request("session/prompt")
    except NotAsked:
        if not any(one.wire.checker.state.initialized for one in run.connections):
            raise
    else:
        run.holds("errors.session", False, "the client sent a prompt without a session", turn.entry)
        return
    status = await run.ended()
    evidence = run.connections[0].wire.trace[-2:]
    if run.holds("errors.session", status is not None, _ended(status), *evidence):
        run.holds("errors.session-status", status != 0, _ended(status), *evidence)


@SUITE.scenario(
    "failing-turn",
    "the agent answers a prompt with an error",
    shows=(
        should(
            "errors.prompt",
            "A turn that ends with an error has ended.",
            link=ERRORS,
            fix="Take an error in answer to `session/prompt` as the end of the turn.",
        ),
        advice(
            "errors.prompt-status",
            "The client ends with a status that is not 0.",
            link=ERRORS,
            fix=SHOW_ERROR,
            needs=("errors.prompt",),
        ),
    ),
)
async def failing_turn(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    await run.send_text("so far so good")
    sent = await turn.connection.agent.refuse(turn.entry, Code.INTERNAL_ERROR, "the model is not there")
    status = await run.ended()
    if run.holds("errors.prompt", status is not None, _ended(status), sent):
        run.holds("errors.prompt-status", status != 0, _ended(status), sent)


@SUITE.scenario(
    "agent-leaves",
    "the agent exits in the middle of a turn",
    shows=(
        should(
            "ends.agent-gone",
            "A client whose agent leaves in the middle of a turn does not wait for ever.",
            link=STDIO,
            fix="Take the end of the agent's output as the end of every request that is open.",
        ),
    ),
)
async def agent_leaves(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    sent = await run.send_text("I have to")
    await run.settle()
    run.script.held.clear()  # a client that starts it again finds it well
    await turn.connection.agent_start.leave()
    status = await run.ended()
    run.holds("ends.agent-gone", status is not None, "the client did not end", sent)


@SUITE.scenario(
    "agent-stays",
    "the agent writes much to stderr, and does not leave when its input ends",
    process=True,
    shows=(
        should(
            "stderr.flood",
            "An agent that writes much to stderr is not held up.",
            link=STDIO,
            fix="Read the agent's stderr, or let it have yours.",
        ),
        should(
            "ends.input",
            "When the client has ended, so has the agent's input.",
            link=STDIO,
            fix="Close the agent's stdin, and let nothing else that you start inherit it.",
        ),
        should(
            "ends.no-orphan",
            "When the client has ended, so has the agent, also one that does not leave by itself.",
            link=STDIO,
            fix="Close the agent's stdin, wait a moment, then end it and all that it started.",
            needs=("ends.input",),
        ),
    ),
)
async def agent_stays(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    agent_start = turn.connection.agent_start
    if not isinstance(agent_start, AgentProcessStart):
        raise Blocked("there is no process to look at")
    limit = run.options.limit
    flooded = await agent_start.flood(FLOOD, limit)
    if not run.holds("stderr.flood", flooded, "writing 1 MiB to stderr took too long", turn.entry):
        return
    if not await agent_start.outlive_input(limit):
        raise Blocked("the agent left")
    sent = await turn.end()
    status = await run.ended()
    gone = await agent_start.is_gone(limit if status is not None else 0)
    run.holds("ends.input", gone or "eof" in agent_start.events, "the agent's stdin is still open", sent)
    otherwise = "the agent still runs" if status is not None else "the agent still runs, and so does the client"
    run.holds("ends.no-orphan", gone, otherwise, sent)
