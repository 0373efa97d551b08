"""Prompts and states: what is the end of the work on a prompt for a client, and what is not."""

from antiphon.conformance.client_run import NotAsked
from antiphon.conformance.standin_agent import StandinAgent
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, advice, must, play_v2, should
from antiphon.conformance.v2.client_run import ClientRunV2, OpenPrompt, StandinAgentV2
from antiphon.errors import Code
from antiphon.traffic.entries import Entry, JsonObject

__all__: list[str] = []

STATES = "schema#stateupdate"
IDLE = "schema#idlestateupdate"
END = "Take the work on a prompt for ended when its message was inserted and the session is `idle` after that."
SHOW_ERROR = "Show the user what went wrong, and exit with a status that is not 0."


def _ended(status: int | None) -> str:
    return "the client did not end" if status is None else f"the client ended with status {status}"


async def _ends(run: ClientRunV2, requirement: str, sent: Entry, *, well: bool = False) -> int | None:
    """The requirement is that the client ends now: with status 0, or with any."""
    status = await run.ended()
    run.holds(requirement, status == 0 if well else status is not None, _ended(status), sent)
    return status


@CLIENT_SUITE_V2.scenario(
    "states",
    "a session that reports its states",
    shows=(
        must(
            "turn.answer",
            "The answer to a prompt is not the end of the work on it.",
            link="schema#promptresponse",
            fix=END,
        ),
        must(
            "state.requires-action",
            "A session that requires an action of the user is not idle.",
            link="schema#requiresactionstateupdate",
            fix=END,
        ),
        must(
            "state.repeated",
            "A state that is reported again is taken without complaint.",
            link=STATES,
            fix="Take each report for a snapshot: one that repeats the last is nothing new.",
        ),
        must(
            "state.unknown",
            "A state that the client does not know is not taken for idle.",
            link=STATES,
            fix="Show that the session is busy until a state comes that you know.",
        ),
        must(
            "state.background",
            "Background work, also of a type that the client does not know, is taken without complaint.",
            link="schema#backgroundwork",
            fix="Count an unknown item as something that runs; a list that is missing means that nothing is known about it.",
        ),
    ),
)
@play_v2
async def states(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    agent, session = turn.agent, turn.session
    await run.stays("turn.answer", "the answer to its prompt", turn.entry)
    sent = await agent.report(session, "requires_action")
    await run.stays("state.requires-action", "the state `requires_action`", sent)
    several = [await agent.report(session, "running") for _ in range(3)]
    await run.survives("state.repeated", "a state that was reported before", *several)
    sent = await agent.report(session, "_antiphon_waiting", until="tomorrow")
    await run.stays("state.unknown", "an unknown state", sent)
    await run.update({"sessionUpdate": "terminal_update", "terminalId": "b-1", "command": "make"})
    work: list[JsonObject] = [{"type": "terminal", "terminalId": "b-1"}, {"type": "_antiphon_dream", "depth": 2}]
    several = [
        await agent.report(session, "running", background=work),
        await run.update({"sessionUpdate": "terminal_update", "terminalId": "b-1", "exitStatus": {}}),
        await agent.report(session, "running", background=[]),
    ]
    await run.survives("state.background", "a report of background work", *several)
    await turn.end(background=[])


@CLIENT_SUITE_V2.scenario(
    "early-state",
    "a session is running before the answer to `session/new`",
    shows=(
        must(
            "state.early",
            "The answer to `session/new` does not make a session idle that was reported to be running.",
            link="schema#newsessionresponse",
            fix="Take a new session for idle only if no state of it was reported before the answer.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def early_state(run: ClientRunV2) -> None:
    run.script.does["session/new"] = _running
    await run.start()
    turn = await run.next_prompt()
    await turn.agent.echo(turn.entry)
    sent = await turn.agent.accept(turn.entry)
    await run.take_over(turn)  # without a report: it is running already
    await run.stays("state.early", "its prompt was inserted into work that was going on", sent)
    await turn.end()


async def _running(agent: StandinAgent, params: JsonObject) -> object:
    """A new session whose state is reported before its id is answered."""
    made = await agent.usual("session/new", params)
    if isinstance(agent, StandinAgentV2):
        await agent.report(list(agent.script.folders)[-1], "running")
    return made


@CLIENT_SUITE_V2.scenario(
    "idle-of-others",
    "other work ends while a prompt waits to be inserted",
    shows=(
        must(
            "turn.idle-of-others",
            "An `idle` is not the end of a prompt that was not inserted before it.",
            link="schema#promptresponse",
            fix=END,
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def idle_of_others(run: ClientRunV2) -> None:
    run.script.does["session/new"] = _running
    await run.start()
    turn = await run.next_prompt()
    await run.take_over(turn)
    sent = await turn.end()
    await run.stays("turn.idle-of-others", "the end of other work", turn.entry, sent)
    await turn.insert()
    await turn.end()


@CLIENT_SUITE_V2.scenario(
    "answer-last",
    "a prompt is answered after the work on it",
    shows=(
        must(
            "turn.answer-last",
            "A prompt whose answer comes after the end of the work on it has ended.",
            link="schema#promptresponse",
            fix="Remember the state: the message of a prompt, its answer and the updates come in any order.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def answer_last(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.next_prompt()
    await turn.agent.echo(turn.entry)
    await turn.agent.report(turn.session, "running")
    await run.take_over(turn)
    await run.send_text("quickly done")
    await turn.end()
    sent = await turn.agent.accept(turn.entry)
    await _ends(run, "turn.answer-last", sent)


@CLIENT_SUITE_V2.scenario(
    "no-reason",
    "work ends without a stop reason",
    shows=(
        must(
            "turn.no-reason",
            "Work whose `idle` has no stop reason has ended.",
            link=IDLE,
            fix="Take `idle` for the end, with or without `stopReason`.",
        ),
    ),
)
@play_v2
async def no_reason(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    sent = await turn.agent.report(turn.session, "idle")
    await _ends(run, "turn.no-reason", sent)


@CLIENT_SUITE_V2.scenario(
    "unknown-reason",
    "work ends for a reason that there is not yet",
    shows=(
        must(
            "turn.unknown-reason",
            "Work that ends for a reason which the client does not know has ended.",
            link=IDLE,
            fix="Take an unknown `stopReason` as the end of the work, with or without an error.",
        ),
    ),
)
@play_v2
async def unknown_reason(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    sent = await turn.end("_antiphon_tomorrow", antiphonUsage={"tokens": 1})
    await _ends(run, "turn.unknown-reason", sent)


@CLIENT_SUITE_V2.scenario(
    "failing-work",
    "work ends with an error",
    shows=(
        must(
            "errors.turn",
            "Work that ends with the stop reason `error` has ended.",
            link=IDLE,
            fix="Take `idle` for the end, and show its `error`.",
        ),
        advice(
            "errors.turn-status",
            "The client ends with a status that is not 0.",
            link=IDLE,
            fix=SHOW_ERROR,
            needs=("errors.turn",),
        ),
    ),
)
@play_v2
async def failing_work(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    await run.send_text("so far so good")
    error = {"code": int(Code.INTERNAL_ERROR), "message": "the model is not there"}
    sent = await turn.end("error", error=error)
    status = await _ends(run, "errors.turn", sent)
    if status is not None:
        run.holds("errors.turn-status", status != 0, _ended(status), sent)


@CLIENT_SUITE_V2.scenario(
    "refused-prompt",
    "the agent does not insert a prompt",
    shows=(
        must(
            "errors.prompt",
            "A prompt that is answered with an error has ended: it was not inserted, and no `idle` belongs to it.",
            link="schema#promptrequest",
            fix="Take an error in answer to `session/prompt` as its end, whatever the session reports.",
        ),
        advice(
            "errors.prompt-status",
            "The client ends with a status that is not 0.",
            link="schema#promptrequest",
            fix=SHOW_ERROR,
            needs=("errors.prompt",),
        ),
    ),
)
@play_v2
async def refused_prompt(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.next_prompt()
    await run.take_over(turn)
    sent = await turn.agent.refuse(turn.entry, Code.INVALID_PARAMS, "this cannot be taken")
    status = await _ends(run, "errors.prompt", sent)
    if status is not None:
        run.holds("errors.prompt-status", status != 0, _ended(status), sent)


@CLIENT_SUITE_V2.scenario(
    "two-prompts",
    "the client sends a second prompt when the session is idle again",
    shows=(
        must(
            "turn.second",
            "A second prompt goes to the same session.",
            link="schema#promptrequest",
            fix="Use the session again: its `sessionId` stays valid until it is closed.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def two_prompts(run: ClientRunV2) -> None:
    await run.start("two_prompts")
    first = await run.prompted()
    await first.end()
    try:
        second = await run.prompted()
    except NotAsked as problem:
        run.holds("turn.second", False, str(problem), first.entry)
        return
    where = f"the first went to `{first.session}`, the second to `{second.session}`"
    run.holds("turn.second", first.session == second.session, where, second.entry)
    await second.end()


@CLIENT_SUITE_V2.scenario(
    "held-prompt",
    "the agent holds a second prompt until the work on the first is over",
    shows=(
        should(
            "prompt.held",
            "A prompt that waits for its answer while other work goes on is waited for.",
            link="schema#promptrequest",
            fix="Let a prompt wait: it is answered when its message is inserted, and cancelled by `$/cancel_request`.",
            needs=("prompt.comes",),
        ),
        must(
            "prompt.held-end",
            "The end of the first is not that of a second one that was not inserted.",
            link="schema#promptresponse",
            fix=END,
            needs=("prompt.held",),
        ),
    ),
)
@play_v2
async def held_prompt(run: ClientRunV2) -> None:
    await run.start("two_at_once")
    first = await run.prompted()
    await run.send_text("one moment")
    second = await run.next_prompt()
    gone = await run.is_gone()
    cancelled = [one for one in run.wire.received if one.method == "$/cancel_request"]
    waits = not cancelled and not gone
    if not run.holds("prompt.held", waits, "the client did not wait for the answer", second.entry, *cancelled):
        return
    sent = await first.end()
    await run.stays("prompt.held-end", "the end of the first prompt", second.entry, sent)
    await _finish(run, second)


async def _finish(run: ClientRunV2, turn: OpenPrompt) -> None:
    await turn.insert()
    sent = await turn.end()
    await _ends(run, "prompt.held-end", sent)
