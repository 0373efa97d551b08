"""Permission: that a no is a no, in all the ways in which a client may say it."""

from pathlib import Path

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, Requirement, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import breaks_off, ended, hold, usable
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry
from antiphon.traffic.values import objects_in

__all__: list[str] = []

LINK = "tool-calls#requesting-permission"
PERMISSION = "session/request_permission"
TEXT = "written by the check"


async def _asked(stage: AgentRun, session: str, *others: str) -> tuple[PendingRequest, Entry, Path]:
    """A turn that asks whether it may write a file."""
    file = stage.cwd / "wanted.txt"
    stage.editor.allows = "reject_once"  # whatever else it asks
    pending, asked = await hold(stage, PERMISSION, session, "write", *others, file=file, text=TEXT)
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
        fix="Tell the model that it may not, or end the turn; but answer the prompt.",
    )


def _judge(stage: AgentRun, requirement: str, file: Path, asked: Entry, answer: PeerResponse) -> None:
    stage.holds(requirement, not file.exists(), f"{file.name} was written all the same", asked, answer)


@SUITE.scenario(
    "permission-refused",
    "a user says no",
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
async def refused(stage: AgentRun) -> None:
    other = await stage.session()  # so that there are two to choose from
    session = await stage.session()
    pending, asked, file = await _asked(stage, session, other)
    stage.holds("permission.first", not file.exists(), f"{file.name} was there before it asked", asked)
    where = asked.params.get("sessionId")
    stage.holds("permission.session", where == session, f"it was asked for in {where}", pending.asked, asked)
    await stage.editor.respond(asked)
    if not any(str(one.get("kind")).startswith("reject_") for one in objects_in(asked.params.get("options"))):
        await pending.answer()
        raise NotSeen("the agent lets nobody refuse")
    answer = await ended(stage, "permission.refused-ends", pending, "the turn did not end")
    _judge(stage, "permission.refused", file, asked, answer)
    stage.holds("permission.refused-ends", True, "", answer)


@SUITE.scenario(
    "permission-dismissed",
    "a user closes the question without an answer",
    shows=(
        _not_done("permission.dismissed", "the question is answered with the outcome `cancelled`"),
        _over("permission.dismissed-ends", "the question is answered with the outcome `cancelled`"),
    ),
)
async def dismissed(stage: AgentRun) -> None:
    session = await stage.session()
    pending, asked, file = await _asked(stage, session)
    await stage.editor.answer(asked, {"outcome": {"outcome": "cancelled"}})
    answer = await ended(stage, "permission.dismissed-ends", pending, "the turn did not end")
    stage.holds("permission.dismissed-ends", True, "", answer)
    _judge(stage, "permission.dismissed", file, asked, answer)


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
async def error(stage: AgentRun) -> None:
    session = await stage.session()
    pending, asked, file = await _asked(stage, session)
    await stage.editor.refuse(asked, -32603, "There is nobody to ask")
    answer = await ended(stage, "permission.error-ends", pending, "the turn did not end")
    stage.holds("permission.error-ends", True, "", answer)
    _judge(stage, "permission.error", file, asked, answer)
    await usable(stage, "permission.error-next", session)


@SUITE.scenario(
    "permission-strange",
    "a client picks an option that the agent did not offer",
    provokes=True,
    shows=(
        should(
            "permission.strange",
            "A tool call is not run if the option that was picked is none of those that were offered.",
            link=LINK,
            fix="Look for the option by its id, and take one that you do not find for a no.",
        ),
    ),
)
async def strange(stage: AgentRun) -> None:
    session = await stage.session()
    pending, asked, file = await _asked(stage, session)
    await stage.editor.answer(asked, {"outcome": {"outcome": "selected", "optionId": "antiphon-no-such-option"}})
    answer = await pending.answer()
    _judge(stage, "permission.strange", file, asked, answer)


breaks_off("permission.refused-ends", "permission.dismissed-ends", "permission.error-ends")
SUITE.follows["permission.session"] = ("call.announced",)
