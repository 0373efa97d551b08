"""Which sessions there are: `session/list`, and `session/delete`."""

from collections.abc import Iterable, Sequence
from typing import Any

from antiphon.conformance.requirements import capability, should
from antiphon.conformance.stage import Answer, Stage
from antiphon.conformance.suites.agent.acting import NOBODY, is_refused
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import Blocked, Unseen
from antiphon.traffic.values import objects_in, texts_in, twice_in

__all__: list[str] = []

LINK = "session-list#listing-sessions"
MOST_PAGES = 20
"""A list that is longer is not read to its end."""


async def _pages(stage: Stage, **filters: object) -> list[Answer]:
    """The list, page by page, as far as we go."""
    pages = [await stage.ask("session/list", filters)]
    seen: set[str] = set()
    while isinstance(cursor := pages[-1].get("nextCursor"), str) and cursor not in seen and len(pages) < MOST_PAGES:
        seen.add(cursor)
        pages.append(await stage.ask("session/list", {**filters, "cursor": cursor}))
    return pages


def _goes_round(pages: Sequence[Answer]) -> bool:
    """Whether the last page leads back to one before it."""
    return pages[-1].get("nextCursor") in [one.get("nextCursor") for one in pages[:-1]]


def _twice(pages: Sequence[Answer]) -> set[str]:
    return set(twice_in(texts_in(_sessions(pages), "sessionId")))


def _sessions(pages: Iterable[Answer]) -> list[dict[str, Any]]:
    return [each for one in pages for each in objects_in(one.get("sessions"))]


def _ids(pages: Iterable[Answer]) -> list[object]:
    return [one.get("sessionId") for one in _sessions(pages)]


@SUITE.scenario(
    "list",
    "a user looks which sessions there are",
    shows=(
        capability(
            "list.lists",
            "`session/list` is answered with a list.",
            link=LINK,
            fix="Answer with `sessions`, an empty list where there are none; or do not offer `sessionCapabilities.list`.",
        ),
        should(
            "list.has",
            "A session in which something was said is in the list of its directory.",
            link=LINK,
            fix="List every session that can be gone on with, those of this connection too.",
            needs=("list.lists",),
        ),
        capability(
            "list.directory",
            "A list for a directory has only sessions of that directory.",
            link=LINK,
            fix="Leave out the sessions with another `cwd` if the request has one.",
            needs=("list.lists",),
        ),
        capability(
            "list.none",
            "A list for a directory in which there are no sessions is empty.",
            link=LINK,
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
async def listing(stage: Stage) -> None:
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
async def pages(stage: Stage) -> None:
    stage.need("sessionCapabilities", "list")
    await stage.session()
    found = await _pages(stage)
    if len(found) < 2:
        raise Unseen("the list is one page long")
    if _goes_round(found):
        stage.holds("list.pages", False, "its last page leads back to one before", *found[-2:])
        return
    again = await _pages(stage) if _twice(found) else []
    twice = sorted(
        _twice(found) & _twice(again)
    )  # another agent may have opened a session while we read: pages shift then
    if not twice and len(found) == MOST_PAGES:
        raise Unseen(f"the list is longer than {MOST_PAGES} pages")
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
async def deleting(stage: Stage) -> None:
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
        raise Unseen("the session was not listed before either")
    after = await _pages(stage, cwd=str(stage.cwd))
    stage.holds("delete.unlisted", session not in _ids(after), f"{session} is still listed", answer, *after[:1])
