"""Earlier sessions: `session/list`, `session/delete`, `session/load`, `session/resume`, `session/close` and, a draft, `session/fork`."""

from collections.abc import Iterable, Sequence

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NotOffered, NotSeen, Requirement, advice, capability, should
from antiphon.conformance.suites.agent.settings import choose, options, other_value
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import (
    UNKNOWN_SESSION,
    busy,
    interrupted,
    is_refused,
    reason,
    text_of,
    usable,
)
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry, JsonObject, objects_in, texts_in, twice_in

__all__: list[str] = []


LIST_LINK = "session-list#listing-sessions"
MOST_PAGES = 20
"""A list that is longer is not read to its end."""


async def _pages(run: AgentRun, **filters: object) -> list[PeerResponse]:
    """The list, page by page, as far as we go."""
    pages = [await run.request("session/list", filters)]
    seen: set[str] = set()
    while isinstance(cursor := pages[-1].get("nextCursor"), str) and cursor not in seen and len(pages) < MOST_PAGES:
        seen.add(cursor)
        pages.append(await run.request("session/list", {**filters, "cursor": cursor}))
    return pages


def _goes_round(pages: Sequence[PeerResponse]) -> bool:
    """Whether the last page leads back to one before it."""
    return pages[-1].get("nextCursor") in [one.get("nextCursor") for one in pages[:-1]]


def _twice(pages: Sequence[PeerResponse]) -> set[str]:
    return set(twice_in(texts_in(_sessions(pages), "sessionId")))


def _sessions(pages: Iterable[PeerResponse]) -> list[JsonObject]:
    return [each for one in pages for each in objects_in(one.get("sessions"))]


def _ids(pages: Iterable[PeerResponse]) -> list[object]:
    return [one.get("sessionId") for one in _sessions(pages)]


@SUITE.scenario(
    "list",
    "a user looks which sessions there are",
    files=True,
    shows=(
        capability(
            "list.lists",
            "`session/list` is answered with a list.",
            link=LIST_LINK,
            fix="Answer with `sessions`, an empty list if there are no sessions; or do not offer `sessionCapabilities.list`.",
        ),
        should(
            "list.has",
            "A session that is not empty is in the list of its directory.",
            link=LIST_LINK,
            fix="List every session that can be gone on with, those of this connection too.",
            needs=("list.lists",),
        ),
        capability(
            "list.directory",
            "A list for a directory has only sessions of that directory.",
            link=LIST_LINK,
            fix="Leave out the sessions with another `cwd` if the request has one.",
            needs=("list.lists",),
        ),
        capability(
            "list.none",
            "A list for a directory in which there are no sessions is empty.",
            link=LIST_LINK,
            fix="Answer with an empty list of `sessions`, not with an error and not with other sessions.",
            needs=("list.lists", "list.directory"),
        ),
        should(
            "list.cursor",
            "A cursor that the agent never gave is refused.",
            link="session-list#pagination",
            fix="Answer with the error -32602 if you do not know the cursor.",
        ),
    ),
)
async def listing(run: AgentRun) -> None:
    run.need("sessionCapabilities", "list")
    session = await run.session()
    await run.turn(session)
    bogus = await run.request("session/list", {"cursor": "antiphon-no-such-cursor"})
    run.holds("list.cursor", is_refused(bogus), "it was accepted", bogus)
    plain = await run.request("session/list", {})
    listed = isinstance(plain.get("sessions"), list)
    if not run.holds("list.lists", listed, "there is no list in the answer", plain):
        raise Blocked("there is no list")
    here = await _pages(run, cwd=str(run.cwd))
    run.holds("list.has", session in _ids(here), f"{session} is not in it", *here[:1])
    elsewhere = sorted({str(one.get("cwd")) for one in _sessions(here)} - {str(run.cwd)})
    run.holds("list.directory", not elsewhere, f"there are sessions of {elsewhere[:3]} in it", *here[:1])
    empty = run.cwd / "nobody-was-here"
    empty.mkdir(exist_ok=True)
    other_list = await run.request("session/list", {"cwd": str(empty)})
    run.holds("list.none", other_list.get("sessions") == [], "it is not", other_list)


@SUITE.scenario(
    "list-pages",
    "a user looks through a long list of sessions",
    shows=(
        capability(
            "list.pages",
            "A list in pages ends, and has each session once.",
            link="session-list#pagination",
            fix="Let `nextCursor` lead to what comes after the page, and leave it out of the last one.",
        ),
    ),
)
async def pages(run: AgentRun) -> None:
    run.need("sessionCapabilities", "list")
    await run.session()
    found = await _pages(run)
    if len(found) < 2:
        raise NotSeen("the list is one page long")
    if _goes_round(found):
        run.holds("list.pages", False, "its last page leads back to one before", *found[-2:])
        return
    again = await _pages(run) if _twice(found) else []
    twice = sorted(
        _twice(found) & _twice(again)
    )  # another agent may have opened a session while we read: pages shift then
    if not twice and len(found) == MOST_PAGES:
        raise NotSeen(f"the list is longer than {MOST_PAGES} pages")
    run.holds("list.pages", not twice, f"{', '.join(twice[:3])} is in it more than once", *found[:2])


@SUITE.scenario(
    "delete",
    "a user deletes a session",
    shows=(
        capability(
            "delete.deletes",
            "A session can be deleted.",
            link="session-delete",
            fix="Answer `session/delete` with a result, or do not offer `sessionCapabilities.delete`.",
        ),
        capability(
            "delete.unlisted",
            "A session that was deleted is not listed any more.",
            link="session-delete",
            fix="Leave deleted sessions out of `session/list`.",
            needs=("delete.deletes",),
        ),
        should(
            "delete.twice",
            "Deleting a session that is not there succeeds.",
            link="session-delete",
            fix="Answer `session/delete` with a result, whether there was such a session or not.",
        ),
    ),
)
async def deleting(run: AgentRun) -> None:
    run.need("sessionCapabilities", "delete")
    session = await run.session()
    await run.turn(session)
    before = await _pages(run, cwd=str(run.cwd)) if run.offers("sessionCapabilities", "list") else []
    response = await run.request("session/delete", {"sessionId": session})
    run.holds("delete.deletes", not is_refused(response), "it was refused", response)
    for gone in (session, UNKNOWN_SESSION):
        again = await run.request("session/delete", {"sessionId": gone})
        run.holds("delete.twice", not is_refused(again), "it was refused", again)
    if session not in _ids(before):
        raise NotSeen("the session was not listed before either")
    after = await _pages(run, cwd=str(run.cwd))
    run.holds("delete.unlisted", session not in _ids(after), f"{session} is still listed", response, *after[:1])


# --- `session/load`, `session/resume` and `session/fork`


LINK = "session-setup#loading-sessions"


def _unknown(id: str, method: str) -> Requirement:
    return should(
        id,
        f"`{method}` of a session that does not exist is answered with an error.",
        link="session-setup",
        fix="Answer with an error, such as -32002, instead of opening a new session under that id.",
    )


def _next(id: str, what: str) -> Requirement:
    return capability(
        id,
        f"A session that was {what} takes a turn.",
        link="session-setup",
        fix=f"Leave a session that was {what} as `session/new` leaves one: ready for a prompt.",
    )


async def _used(run: AgentRun, purpose: str = "say") -> tuple[str, str, str]:
    """A session with a turn behind it that is not open any more, if that can be: its id, our text, and the text of the agent."""
    session = await run.session()
    response = await run.turn(session, purpose)
    await run.settle()
    text = text_of(run.updates(session, after=response.request.number))
    if run.offers("sessionCapabilities", "close"):
        await run.request("session/close", {"sessionId": session})
    return session, run.words(purpose), text


async def _reopen(run: AgentRun, method: str, session: str) -> PeerResponse:
    """Load or resume. Some agents refuse that for a session that is open, and may.

    Raises:
        Unseen: it is open, and refused.
    """
    response = await run.request(method, {"sessionId": session, "cwd": str(run.cwd), "mcpServers": []})
    if is_refused(response) and not run.offers("sessionCapabilities", "close"):
        raise NotSeen("the agent refuses that for a session that is open, and cannot close one")
    return response


@SUITE.scenario(
    "load",
    "a user goes back to a session",
    shows=(
        capability(
            "load.loads",
            "A session with a turn in it can be loaded.",
            link=LINK,
            fix="Keep what is needed to go on with a session, or do not offer `loadSession`.",
        ),
        capability(
            "load.user",
            "Loading a session replays the user's messages.",
            link=LINK,
            fix="Send the prompts of the session as `user_message_chunk` before you answer.",
            needs=("load.loads",),
        ),
        capability(
            "load.agent",
            "Loading a session replays the agent's messages, in the same order.",
            link=LINK,
            fix="Send the answers of the session as `agent_message_chunk` before you answer.",
            needs=("load.loads",),
        ),
        _next("load.next", "loaded"),
    ),
)
async def load(run: AgentRun) -> None:
    run.need("loadSession")
    session, asked, text = await _used(run, "many")
    response = await _reopen(run, "session/load", session)
    if not run.holds("load.loads", not is_refused(response), "it was answered with an error", response):
        raise Blocked("the session could not be loaded")
    history = run.updates(session, after=response.request.number, before=response.entry.number)
    again = text_of(history, "user_message_chunk")
    run.holds("load.user", _has(again, asked), f"it sent {again[:80]!r} instead of {asked[:80]!r}", response)
    if text:
        again = text_of(history)
        run.holds("load.agent", _has(again, text), f"it sent {again[:80]!r} instead of {text[:80]!r}", response)
    await usable(run, "load.next", session)
    if not text:
        raise NotSeen("the agent sent nothing that could be replayed")


def _has(text: str, part: str) -> bool:
    """Whether it is in there: white space is lost where pieces are joined anew."""
    return "".join(part.split()) in "".join(text.split())


@SUITE.scenario(
    "load-unknown",
    "a user goes back to a session that does not exist",
    shows=(_unknown("load.unknown", "session/load"),),
)
async def load_unknown(run: AgentRun) -> None:
    run.need("loadSession")
    await run.session()  # so that it is this one that is refused, and not every session
    params = {"sessionId": UNKNOWN_SESSION, "cwd": str(run.cwd), "mcpServers": []}
    response = await run.request("session/load", params)
    run.holds("load.unknown", is_refused(response), "it was answered with a result", response)


@SUITE.scenario(
    "load-settings",
    "a user goes back to a session with settings of its own",
    shows=(
        advice(
            "load.settings",
            "A session that is loaded has the settings that it was left with, but for the mode.",
            link="session-config-options#initial-state",
            fix="Keep the settings of a session with its history.",
        ),
    ),
)
async def load_settings(run: AgentRun) -> None:
    run.need("loadSession")
    session, made = await run.opened()
    # A mode may let the agent do more: one that goes back to asking does well.
    kept = [one for one in options(made) if one.get("category") != "mode"]
    option = next((one for one in kept if other_value(one) is not None), None)
    if option is None:
        raise NotOffered("the session has no settings but modes")
    chosen = other_value(option)
    if is_refused(await choose(run, session, option.get("id"), chosen)):
        raise Blocked("a setting was refused")
    await run.turn(session)
    if run.offers("sessionCapabilities", "close"):
        await run.request("session/close", {"sessionId": session})
    response = await _reopen(run, "session/load", session)
    found = next((one.get("currentValue") for one in options(response) if one.get("id") == option.get("id")), None)
    if found is None:
        raise NotSeen("the answer to `session/load` has no settings")
    run.holds("load.settings", found == chosen, f"`{option.get('id')}` is {found!r} and was {chosen!r}", response)


@SUITE.scenario(
    "resume",
    "a client goes on with a session whose history it has",
    shows=(
        capability(
            "resume.resumes",
            "A session with a turn in it can be resumed.",
            link="session-setup#resuming-sessions",
            fix="Keep what is needed to go on with a session, or do not offer `sessionCapabilities.resume`.",
        ),
        _next("resume.next", "resumed"),
        _unknown("resume.unknown", "session/resume"),
    ),
)
async def resume(run: AgentRun) -> None:
    run.need("sessionCapabilities", "resume")
    session, _, _ = await _used(run)
    unknown = await run.request("session/resume", {"sessionId": UNKNOWN_SESSION, "cwd": str(run.cwd), "mcpServers": []})
    run.holds("resume.unknown", is_refused(unknown), "it was answered with a result", unknown)
    response = await _reopen(run, "session/resume", session)
    if not run.holds("resume.resumes", not is_refused(response), "it was answered with an error", response):
        raise Blocked("the session could not be resumed")
    await run.settle()
    await usable(run, "resume.next", session)


@SUITE.scenario(
    "fork",
    "a user takes a session as the beginning of another",
    shows=(
        capability(
            "fork.another",
            "A fork of a session has an id of its own.",
            link="draft/schema",
            fix="Answer `session/fork` with a new `sessionId`, or do not offer `sessionCapabilities.fork`.",
        ),
        _next("fork.next", "forked from another"),
        capability(
            "fork.original",
            "The session that was forked goes on as before.",
            link="draft/schema",
            fix="Copy the session: neither of the two may know what is sent in the other.",
        ),
    ),
)
async def fork(run: AgentRun) -> None:
    run.need("sessionCapabilities", "fork")
    session = await run.session()
    await run.turn(session)
    response = await run.request("session/fork", {"sessionId": session, "cwd": str(run.cwd), "mcpServers": []})
    made = response.get("sessionId")
    another = isinstance(made, str) and bool(made) and made != session
    if not run.holds("fork.another", another, f"the fork of {session} is {made}", response) or not isinstance(
        made, str
    ):
        raise Blocked("there is no fork")
    await usable(run, "fork.next", made)
    await usable(run, "fork.original", session)


# --- `session/close`


CLOSE_LINK = "session-setup#closing-active-sessions"


@SUITE.scenario(
    "close",
    "a user closes a session",
    shows=(
        capability(
            "close.closes",
            "A session can be closed.",
            link=CLOSE_LINK,
            fix="Answer `session/close` with a result, or do not offer `sessionCapabilities.close`.",
        ),
        should(
            "close.closed",
            "A prompt in a session that was closed is answered with an error.",
            link=CLOSE_LINK,
            fix="Forget the session when it is closed: it may be loaded or resumed again.",
            needs=("close.closes",),
        ),
    ),
)
async def closing(run: AgentRun) -> None:
    run.need("sessionCapabilities", "close")
    session = await run.session()
    await run.turn(session)
    response = await run.request("session/close", {"sessionId": session})
    if not run.holds("close.closes", not is_refused(response), "it was refused", response):
        raise Blocked("the session could not be closed")
    late = await run.turn(session)
    run.holds("close.closed", is_refused(late), f"it ended with {reason(late)}", response, late)


@SUITE.scenario(
    "close-busy",
    "a user closes a session in which something runs",
    shows=(
        capability(
            "close.cancels",
            "Closing a session cancels its turn, which is answered with `cancelled`.",
            link=CLOSE_LINK,
            fix="Do what `session/cancel` does first: every prompt has an answer.",
        ),
    ),
)
async def closing_busy(run: AgentRun) -> None:
    run.need("sessionCapabilities", "close")

    async def begun() -> PendingRequest:
        return await busy(run, await run.session())

    async def stop(session: str) -> Entry:
        return (await run.request("session/close", {"sessionId": session})).request

    await interrupted(run, "close.cancels", begun, stop)


SUITE.follows["close.cancels"] = ("turn.not-silent",)  # a turn that is over so early may have sent nothing
