"""`session/request_permission`, in all the shapes that agents give it."""

from typing import Any

from antiphon.conformance.asking import Answer, Pending
from antiphon.conformance.client_stage import ClientStage
from antiphon.conformance.directing import OPTIONS
from antiphon.conformance.requirements import advice, must, should
from antiphon.conformance.suites.client.suite import SUITE

__all__ = ["CALL", "OPTIONS"]

LINK = "tool-calls#requesting-permission"

CALL = {"toolCallId": "p-1", "title": "Look at the time", "kind": "other", "status": "pending"}


def _outcome(answer: Answer) -> str:
    """What is wrong with an answer, if anything is. Whether the option was offered is a rule of all traffic."""
    if answer.error is not None:
        return f"it was answered with the error {answer.code}"
    outcome = answer.get("outcome", "outcome")
    if outcome not in ("selected", "cancelled"):
        return f"its outcome is {outcome!r}, neither `selected` nor `cancelled`"
    return ""


async def _begin(stage: ClientStage, call: dict[str, Any], options: list[dict[str, str]]) -> Pending:
    params = {"sessionId": stage.session, "toolCall": call, "options": options}
    return await stage.begin("session/request_permission", params)


async def _asks(stage: ClientStage, id: str, call: dict[str, Any], options: list[dict[str, str]]) -> None:
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
async def permission(stage: ClientStage) -> None:
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
async def refusal(stage: ClientStage) -> None:
    await stage.start("refuse")
    turn = await stage.prompted()
    kinds = {one["optionId"]: one["kind"] for one in OPTIONS}
    answer = await (await _begin(stage, CALL, OPTIONS)).answer()
    chosen = answer.get("outcome", "optionId")
    kind = kinds.get(chosen, "") if isinstance(chosen, str) else ""
    stage.holds("permission.refuses", not kind.startswith("allow"), f"the option `{chosen}` was chosen", answer)
    await turn.end()
