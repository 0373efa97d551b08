"""Requests and streams of a client over streamable HTTP."""

from antiphon.conformance.remote.client_check import RemoteClientRun
from antiphon.conformance.remote.judge import COOKIE, SeenRequest
from antiphon.conformance.remote.raw_http import CONNECTION, SESSION
from antiphon.conformance.requirements import Blocked, NotSeen
from antiphon.conformance.suites.remote_client.suite import REMOTE_CLIENT_SUITE as SUITE
from antiphon.conformance.suites.server.suite import remote_advice, remote_must, remote_should

__all__: list[str] = []


@SUITE.scenario(
    "http-turn",
    "a client sends a prompt over streamable HTTP, and is asked for permission",
    shows=(
        remote_must(
            "http.turn",
            "A turn over streamable HTTP ends, and the client with it.",
            fix="Read both streams until the response has come.",
        ),
        remote_must(
            "http.initialize-bare",
            f"The first request posts `initialize`, without `{CONNECTION}`.",
            fix="Begin each connection with a post of `initialize`.",
        ),
        remote_must(
            "http.post-type",
            "Every post is one JSON-RPC message with `Content-Type: application/json`.",
            fix="Send one message in each post, as `application/json`.",
        ),
        remote_must(
            "http.connection-header",
            f"Every later request has the `{CONNECTION}` that the server gave.",
            fix=f"Keep `{CONNECTION}` of the response to `initialize`, and send it with every request.",
        ),
        remote_must(
            "http.accept",
            "A request for a stream accepts `text/event-stream`.",
            fix="Send `Accept: text/event-stream` with GET.",
        ),
        remote_must(
            "http.connection-stream",
            "The client opens the stream of its connection, once.",
            fix="Open it after `initialize`: responses to `session/new` come on it.",
        ),
        remote_must(
            "http.session-stream",
            f"The client opens the stream of a session, by its `{SESSION}`, once.",
            fix="Open it when the session is known, and keep it open.",
        ),
        remote_must(
            "http.session-header",
            f"A post about a session has its id in `{SESSION}`.",
            fix=f"Send `{SESSION}` with every message whose params name a session.",
        ),
        remote_must(
            "http.response-header",
            f"The response to a request about a session is posted with `{SESSION}`.",
            fix="Remember the session of each request of the agent, and send its id with the response.",
        ),
        remote_must(
            "http.cookies",
            "Cookies that the server set are sent with every later request.",
            fix="Keep cookies of the server, so that a proxy finds the same one again.",
        ),
        remote_should(
            "http.delete",
            "A client that leaves ends its connection with DELETE.",
            fix="Send DELETE with the id of the connection before you leave.",
        ),
    ),
)
async def turn(run: RemoteClientRun) -> None:
    run.judge.script.permission = True
    await run.start("http")
    await run.received("initialize")
    status = await run.ended()
    run.holds("http.turn", status == 0, run.how(status), run.judge.requests[-1].entry)
    first, *later = run.judge.requests
    bare = first.method == "POST" and first.asked == "initialize" and not first.head.get(CONNECTION)
    run.holds("http.initialize-bare", bare, "it does not", first.entry)
    posts = [one for one in run.judge.requests if one.method == "POST"]
    wrong = [one for one in posts if not one.message or not one.head.get("content-type").startswith("application/json")]
    _all(run, "http.post-type", wrong, "one is not")
    _all(
        run,
        "http.connection-header",
        [one for one in later if one.head.get(CONNECTION) != run.judge.connection],
        "one has not",
    )
    _all(run, "http.cookies", [one for one in later if COOKIE not in one.head.get("cookie")], "one has none")
    _judge_streams(run)
    scoped = [one for one in posts if one.session]
    if scoped:
        _all(run, "http.session-header", [one for one in scoped if one.head.get(SESSION) != one.session], "one has not")
    answers = [one for one in posts if one.message.get("id") == "judge" and not one.asked]
    if answers:
        _all(run, "http.response-header", [one for one in answers if not one.head.get(SESSION)], "it has none")
    if status == 0:
        deleted = any(one.method == "DELETE" for one in later)
        run.holds("http.delete", deleted, "there was none", run.judge.requests[-1].entry)
    if not scoped or not answers:
        raise NotSeen("the client did not get as far as to answer a permission request")


def _all(run: RemoteClientRun, requirement: str, wrong: list[SeenRequest], otherwise: str) -> None:
    run.holds(requirement, not wrong, otherwise, *(one.entry for one in wrong[:1]))


def _judge_streams(run: RemoteClientRun) -> None:
    streams = [one for one in run.judge.requests if one.method == "GET"]
    if streams:
        _all(
            run,
            "http.accept",
            [one for one in streams if "text/event-stream" not in one.head.get("accept")],
            "one does not",
        )
    of_connection = [one for one in streams if not one.head.get(SESSION)]
    found = f"it opened {len(of_connection)}"
    run.holds("http.connection-stream", len(of_connection) == 1, found, *(one.entry for one in of_connection[1:2]))
    of_session = [one for one in streams if one.head.get(SESSION) == "judge-1"]
    found = f"it opened {len(of_session)}"
    run.holds("http.session-stream", len(of_session) == 1, found, *(one.entry for one in of_session[1:2]))


@SUITE.scenario(
    "http-events",
    "events come with comments, ids, several lines of data, CRLF, and in small pieces",
    shows=(
        remote_must(
            "http.events",
            "Events are read as the HTML standard has them, in whatever pieces they come.",
            fix="Read the stream with a parser of server-sent events: join `data` lines, and ignore comments and fields that you do not need.",
        ),
    ),
)
async def events(run: RemoteClientRun) -> None:
    run.judge.script.odd_events = True
    await run.start("http")
    await run.received("initialize")
    status = await run.ended()
    run.holds("http.events", status == 0, run.how(status), run.judge.requests[-1].entry)


@SUITE.scenario(
    "http-cut",
    "the stream of a session ends in the middle of a turn",
    shows=(
        remote_advice(
            "http.stream-again",
            "A client whose stream of a session ended opens it again, and gets the rest of the turn.",
            fix="Open the stream again after a moment.",
        ),
        remote_advice(
            "http.last-event-id",
            "A stream that is opened again has the id of the last event in `Last-Event-ID`.",
            fix="Keep the last id of each stream, and send it when the stream is opened again.",
        ),
    ),
)
async def cut(run: RemoteClientRun) -> None:
    run.judge.script.cut = "stream"
    await run.start("http")
    await run.received("session/prompt")

    def streams() -> list[SeenRequest]:
        return [one for one in run.judge.requests if one.method == "GET" and one.head.get(SESSION) == "judge-1"]

    again = await run.judge.until(lambda: len(streams()) > 1, run.options.limit)
    status = await run.ended() if again else None
    text = run.how(status) if again else "it did not"
    run.holds("http.stream-again", again and status == 0, text, *(one.entry for one in streams()[:1]))
    if not again:
        raise NotSeen("the client did not open the stream again")
    second = streams()[1]
    run.holds("http.last-event-id", second.head.get("last-event-id") == "1", "it has not", second.entry)


@SUITE.scenario(
    "http-refused",
    "the server fails at a post",
    shows=(
        remote_should(
            "http.refused",
            "A post that is refused with a status is an error of its request: the client does not wait for its response.",
            fix="End a request whose post was refused with an error that has the status.",
        ),
    ),
)
async def refused(run: RemoteClientRun) -> None:
    run.judge.script.fails = "session/new"
    await run.start("http")
    await run.received("initialize")
    status = await run.ended()
    posted = next((one for one in run.judge.requests if one.asked == "session/new"), None)
    if posted is None:
        raise Blocked("the client opened no session")
    run.holds("http.refused", status not in (0, None), run.how(status), posted.entry)


@SUITE.scenario(
    "http-cancel",
    "a user cancels over streamable HTTP",
    shows=(
        remote_must(
            "http.cancel",
            f"`session/cancel` is posted while the turn runs, with `{SESSION}`.",
            fix="Post the notification at once: nothing waits for the response to the prompt.",
        ),
    ),
)
async def cancel(run: RemoteClientRun) -> None:
    run.judge.script.waits = True
    await run.start("http", "cancel")
    await run.received("session/prompt")
    run.running.interrupt()
    entry = await run.received("session/cancel")
    posted = next(one for one in run.judge.requests if one.asked == "session/cancel")
    run.holds("http.cancel", bool(posted.head.get(SESSION)), "it has none", posted.entry, entry)


@SUITE.scenario(
    "http-load",
    "a client loads a session over streamable HTTP",
    shows=(
        remote_must(
            "http.load-stream",
            "The stream of a session is opened before the session is loaded.",
            fix="Open the stream, and then post `session/load`: its updates come on that stream.",
        ),
    ),
)
async def load(run: RemoteClientRun) -> None:
    await run.start("http", "load")
    await run.received("session/load")
    at = next(index for index, one in enumerate(run.judge.requests) if one.asked == "session/load")
    posted = run.judge.requests[at]
    before = any(one.method == "GET" and one.head.get(SESSION) == posted.session for one in run.judge.requests[:at])
    run.holds("http.load-stream", before, "it was not", posted.entry)
