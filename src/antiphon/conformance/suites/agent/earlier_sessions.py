"""Which sessions there are: `session/list`, and `session/delete`."""

from collections.abc import Iterable, Sequence

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NotOffered, NotSeen, Requirement, advice, capability, should
from antiphon.conformance.suites.agent.settings import choose, options, other_value
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import NOBODY, busy, interrupted, is_refused, reason, said, usable
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry
from antiphon.traffic.values import JsonObject, objects_in, texts_in, twice_in

__all__: list[str] = []


LIST_LINK = "session-list#listing-sessions"
MOST_PAGES = 20
"""A list that is longer is not read to its end."""


async def _pages(stage: AgentRun, **filters: object) -> list[PeerResponse]:
    """The list, page by page, as far as we go."""
    pages = [await stage.ask("session/list", filters)]
    seen: set[str] = set()
    while isinstance(cursor := pages[-1].get("nextCursor"), str) and cursor not in seen and len(pages) < MOST_PAGES:
        seen.add(cursor)
        pages.append(await stage.ask("session/list", {**filters, "cursor": cursor}))
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
    shows=(
        capability(
            "list.lists",
            "`session/list` is answered with a list.",
            link=LIST_LINK,
            fix="Answer with `sessions`, an empty list where there are none; or do not offer `sessionCapabilities.list`.",
        ),
        should(
            "list.has",
            "A session in which something was said is in the list of its directory.",
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
async def listing(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "list")
    session = await stage.session()
    await stage.turn(session)
    bogus = await stage.ask("session/list", {"cursor": "antiphon-no-such-cursor"})
    stage.holds("list.cursor", is_refused(bogus), "it was accepted", bogus)
    plain = await stage.ask("session/list", {})
    listed = isinstance(plain.get("sessions"), list)
    if not stage.holds("list.lists", listed, "there is no list in the answer", plain):
        raise Blocked("there is no list")
    here = await _pages(stage, cwd=str(stage.cwd))
    stage.holds("list.has", session in _ids(here), f"{session} is not in it", *here[:1])
    elsewhere = sorted({str(one.get("cwd")) for one in _sessions(here)} - {str(stage.cwd)})
    stage.holds("list.directory", not elsewhere, f"there are sessions of {elsewhere[:3]} in it", *here[:1])
    empty = stage.cwd / "nobody-was-here"
    empty.mkdir(exist_ok=True)
    nowhere = await stage.ask("session/list", {"cwd": str(empty)})
    stage.holds("list.none", nowhere.get("sessions") == [], "it is not", nowhere)


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
async def pages(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "list")
    await stage.session()
    found = await _pages(stage)
    if len(found) < 2:
        raise NotSeen("the list is one page long")
    if _goes_round(found):
        stage.holds("list.pages", False, "its last page leads back to one before", *found[-2:])
        return
    again = await _pages(stage) if _twice(found) else []
    twice = sorted(
        _twice(found) & _twice(again)
    )  # another agent may have opened a session while we read: pages shift then
    if not twice and len(found) == MOST_PAGES:
        raise NotSeen(f"the list is longer than {MOST_PAGES} pages")
    stage.holds("list.pages", not twice, f"{', '.join(twice[:3])} is in it more than once", *found[:2])


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
async def deleting(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "delete")
    session = await stage.session()
    await stage.turn(session)
    before = await _pages(stage, cwd=str(stage.cwd)) if stage.offers("sessionCapabilities", "list") else []
    answer = await stage.ask("session/delete", {"sessionId": session})
    stage.holds("delete.deletes", not is_refused(answer), "it was refused", answer)
    for gone in (session, NOBODY):
        again = await stage.ask("session/delete", {"sessionId": gone})
        stage.holds("delete.twice", not is_refused(again), "it was refused", again)
    if session not in _ids(before):
        raise NotSeen("the session was not listed before either")
    after = await _pages(stage, cwd=str(stage.cwd))
    stage.holds("delete.unlisted", session not in _ids(after), f"{session} is still listed", answer, *after[:1])


# --- Going on with a session: `session/load`, `session/resume` and, a draft, `session/fork`


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


async def _used(stage: AgentRun, purpose: str = "say") -> tuple[str, str, str]:
    """A session with a turn behind it that is not open any more, if that can be: its id, what we said, what the agent said."""
    session = await stage.session()
    answer = await stage.turn(session, purpose)
    await stage.settle()
    told = said(stage.updates(session, after=answer.asked.number))
    if stage.offers("sessionCapabilities", "close"):
        await stage.ask("session/close", {"sessionId": session})
    return session, stage.words(purpose), told


async def _reopen(stage: AgentRun, method: str, session: str) -> PeerResponse:
    """Load or resume. Some agents refuse that for a session that is open, and may.

    Raises:
        Unseen: it is open, and refused.
    """
    answer = await stage.ask(method, {"sessionId": session, "cwd": str(stage.cwd), "mcpServers": []})
    if is_refused(answer) and not stage.offers("sessionCapabilities", "close"):
        raise NotSeen("the agent refuses that for a session that is open, and cannot close one")
    return answer


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
            "Loading a session tells again what the user said.",
            link=LINK,
            fix="Send the prompts of the session as `user_message_chunk` before you answer.",
            needs=("load.loads",),
        ),
        capability(
            "load.agent",
            "Loading a session tells again what the agent said, in the same order.",
            link=LINK,
            fix="Send the answers of the session as `agent_message_chunk` before you answer.",
            needs=("load.loads",),
        ),
        _next("load.next", "loaded"),
    ),
)
async def load(stage: AgentRun) -> None:
    stage.need("loadSession")
    session, asked, told = await _used(stage, "many")
    answer = await _reopen(stage, "session/load", session)
    if not stage.holds("load.loads", not is_refused(answer), "it was answered with an error", answer):
        raise Blocked("the session could not be loaded")
    history = stage.updates(session, after=answer.asked.number, before=answer.entry.number)
    again = said(history, "user_message_chunk")
    stage.holds("load.user", _has(again, asked), f"it told {again[:80]!r} instead of {asked[:80]!r}", answer)
    if told:
        again = said(history)
        stage.holds("load.agent", _has(again, told), f"it told {again[:80]!r} instead of {told[:80]!r}", answer)
    await usable(stage, "load.next", session)
    if not told:
        raise NotSeen("the agent said nothing that could be told again")


def _has(text: str, part: str) -> bool:
    """Whether it is in there: white space is lost where pieces are joined anew."""
    return "".join(part.split()) in "".join(text.split())


@SUITE.scenario(
    "load-unknown",
    "a user goes back to a session that does not exist",
    shows=(_unknown("load.unknown", "session/load"),),
)
async def load_unknown(stage: AgentRun) -> None:
    stage.need("loadSession")
    await stage.session()  # so that it is this one that is refused, and not everybody
    params = {"sessionId": NOBODY, "cwd": str(stage.cwd), "mcpServers": []}
    answer = await stage.ask("session/load", params)
    stage.holds("load.unknown", is_refused(answer), "it was answered with a result", answer)


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
async def load_settings(stage: AgentRun) -> None:
    stage.need("loadSession")
    session, made = await stage.opened()
    # A mode may let the agent do more: one that goes back to asking does well.
    kept = [one for one in options(made) if one.get("category") != "mode"]
    option = next((one for one in kept if other_value(one) is not None), None)
    if option is None:
        raise NotOffered("the session has no settings but modes")
    chosen = other_value(option)
    if is_refused(await choose(stage, session, option.get("id"), chosen)):
        raise Blocked("a setting was refused")
    await stage.turn(session)
    if stage.offers("sessionCapabilities", "close"):
        await stage.ask("session/close", {"sessionId": session})
    answer = await _reopen(stage, "session/load", session)
    found = next((one.get("currentValue") for one in options(answer) if one.get("id") == option.get("id")), None)
    if found is None:
        raise NotSeen("the answer to `session/load` has no settings")
    stage.holds("load.settings", found == chosen, f"`{option.get('id')}` is {found!r} and was {chosen!r}", answer)


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
async def resume(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "resume")
    session, _, _ = await _used(stage)
    unknown = await stage.ask("session/resume", {"sessionId": NOBODY, "cwd": str(stage.cwd), "mcpServers": []})
    stage.holds("resume.unknown", is_refused(unknown), "it was answered with a result", unknown)
    answer = await _reopen(stage, "session/resume", session)
    if not stage.holds("resume.resumes", not is_refused(answer), "it was answered with an error", answer):
        raise Blocked("the session could not be resumed")
    await stage.settle()
    await usable(stage, "resume.next", session)


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
            fix="Copy the session: neither of the two may know what is said in the other.",
        ),
    ),
)
async def fork(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "fork")
    session = await stage.session()
    await stage.turn(session)
    answer = await stage.ask("session/fork", {"sessionId": session, "cwd": str(stage.cwd), "mcpServers": []})
    made = answer.get("sessionId")
    another = isinstance(made, str) and bool(made) and made != session
    if not stage.holds("fork.another", another, f"the fork of {session} is {made}", answer) or not isinstance(
        made, str
    ):
        raise Blocked("there is no fork")
    await usable(stage, "fork.next", made)
    await usable(stage, "fork.original", session)


# --- `session/close`: that it ends what runs, and that the session is closed then


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
async def closing(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "close")
    session = await stage.session()
    await stage.turn(session)
    answer = await stage.ask("session/close", {"sessionId": session})
    if not stage.holds("close.closes", not is_refused(answer), "it was refused", answer):
        raise Blocked("the session could not be closed")
    late = await stage.turn(session)
    stage.holds("close.closed", is_refused(late), f"it ended with {reason(late)}", answer, late)


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
async def closing_busy(stage: AgentRun) -> None:
    stage.need("sessionCapabilities", "close")

    async def begun() -> PendingRequest:
        return await busy(stage, await stage.session())

    async def stop(session: str) -> Entry:
        return (await stage.ask("session/close", {"sessionId": session})).asked

    await interrupted(stage, "close.cancels", begun, stop)


SUITE.follows["close.cancels"] = ("turn.not-silent",)  # a turn that is over so early may have said nothing
