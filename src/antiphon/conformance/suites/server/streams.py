"""Streams of events over HTTP: what is sent on which of them, and what becomes of messages that are not read at once."""

from antiphon.conformance.remote.raw_http import HttpReply, RawStream
from antiphon.conformance.remote.server_run import HttpPeer, ServerRun, is_update, request_of
from antiphon.conformance.requirements import Blocked, NotOffered, NotSeen
from antiphon.conformance.suites.server.http import FENCE
from antiphon.conformance.suites.server.suite import HTTP_SUITE, remote_capability, remote_must, remote_should
from antiphon.traffic.entries import Entry

__all__: list[str] = []


@HTTP_SUITE.scenario(
    "http-stream",
    "a client opens the stream of its connection, and a session",
    shows=(
        remote_must(
            "http.stream",
            "GET with the id of a connection opens a stream: status 200 and `text/event-stream`.",
            fix="Answer it with a response that stays open.",
        ),
        remote_should(
            "http.stream-cache",
            "A stream is not cached: it has `Cache-Control: no-cache` or `no-store`.",
            fix="Send `Cache-Control: no-cache` with a stream, or proxies may keep it.",
        ),
        remote_must(
            "http.accepted",
            "A post that is not `initialize` gets status 202.",
            fix="Answer the post as soon as the message is taken; its response comes on a stream.",
        ),
        remote_must(
            "http.accepted-empty",
            "The body of a response with status 202 is empty.",
            fix="Send responses of JSON-RPC on a stream, not as the body.",
            needs=("http.accepted",),
        ),
        remote_must(
            "http.new-stream",
            "The response to `session/new` comes on the stream of the connection.",
            fix="Send it there: the client cannot have a stream of a session that it does not know yet.",
            needs=("http.accepted",),
        ),
        remote_must(
            "http.error-stream",
            "A request that fails gets status 202 too, and its error comes on a stream.",
            fix="Use statuses of HTTP for requests of HTTP that are wrong, and errors of JSON-RPC for the rest.",
        ),
        remote_must(
            "http.event",
            "The data of each event is one JSON-RPC message.",
            fix="Write each message as `data: ` and its JSON on one line, followed by an empty line.",
        ),
    ),
)
async def stream(run: ServerRun) -> None:
    peer = run.http()
    await peer.connect()
    opened = await peer.stream(None)
    kind = opened.head.get("content-type")
    found = f"status {opened.head.status}, `{kind}`"
    if not run.holds("http.stream", opened.is_open, found, *opened.evidence):
        return
    cache = opened.head.get("cache-control")
    fine = "no-cache" in cache or "no-store" in cache
    run.holds("http.stream-cache", fine, f"it has `{cache}`" if cache else "it has none", *opened.evidence)
    reply = await peer.post(request_of("new", "session/new", {"cwd": str(run.cwd), "mcpServers": []}))
    if run.holds("http.accepted", reply.status == 202, f"it got status {reply.status}", *reply.evidence):
        run.holds("http.accepted-empty", not reply.body, "it is not", *reply.evidence)
        came = await peer.until(lambda: peer.answer("new") is not None)
        run.holds("http.new-stream", came, "it did not come there", *reply.evidence)
    failing = await peer.post(request_of("fence", FENCE, {}))
    came = failing.status == 202 and await peer.until(lambda: peer.answer("fence") is not None)
    found = f"it got status {failing.status}" if failing.status != 202 else "no error came"
    run.holds("http.error-stream", came, found, *failing.evidence)
    _judge_events(run, peer)


def _judge_events(run: ServerRun, peer: HttpPeer) -> None:
    events = [entry for one in peer.streams.values() for entry in one.messages]
    wrong = next((entry for entry in events if not isinstance(entry.msg, dict)), None)
    if events:
        run.holds("http.event", wrong is None, "it is not", wrong)


@HTTP_SUITE.scenario(
    "http-turn",
    "a turn in a session with a stream of its own",
    shows=(
        remote_must(
            "http.session-stream",
            "GET with the ids of a connection and a session opens the stream of the session.",
            fix="Answer it with status 200 and `text/event-stream`.",
        ),
        remote_must(
            "http.session-updates",
            "Updates of a session come on its stream.",
            fix="Send what has `params.sessionId` on the stream of that session.",
            needs=("http.session-stream",),
        ),
        remote_must(
            "http.session-response",
            "The response to a prompt comes on the stream of its session, after the updates of the turn.",
            fix="Remember the session of each request, and send its response where the updates went.",
            needs=("http.session-stream",),
        ),
        remote_must(
            "http.session-only",
            "Nothing of a session that has a stream comes on the stream of the connection.",
            fix="Send what has `params.sessionId` on the stream of that session, and only there.",
            needs=("http.session-stream",),
        ),
    ),
)
async def turn(run: ServerRun) -> None:
    peer, session, opened = await _session(run)
    if not run.holds("http.session-stream", opened.is_open, f"status {opened.head.status}", *opened.evidence):
        return
    id = await peer.prompt(session, "say")
    response = await peer.response(id, "session/prompt")
    await peer.silence()
    updates = [entry for entry in peer.received if is_update(session)(entry)]
    if updates:
        here = any(entry in opened.messages for entry in updates)
        run.holds("http.session-updates", here, "they came elsewhere", *updates[:1])
    late = [entry for entry in updates if entry.number > response.number and _in_turn(entry)]
    found = "it came before the last update" if late else "it came elsewhere"
    run.holds("http.session-response", response in opened.messages and not late, found, response, *late[:1])
    stray = [entry for entry in peer.streams[None].messages if entry.params.get("sessionId") == session]
    run.holds("http.session-only", not stray, "a message of the session came there", *stray[:1])


def _in_turn(entry: Entry) -> bool:
    update = entry.params.get("update")
    return isinstance(update, dict) and str(update.get("sessionUpdate")).startswith(("agent_", "tool_call", "plan"))


async def _session(run: ServerRun) -> tuple[HttpPeer, str, RawStream]:
    """A session, and the attempt to open its stream."""
    peer = await run.connected_http()
    session = await peer.new_session(run.cwd)
    return peer, session, await peer.stream(session)


@HTTP_SUITE.scenario(
    "http-buffer",
    "a client prompts first, and opens the stream of the session afterwards",
    shows=(
        remote_should(
            "http.buffered",
            "What a session sends before its stream is opened is kept, and comes when it is.",
            fix="Keep messages of a session until its stream is opened.",
        ),
    ),
)
async def buffer(run: ServerRun) -> None:
    peer = await run.connected_http()
    session = await peer.new_session(run.cwd)
    id = await peer.prompt(session, "say")
    await peer.silence()
    await peer.listen(session)
    came = await peer.until(lambda: peer.answer(id) is not None)
    updates = [entry for entry in peer.received if is_update(session)(entry)]
    if came and not updates:
        raise NotSeen("the turn sent no update")
    run.holds("http.buffered", came, "the turn that was begun before never came", *peer.streams[session].evidence)


@HTTP_SUITE.scenario(
    "http-reader",
    "a client loses the stream of a session, and another is opened while one is",
    shows=(
        remote_must(
            "http.stream-again",
            "The stream of a session that ended can be opened again, and the next turn comes on it.",
            fix="Let go of a stream whose client is gone, and open it for the next request.",
        ),
        remote_should(
            "http.stream-twice",
            "A second stream of a session is refused with status 409, or the first one ends.",
            fix="Have one reader for each stream, or messages come in part on one and in part on the other.",
        ),
    ),
)
async def reader(run: ServerRun) -> None:
    peer, session, first = await _session(run)
    if not first.is_open:
        raise Blocked("the stream of the session was not opened")
    await first.close()
    again = await _opened(peer, session)
    if not run.holds("http.stream-again", again.is_open, f"status {again.head.status}", *again.evidence):
        return
    id = await peer.prompt(session, "say")
    came = await peer.until(lambda: peer.answer(id) is not None)
    if not run.holds("http.stream-again", came, "the next turn did not come on it", *again.evidence):
        return
    other = await peer.stream(session)
    if other.is_open:
        ended = await peer.until(lambda: again.ended)
        run.holds("http.stream-twice", ended, "both stay open", *again.evidence, *other.evidence)
    else:
        run.holds("http.stream-twice", other.head.status == 409, f"status {other.head.status}", *other.evidence)


async def _opened(peer: HttpPeer, session: str) -> RawStream:
    """A stream that is opened again: a server may need a moment to see that the first is gone."""
    found = await peer.stream(session)
    for _ in range(20):
        if found.head.status != 409:
            break
        await peer.until(lambda: False, peer.options.silence)
        found = await peer.stream(session)
    return found


@HTTP_SUITE.scenario(
    "http-missed",
    "a client that lost a stream names the last event that it got",
    shows=(
        remote_capability(
            "http.last-event-id",
            "A server that numbers its events sends those after `Last-Event-ID` again, each once and in order.",
            fix="Keep some events of each stream, and send those after the id again; or send no ids.",
        ),
    ),
)
async def missed(run: ServerRun) -> None:
    peer, session, first = await _session(run)
    if not first.is_open:
        raise Blocked("the stream of the session was not opened")
    id = await peer.prompt(session, "say")
    await peer.response(id, "session/prompt")
    await peer.silence()
    if not first.events or not all(number for _, number in first.events):
        raise NotOffered("the events have no ids")
    if len(first.events) < 2:
        raise NotSeen("the turn sent too few events")
    await first.close()
    wanted = [entry.msg for entry in first.messages[1:]]
    again = await peer.stream(session, {"Last-Event-ID": first.events[0][1]})
    await peer.until(lambda: len(again.events) >= len(wanted))
    await peer.silence()
    found = [entry.msg for entry in again.messages]
    text = f"{len(found)} came of {len(wanted)}" if len(found) != len(wanted) else "others came"
    run.holds("http.last-event-id", found == wanted, text, *again.evidence)


@HTTP_SUITE.scenario(
    "http-load",
    "a client comes back with a new connection, and loads its session",
    shows=(
        remote_must(
            "http.load-stream",
            "The stream of a session can be opened before the session is loaded.",
            fix="Open the stream of a session that is not known yet: the way back is to open it, and then to load.",
        ),
        remote_must(
            "http.load",
            "A session of an earlier connection can be loaded: its updates and the response come.",
            fix="Keep sessions where a connection ends.",
            needs=("http.load-stream",),
        ),
    ),
)
async def load(run: ServerRun) -> None:
    first = await run.connected_http()
    run.need_load(first)
    session = await first.session(run.cwd)
    await first.response(await first.prompt(session, "say"), "session/prompt")
    await first.close()
    first.id = ""
    peer = await run.connected_http()
    opened = await peer.stream(session)
    if not run.holds("http.load-stream", opened.is_open, f"status {opened.head.status}", *opened.evidence):
        return
    params = {"sessionId": session, "cwd": str(run.cwd), "mcpServers": []}
    reply: HttpReply = await peer.post(request_of("load", "session/load", params), session)
    await peer.until(lambda: peer.answer("load") is not None)
    response = peer.answer("load")
    if response is None:
        found = f"it got status {reply.status}" if reply.status != 202 else "it was not answered"
        run.holds("http.load", False, found, *reply.evidence)
        return
    came = await peer.until(lambda: peer.find(is_update(session)) is not None)
    found = "no update came" if "result" in response.msg else "it was answered with an error"
    run.holds("http.load", "result" in response.msg and came, found, reply.request, response)


HTTP_SUITE.follows["http.session-updates"] = (
    "http.session-only",
)  # what comes elsewhere comes on the stream of the connection
