"""Permission requests: a no is a no, in all the ways in which a client may send it."""

from pathlib import Path

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, Requirement, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import breaks_off, ended, hold, usable
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry, objects_in

__all__: list[str] = []

LINK = "tool-calls#requesting-permission"
PERMISSION = "session/request_permission"
TEXT = "written by the check"


async def _asked(run: AgentRun, session: str, *others: str) -> tuple[PendingRequest, Entry, Path]:
    """A turn that asks whether it may write a file."""
    file = run.cwd / "wanted.txt"
    run.client.allows = "reject_once"  # whatever else it asks
    pending, asked = await hold(run, PERMISSION, session, "write", *others, file=file, text=TEXT)
    return pending, asked, file


def _not_done(id: str, how: str) -> Requirement:
    return must(
        id,
        f"A tool call is not run if {how}.",
        link=LINK,
        fix="Run it only after the outcome `selected` with an option of yours that allows it; everything else is a no.",
    )


def _over(id: str, how: str) -> Requirement:
    return must(
        id,
        f"A turn ends if {how}.",
        link=LINK,
        fix="Report the denial to the model, or end the turn; but answer the prompt.",
    )


def _judge(run: AgentRun, requirement: str, file: Path, asked: Entry, response: PeerResponse) -> None:
    run.holds(requirement, not file.exists(), f"{file.name} was written all the same", asked, response)


@SUITE.scenario(
    "permission-refused",
    "a user refuses",
    shows=(
        should(
            "permission.first",
            "What needs permission has not happened when the agent asks for it.",
            link=LINK,
            fix="Ask first, and change the file after the answer.",
        ),
        must(
            "permission.session",
            "Permission is asked for in the session whose turn needs it.",
            link=LINK,
            fix="Send the `sessionId` of the turn with `session/request_permission`.",
        ),
        _not_done("permission.refused", "the user refuses it"),
        _over("permission.refused-ends", "the user refuses"),
    ),
)
async def refused(run: AgentRun) -> None:
    other = await run.session()  # so that there are two to choose from
    session = await run.session()
    pending, asked, file = await _asked(run, session, other)
    run.holds("permission.first", not file.exists(), f"{file.name} was there before it asked", asked)
    where = asked.params.get("sessionId")
    run.holds("permission.session", where == session, f"it was asked for in {where}", pending.request, asked)
    await run.client.handle(asked)
    if not any(str(one.get("kind")).startswith("reject_") for one in objects_in(asked.params.get("options"))):
        await pending.response()
        raise NotSeen("the agent offers no option to refuse")
    response = await ended(run, "permission.refused-ends", pending, "the turn did not end")
    _judge(run, "permission.refused", file, asked, response)
    run.holds("permission.refused-ends", True, "", response)


@SUITE.scenario(
    "permission-dismissed",
    "a user closes the question without an answer",
    shows=(
        _not_done("permission.dismissed", "the question is answered with the outcome `cancelled`"),
        _over("permission.dismissed-ends", "the question is answered with the outcome `cancelled`"),
    ),
)
async def dismissed(run: AgentRun) -> None:
    session = await run.session()
    pending, asked, file = await _asked(run, session)
    await run.client.respond(asked, {"outcome": {"outcome": "cancelled"}})
    response = await ended(run, "permission.dismissed-ends", pending, "the turn did not end")
    run.holds("permission.dismissed-ends", True, "", response)
    _judge(run, "permission.dismissed", file, asked, response)


@SUITE.scenario(
    "permission-error",
    "a client cannot ask its user",
    shows=(
        _not_done("permission.error", "the question is answered with an error"),
        _over("permission.error-ends", "the question is answered with an error"),
        must(
            "permission.error-next",
            "After a question that was answered with an error the session takes another turn.",
            link=LINK,
            fix="Catch the error where you asked.",
            needs=("permission.error-ends",),
        ),
    ),
)
async def error(run: AgentRun) -> None:
    session = await run.session()
    pending, asked, file = await _asked(run, session)
    await run.client.refuse(asked, -32603, "There is no user to ask")
    response = await ended(run, "permission.error-ends", pending, "the turn did not end")
    run.holds("permission.error-ends", True, "", response)
    _judge(run, "permission.error", file, asked, response)
    await usable(run, "permission.error-next", session)


@SUITE.scenario(
    "permission-strange",
    "a client picks an option that the agent did not offer",
    provokes=True,
    shows=(
        should(
            "permission.strange",
            "A tool call is not run if the selected option was not offered.",
            link=LINK,
            fix="Look for the option by its id, and take one that you do not find for a no.",
        ),
    ),
)
async def strange(run: AgentRun) -> None:
    session = await run.session()
    pending, asked, file = await _asked(run, session)
    await run.client.respond(asked, {"outcome": {"outcome": "selected", "optionId": "antiphon-no-such-option"}})
    response = await pending.response()
    _judge(run, "permission.strange", file, asked, response)


breaks_off("permission.refused-ends", "permission.dismissed-ends", "permission.error-ends")
SUITE.follows["permission.session"] = ("call.announced",)
