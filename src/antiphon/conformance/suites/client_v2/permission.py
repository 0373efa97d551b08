"""Questions to the user: permission with and without a subject, cancellation, forms, and tool calls that are cancelled one by one."""

from antiphon.conformance.client_run import OPTIONS
from antiphon.conformance.requirements import Blocked, NoResponse, NotOffered, NotSeen
from antiphon.conformance.standin_agent import StandinAgent
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, capability, must, play_v2, should
from antiphon.conformance.v2.client_run import ClientRunV2
from antiphon.conformance.wire import PeerClosed, PeerResponse, PendingRequest
from antiphon.traffic.entries import JsonObject

__all__ = ["CALL"]

PERMISSION = "session/request_permission"
LINK = "schema#requestpermissionrequest"
OUTCOME = "schema#requestpermissionoutcome"
REQUEST_CANCELLED = -32800

CALL: JsonObject = {"toolCallId": "p-1", "title": "Clock", "kind": "other", "status": "pending"}
COMMAND: JsonObject = {"type": "command", "command": "date", "cwd": "/", "toolCallId": "p-command"}
UNKNOWN_SUBJECT: JsonObject = {"type": "_antiphon_dance", "steps": 7}


def _outcome(response: PeerResponse) -> str:
    """What is wrong with a response, if anything is. Whether the option was offered is a rule of all traffic."""
    if response.error is not None:
        return f"it was answered with the error {response.code}"
    outcome = response.get("outcome", "outcome")
    if outcome not in ("selected", "cancelled"):
        return f"its outcome is {outcome!r}, neither `selected` nor `cancelled`"
    return ""


async def _asks(run: ClientRunV2, id: str, params: JsonObject) -> None:
    response = await run.request(PERMISSION, params)
    problem = _outcome(response)
    run.holds(id, not problem, problem, response)


@CLIENT_SUITE_V2.scenario(
    "permission",
    "the agent asks for permission",
    shows=(
        must(
            "permission.outcome",
            "A permission request is answered with an outcome: an option, or `cancelled`.",
            link=LINK,
            fix="Implement `session/request_permission`: every client must.",
        ),
        must(
            "permission.unannounced",
            "Permission for a tool call that was not announced, with nothing but its id, is answered the same way.",
            link="schema#toolcallpermissionsubject",
            fix="Take the call of the subject as an update: a new id makes a new tool call.",
            needs=("permission.outcome",),
        ),
        must(
            "permission.command",
            "Permission for a command is answered the same way.",
            link=LINK,
            fix="Show the command and its directory.",
            needs=("permission.outcome",),
        ),
        must(
            "permission.no-subject",
            "Permission without a subject is answered the same way.",
            link=LINK,
            fix="Show the title and the description: they are all there is.",
            needs=("permission.outcome",),
        ),
        must(
            "permission.unknown-subject",
            "Permission for a subject that the client does not know is answered the same way.",
            link=LINK,
            fix="Show a plain question by its title, or answer with `cancelled`.",
            needs=("permission.outcome",),
        ),
        must(
            "permission.same-kind",
            "Two options of one kind, in any order, are distinguished by their ids.",
            link=LINK,
            fix="Show all options; answer with the `optionId` of the one that was chosen.",
            needs=("permission.outcome",),
        ),
        must(
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
        must(
            "permission.malformed",
            "A subject of a known type that lacks what it requires is refused, and not taken for an unknown one.",
            link="migration",
            fix="Check what a known `type` requires, and answer with the error -32602.",
        ),
    ),
)
@play_v2
async def permission(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    await run.update({"sessionUpdate": "tool_call_update", **CALL})
    await _asks(run, "permission.outcome", run.permission(CALL))
    await _asks(run, "permission.unannounced", run.permission({"toolCallId": "p-unannounced"}))
    await _asks(run, "permission.command", run.permission(None, subject=COMMAND, description="To know the time."))
    await _asks(run, "permission.no-subject", run.permission(None, title="Go on?", description=None))
    await _asks(run, "permission.unknown-subject", run.permission(None, subject=UNKNOWN_SUBJECT))
    twins = [*reversed(OPTIONS), {"optionId": "yes-2", "name": "Allow, and say so", "kind": "allow_once"}]
    await _asks(run, "permission.same-kind", run.permission({**CALL, "toolCallId": "p-twins"}, twins))
    strange = [{"optionId": "maybe", "name": "Maybe", "kind": "_antiphon_maybe"}, *OPTIONS]
    await _asks(run, "permission.unknown-kind", run.permission({**CALL, "toolCallId": "p-strange"}, strange))
    several = [
        await run.send_request(PERMISSION, run.permission({**CALL, "toolCallId": f"p-many-{n}"})) for n in range(3)
    ]
    for one in several:
        response = await one.response()
        problem = _outcome(response)
        run.holds("permission.many", not problem, problem, response)
    # No correct agent sends this.
    wrong = await run.request(PERMISSION, run.permission(None, subject={"type": "tool_call"}))
    run.holds("permission.malformed", wrong.error is not None, "it was answered with a result", wrong)
    for id in ("p-1", "p-twins", "p-strange", "p-many-0", "p-many-1", "p-many-2"):
        await run.update({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"})
    await turn.end()


@CLIENT_SUITE_V2.scenario(
    "refusal",
    "the agent asks for permission, and the user refuses",
    shows=(
        must(
            "permission.refuses",
            "A user's no is an option to reject, or `cancelled`: never an option to allow.",
            link=OUTCOME,
            fix="Choose an option by its `kind`, not by its place in the list.",
        ),
    ),
)
@play_v2
async def refusal(run: ClientRunV2) -> None:
    await run.start("refuse")
    turn = await run.prompted()
    kinds = {one["optionId"]: one["kind"] for one in OPTIONS}
    response = await run.request(PERMISSION, run.permission(CALL))
    chosen = response.get("outcome", "optionId")
    kind = kinds.get(chosen, "") if isinstance(chosen, str) else ""
    run.holds("permission.refuses", not kind.startswith("allow"), f"the option `{chosen}` was chosen", response)
    await turn.end()


CANCEL = "schema#clientnotification"


@CLIENT_SUITE_V2.scenario(
    "cancellation",
    "the user cancels the work",
    shows=(
        must(
            "permission.cancelled",
            "A permission request that the agent cancels with `$/cancel_request` is answered all the same, once.",
            link="schema#cancelrequestnotification",
            fix="Take the question back from the user, and answer it with the outcome `cancelled` or the error -32800.",
        ),
        should(
            "cancel.told",
            "A client that stops the work sends `session/cancel`.",
            link=CANCEL,
            fix="Send `session/cancel` with the id of the session before you do anything else.",
        ),
        must(
            "cancel.notification",
            "`session/cancel` is a notification, for the session that works.",
            link=CANCEL,
            fix="Send it without an id, with the `sessionId` of the prompt; nothing answers it.",
            needs=("cancel.told",),
        ),
        should(
            "cancel.waits",
            "The client waits until the session is idle after it has cancelled the work.",
            link="schema#idlestateupdate",
            fix="Wait for `idle` before you close the connection.",
            needs=("cancel.told",),
        ),
        must(
            "cancel.updates",
            "Updates are taken after a cancellation too.",
            link=CANCEL,
            fix="Go on reading until the session is idle: the last updates come before that.",
            needs=("cancel.told", "cancel.waits"),
        ),
    ),
)
@play_v2
async def cancellation(run: ClientRunV2) -> None:
    await run.start("cancel")
    turn = await run.prompted()
    await _cancel_question(run, await run.send_request(PERMISSION, run.permission(None, title="Never mind?")))
    # A client with a user has this open when the work is cancelled; a rule of all traffic knows what it has to answer then.
    asked = await run.send_request(PERMISSION, run.permission(CALL))
    sent = await run.send_text("this takes a while")
    run.running.interrupt()
    try:
        cancel = await run.wire.wait_for(lambda one: one.method == "session/cancel", limit=run.options.limit)
    except (TimeoutError, PeerClosed) as problem:
        what = "the client left" if isinstance(problem, PeerClosed) else "the client sent none"
        run.holds("cancel.told", False, f"{what} while the work went on", sent)
        raise Blocked("the work was not cancelled") from None
    run.holds("cancel.told", True, "", cancel)
    proper = cancel.is_notification and cancel.params.get("sessionId") == turn.session
    run.holds("cancel.notification", proper, "it is a request, or names another session", cancel)
    if not run.holds("cancel.waits", not await run.is_gone(), "the client left at once", cancel):
        return
    await asked.response()
    late = {"sessionUpdate": "tool_call_update", **CALL, "toolCallId": "late", "status": "cancelled"}
    sent = await run.update(late)
    run.holds("cancel.updates", not await run.is_gone(), "the client left when an update came", cancel, sent)
    await run.update({"sessionUpdate": "tool_call_update", "toolCallId": "p-1", "status": "cancelled"})
    await turn.end("cancelled")


async def _cancel_question(run: ClientRunV2, asked: PendingRequest) -> None:
    """Cancel a question to the user. Its answer may cross the cancellation, so an option may have been selected."""
    sent = await run.notify("$/cancel_request", {"requestId": asked.request.msg["id"]})
    try:
        response = await asked.response()
    except NoResponse as missing:
        if missing.left:
            raise
        run.holds("permission.cancelled", False, str(missing), asked.request, sent, awaited=asked.request)
        return
    right = response.code == REQUEST_CANCELLED if response.error is not None else not _outcome(response)
    run.holds("permission.cancelled", right, f"it was answered with the error {response.code}", response)
    await run.wire.silence(run.options.silence)
    again = [one for one in run.wire.received if one.is_response and one.msg.get("id") == asked.request.msg["id"]]
    run.holds("permission.cancelled", len(again) == 1, f"it was answered {len(again)} times", *again)


@CLIENT_SUITE_V2.scenario(
    "cancel-call",
    "the user cancels one tool call",
    shows=(
        must(
            "cancel.one-call",
            "A tool call that is cancelled by itself is one that offers `cancel`, by its id and in its session.",
            link="schema#canceltoolcallrequest",
            fix="Send `tool_call/cancel` with the `toolCallId` of a call whose `capabilities` have `cancel`.",
        ),
        must(
            "cancel.one-call-goes-on",
            "The work goes on after one of its tool calls was cancelled.",
            link="schema#canceltoolcallrequest",
            fix="Wait for the session to be idle: the cancellation of a call is not that of the work.",
            needs=("cancel.one-call",),
        ),
    ),
)
@play_v2
async def cancel_call(run: ClientRunV2) -> None:
    async def accept(agent: StandinAgent, params: JsonObject) -> object:
        return {}

    run.script.does["tool_call/cancel"] = accept
    await run.start("cancel_call")
    turn = await run.prompted()
    calls: dict[str, JsonObject | None] = {"fixed": None, "loose": {"cancel": {}}}
    for id, able in calls.items():
        call = {"toolCallId": id, "title": id.title(), "status": "in_progress", "capabilities": able}
        await run.update({"sessionUpdate": "tool_call_update", **call})
    run.running.interrupt()
    try:
        cancel = await run.wire.wait_for(lambda one: one.method == "tool_call/cancel", limit=run.options.limit)
    except (TimeoutError, PeerClosed):
        raise NotSeen("the command for `cancel_call` did not make the client send `tool_call/cancel`") from None
    proper = cancel.params.get("toolCallId") == "loose" and cancel.params.get("sessionId") == turn.session
    run.holds("cancel.one-call", proper, "it names another call or another session", cancel)
    sent = await run.update({"sessionUpdate": "tool_call_update", "toolCallId": "loose", "status": "cancelled"})
    await run.survives("cancel.one-call-goes-on", "the end of the tool call", cancel, sent)
    await run.update({"sessionUpdate": "tool_call_update", "toolCallId": "fixed", "status": "completed"})
    await turn.end()


ACTIONS = ("accept", "decline", "cancel")
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Name"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["name"],
}
STRANGE_SCHEMA: JsonObject = {"type": "object", "properties": {"colour": {"type": "_antiphon_colour", "title": "?"}}}
PAGE = "https://agentclientprotocol.com/"
FORMS = "schema#createelicitationrequest"


@CLIENT_SUITE_V2.scenario(
    "elicitation",
    "the agent asks the user something",
    shows=(
        capability(
            "elicitation.form",
            "A form is answered: accepted with what is required in it, declined or cancelled.",
            link=FORMS,
            fix="Answer with `action`, and where that is `accept` with `content` that has every required field.",
        ),
        capability(
            "elicitation.unknown-field",
            "A form with a field of a type that the client does not know is answered.",
            link=FORMS,
            fix="Leave such a field out where it is not required, or decline the form.",
            needs=("elicitation.form",),
        ),
        capability(
            "elicitation.url",
            "An address to open is answered: accepted, declined or cancelled; and later reports about it are taken.",
            link=FORMS,
            fix="Answer with `action`; never open an address without asking. `elicitation/complete` may follow.",
        ),
        capability(
            "elicitation.unknown-mode",
            "A question in a mode that the client does not know is refused, or answered as declined or cancelled.",
            link=FORMS,
            fix="Do not show it as a form or an address; answer with the error -32602, or decline.",
        ),
    ),
)
@play_v2
async def elicitation(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    if run.offers("elicitation", "form"):
        await _form(run)
    if run.offers("elicitation", "url"):
        response = await run.here("elicitation/create", mode="url", message="Look", url=PAGE, elicitationId="e-1")
        problem = _action(response)
        run.holds("elicitation.url", not problem, problem, response)
        sent = await run.notify("elicitation/complete", {"elicitationId": "e-1"})
        await run.survives("elicitation.url", "`elicitation/complete`", response, sent)
    if run.offers("elicitation"):
        strange = await run.here("elicitation/create", mode="_antiphon_sing", message="La?", tune="a")
        refused = strange.error is not None or strange.get("action") in ("decline", "cancel")
        run.holds("elicitation.unknown-mode", refused, "it was accepted", strange)
    await turn.end()
    if len(run.verdicts) < 4:
        raise NotOffered("the client does not offer `elicitation`, or not of this kind")


async def _form(run: ClientRunV2) -> None:
    response = await run.here("elicitation/create", mode="form", message="Who?", requestedSchema=SCHEMA)
    problem = _action(response)
    content = response.get("content")
    if response.get("action") == "accept" and not (isinstance(content, dict) and isinstance(content.get("name"), str)):
        problem = "it was accepted without the field `name`, which is required"
    run.holds("elicitation.form", not problem, problem, response)
    strange = await run.here("elicitation/create", mode="form", message="Which?", requestedSchema=STRANGE_SCHEMA)
    problem = _action(strange)
    run.holds("elicitation.unknown-field", not problem or strange.error is not None, problem, strange)


def _action(response: PeerResponse) -> str:
    if response.error is not None:
        return f"it was answered with the error {response.code}"
    action = response.get("action")
    return "" if action in ACTIONS else f"the action is {action!r}, none of {', '.join(ACTIONS)}"
