"""Sessions: MCP servers, sessions that do not exist, resuming with and without the history, closing."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse
from antiphon.conformance.suites.agent_v2.suite import INVALID_PARAMS, SUITE_V2, is_code, must, run_of, should

NOT_FOUND = -32002
REQUEST_CANCELLED = -32800
UNKNOWN = "antiphon-no-such-session"


@SUITE_V2.scenario(
    "session-servers",
    "an MCP server that cannot be reached",
    shows=(
        must(
            "session.mcp-unknown",
            "An MCP server of a type that the agent does not support is refused with -32602.",
            link="schema#mcpserver",
            fix="Look at the `type` of every server before the session is opened.",
        ),
    ),
    provokes=True,
)
async def servers(run: AgentRun) -> None:
    server = {"type": "_antiphon", "name": "nowhere"}
    response = await run.provoke("session/new", {"cwd": str(run.cwd), "mcpServers": [server]})
    is_code(run, "session.mcp-unknown", response, INVALID_PARAMS)


@SUITE_V2.scenario(
    "session-unknown",
    "a session that does not exist",
    shows=(
        should(
            "session.not-found",
            "What is asked of an unknown session is refused with -32002 and its id.",
            link="schema#sessionnotfounderrordata",
            fix='Answer with the error -32002 and `data: {"sessionId": …}`.',
        ),
    ),
    provokes=True,
)
async def unknown(run: AgentRun) -> None:
    words = [{"type": "text", "text": "Hello"}]
    response = await run.provoke("session/prompt", {"sessionId": UNKNOWN, "prompt": words})
    data = (response.error or {}).get("data")
    named = isinstance(data, dict) and data.get("sessionId") == UNKNOWN
    if is_code(run, "session.not-found", response, NOT_FOUND):
        run.holds("session.not-found", named, "its data does not name the session", response)


@SUITE_V2.scenario(
    "resume",
    "a session that was closed is resumed with its history",
    shows=(
        must(
            "resume.replay",
            "With `replayFrom` the history is sent before `session/resume` is answered.",
            link="schema#resumesessionrequest",
            fix="Send all messages that are kept, then the state, then the answer.",
        ),
        must(
            "resume.ids",
            "A message has the same id whenever it is replayed.",
            link="schema#promptresponse",
            fix="Store the ids of messages with them.",
            needs=("resume.replay",),
        ),
        must(
            "resume.works",
            "A session that was resumed takes prompts.",
            link="schema#resumesessionresponse",
            fix="Make the session usable before `session/resume` is answered.",
        ),
    ),
)
async def resume(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    work = await v2.work(session)
    await run.request("session/close", {"sessionId": session})
    params = {"sessionId": session, "cwd": str(run.cwd)}
    response = await run.request("session/resume", {**params, "replayFrom": {"type": "start"}})
    if response.error is not None:
        raise Blocked("the agent does not resume a session that was closed")
    begun, ended = response.request.number, response.entry.number
    replayed = v2.messages(session, "user", after=begun, before=ended)
    if run.holds("resume.replay", bool(replayed), "no message of the user came before the answer", response):
        same = work.message_id in replayed
        run.holds("resume.ids", same, f"the message {work.message_id} has another id now", work.answer, response)
    again = await (await run.prompt(session, run.words("say"))).response()
    if run.holds("resume.works", again.error is None, "a prompt was answered with an error", again):
        await v2.idle(session, again.request, "resume.works")
    await run.request("session/close", {"sessionId": session})
    await run.request("session/resume", params)  # without the history, which rules of all traffic look at


@SUITE_V2.scenario(
    "resume-open",
    "a session that is open is resumed with its history",
    shows=(
        must(
            "resume.open",
            "A session that is open can be resumed.",
            link="schema#resumesessionrequest",
            fix="Let `session/resume` succeed for a session that is open already.",
        ),
    ),
)
async def resume_open(run: AgentRun) -> None:
    session = await run.session()
    await run_of(run).work(session)
    params = {"sessionId": session, "cwd": str(run.cwd), "replayFrom": {"type": "start"}}
    response = await run.request("session/resume", params)
    run.holds("resume.open", response.error is None, "it was answered with an error", response)


@SUITE_V2.scenario(
    "resume-cursor",
    "a place in the history that the agent does not know",
    shows=(
        must(
            "resume.cursor",
            "An unknown `replayFrom` is refused with -32602, and not taken for another.",
            link="schema#replayfrom",
            fix="Refuse what is not one of the cursors that you support.",
        ),
    ),
    provokes=True,
)
async def cursor(run: AgentRun) -> None:
    session = await run.session()
    params = {"sessionId": session, "cwd": str(run.cwd), "replayFrom": {"type": "_antiphon"}}
    is_code(run, "resume.cursor", await run.provoke("session/resume", params), INVALID_PARAMS)


@SUITE_V2.scenario(
    "close",
    "a session is closed while it works",
    shows=(
        must(
            "close.cancels",
            "Closing a session cancels its work: `idle` with `cancelled` comes before the answer.",
            link="schema#closesessionrequest",
            fix="Cancel what runs, send `idle` with `cancelled`, and answer then.",
            needs=("close.ends",),
        ),
        should(
            "close.gone",
            "A session that was closed takes no prompts.",
            link="schema#sessionnotfounderrordata",
            fix="Answer what is asked of a closed session with -32002.",
        ),
    ),
    provokes=True,
)
async def close(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    await v2.busy(session)
    response = await run.request("session/close", {"sessionId": session})
    between = run.updates(session, after=response.request.number, before=response.entry.number)
    reasons = [one.params["update"].get("stopReason") for one in between if isinstance(one.params.get("update"), dict)]
    right = response.error is None and "cancelled" in reasons
    run.holds("close.cancels", right, "no `idle` with `cancelled` came before the answer", response)
    await run.settle()
    words = [{"type": "text", "text": "Hello"}]
    late = await run.provoke("session/prompt", {"sessionId": session, "prompt": words})
    run.holds("close.gone", late.error is not None, "a prompt was accepted", late)


@SUITE_V2.scenario(
    "close-held",
    "a session is closed while a second prompt waits",
    shows=(
        must(
            "close.held",
            "A prompt that waits when its session is closed is answered with -32800; one that was inserted with its message.",
            link="schema#closesessionrequest",
            fix="Answer held prompts with -32800 when the session is closed, before or after the close.",
        ),
    ),
)
async def close_held(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    await v2.busy(session)
    pending = await run.prompt(session, run.words("say"))
    await run.fence()
    closed = await run.request("session/close", {"sessionId": session})
    try:
        response = await pending.response(run.options.limit)
    except NoResponse as missing:
        if missing.left:
            raise
        run.holds("close.held", False, "it was never answered", pending.request, closed, awaited=pending.request)
        return
    early = response.entry.number < closed.request.number  # refused or inserted, and so nothing that was held
    right = early or response.error is None or response.code == REQUEST_CANCELLED
    run.holds("close.held", right, f"it was answered with the error {response.code}", response, closed)
