"""Requests beyond the usual: ids of all kinds, unknown methods, and what the client did not offer."""

from contextlib import suppress
from typing import Final

import msgspec

from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import NoResponse, NotOffered, advice, must, should
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerClosed, PendingRequest
from antiphon.errors import Code

__all__ = ["answered", "check_ids"]

IDS: Final[tuple[object, ...]] = (0, -7, 2**53 - 1, "7", "a-string", "6f1c1c1e-6f5e-4a53-9a43-0d6d5f0c9a01")
"""Numbers and strings; JSON-RPC allows both."""

BURST: Final = 50
FEW: Final = 3
"""Requests at once, of those that the client cannot know and of those for permission."""

ERRORS = "overview#error-handling"


@SUITE.scenario(
    "requests",
    "the agent asks things that a client may not know",
    shows=(
        must(
            "requests.ids",
            "An answer has exactly the id of its question, be it a number or a string.",
            link=ERRORS,
            fix="Send the id back as it came: a number stays a number, a string a string.",
        ),
        must(
            "requests.unknown",
            "A method that the client does not know is answered with an error.",
            link="extensibility#custom-requests",
            fix="Answer every request; what you do not know with the error -32601.",
        ),
        should(
            "requests.unknown-code",
            "The error for an unknown method is -32601.",
            link="extensibility#custom-requests",
            fix="Use the code -32601, `Method not found`.",
            needs=("requests.unknown",),
        ),
        must(
            "requests.extension",
            "An extension method, with an underscore, is answered.",
            link="extensibility#custom-requests",
            fix="Answer methods that begin with `_` as well; those that you do not know with the error -32601.",
        ),
        should(
            "requests.notification",
            "A notification that the client does not know is ignored.",
            link="extensibility#custom-notifications",
            fix="Drop notifications that you do not know.",
        ),
        should(
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
        should(
            "requests.cancelled",
            "A request that is cancelled with `$/cancel_request` is answered all the same.",
            link="cancellation",
            fix="Answer a cancelled request with the error -32800, or with its result.",
        ),
        advice(
            "requests.not-offered",
            "What the client did not offer is refused if it is asked for anyway.",
            link="initialization#client-capabilities",
            fix="Answer methods that you did not offer with an error.",
            needs=("hello.capabilities",),
        ),
    ),
)
async def requests(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    await check_ids(run)
    several = range(BURST if run.traits.fences else FEW)
    pending = [PendingRequest(run, await run.wire.send(run.question(f"burst-{n}", f"burst {n}"))) for n in several]
    for one in pending:
        await answered(run, "requests.many", one)
    asked = PendingRequest(run, await run.wire.send(run.question("slow", "slow")))
    await run.wire.send(
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked.request.msg["id"]}}
    )
    await answered(run, "requests.cancelled", asked)
    await answered(run, "requests.extension", await run.send_request("_antiphon.example/own_method", {"a": [1]}))
    # From here on what no correct agent sends.
    await _unknown(run)
    sent = await run.wire.send({"jsonrpc": "2.0", "method": "antiphon/unknown_notice", "params": {"a": 1}})
    own = await run.wire.send({"jsonrpc": "2.0", "method": "_antiphon/own_notice"})
    await run.survives("requests.notification", "a notification that it does not know", sent, own)
    wrong = await run.request("session/request_permission", {"sessionId": 7, "options": "none"})
    run.holds("requests.invalid", wrong.error is not None, "it was answered with a result", wrong)
    await _not_offered(run)
    await turn.end()
    if "requests.not-offered" not in run.verdicts:
        raise NotOffered("the client offers all that could be asked for")


async def answered(run: ClientRun, id: str, pending: PendingRequest) -> None:
    """The requirement is that a request is answered."""
    try:
        response = await pending.response()
    except NoResponse as problem:
        run.holds(id, False, str(problem), problem.request, awaited=problem.request)
    else:
        run.holds(id, True, "", response)


async def check_ids(run: ClientRun) -> None:
    """Judge whether responses have exactly the ids of their requests."""
    for id in IDS:
        asked = await run.wire.send(run.question(id))
        wanted = msgspec.json.encode(id)
        with suppress(TimeoutError, PeerClosed):
            await run.wire.wait_for(lambda one: one.is_response, after=asked.number, limit=run.options.limit)
        await run.settle()
        responses = [one for one in run.wire.received if one.is_response and one.number > asked.number]
        same = [one for one in responses if msgspec.json.encode(one.msg.get("id")) == wanted]
        otherwise = f"the question with the id {wanted.decode()} got {len(same)} answers with that id"
        late = None if same else asked
        run.holds("requests.ids", len(same) == 1, otherwise, asked, *responses, awaited=late)


async def _unknown(run: ClientRun) -> None:
    unknown = await run.send_request("antiphon/unknown_method", {"a": [1]})
    try:
        response = await unknown.response()
    except NoResponse as problem:
        run.holds("requests.unknown", False, str(problem), unknown.request, awaited=unknown.request)
    else:
        run.holds("requests.unknown", response.error is not None, "it was answered with a result", response)
        coded = response.code == Code.METHOD_NOT_FOUND
        run.holds("requests.unknown-code", coded, f"the code is {response.code}", response)


async def _not_offered(run: ClientRun) -> None:
    asking: dict[tuple[str, ...], tuple[str, dict[str, object]]] = {
        ("fs", "readTextFile"): ("fs/read_text_file", {"path": str(run.cwd / "antiphon.txt")}),
        ("terminal",): ("terminal/create", {"command": "true"}),
        ("elicitation",): (
            "elicitation/create",
            {"mode": "form", "message": "?", "requestedSchema": {"type": "object"}},
        ),
    }
    for path, (method, params) in asking.items():
        if not run.offers(*path):
            response = await run.here(method, **params)
            refused = response.error is not None or response.get("action") in ("decline", "cancel")
            run.holds("requests.not-offered", refused, f"`{method}` was answered with a result", response)
