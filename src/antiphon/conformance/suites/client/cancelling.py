"""`session/cancel`, with a command that makes the client send it."""

from antiphon.conformance.client_stage import ClientStage
from antiphon.conformance.requirements import must, should
from antiphon.conformance.suites.client.permission import CALL, OPTIONS
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.verdicts import Blocked
from antiphon.conformance.wire import Closed

__all__: list[str] = []

CANCEL_LINK = "prompt-turn#cancellation"


@SUITE.scenario(
    "cancellation",
    "the user cancels a turn",
    shows=(
        should(
            "cancel.told",
            "A client that gives up a turn tells the agent so with `session/cancel`.",
            link=CANCEL_LINK,
            fix="Send `session/cancel` with the id of the session before you do anything else.",
        ),
        must(
            "cancel.notification",
            "`session/cancel` is a notification, for the session whose turn runs.",
            link=CANCEL_LINK,
            fix="Send it without an id, with the `sessionId` of the prompt; nothing answers it.",
            needs=("cancel.told",),
        ),
        should(
            "cancel.waits",
            "The client waits for the answer to the prompt that it cancelled.",
            link=CANCEL_LINK,
            fix="Wait for `stopReason: cancelled` before you close the connection.",
            needs=("cancel.told",),
        ),
        must(
            "cancel.updates",
            "Updates are taken after a cancellation too.",
            link=CANCEL_LINK,
            fix="Go on reading until the prompt is answered: what the agent has done is told there.",
            needs=("cancel.told", "cancel.waits"),
        ),
    ),
)
async def cancellation(stage: ClientStage) -> None:
    await stage.start("cancel")
    turn = await stage.prompted()
    # A client with a user has this open when the turn is cancelled; a rule of all traffic knows what it has to answer then.
    permission = {"sessionId": turn.session, "toolCall": CALL, "options": OPTIONS}
    asked = await stage.begin("session/request_permission", permission)
    said = await stage.say("this takes a while")
    stage.running.interrupt()
    try:
        cancel = await stage.wire.hear(lambda one: one.method == "session/cancel", limit=stage.wishes.limit)
    except (TimeoutError, Closed) as problem:
        what = "the client left" if isinstance(problem, Closed) else "the client sent none"
        stage.holds("cancel.told", False, f"{what} while the turn ran", said)
        raise Blocked("the turn was not cancelled") from None
    stage.holds("cancel.told", True, "", cancel)
    proper = cancel.is_notification and cancel.params.get("sessionId") == turn.session
    stage.holds("cancel.notification", proper, "it is a request, or names another session", cancel)
    await stage.wire.silence(stage.wishes.patience)
    if not stage.holds("cancel.waits", not stage.wire.closed, "the client left at once", cancel):
        return
    await asked.answer()
    late = {"sessionUpdate": "tool_call", "toolCallId": "late", "title": "What was done", "status": "failed"}
    said = await stage.update(late)
    await stage.wire.silence(stage.wishes.patience)
    stage.holds("cancel.updates", not stage.wire.closed, "the client left when an update came", cancel, said)
    await turn.end("cancelled")
