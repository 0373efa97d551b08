"""Lines that are no message, or not quite one: an agent may refuse or ignore them, but it stays and goes on.

The specification has no sentence about any of this: it is what should be, for the sake of the users of the agent.
"""

from collections.abc import Callable
from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse, Requirement, advice, must, should
from antiphon.conformance.suites.agent.suite import (
    FENCE,
    SUITE,
    breaks,
    settled,
    soon,
    stray_responses,
    survived,
)
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry, JsonObject

__all__: list[str] = []

LINK: Final = "overview#communication-model"
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600


def _stays(requirement: str, what: str) -> Requirement:
    return should(
        requirement,
        f"The agent stays and goes on after {what}.",
        link="transports#stdio",
        fix="Handle a line that you cannot use like any other error: refuse it or pass over it, and read the next one.",
    )


def _refuses(response: Entry, code: int) -> bool:
    """Whether it refuses a line as JSON-RPC wants it: with that code, and null for the id that could not be read."""
    return PeerResponse(response, response).code == code and response.msg.get("id", 0) is None


breaks("rpc.answer-to-notification", by=("junk.answer", "blank.ignored"))


@SUITE.scenario(
    "junk",
    "a client sends a line that is not JSON",
    stdio=True,
    provokes=True,
    shows=(
        _stays("junk.survives", "a line that is not JSON"),
        advice(
            "junk.answer",
            "A line that is not JSON is refused with -32700 and null for an id, or ignored.",
            link=LINK,
            fix='Answer with {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}, or not at all.',
            needs=("junk.survives",),
        ),
        _stays("utf8.survives", "a line that is not UTF-8"),
    ),
)
async def junk(run: AgentRun) -> None:
    sent = await run.wire.send_line(b"{this is not JSON")
    if not await survived(run, "junk.survives", sent):
        return
    await run.wire.silence(run.options.silence)
    responses = stray_responses(run, sent)
    fine = all(_refuses(one, PARSE_ERROR) for one in responses)
    run.holds("junk.answer", fine, "it was answered with something else", sent, *responses[:1])
    sent = await run.wire.send_line(b'{"jsonrpc":"2.0","method":"_antiphon/check","params":{"text":"\xff\xfe\xc3"}}')
    await survived(run, "utf8.survives", sent)


@SUITE.scenario(
    "nonsense",
    "a client sends JSON that is not a message",
    stdio=True,
    provokes=True,
    shows=(
        _stays("nonsense.survives", "an object that is not a message"),
        _stays("scalar.survives", "JSON that is not an object, such as a text, a number or null"),
        advice(
            "nonsense.refused",
            "An object that is not a message is refused with -32600 and null for an id.",
            link=LINK,
            fix='Answer with {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}.',
            needs=("nonsense.survives",),
        ),
    ),
)
async def nonsense(run: AgentRun) -> None:
    first = await run.wire.send({"foo": 1})
    if not await survived(run, "nonsense.survives", first):
        return
    responses = stray_responses(run, first) or await settled(run, first)
    refused = any(_refuses(one, INVALID_REQUEST) for one in responses)
    run.holds("nonsense.refused", refused, "no such answer came", first, *responses[:1])
    for one in ("hello", 7, None):
        if not await survived(run, "scalar.survives", await run.wire.send(one)):
            return


@SUITE.scenario(
    "blank-lines",
    "a client sends lines with nothing in them",
    stdio=True,
    provokes=True,
    shows=(
        should(
            "blank.ignored",
            "Blank lines are ignored.",
            link="transports#stdio",
            fix="Skip lines that are empty or only spaces.",
        ),
    ),
)
async def blank(run: AgentRun) -> None:
    await run.request(FENCE, {"next": "blank lines"})
    sent = await run.wire.send_line(b"")
    await run.wire.send_line(b"  \t ")
    await run.wire.send_line(b"\r")
    if await survived(run, "blank.ignored", sent):
        responses = await settled(run, sent)
        run.holds("blank.ignored", not responses, "they were answered", sent, *responses[:1])


@SUITE.scenario(
    "batch",
    "a client sends a batch",
    stdio=True,
    provokes=True,
    shows=(
        _stays("batch.survives", "a batch"),
        advice(
            "batch.answered",
            "A batch is refused with -32600, or the requests in it are answered: the client does not wait in vain.",
            link=LINK,
            fix="Refuse a line that is a list with -32600 and null for an id.",
            needs=("batch.survives",),
        ),
    ),
)
async def batch(run: AgentRun) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": f"batch-{number}", "method": FENCE, "params": {"number": number}}
        for number in range(2)
    ]
    sent = await run.wire.send(asked)
    if not await survived(run, "batch.survives", sent):
        return
    answered = _batch_was_answered(run, sent)
    if not answered:
        await run.wire.silence(run.options.silence)
        answered = _batch_was_answered(run, sent)
    run.holds("batch.answered", answered, "nothing came for it", sent)


def _batch_was_answered(run: AgentRun, sent: Entry) -> bool:
    listed = any(isinstance(one.msg, list) for one in run.wire.received if one.number > sent.number)
    return listed or bool(stray_responses(run, sent))


@SUITE.scenario(
    "half-messages",
    "a client sends requests that are not quite right",
    stdio=True,
    provokes=True,
    shows=(
        _stays("id-null.survives", "a request whose id is null"),
        _stays("nameless.survives", "a request that is not marked as JSON-RPC 2.0"),
        should(
            "rpc.extra-member",
            "A request with one more member than JSON-RPC has is answered.",
            link=LINK,
            fix="Pass over members of a message that you do not know.",
        ),
        advice(
            "nesting.survives",
            "The agent stays and goes on after a message that is nested 500 deep.",
            link="transports#stdio",
            fix="Catch the error of your JSON reader about too deep nesting.",
        ),
    ),
)
async def half(run: AgentRun) -> None:
    extra = await run.send_request(FENCE, {}, antiphonCheck={"unknown": True})
    if not await survived(run, "rpc.extra-member", extra.request):
        return
    response = await soon(run, extra)
    run.holds("rpc.extra-member", response is not None, "it was not answered", extra.request, awaited=extra.request)
    odd: dict[str, JsonObject] = {
        "id-null.survives": {"jsonrpc": "2.0", "id": None, "method": FENCE, "params": {}},
        "nameless.survives": {"id": run.wire.new_id(), "method": FENCE, "params": {}},
    }
    for one, message in odd.items():
        if not await survived(run, one, await run.wire.send(message)):
            return
    deep = b"[" * 500 + b"]" * 500
    sent = await run.wire.send_line(b'{"jsonrpc":"2.0","method":"_antiphon/check","params":{"deep":' + deep + b"}}")
    await survived(run, "nesting.survives", sent)


LINES: Final = {
    "line.crlf": "A line that ends with a carriage return before its line feed",
    "line.pieces": "A message that arrives in many small pieces",
    "line.together": "Each of several messages that arrive in one piece",
    "line.long": "A message of 1 MiB",
    "line.huge": "A message of 8 MiB",
}


def _read(requirement: str, level: Callable[..., Requirement] = should) -> Requirement:
    return level(
        requirement,
        f"{LINES[requirement]} is read.",
        link="transports#stdio",
        fix="Gather what comes until a line feed, however much that is, and take each line for a message.",
    )


@SUITE.scenario(
    "lines",
    "a client sends lines in all lengths and pieces",
    stdio=True,
    shows=(
        _read("line.crlf"),
        _read("line.pieces", must),
        _read("line.together", must),
        _read("line.long"),
        _read("line.huge"),
    ),
)
async def lines(run: AgentRun) -> None:
    if run.traits.silent:
        raise Blocked("the agent does not answer methods that it does not know, so it cannot be checked")

    def question(params: object) -> JsonObject:
        return {"jsonrpc": "2.0", "id": run.wire.new_id(), "method": FENCE, "params": params}

    crlf = await run.wire.send_line(b'{"jsonrpc":"2.0","id":"crlf","method":"_antiphon/fence","params":{}}\r')
    pieces = await run.wire.send_in_pieces(question({"pieces": "é" * 20}), 7)
    together = await run.wire.send_together([question({"line": number}) for number in range(5)])
    asked = {"line.crlf": [crlf], "line.pieces": [pieces], "line.together": together}
    for one, entries in asked.items():
        await _answered(run, one, entries)
    for one, size in ("line.long", 1 << 20), ("line.huge", 1 << 23):
        sent = await run.wire.send(question({"text": "x" * size}))
        if not await _answered(run, one, [sent]):
            return


async def _answered(run: AgentRun, requirement: str, asked: list[Entry]) -> bool:
    """Check whether all of these are answered. An agent that answers nothing any more is replaced."""
    try:
        found = [await soon(run, PendingRequest(run, one)) for one in asked]
    except NoResponse as silent:
        text = "the agent left" if run.wire.closed else "the agent answers no more"
        await run.wire.close()
        run.holds(requirement, False, text, asked[0])
        raise silent
    missing = next((one for one, response in zip(asked, found, strict=True) if response is None), None)
    return run.holds(requirement, missing is None, "no answer came", missing or asked[0], awaited=missing)
