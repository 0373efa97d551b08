"""Methods that there are and that there are not, requests that are cancelled, and messages that are odd."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NoResponse
from antiphon.conformance.suites.agent.suite import settled, survived
from antiphon.conformance.suites.agent_v2.suite import INVALID_PARAMS, SUITE_V2, is_code, must, run_of, should

METHOD_NOT_FOUND = -32601


@SUITE_V2.scenario(
    "methods",
    "methods that every agent with sessions has",
    shows=(
        must(
            "methods.sessions",
            "An agent that offers `session` serves `session/list`, `session/resume` and `session/close`.",
            link="schema#sessioncapabilities",
            fix="Implement all methods of sessions: in version 2 they are not optional.",
        ),
        should(
            "close.unknown",
            "Closing a session that is not open succeeds.",
            link="schema#closesessionrequest",
            fix="Answer `session/close` with an empty result where there is nothing to close.",
        ),
    ),
    provokes=True,
)
async def methods(run: AgentRun) -> None:
    run.need("session")
    nowhere = {"sessionId": "antiphon-no-such-session"}
    for method, params in (
        ("session/list", {}),
        ("session/resume", {**nowhere, "cwd": str(run.cwd)}),
        ("session/close", nowhere),
    ):
        response = await run.provoke(method, params)
        run.holds("methods.sessions", response.code != METHOD_NOT_FOUND, f"`{method}` is not served", response)
        if method == "session/close":
            run.holds("close.unknown", response.error is None, "it was answered with an error", response)


@SUITE_V2.scenario(
    "methods-unknown",
    "methods that there are not, or not any more",
    shows=(
        must(
            "methods.removed",
            "Methods of version 1 that version 2 has no more are refused with -32601.",
            link="migration",
            fix="Serve only the methods of the version that was settled.",
        ),
        must(
            "methods.unknown",
            "A method that the agent does not know is refused with -32601, and an unknown notification is ignored.",
            link="extensibility",
            fix="Answer unknown requests with -32601 and nothing else; ignore unknown notifications.",
        ),
    ),
    provokes=True,
)
async def unknown(run: AgentRun) -> None:
    for method in ("session/load", "session/set_mode", "authenticate", "fs/read_text_file"):
        is_code(run, "methods.removed", await run.provoke(method, {}), METHOD_NOT_FOUND)
    is_code(run, "methods.unknown", await run.provoke("_antiphon/unknown", {}), METHOD_NOT_FOUND)
    sent = await run.notify("_antiphon/news", {})
    stray = await settled(run, sent)
    run.holds("methods.unknown", not stray, "the notification was answered", sent, *stray[:1])


@SUITE_V2.scenario(
    "cancel-request",
    "`$/cancel_request`",
    shows=(
        must(
            "request.cancelled",
            "A request that is cancelled is answered all the same, once.",
            link="schema#cancelrequestnotification",
            fix="Answer a cancelled request with its result or with -32800.",
        ),
        must(
            "request.cancel-unknown",
            "The cancellation of a request that is unknown or answered already is ignored.",
            link="schema#cancelrequestnotification",
            fix="Ignore `$/cancel_request` with an id that is not open.",
        ),
    ),
)
async def cancel_request(run: AgentRun) -> None:
    pending = await run.send_request("session/list", {})
    sent = await run.notify("$/cancel_request", {"requestId": pending.request.msg["id"]})
    try:
        response = await pending.response()
    except NoResponse as missing:
        if missing.left:
            raise
        run.holds("request.cancelled", False, "it was never answered", pending.request, sent, awaited=pending.request)
        return
    run.holds("request.cancelled", response.error is None or response.code == -32800, "it failed otherwise", response)
    sent = await run.notify("$/cancel_request", {"requestId": "antiphon-no-such-request"})
    await run.notify("$/cancel_request", {"requestId": pending.request.msg["id"]})
    stray = await settled(run, sent)
    run.holds("request.cancel-unknown", not stray, "the notification was answered", sent, *stray[:1])


@SUITE_V2.scenario(
    "batch",
    "a batch",
    shows=(
        should(
            "batch.refused",
            "A batch is refused with one error, -32600 without an id.",
            link="schema#errorcode",
            fix="Answer an array with one error -32600 whose id is null.",
        ),
        should(
            "batch.survived",
            "An agent that received a batch goes on.",
            link="transports#stdio",
            fix="Catch errors where a line is read.",
        ),
    ),
    alone=True,
    provokes=True,
    stdio=True,
)
async def batch(run: AgentRun) -> None:
    await run_of(run).start()
    sent = await run.wire.send([{"jsonrpc": "2.0", "id": "in-a-batch", "method": "session/list", "params": {}}])
    if not await survived(run, "batch.survived", sent):
        return
    stray = await settled(run, sent)
    right = [one for one in stray if isinstance(one.msg, dict) and one.msg.get("error", {}).get("code") == -32600]
    run.holds("batch.refused", len(stray) == len(right) == 1, f"{len(stray)} messages came", sent, *stray[:1])


@SUITE_V2.scenario(
    "malformed",
    "known words with a body that is not theirs",
    shows=(
        must(
            "malformed.refused",
            "A malformed body of something known is refused with -32602, and not taken for something unknown.",
            link="migration",
            fix="Check what a known type requires, such as the `text` of a text block.",
        ),
    ),
    provokes=True,
)
async def malformed(run: AgentRun) -> None:
    session = await run.session()
    response = await run.provoke("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": 7}]})
    is_code(run, "malformed.refused", response, INVALID_PARAMS)
