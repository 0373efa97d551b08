"""`session/request_permission`, in all the shapes that agents give it."""

from antiphon.conformance.client_run import OPTIONS, ClientRun
from antiphon.conformance.requirements import Blocked, advice, must, should
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerClosed, PeerResponse, PendingRequest
from antiphon.traffic.values import JsonObject

__all__ = ["CALL", "OPTIONS"]

LINK = "tool-calls#requesting-permission"

CALL = {"toolCallId": "p-1", "title": "Look at the time", "kind": "other", "status": "pending"}


def _outcome(answer: PeerResponse) -> str:
    """What is wrong with an answer, if anything is. Whether the option was offered is a rule of all traffic."""
    if answer.error is not None:
        return f"it was answered with the error {answer.code}"
    outcome = answer.get("outcome", "outcome")
    if outcome not in ("selected", "cancelled"):
        return f"its outcome is {outcome!r}, neither `selected` nor `cancelled`"
    return ""


async def _begin(stage: ClientRun, call: JsonObject, options: list[dict[str, str]]) -> PendingRequest:
    params = {"sessionId": stage.session, "toolCall": call, "options": options}
    return await stage.begin("session/request_permission", params)


async def _asks(stage: ClientRun, id: str, call: JsonObject, options: list[dict[str, str]]) -> None:
    answer = await (await _begin(stage, call, options)).answer()
    problem = _outcome(answer)
    stage.holds(id, not problem, problem, answer)


@SUITE.scenario(
    "permission",
    "the agent asks for permission",
    shows=(
        must(
            "permission.outcome",
            "A question for permission is answered with an outcome: an option, or that the turn was cancelled.",
            link=LINK,
            fix="Implement `session/request_permission`: every client must.",
        ),
        should(
            "permission.unannounced",
            "Permission for a tool call that was not announced, with nothing but its id, is answered the same way.",
            link=LINK,
            fix="Take the call in the question as it is: all but its `toolCallId` may be missing.",
            needs=("permission.outcome",),
        ),
        should(
            "permission.same-kind",
            "Two options of one kind, in any order, are told apart by their ids.",
            link=LINK,
            fix="Show all options; answer with the `optionId` of the one that was chosen.",
            needs=("permission.outcome",),
        ),
        advice(
            "permission.unknown-kind",
            "An option of a kind that the client does not know does not keep it from answering.",
            link=LINK,
            fix="Show an option of an unknown kind by its name, and never choose it without asking.",
            needs=("permission.outcome",),
        ),
        must(
            "permission.many",
            "Several questions at once are all answered.",
            link=LINK,
            fix="Keep a queue of questions, and answer each with its own id.",
            needs=("permission.outcome",),
        ),
    ),
)
async def permission(stage: ClientRun) -> None:
    await stage.start()
    turn = await stage.prompted()
    await stage.update({"sessionUpdate": "tool_call", **CALL})
    await _asks(stage, "permission.outcome", CALL, OPTIONS)
    await _asks(stage, "permission.unannounced", {"toolCallId": "p-unannounced"}, OPTIONS)
    twins = [*reversed(OPTIONS), {"optionId": "yes-2", "name": "Allow, and say so", "kind": "allow_once"}]
    await _asks(stage, "permission.same-kind", {**CALL, "toolCallId": "p-twins"}, twins)
    strange = [{"optionId": "maybe", "name": "Maybe", "kind": "antiphon_maybe"}, *OPTIONS]
    await _asks(stage, "permission.unknown-kind", {**CALL, "toolCallId": "p-strange"}, strange)
    several = [await _begin(stage, {**CALL, "toolCallId": f"p-many-{n}"}, OPTIONS) for n in range(3)]
    for one in several:
        answer = await one.answer()
        problem = _outcome(answer)
        stage.holds("permission.many", not problem, problem, answer)
    await turn.end()


@SUITE.scenario(
    "refusal",
    "the agent asks for permission, and the user says no",
    shows=(
        must(
            "permission.refuses",
            "A user's no is an option to reject, or `cancelled`: never an option to allow.",
            link=LINK,
            fix="Choose an option by its `kind`, not by its place in the list.",
        ),
    ),
)
async def refusal(stage: ClientRun) -> None:
    await stage.start("refuse")
    turn = await stage.prompted()
    kinds = {one["optionId"]: one["kind"] for one in OPTIONS}
    answer = await (await _begin(stage, CALL, OPTIONS)).answer()
    chosen = answer.get("outcome", "optionId")
    kind = kinds.get(chosen, "") if isinstance(chosen, str) else ""
    stage.holds("permission.refuses", not kind.startswith("allow"), f"the option `{chosen}` was chosen", answer)
    await turn.end()


# --- `session/cancel`, with a command that makes the client send it


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
async def cancellation(stage: ClientRun) -> None:
    await stage.start("cancel")
    turn = await stage.prompted()
    # A client with a user has this open when the turn is cancelled; a rule of all traffic knows what it has to answer then.
    permission = {"sessionId": turn.session, "toolCall": CALL, "options": OPTIONS}
    asked = await stage.begin("session/request_permission", permission)
    said = await stage.say("this takes a while")
    stage.running.interrupt()
    try:
        cancel = await stage.wire.hear(lambda one: one.method == "session/cancel", limit=stage.wishes.limit)
    except (TimeoutError, PeerClosed) as problem:
        what = "the client left" if isinstance(problem, PeerClosed) else "the client sent none"
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
