"""JSON-RPC: ids come back as they were, several requests may be open at once, and errors have the right codes."""

from contextlib import suppress
from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse, NotSeen, Requirement, advice, must, should
from antiphon.conformance.suites.agent.suite import FENCE, SUITE, breaks, same_id, settled, stray_responses
from antiphon.conformance.wire import PeerClosed, PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry

__all__: list[str] = []


BUSY: Final = 24
AT_LEAST: Final = 2.0
"""A response may take this many times the silence while a turn runs, and so many seconds on a busy machine."""

CANCELLED: Final = -32800

IDS: Final[dict[str, tuple[str, object]]] = {
    "id.zero": ("0", 0),
    "id.negative": ("a negative number", -7),
    "id.large": ("the largest number that every language has", 2**53 - 1),
    "id.text": ("a text", "question-1"),
    "id.uuid": ("a UUID", "5f0c2a4e-8d1b-4c3e-9a77-0b6d2f1e4c58"),
    "id.number-text": ("a text of digits, which is not a number", "17"),
    "id.unicode": ("a text beyond ASCII, with line separators and pairs of surrogates", "né \u2028 \U0001f600 \u4e2d"),
}
"""What an id is, and one of that kind."""


def _comes_back(requirement: str, kind: str) -> Requirement:
    return must(
        requirement,
        f"A request is answered with its own id if that is {kind}.",
        link="overview#communication-model",
        fix="Send the id of the request back as you got it, with its type.",
    )


@SUITE.scenario(
    "ids",
    "a client asks with ids of all kinds",
    shows=[_comes_back(one, kind) for one, (kind, _) in IDS.items()],
)
async def ids(run: AgentRun) -> None:
    asked = {one: await run.send_request(FENCE, {}, id=id) for one, (_, id) in IDS.items()}
    escaped = b'{"jsonrpc":"2.0","id":"\\ud83d\\ude00\\u2028","method":"_antiphon/fence","params":{}}'
    also = await run.wire.send_line(escaped)
    await run.fence()
    await _all_answered(run, [*(one.request for one in asked.values()), also])
    for one, pending in asked.items():
        wanted = [pending.request, also] if one == "id.unicode" else [pending.request]
        late = next((each for each in wanted if not same_id(run, each)), None)
        strays = stray_responses(run, pending.request)[:1]
        back = all(len(same_id(run, each)) == 1 for each in wanted)
        run.holds(one, back, "no answer with that id came", late or pending.request, *strays, awaited=late)


async def _all_answered(run: AgentRun, asked: list[Entry]) -> None:
    """Until each has a response with its own id, or as many responses have come with other ids, or no more come."""

    def is_last(entry: Entry) -> bool:
        right = sum(bool(same_id(run, one)) for one in asked)
        return right == len(asked) or right + len(stray_responses(run, asked[0])) >= len(asked)

    with suppress(TimeoutError, PeerClosed):
        await run.wire.wait_for(is_last, after=asked[0].number, limit=run.options.limit)


@SUITE.scenario(
    "questions-at-once",
    "a client asks several things without waiting",
    shows=(
        must(
            "rpc.in-flight",
            "Requests that are open at once are all answered, each once.",
            link="overview#communication-model",
            fix="Answer every request by its id, also when others came before it was answered.",
        ),
    ),
)
async def at_once(run: AgentRun) -> None:
    opening = {"cwd": str(run.cwd), "mcpServers": []}
    asked = [
        await run.send_request(FENCE, {"number": 1}),
        await run.send_request("session/new", opening),
        await run.send_request(FENCE, {"number": 2}),
        await run.send_request("session/new", opening),
        await run.send_request(FENCE, {"number": 3}),
    ]
    for one in asked[1], asked[3], asked[0], asked[2], asked[4]:  # sessions first: they take longest
        await _in_time(one, run.options.limit)
    await run.settle()
    for pending in asked:
        count = len(same_id(run, pending.request))
        problem, late = f"one of them was answered {count} times", None if count else pending.request
        run.holds("rpc.in-flight", count == 1, problem, pending.request, awaited=late)


UNKNOWN_NOTIFICATIONS: Final = {
    "notify.unknown": ("", "session/antiphon_check"),
    "notify.extension": (" if its name begins with `_`", "_antiphon/check"),
    "notify.dollar": (" if its name begins with `$/`", "$/antiphon_check"),
}

breaks("rpc.answer-to-notification", by=(*UNKNOWN_NOTIFICATIONS, "rpc.stray-answer", "cancel-request.quiet"))

QUIET: Final = "A notification that the agent does not know gets no answer, not even an error{}."


def _quiet(requirement: str, kind: str) -> Requirement:
    return must(
        requirement,
        QUIET.format(kind),
        link="extensibility#custom-notifications",
        fix="Ignore notifications that you do not know; only what has an id is answered.",
    )


@SUITE.scenario(
    "unknown-notifications",
    "a client sends notifications that the agent does not know",
    provokes=True,
    shows=[
        *(_quiet(one, kind) for one, (kind, _) in UNKNOWN_NOTIFICATIONS.items()),
        must(
            "rpc.stray-answer",
            "A response without a request is ignored.",
            link="overview#communication-model",
            fix="Ignore answers whose id you do not know.",
        ),
    ],
)
async def notifications(run: AgentRun) -> None:
    sent_at = {}
    for one, (_, method) in UNKNOWN_NOTIFICATIONS.items():
        sent_at[one] = await run.notify(method, {"sessionId": "nobody", "text": "hello"})
        await run.fence()
    sent_at["rpc.stray-answer"] = await run.wire.send({"jsonrpc": "2.0", "id": "nobody-asked", "result": {}})
    await run.wire.send({"jsonrpc": "2.0", "id": 987654321, "error": {"code": -32603, "message": "nobody asked"}})
    await run.settle()
    ends = [*(entry.number for entry in sent_at.values()), len(run.wire.trace) + 1][1:]
    for (one, sent), end in zip(sent_at.items(), ends, strict=True):
        responses = [response for response in stray_responses(run, sent) if response.number < end]
        run.holds(one, not responses, "it was answered", sent, *responses[:1])


@SUITE.scenario(
    "questions-during-a-turn",
    "a client sends requests while a turn runs, then cancels the prompt by `$/cancel_request`",
    shows=(
        should(
            "rpc.while-busy",
            "A request is answered while a turn runs.",
            link="overview#communication-model",
            fix="Read on while a prompt is worked on: `session/cancel` comes the same way.",
        ),
        must(
            "cancel-request.quiet",
            "`$/cancel_request` gets no answer of its own.",
            link="cancellation",
            fix="Treat `$/cancel_request` as the notification that it is; ignore it if you cannot cancel.",
        ),
        advice(
            "cancel-request.honoured",
            "`$/cancel_request` ends the request that it names, with -32800 or with what there is.",
            link="cancellation",
            fix="Stop the work on that request and answer it with the error -32800, a prompt with `cancelled`.",
        ),
    ),
)
async def busy(run: AgentRun) -> None:
    session = await run.session()
    turn = await run.prompt(session, run.words("long"))
    await run.first_sign(session, turn)
    asked = await run.send_request(FENCE, {"during": "a turn"})
    response = await _in_time(asked, _busy(run))
    if turn.peek() is not None:
        raise NotSeen("the turn was over before anything could be asked")
    if not run.holds("rpc.while-busy", response is not None, "it was not answered in time", asked.request):
        await _end(run, session, turn)
        return
    sent = await run.notify("$/cancel_request", {"requestId": turn.request.msg["id"]})
    ended = await _in_time(turn, _busy(run))
    responses = await settled(run, sent)
    run.holds("cancel-request.quiet", not responses, "it was answered", sent, *responses[:1])
    await _end(run, session, turn)
    honoured = ended is not None and (ended.code == CANCELLED or ended.get("stopReason") == "cancelled")
    if ended is not None and not honoured:
        raise NotSeen("the turn ended by itself before it could be cancelled")
    run.holds("cancel-request.honoured", honoured, "the turn went on", sent, ended)


def _busy(run: AgentRun) -> float:
    return min(max(BUSY * run.options.silence, AT_LEAST), run.options.limit)


async def _in_time(pending: PendingRequest, limit: float) -> PeerResponse | None:
    try:
        return await pending.response(limit)
    except NoResponse as silence:
        if silence.left:
            raise
        return None


async def _end(run: AgentRun, session: str, turn: PendingRequest) -> None:
    if turn.peek() is None:
        await run.cancel(session)
        await turn.response()


# --- errors: they name what is wrong, and do no harm to what follows


METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
NOT_FOUND: Final = -32002

LINK: Final = "overview#error-handling"

TRACES: Final = ("Traceback (most recent call last)", '\n  File "', "\n    at ", "\n   at ", "stack backtrace:")
"""How the languages that agents are written in begin a stack trace."""


@SUITE.scenario(
    "unknown-methods",
    "a client asks for what the agent does not know",
    provokes=True,
    shows=(
        must(
            "error.unknown-method",
            "A method that the agent does not know is answered with an error.",
            link=LINK,
            fix="Answer methods that you do not know with the error -32601.",
        ),
        should(
            "error.unknown-method-code",
            "The error for a method that the agent does not know is -32601.",
            link=LINK,
            fix="Answer methods that you do not know with the error -32601.",
            needs=("error.unknown-method",),
        ),
        should(
            "error.unknown-extension",
            "A method of others, whose name begins with `_`, is answered with -32601 if the agent does not know it.",
            link="extensibility#custom-requests",
            fix="Answer extension methods that you do not know with the error -32601.",
        ),
    ),
)
async def unknown(run: AgentRun) -> None:
    response = await run.request("session/antiphon_check", {})
    if run.holds("error.unknown-method", response.error is not None, "it was answered with a result", response):
        sent = f"the code is {response.code}"
        run.holds("error.unknown-method-code", response.code == METHOD_NOT_FOUND, sent, response)
    extension = await run.request("_antiphon/unknown", {})
    sent = "it was answered with a result" if extension.error is None else f"the code is {extension.code}"
    run.holds("error.unknown-extension", extension.code == METHOD_NOT_FOUND, sent, extension)


@SUITE.scenario(
    "wrong-params",
    "a client leaves out what is required, or sends something else",
    provokes=True,
    shows=(
        must(
            "error.missing",
            "A request without a field that is required is answered with an error.",
            link="schema",
            fix="Check params before you use them.",
        ),
        should(
            "error.missing-code",
            "The error for a field that is missing is -32602.",
            link=LINK,
            fix="Answer params that do not match the schema with the error -32602.",
            needs=("error.missing",),
        ),
        should(
            "error.wrong-type",
            "A request with a field of another type than it has to be is answered with an error.",
            link="schema",
            fix="Check the types of params before you use them.",
        ),
        should(
            "error.list",
            "A request whose params are a list is answered with an error.",
            link="schema",
            fix="Take params by name only, and refuse a list with -32602.",
        ),
        should(
            "error.no-params",
            "A request without params, where some are required, is answered with an error.",
            link="schema",
            fix="Treat missing params as an empty object, and find the fields missing.",
        ),
        must(
            "error.usable",
            "After errors the agent works as before.",
            link=LINK,
            fix="Let an error end the request that it belongs to and nothing else.",
        ),
        should(
            "error.stays",
            "The agent stays after a request that it had to refuse.",
            link=LINK,
            fix="Let an error end the request that it belongs to and nothing else; leave only when stdin is closed.",
        ),
        advice(
            "error.private",
            "Errors do not show where in the agent's code they happened.",
            link=LINK,
            fix="Put one sentence into `message`; keep stack traces for stderr.",
        ),
    ),
)
async def wrong(run: AgentRun) -> None:
    await run.session()  # so that it is the params that are refused, and not every session
    missing = [await _refused(run, "error.missing", "session/new", {})]
    session = await _again(run)
    missing.append(await _refused(run, "error.missing", "session/prompt", {"sessionId": session}))
    for response in missing:
        if response is not None and response.error is not None:
            run.holds("error.missing-code", response.code == INVALID_PARAMS, f"the code is {response.code}", response)
    others = [
        await _refused(run, "error.wrong-type", "session/new", {"cwd": 7, "mcpServers": "none"}),
        await _refused(run, "error.list", "session/new", [str(run.cwd), []]),
        await _refused(run, "error.no-params", "session/new"),
    ]
    responses = [response for response in (*missing, *others) if response is not None]
    for response in responses:
        leaked = response.error is not None and _has_stack_trace(response)
        run.holds("error.private", not leaked, "the error has a stack trace in it", response)
    try:
        opened = await run.new_session()
    except NoResponse as silence:
        if silence.left:
            run.holds("error.stays", False, "it left after it had answered", *responses[-1:], silence.request)
            raise Blocked("the agent leaves after errors") from None
        raise
    run.holds("error.stays", not run.left, "it left after it had answered", *run.left)
    usable = isinstance(opened.get("sessionId"), str)
    run.holds("error.usable", usable, "no session could be opened", *responses[-1:], opened)


async def _refused(run: AgentRun, requirement: str, method: str, params: object = None) -> PeerResponse | None:
    """The response to what has to be refused; None if the agent exited instead."""
    try:
        response = await run.provoke(method, params)
    except NoResponse as silence:
        if not silence.left:
            raise
        run.holds(requirement, False, "the agent left without an answer", silence.request)
        await run.renew()
        return None
    run.holds(requirement, response.error is not None, "it was answered with a result", response)
    return response


async def _again(run: AgentRun) -> str:
    """A session, of another agent if this one has left."""
    try:
        return await run.session()
    except NoResponse as silence:
        if not silence.left or run.wire.provocation is None:
            raise
    await run.renew()
    return await run.session()


def _has_stack_trace(response: PeerResponse) -> bool:
    return any(trace in text for text in _texts(response.error) for trace in TRACES)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inside for text in _texts(one)]


@SUITE.scenario(
    "unknown-session",
    "a client prompts in a session that there is not",
    provokes=True,
    shows=(
        advice(
            "error.unknown-session-code",
            "The error for a session that the agent does not know is -32002 or -32602.",
            link="schema#errorcode",
            fix="Answer with the error -32002 where a session is not known.",
        ),
    ),
)
async def unknown_session(run: AgentRun) -> None:
    """A prompt for an unknown session. That the response is an error at all is a rule of all traffic."""
    await run.session()
    params = {"sessionId": "antiphon-check-nobody", "prompt": [{"type": "text", "text": "Hello"}]}
    response = await run.request("session/prompt", params)
    if response.error is None:
        raise Blocked("it was answered with a result")
    known = response.code in (NOT_FOUND, INVALID_PARAMS)
    run.holds("error.unknown-session-code", known, f"the code is {response.code}", response)
