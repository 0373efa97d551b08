"""What an agent does in its work: it asks for permission, by forms, changes options, runs tools."""

from collections.abc import Sequence
from contextlib import suppress

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NotOffered, NotSeen
from antiphon.conformance.suites.agent_v2.suite import (
    INVALID_PARAMS,
    SUITE_V2,
    capability,
    is_code,
    must,
    run_of,
    should,
)
from antiphon.traffic.entries import Entry, JsonObject, as_object, objects_in
from antiphon.traffic.state import choices_of
from antiphon.traffic.state_v2 import FINAL

PERMISSION = "session/request_permission"


@SUITE_V2.scenario(
    "permission",
    "the agent asks for permission",
    shows=(
        must(
            "permission.state",
            "While it waits for the user, the session does not report that it is idle.",
            link="schema#requiresactionstateupdate",
            fix="Report `requires_action` while only an answer of the user lets the work go on.",
        ),
        must(
            "permission.goes-on",
            "After the answer of the user the session reports `running` or `idle`.",
            link="schema#requiresactionstateupdate",
            fix="Send a `state_update` when the work goes on, and when it ends.",
        ),
    ),
)
async def permission(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    asked = await v2.asked(session, PERMISSION, "ask", file=run.cwd / "asked.txt", text="antiphon")
    await run.fence()
    states = v2.states(session, before=len(run.wire.trace) + 1)
    last = states[-1][0] if states else "idle"
    run.holds("permission.state", last != "idle", f"the last state is {last}", asked)
    await run.client.handle(asked)
    run.client.waiting.clear()
    answer = len(run.wire.trace)
    found = await v2.state(session, lambda state: state != "requires_action", after=answer)
    run.holds("permission.goes-on", found is not None, "no state came after the answer", asked)
    if found is not None and as_object(found.params.get("update")).get("state") != "idle":
        await v2.idle(session, asked)


@SUITE_V2.scenario(
    "permission-unknown",
    "an answer that is no approval",
    shows=(
        must(
            "permission.unknown",
            "An outcome that the agent does not know, or an option that it did not offer, is not taken for approval.",
            link="schema#requestpermissionoutcome",
            fix="Do what was asked for only if the outcome is `selected` with an option that allows it.",
        ),
    ),
    provokes=True,
    files=True,
)
async def permission_unknown(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    outcomes: list[JsonObject] = [
        {"outcome": "_antiphon"},
        {"outcome": "selected", "optionId": "antiphon-no-such-option"},
    ]
    for count, outcome in enumerate(outcomes):
        file = run.cwd / f"unapproved-{count}.txt"
        asked = await v2.asked(session, PERMISSION, "ask", file=file, text="antiphon")
        run.client.held.add(PERMISSION)
        await run.client.respond(asked, {"outcome": outcome})
        run.client.waiting.clear()
        await run.fence()
        await run.cancel(session)
        await run.settle()
        run.holds("permission.unknown", not file.exists(), f"the file was written after {outcome}", asked)


@SUITE_V2.scenario(
    "form",
    "the agent asks by a form",
    shows=(
        must(
            "form.unknown",
            "An action that the agent does not know counts as `cancel`: the work goes on, or ends.",
            link="schema#createelicitationresponse",
            fix="Treat every action but `accept` as a refusal.",
        ),
    ),
    provokes=True,
)
async def form(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    asked = await v2.asked(session, "elicitation/create", "form")
    await run.client.respond(asked, {"action": "_antiphon"})
    run.client.waiting.clear()
    idle = await v2.idle(session, asked, "form.unknown")
    run.holds("form.unknown", True, "", idle)


@SUITE_V2.scenario(
    "options",
    "options of a session",
    shows=(
        must(
            "options.set",
            "An option that a session offers can be set to each of its values.",
            link="schema#setsessionconfigoptionrequest",
            fix="Serve `session/set_config_option` wherever you send `configOptions`.",
        ),
        must(
            "options.refused",
            "An unknown option, value or type of value is refused with -32602.",
            link="schema#setsessionconfigoptionrequest",
            fix="Look at the id, the type and the value before anything is changed.",
        ),
        must(
            "options.unchanged",
            "What is refused changes no option.",
            link="schema#setsessionconfigoptionrequest",
            fix="Look at the id, the type and the value before anything is changed.",
            needs=("options.set",),
        ),
    ),
    provokes=True,
)
async def options(run: AgentRun) -> None:
    session, response = await run.opened()
    listed = objects_in(response.get("configOptions"))
    selects = [one for one in listed if one.get("type") == "select"][:1]
    switches = [one for one in listed if one.get("type") == "boolean"][:1]
    if not selects and not switches:
        raise NotOffered("the session has no options")
    for option in selects:
        await _set_each(run, session, option, "id", [*choices_of(option), option.get("currentValue")])
    for option in switches:
        now = option.get("currentValue") is True
        await _set_each(run, session, option, "boolean", [not now, now])
    option, kind = (selects + switches)[0], "id" if selects else "boolean"
    params: JsonObject = {"sessionId": session, "configId": option.get("configId"), "type": kind}
    for change in (
        {"configId": "antiphon-no-such-option", "value": "x"},
        {"value": "antiphon-no-such-value"},
        {"type": "_antiphon", "value": {}},
    ):
        refused = await run.provoke("session/set_config_option", {**params, **change})
        is_code(run, "options.refused", refused, INVALID_PARAMS)
    again = await run.request("session/resume", {"sessionId": session, "cwd": str(run.cwd)})
    if again.error is not None:
        raise Blocked("the session cannot be resumed, which would show its options")
    before, after = _values(listed), _values(objects_in(again.get("configOptions")))
    run.holds("options.unchanged", before == after, f"they were {before!r:.100} and are {after!r:.100}", again)


async def _set_each(run: AgentRun, session: str, option: JsonObject, kind: str, values: Sequence[object]) -> None:
    params: JsonObject = {"sessionId": session, "configId": option.get("configId"), "type": kind}
    for value in values:
        answer = await run.request("session/set_config_option", {**params, "value": value})
        now = _values(objects_in(answer.get("configOptions"))).get(option.get("configId"))
        run.holds("options.set", now == value, f"the option is not {value!r} in the answer", answer)


def _values(options: Sequence[JsonObject]) -> dict[object, object]:
    """The present values of options."""
    return {one.get("configId"): one.get("currentValue") for one in options}


@SUITE_V2.scenario(
    "tools",
    "the agent uses a tool",
    shows=(
        should(
            "tools.reported",
            "What the agent does with files is reported as a tool call.",
            link="schema#toolcallupdate",
            fix="Send a `tool_call_update` for each tool that is used, and its end.",
            needs=("call.ends",),
        ),
    ),
    files=True,
)
async def tools(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    file = run.cwd / "written.txt"
    work = await v2.work(session, "write", file=file, text="antiphon")
    if not file.exists():
        raise NotSeen("the agent wrote no file")
    calls = run.wire.checker.state.sessions[session]
    final = [one for one in getattr(calls, "items", {}).values() if one.status in FINAL]
    run.holds("tools.reported", bool(final), "no tool call has ended", work.answer, work.idle)


@SUITE_V2.scenario(
    "cancel-item",
    "one tool call or terminal is cancelled",
    shows=(
        capability(
            "item.ends",
            "A tool call that offers `cancel` ends when it is cancelled, while the work may go on.",
            link="schema#canceltoolcallrequest",
            fix="Send a final status for the call after the cancellation was accepted.",
        ),
    ),
    provokes=True,
)
async def cancel_item(run: AgentRun) -> None:
    v2 = run_of(run)
    session = await run.session()
    for method, name in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
        await run.provoke(method, {"sessionId": session, name: "antiphon-nothing"})  # a rule of all traffic looks at it
    pending = await run.prompt(session, run.words("long_run", command="sleep 60"))
    await v2.accepted(pending)

    def has_begun(entry: Entry) -> bool:
        update = as_object(entry.params.get("update"))
        return update.get("status") in ("in_progress", *FINAL) or update.get("state") == "idle"

    with suppress(TimeoutError):  # the user is asked before
        await run.wire.wait_for(has_begun, after=pending.request.number, limit=run.options.limit)
    await run.settle()
    calls = getattr(run.wire.checker.state.sessions[session], "items", {})
    found = next((id for id, one in calls.items() if one.can_cancel and one.status not in FINAL), None)
    if found is None:
        await run.cancel(session)
        raise NotSeen("no tool call offered `cancel`")

    def is_end(entry: Entry) -> bool:
        update = as_object(entry.params.get("update"))
        return update.get("toolCallId") == found and update.get("status") in FINAL

    response = await run.request("tool_call/cancel", {"sessionId": session, "toolCallId": found})
    if response.error is None and calls[found].status not in FINAL:  # a program may take a while to end
        with suppress(TimeoutError):
            await run.wire.wait_for(is_end, after=pending.request.number, limit=run.options.limit)
    ended = response.error is None and calls[found].status in FINAL
    run.holds("item.ends", ended, f"the call is still {calls[found].status}", response)
    await run.cancel(session)
