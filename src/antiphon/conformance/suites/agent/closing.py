"""`session/close`: that it ends what runs, and that the session is closed then."""

from antiphon.conformance.requirements import capability, should
from antiphon.conformance.stage import Pending, Stage
from antiphon.conformance.suites.agent.acting import busy, interrupted, is_refused, reason
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import Blocked
from antiphon.traffic.entries import Entry

__all__: list[str] = []

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
async def closing(stage: Stage) -> None:
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
async def closing_busy(stage: Stage) -> None:
    stage.need("sessionCapabilities", "close")

    async def begun() -> Pending:
        return await busy(stage, await stage.session())

    async def stop(session: str) -> Entry:
        return (await stage.ask("session/close", {"sessionId": session})).asked

    await interrupted(stage, "close.cancels", begun, stop)


SUITE.follows["close.cancels"] = ("turn.not-silent",)  # a turn that is over so early may have said nothing
