"""Requests and notifications of the agent that are nothing to do with a session: ids, unknown methods, cancelled requests, batches."""

from typing import Final

from antiphon.conformance.requirements import NoResponse
from antiphon.conformance.suites.client.json_rpc import answered, check_ids
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, must, play_v2, should
from antiphon.conformance.v2.client_run import ClientRunV2
from antiphon.conformance.wire import PendingRequest
from antiphon.errors import Code

__all__: list[str] = []

BURST: Final = 50
FEW: Final = 3
"""Requests at once, of those that the client cannot know and of those for permission."""

REMOVED: Final = {
    "fs/read_text_file": {"path": "/antiphon-nothing"},
    "fs/write_text_file": {"path": "/antiphon-nothing/a", "content": ""},
    "terminal/create": {"command": "true"},
    "terminal/output": {"terminalId": "antiphon-nothing"},
}
"""Methods of clients in version 1, with params that reach nothing."""

ERRORS = "overview#error-handling"
CANCEL = "schema#cancelrequestnotification"


@CLIENT_SUITE_V2.scenario(
    "requests",
    "the agent asks things that a client may not know",
    shows=(
        must(
            "requests.ids",
            "An answer has exactly the id of its question, be it a number or a string.",
            link="schema#requestid",
            fix="Send the id back as it came: a number stays a number, a string a string.",
        ),
        must(
            "requests.unknown",
            "A method that the client does not know is refused with -32601.",
            link="extensibility",
            fix="Answer every request; what you do not know with the error -32601.",
        ),
        must(
            "requests.extension",
            "An extension method, with an underscore, is answered.",
            link="extensibility",
            fix="Answer methods that begin with `_` as well; those that you do not know with the error -32601.",
        ),
        must(
            "requests.removed",
            "Methods of version 1 that version 2 has no more are refused with -32601: files and terminals of the client.",
            link="migration",
            fix="Serve only the methods of the version that was settled.",
        ),
        must(
            "requests.notification",
            "A notification that the client does not know is ignored.",
            link="extensibility",
            fix="Drop notifications that you do not know.",
        ),
        must(
            "requests.invalid",
            "A request whose params do not match the schema is answered with an error.",
            link=ERRORS,
            fix="Check the params of every request, and answer those that are wrong with the error -32602.",
        ),
        must(
            "requests.many",
            "Many requests at once are all answered.",
            link=ERRORS,
            fix="Read on while requests are being answered.",
        ),
        must(
            "requests.cancelled",
            "A request that is cancelled with `$/cancel_request` is answered all the same.",
            link=CANCEL,
            fix="Answer a cancelled request with the error -32800, or with its result.",
        ),
        must(
            "requests.cancel-unknown",
            "The cancellation of a request that is unknown or answered already is ignored.",
            link=CANCEL,
            fix="Ignore `$/cancel_request` with an id that is not open.",
        ),
    ),
)
@play_v2
async def requests(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    await check_ids(run)
    several = range(BURST if run.traits.fences else FEW)
    pending = [PendingRequest(run, await run.wire.send(run.question(f"burst-{n}", f"burst {n}"))) for n in several]
    for one in pending:
        await answered(run, "requests.many", one)
    asked = PendingRequest(run, await run.wire.send(run.question("slow", "slow")))
    await run.notify("$/cancel_request", {"requestId": asked.request.msg["id"]})
    await answered(run, "requests.cancelled", asked)
    sent = [await run.notify("$/cancel_request", {"requestId": id}) for id in ("slow", "antiphon-no-such-request")]
    await run.survives("requests.cancel-unknown", "the cancellation of a request that is not open", *sent)
    await answered(run, "requests.extension", await run.send_request("_antiphon.example/own_method", {"a": [1]}))
    # From here on what no correct agent sends.
    await _refused(run, "requests.unknown", "antiphon/unknown_method", {"a": [1]})
    for method, params in REMOVED.items():
        await _refused(run, "requests.removed", method, {"sessionId": run.session, **params})
    stray = await run.notify("antiphon/unknown_notice", {"a": 1})
    own = await run.notify("_antiphon/own_notice", {})
    await run.survives("requests.notification", "a notification that it does not know", stray, own)
    wrong = await run.request("session/request_permission", {"sessionId": 7, "options": "none"})
    run.holds("requests.invalid", wrong.error is not None, "it was answered with a result", wrong)
    await turn.end()


async def _refused(run: ClientRunV2, requirement: str, method: str, params: dict[str, object]) -> None:
    asked = await run.send_request(method, params)
    try:
        response = await asked.response()
    except NoResponse as problem:
        run.holds(requirement, False, str(problem), asked.request, awaited=asked.request)
        return
    seen = "a result" if response.error is None else f"the error {response.code}"
    right = response.code == Code.METHOD_NOT_FOUND
    run.holds(requirement, right, f"`{method}` was answered with {seen}", response)


@CLIENT_SUITE_V2.scenario(
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
            "A client that received a batch goes on.",
            link="transports#stdio",
            fix="Catch errors where a line is read.",
        ),
    ),
)
@play_v2
async def batch(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    before = len(run.wire.trace)
    sent = await run.wire.send([run.question("in-a-batch")])
    await run.survives("batch.survived", "a batch", sent)
    answers = [one for one in run.wire.received if one.number > before and one.is_response]
    stray = [one for one in answers if one.msg.get("id") in (None, "in-a-batch")]
    right = [one for one in stray if one.msg.get("id") is None and one.msg.get("error", {}).get("code") == -32600]
    run.holds("batch.refused", len(stray) == len(right) == 1, f"{len(stray)} answers came", sent, *stray[:1])
    await turn.end()
