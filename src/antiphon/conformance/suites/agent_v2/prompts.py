"""Prompts: they are inserted, the session reports that it works and when it is idle again, and content that an agent takes."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.suites.agent_v2.suite import INVALID_PARAMS, SUITE_V2, is_code, must, run_of, should


@SUITE_V2.scenario(
    "prompt",
    "two prompts, one after the other",
    shows=(
        must(
            "prompt.inserted",
            "`session/prompt` is answered with the id of the message.",
            link="schema#promptresponse",
            fix="Answer with `messageId` when the message is inserted.",
        ),
        must(
            "turn.idle",
            "The session reports `idle` when the work is over.",
            link="schema#stateupdate",
            fix="Send a `state_update` with `idle`, whatever becomes of the work.",
        ),
        should(
            "turn.reason",
            "Work that ends well has the stop reason `end_turn`.",
            link="schema#idlestateupdate",
            fix="Send `stopReason: end_turn` with `idle`.",
            needs=("state.stop-reason",),
        ),
        must(
            "turn.again",
            "A second prompt of the session works as the first.",
            link="schema#promptrequest",
            fix="Keep the session usable after its first prompt.",
        ),
    ),
)
async def prompt(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    pending = await run.prompt(session, run.words("say"))
    response = await pending.response()
    named = isinstance(response.get("messageId"), str)
    if not run.holds("prompt.inserted", named, "the answer has no `messageId`", response):
        return
    idle = await v2.idle(session, pending.request)
    run.holds("turn.idle", True, "", idle)
    reason = idle.params["update"].get("stopReason")
    run.holds("turn.reason", reason == "end_turn", f"the stop reason is {reason!r}", idle)
    second = await (await run.prompt(session, run.words("say"))).response()
    if run.holds("turn.again", second.error is None, "it was answered with an error", second):
        await v2.idle(session, second.request, "turn.again")
    await run.settle()


@SUITE_V2.scenario(
    "prompt-early",
    "a prompt that makes work for long",
    shows=(
        must(
            "prompt.early",
            "A prompt is answered when its message is inserted, and not when the work is over.",
            link="schema#promptrequest",
            fix="Answer `session/prompt` before the work on it, or while it goes on.",
        ),
    ),
)
async def early(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    pending = await run.prompt(session, run.words("long"))
    working = await v2.state(session, lambda state: state != "idle", after=pending.request.number)
    await run.fence()
    answered = pending.peek()
    ended = [state for state, _ in v2.states(session, after=pending.request.number) if state == "idle"]
    if working is not None and not ended and answered is None:
        await run.wire.silence(run.options.silence)
        answered = pending.peek()
    await run.cancel(session)
    response = await pending.response()
    run.holds(
        "prompt.early", answered is not None or bool(ended), "it was answered only after the cancellation", response
    )
    await v2.idle(session, pending.request)


@SUITE_V2.scenario(
    "prompt-order",
    "three prompts at once",
    shows=(
        should(
            "prompt.order",
            "Prompts that wait are inserted in the order in which they came.",
            link="schema#promptrequest",
            fix="Hold prompts in a queue.",
        ),
    ),
)
async def order(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    sent = [await run.prompt(session, run.words("say")) for _ in range(3)]
    answers = [await pending.response() for pending in sent]
    inserted = [one for one in answers if one.error is None]
    numbers = [one.entry.number for one in inserted]
    run.holds("prompt.order", numbers == sorted(numbers), "a later prompt was answered first", *answers)
    if inserted:
        await v2.idle(session, inserted[-1].entry)
    await run.settle()


@SUITE_V2.scenario(
    "content",
    "content that every agent takes",
    shows=(
        must(
            "content.baseline",
            "Every agent takes text and links to resources.",
            link="schema#promptcapabilities",
            fix="Accept blocks of the types `text` and `resource_link`.",
        ),
    ),
)
async def content(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    link = {"type": "resource_link", "name": "notes", "uri": (run.cwd / "notes.txt").as_uri()}
    pending = await run.prompt(session, run.words("say"), link)
    response = await pending.response()
    if run.holds("content.baseline", response.error is None, "it was answered with an error", response):
        await v2.idle(session, pending.request)


@SUITE_V2.scenario(
    "content-unknown",
    "content that the agent does not support",
    shows=(
        must(
            "content.refused",
            "A prompt with a block that the agent does not support is refused with -32602.",
            link="schema#contentblock",
            fix="Look at all blocks before the message is inserted.",
        ),
        must(
            "content.not-inserted",
            "A prompt that is refused leaves no message of the user.",
            link="schema#promptrequest",
            fix="Send no `user_message` for a prompt that is refused.",
            needs=("prompt.refused",),
        ),
    ),
    provokes=True,
)
async def content_unknown(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    blocks = [{"type": "text", "text": run.words("say")}, {"type": "_antiphon", "song": "la"}]
    response = await run.provoke("session/prompt", {"sessionId": session, "prompt": blocks})
    refused = is_code(run, "content.refused", response, INVALID_PARAMS)
    await run.settle()
    if refused:
        seen = v2.messages(session, "user", after=response.request.number)
        run.holds("content.not-inserted", not seen, f"the message {seen[:1]} was sent", response)
