"""The turn: `session/request_permission` in all the shapes that agents give it, and `session/cancel`."""

from antiphon.conformance.client_run import OPTIONS, ClientRun
from antiphon.conformance.requirements import Blocked, advice, must, should
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerClosed, PeerResponse, PendingRequest
from antiphon.traffic.entries import JsonObject

__all__ = ["CALL", "OPTIONS"]

LINK = "tool-calls#requesting-permission"

CALL = {"toolCallId": "p-1", "title": "Look at the time", "kind": "other", "status": "pending"}


def _outcome(response: PeerResponse) -> str:
    """What is wrong with a response, if anything is. Whether the option was offered is a rule of all traffic."""
    if response.error is not None:
        return f"it was answered with the error {response.code}"
    outcome = response.get("outcome", "outcome")
    if outcome not in ("selected", "cancelled"):
        return f"its outcome is {outcome!r}, neither `selected` nor `cancelled`"
    return ""


async def _begin(run: ClientRun, call: JsonObject, options: list[dict[str, str]]) -> PendingRequest:
    params = {"sessionId": run.session, "toolCall": call, "options": options}
    return await run.send_request("session/request_permission", params)


async def _asks(run: ClientRun, id: str, call: JsonObject, options: list[dict[str, str]]) -> None:
    response = await (await _begin(run, call, options)).response()
    problem = _outcome(response)
    run.holds(id, not problem, problem, response)


@SUITE.scenario(
    "permission",
    "the agent asks for permission",
    shows=(
        must(
            "permission.outcome",
            "A permission request is answered with an outcome: an option, or that the turn was cancelled.",
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
            "Two options of one kind, in any order, are distinguished by their ids.",
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
async def permission(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    await run.update({"sessionUpdate": "tool_call", **CALL})
    await _asks(run, "permission.outcome", CALL, OPTIONS)
    await _asks(run, "permission.unannounced", {"toolCallId": "p-unannounced"}, OPTIONS)
    twins = [*reversed(OPTIONS), {"optionId": "yes-2", "name": "Allow, and say so", "kind": "allow_once"}]
    await _asks(run, "permission.same-kind", {**CALL, "toolCallId": "p-twins"}, twins)
    strange = [{"optionId": "maybe", "name": "Maybe", "kind": "antiphon_maybe"}, *OPTIONS]
    await _asks(run, "permission.unknown-kind", {**CALL, "toolCallId": "p-strange"}, strange)
    several = [await _begin(run, {**CALL, "toolCallId": f"p-many-{n}"}, OPTIONS) for n in range(3)]
    for one in several:
        response = await one.response()
        problem = _outcome(response)
        run.holds("permission.many", not problem, problem, response)
    await turn.end()


@SUITE.scenario(
    "refusal",
    "the agent asks for permission, and the user refuses",
    shows=(
        must(
            "permission.refuses",
            "A user's no is an option to reject, or `cancelled`: never an option to allow.",
            link=LINK,
            fix="Choose an option by its `kind`, not by its place in the list.",
        ),
    ),
)
async def refusal(run: ClientRun) -> None:
    await run.start("refuse")
    turn = await run.prompted()
    kinds = {one["optionId"]: one["kind"] for one in OPTIONS}
    response = await (await _begin(run, CALL, OPTIONS)).response()
    chosen = response.get("outcome", "optionId")
    kind = kinds.get(chosen, "") if isinstance(chosen, str) else ""
    run.holds("permission.refuses", not kind.startswith("allow"), f"the option `{chosen}` was chosen", response)
    await turn.end()


# --- `session/cancel`, with a command that makes the client send it


CANCEL_LINK = "prompt-turn#cancellation"


@SUITE.scenario(
    "cancellation",
    "the user cancels a turn",
    shows=(
        should(
            "cancel.told",
            "A client that stops a turn sends `session/cancel`.",
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
            fix="Go on reading until the prompt is answered: the last updates come before the response.",
            needs=("cancel.told", "cancel.waits"),
        ),
    ),
)
async def cancellation(run: ClientRun) -> None:
    await run.start("cancel")
    turn = await run.prompted()
    # A client with a user has this open when the turn is cancelled; a rule of all traffic knows what it has to answer then.
    permission = {"sessionId": turn.session, "toolCall": CALL, "options": OPTIONS}
    asked = await run.send_request("session/request_permission", permission)
    sent = await run.send_text("this takes a while")
    run.running.interrupt()
    try:
        cancel = await run.wire.wait_for(lambda one: one.method == "session/cancel", limit=run.options.limit)
    except (TimeoutError, PeerClosed) as problem:
        what = "the client left" if isinstance(problem, PeerClosed) else "the client sent none"
        run.holds("cancel.told", False, f"{what} while the turn ran", sent)
        raise Blocked("the turn was not cancelled") from None
    run.holds("cancel.told", True, "", cancel)
    proper = cancel.is_notification and cancel.params.get("sessionId") == turn.session
    run.holds("cancel.notification", proper, "it is a request, or names another session", cancel)
    await run.wire.silence(run.options.silence)
    if not run.holds("cancel.waits", not run.wire.closed, "the client left at once", cancel):
        return
    await asked.response()
    late = {"sessionUpdate": "tool_call", "toolCallId": "late", "title": "What was done", "status": "failed"}
    sent = await run.update(late)
    await run.wire.silence(run.options.silence)
    run.holds("cancel.updates", not run.wire.closed, "the client left when an update came", cancel, sent)
    await turn.end("cancelled")
