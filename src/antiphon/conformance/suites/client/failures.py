"""How it ends: when the agent fails, when it leaves, when it does not leave."""

from typing import Final

from antiphon.conformance.client_run import ClientRun, NotAsked
from antiphon.conformance.requirements import Blocked, advice, should
from antiphon.conformance.shim_socket import AgentProcessStart
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import RequestRefused
from antiphon.errors import Code
from antiphon.traffic.values import JsonObject

__all__: list[str] = []

FLOOD: Final = 1024 * 1024

STDIO = "transports#stdio"
ERRORS = "overview#error-handling"
TELL = "Tell the user what the agent answered, and exit with a status that is not 0."


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
            fix=TELL,
            needs=("errors.session",),
        ),
    ),
)
async def no_session(stage: ClientRun) -> None:
    async def new(agent: object, params: JsonObject) -> object:
        raise RequestRefused(Code.INTERNAL_ERROR, "there is no room")

    stage.script.does["session/new"] = new
    await stage.start()
    try:
        turn = await stage.asked("session/prompt")
    except NotAsked:
        if not any(one.wire.judge.ledger.initialized for one in stage.meetings):
            raise
    else:
        stage.holds("errors.session", False, "the client sent a prompt without a session", turn.entry)
        return
    status = await stage.ended()
    evidence = stage.meetings[0].wire.trace[-2:]
    if stage.holds("errors.session", status is not None, _ended(status), *evidence):
        stage.holds("errors.session-status", status != 0, _ended(status), *evidence)


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
            fix=TELL,
            needs=("errors.prompt",),
        ),
    ),
)
async def failing_turn(stage: ClientRun) -> None:
    await stage.start()
    turn = await stage.prompted()
    await stage.say("so far so good")
    said = await turn.meeting.agent.refuse(turn.entry, Code.INTERNAL_ERROR, "the model is not there")
    status = await stage.ended()
    if stage.holds("errors.prompt", status is not None, _ended(status), said):
        stage.holds("errors.prompt-status", status != 0, _ended(status), said)


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
async def agent_leaves(stage: ClientRun) -> None:
    await stage.start()
    turn = await stage.prompted()
    said = await stage.say("I have to")
    await stage.settle()
    stage.script.held.clear()  # a client that starts it again finds it well
    await turn.meeting.visit.leave()
    status = await stage.ended()
    stage.holds("ends.agent-gone", status is not None, "the client did not end", said)


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
async def agent_stays(stage: ClientRun) -> None:
    await stage.start()
    turn = await stage.prompted()
    visit = turn.meeting.visit
    if not isinstance(visit, AgentProcessStart):
        raise Blocked("there is no process to look at")
    limit = stage.wishes.limit
    flooded = await visit.flood(FLOOD, limit)
    if not stage.holds("stderr.flood", flooded, "writing 1 MiB to stderr took too long", turn.entry):
        return
    if not await visit.outlive_input(limit):
        raise Blocked("the agent left")
    said = await turn.end()
    status = await stage.ended()
    gone = await visit.is_gone(limit if status is not None else 0)
    stage.holds("ends.input", gone or "eof" in visit.events, "the agent's stdin is still open", said)
    otherwise = "the agent still runs" if status is not None else "the agent still runs, and so does the client"
    stage.holds("ends.no-orphan", gone, otherwise, said)
