"""`session/cancel`: what it ends, how that is confirmed, and what it does not cover."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NoResponse, NotSeen
from antiphon.conformance.suites.agent_v2.suite import SUITE_V2, kind_of, must, run_of, should
from antiphon.conformance.wire import PeerClosed
from antiphon.traffic.entries import as_object
from antiphon.traffic.state import CROSSING_SECONDS
from antiphon.traffic.state_v2 import ACTIVITY, StateSession

REQUEST_CANCELLED = -32800
CROSSINGS = 3
"""Times that work may end by itself in the moment in which it is cancelled."""


@SUITE_V2.scenario(
    "cancel",
    "work is cancelled",
    shows=(
        must(
            "cancel.confirmed",
            "Work that is cancelled ends with `idle` and the stop reason `cancelled`.",
            link="schema#idlestateupdate",
            fix="Stop the work, send its last updates, and then `idle` with `cancelled`.",
            needs=("cancel.stop-reason",),
        ),
        must(
            "cancel.last",
            "The `idle` of work that was cancelled comes after all its updates.",
            link="schema#clientnotification",
            fix="Send the last messages and tool calls before `idle` with `cancelled`, and drop what comes later.",
            needs=("cancel.confirmed",),
        ),
        must(
            "cancel.next",
            "After a cancellation the next prompt works.",
            link="schema#promptrequest",
            fix="Forget the cancellation when the work has ended.",
        ),
    ),
)
async def cancel(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    crossings = 0
    while True:
        work = await v2.busy(session)
        sent = await run.cancel(session)
        await run.fence()
        idle = await v2.idle(session, sent, "cancel.confirmed")
        reason = as_object(idle.params.get("update")).get("stopReason")
        crossings += 1
        if reason == "cancelled" or crossings == CROSSINGS or idle.t - sent.t > CROSSING_SECONDS:
            break
    run.holds("cancel.confirmed", reason == "cancelled", f"the stop reason is {reason!r}", work.request, sent, idle)
    await run.settle()
    late = [one for one in run.updates(session, after=idle.number) if kind_of(one) in (*ACTIVITY, "state_update")]
    first = kind_of(late[0]) if late else "state_update"  # it may have begun something else, with a state
    run.holds("cancel.last", first == "state_update", f"`{first}` came after it", sent, idle, *late[:1])
    again = await v2.work(session)
    run.holds("cancel.next", again.reason == "end_turn", f"it ended with {again.reason!r}", again.answer, again.idle)


@SUITE_V2.scenario(
    "cancel-idle",
    "a cancellation when there is nothing to cancel",
    shows=(
        must(
            "cancel.nothing",
            "A cancellation of an idle session changes nothing: the next prompt works.",
            link="schema#promptrequest",
            fix="Ignore `session/cancel` while the session is idle.",
        ),
    ),
)
async def cancel_idle(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    await run.cancel(session)
    await run.settle()
    work = await v2.work(session)
    run.holds("cancel.nothing", work.reason == "end_turn", f"it ended with {work.reason!r}", work.answer, work.idle)


@SUITE_V2.scenario(
    "cancel-later",
    "a prompt right after a cancellation",
    shows=(
        must(
            "cancel.later",
            "A prompt that comes after a cancellation is not cancelled by it.",
            link="schema#promptrequest",
            fix="Let `session/cancel` cover only what was there when it came.",
        ),
    ),
)
async def later(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    await v2.busy(session)
    await run.cancel(session)
    pending = await run.prompt(session, run.words("say"))
    response = await pending.response()
    if response.error is not None:
        covered = response.code == REQUEST_CANCELLED
        run.holds("cancel.later", not covered, "it was answered as cancelled", response)
        return
    await v2.idle(session, response.entry)
    ends = [one for state, one in v2.states(session, after=response.entry.number) if state == "idle"]
    reason = as_object(ends[-1].params.get("update")).get("stopReason")
    run.holds("cancel.later", reason != "cancelled", "the work on it was cancelled", response, ends[-1])


@SUITE_V2.scenario(
    "cancel-held",
    "a cancellation while a second prompt waits",
    shows=(
        must(
            "cancel.held",
            "A cancellation answers the prompts that wait, too.",
            link="schema#promptrequest",
            fix="Answer held prompts with -32800 when the session is cancelled.",
        ),
    ),
)
async def held(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    await v2.busy(session)
    pending = await run.prompt(session, run.words("say"))
    await run.fence()
    sent = await run.cancel(session)
    try:
        response = await pending.response(run.options.limit)
    except NoResponse as missing:
        if missing.left:
            raise
        run.holds("cancel.held", False, "it was never answered", pending.request, sent, awaited=pending.request)
        return
    right = response.error is None or response.code == REQUEST_CANCELLED or response.entry.number < sent.number
    run.holds("cancel.held", right, f"it was answered with the error {response.code}", response)
    await v2.idle(session, pending.request)


@SUITE_V2.scenario(
    "cancel-asking",
    "a cancellation while the agent asks for permission",
    shows=(
        must(
            "cancel.asking",
            "Work that waits for permission ends when it is cancelled, without an answer of the user.",
            link="schema#requestpermissionoutcome",
            fix="Stop waiting for the answers to requests of work that is cancelled.",
        ),
        should(
            "cancel.asking-request",
            "The agent cancels the permission request of work that is cancelled with `$/cancel_request`.",
            link="schema#clientnotification",
            fix="Send `$/cancel_request` with the id of each request that is not waited for any more.",
            needs=("cancel.asking",),
        ),
        must(
            "cancel.asking-next",
            "The next prompt works after that.",
            link="schema#promptrequest",
            fix="Ignore a late answer to a request of work that was cancelled.",
            needs=("cancel.asking",),
        ),
    ),
)
async def asking(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    asked = await v2.asked(session, "session/request_permission", "ask", file=run.cwd / "asked.txt", text="antiphon")
    sent = await run.cancel(session)
    try:
        idle = await v2.state(session, lambda state: state == "idle", after=sent.number)
    except PeerClosed:
        raise NoResponse(sent, "the peer had left", left=True) from None
    reason = as_object(idle.params.get("update")).get("stopReason") if idle is not None else None
    right = run.holds("cancel.asking", reason == "cancelled", f"the stop reason is {reason!r}", asked, sent, idle)
    await run.fence()
    ids = [one.params.get("requestId") for one in run.wire.received if one.method == "$/cancel_request"]
    run.holds("cancel.asking-request", asked.msg["id"] in ids, "no `$/cancel_request` has its id", asked, sent)
    await run.client.respond(asked, {"outcome": {"outcome": "cancelled"}})
    run.client.waiting.clear()
    if right:
        again = await v2.work(session)
        run.holds("cancel.asking-next", again.reason == "end_turn", f"it ended with {again.reason!r}", again.answer)


@SUITE_V2.scenario(
    "cancel-background",
    "a cancellation while something runs in the background",
    shows=(
        must(
            "cancel.background",
            "A cancellation does not cover background work that is listed.",
            link="schema#clientnotification",
            fix="Let what is in `background` run on; `tool_call/cancel`, `terminal/cancel` and `session/close` end it.",
        ),
    ),
)
async def background(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    pending = await run.prompt(session, run.words("long_run", command="sleep 60"))
    await v2.accepted(pending)
    await run.settle()
    known = run.wire.checker.state.sessions[session]
    listed = (known.background if isinstance(known, StateSession) else None) or frozenset()
    if not isinstance(known, StateSession) or not listed:
        await run.cancel(session)
        raise NotSeen("the agent listed nothing that runs in the background")
    sent = await run.cancel(session)
    await run.settle()
    gone = [one.id for one in sorted(listed) if known.has_ended(one)]
    run.holds("cancel.background", not gone, f"{', '.join(gone)} has ended", pending.request, sent)
