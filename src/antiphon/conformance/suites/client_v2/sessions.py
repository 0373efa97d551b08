"""Earlier sessions, pages of a list, closing and deleting, and options: each with a command that makes the client use them."""

from typing import Final

from antiphon.conformance.requirements import NotSeen
from antiphon.conformance.standin_agent import LISTED, StandinAgent
from antiphon.conformance.suites.client.sessions import need_sent, prompted_after, requests_sent
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, capability, must, play_v2, should
from antiphon.conformance.v2.client_run import NOT_FOUND, ClientRunV2, OpenPrompt, StandinAgentV2
from antiphon.conformance.wire import PeerRefusal
from antiphon.traffic.entries import Entry, JsonObject, as_object

__all__: list[str] = []

RESUME = "session/resume"
FIRST, SECOND = "antiphon+/=?&ä", ""
"""The cursors of the second and of the third page."""

OLD_END: Final = {"stopReason": "error", "error": {"code": -32603, "message": "it failed yesterday"}}


async def _resumed(run: ClientRunV2, purpose: str, requirement: str) -> tuple[OpenPrompt, Entry] | None:
    """The prompt that comes behind `session/resume`, and that request."""
    turn = await prompted_after(run, requirement, purpose, RESUME)
    if not isinstance(turn, OpenPrompt):
        return None
    request = requests_sent(run, RESUME)[-1]
    named = request.params.get("sessionId")
    otherwise = f"`{RESUME}` names `{named}`, the prompt behind it `{turn.session}`"
    run.holds(requirement, named == turn.session, otherwise, request, turn.entry)
    return turn, request


@CLIENT_SUITE_V2.scenario(
    "history",
    "the client goes on with an earlier session and its history",
    shows=(
        capability(
            "sessions.load",
            "A session is resumed with its history and then used.",
            link="schema#resumesessionrequest",
            fix="Send `session/resume` with `replayFrom`, take the updates, and send the prompt when it is answered.",
            needs=("prompt.comes",),
        ),
        must(
            "resume.old-reason",
            "The stop reason of a session that is resumed is not that of the prompt behind it.",
            link="schema#idlestateupdate",
            fix="Take the state that comes while a session is resumed for a snapshot: its stop reason is old.",
            needs=("sessions.load", "ends.well"),
        ),
    ),
)
@play_v2
async def history(run: ClientRunV2) -> None:
    async def resume(agent: StandinAgent, params: JsonObject) -> object:
        found = await agent.usual(RESUME, params)
        if isinstance(agent, StandinAgentV2):
            await agent.report(params["sessionId"], "idle", **OLD_END)
        return found

    run.script.does[RESUME] = resume
    found = await _resumed(run, "load", "sessions.load")
    if found is None:
        return
    turn, request = found
    if as_object(request.params.get("replayFrom")).get("type") != "start":
        raise NotSeen("the command for `load` resumed the session without its history")
    await turn.insert()
    await run.take_over(turn)
    await run.stays("resume.old-reason", "a session that failed was resumed", turn.entry)
    sent = await turn.end()
    status = await run.ended()
    how = "did not end" if status is None else f"ended with status {status}"
    run.holds("resume.old-reason", status == 0, f"the work ended well, and the client {how}", request, sent)


@CLIENT_SUITE_V2.scenario(
    "resuming",
    "the client goes on with an earlier session that works",
    shows=(
        capability(
            "sessions.resume",
            "A session is resumed and then used.",
            link="schema#resumesessionrequest",
            fix="Send `session/resume`, and the prompt when it is answered.",
            needs=("prompt.comes",),
        ),
        must(
            "resume.running",
            "The end of work that was going on when a session was resumed is not that of the prompt behind it.",
            link="schema#resumesessionresponse",
            fix="Take the state that comes before the answer for that of the session: a running one may take a while.",
            needs=("sessions.resume",),
        ),
    ),
)
@play_v2
async def resuming(run: ClientRunV2) -> None:
    async def resume(agent: StandinAgent, params: JsonObject) -> object:
        found = await agent.usual(RESUME, params)
        if isinstance(agent, StandinAgentV2):
            await agent.report(params["sessionId"], "running")
        return found

    run.script.does[RESUME] = resume
    found = await _resumed(run, "resume", "sessions.resume")
    if found is None:
        return
    turn, _ = found
    await run.take_over(turn)
    sent = await turn.end()
    await run.stays("resume.running", "the end of earlier work", turn.entry, sent)
    await turn.insert()
    await turn.end()


@CLIENT_SUITE_V2.scenario(
    "listing",
    "the client lists the agent's sessions",
    shows=(
        capability(
            "sessions.list",
            "The agent's sessions are listed, page by page or one page of them.",
            link="schema#listsessionsrequest",
            fix="Send `session/list`, and wait for its answer.",
            needs=("ends.well",),
        ),
        must(
            "sessions.cursor",
            "The next page is asked for with the cursor that the agent gave, as it is.",
            link="schema#listsessionsrequest",
            fix="Send `nextCursor` back as `cursor`, without looking into it.",
        ),
        must(
            "sessions.empty-cursor",
            "An empty text is a cursor like others: only a missing one or null is the end of the list.",
            link="schema#listsessionsresponse",
            fix="Compare `nextCursor` with null, and do not ask whether it is empty.",
            needs=("sessions.cursor",),
        ),
    ),
)
@play_v2
async def listing(run: ClientRunV2) -> None:
    async def pages(agent: StandinAgent, params: JsonObject) -> object:
        cursor = params.get("cursor")
        at = 0 if cursor is None else 1 if cursor == FIRST else 2
        sessions = [{"sessionId": ("stand-in-first", "stand-in-second", LISTED)[at], "cwd": str(run.cwd)}]
        return {"sessions": sessions, "nextCursor": (FIRST, SECOND, None)[at]}

    run.script.does["session/list"] = pages
    run.script.held.clear()
    await run.start("list")
    status = await run.ended()
    listed = need_sent(run, "list", "session/list")
    run.holds("sessions.list", status == 0, f"the client ended with status {status}", *listed)
    cursors = [one for one in listed if one.params.get("cursor") is not None]
    if not cursors:
        raise NotSeen("the client did not ask for the next page")
    run.holds("sessions.cursor", cursors[0].params["cursor"] == FIRST, f"the cursor was {FIRST!r}", cursors[0])
    last = any(one.params["cursor"] == SECOND for one in cursors)
    run.holds("sessions.empty-cursor", last, "the page behind the cursor '' was not asked for", *cursors)


async def _about_one(run: ClientRunV2, purpose: str, requirement: str) -> list[Entry]:
    """A command that asks for one thing of a session, which has to be one that there is."""
    run.script.held.clear()
    await run.start(purpose)
    await run.ended()
    sent = need_sent(run, purpose, f"session/{purpose}")
    known = {LISTED, *run.script.folders, *(one.params.get("sessionId") for one in requests_sent(run, RESUME))}
    known |= {f"stand-in-{n}" for n in range(1, 10)}  # those that were deleted are not in the table any more
    proper = any(one.params.get("sessionId") in known for one in sent)
    run.holds(requirement, proper, f"`session/{purpose}` names no session that there is", *sent)
    return sent


@CLIENT_SUITE_V2.scenario(
    "closing",
    "the client closes a session that the agent has forgotten",
    shows=(
        capability(
            "sessions.close",
            "A session that is done with is closed.",
            link="schema#closesessionrequest",
            fix="Send `session/close` with the id of a session that is open.",
            needs=("prompt.comes",),
        ),
        should(
            "sessions.close-unknown",
            "A session that the agent does not know when it is closed counts as closed.",
            link="schema#closesessionrequest",
            fix="Take the error -32002 in answer to `session/close` for success.",
            needs=("sessions.close", "ends.well"),
        ),
    ),
)
@play_v2
async def closing(run: ClientRunV2) -> None:
    async def close(agent: StandinAgent, params: JsonObject) -> object:
        raise PeerRefusal(NOT_FOUND, "there is no such session", sessionId=params["sessionId"])

    run.script.does["session/close"] = close
    sent = await _about_one(run, "close", "sessions.close")
    status = run.running.status
    how = "did not end" if status is None else f"ended with status {status}"
    run.holds("sessions.close-unknown", status == 0, f"the client {how}", *sent)


@CLIENT_SUITE_V2.scenario(
    "deleting",
    "the client deletes a session",
    shows=(
        capability(
            "sessions.delete",
            "A session is deleted.",
            link="schema#deletesessionrequest",
            fix="Send `session/delete`, which the agent offers, and wait for its answer.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def deleting(run: ClientRunV2) -> None:
    await _about_one(run, "delete", "sessions.delete")


@CLIENT_SUITE_V2.scenario(
    "settings",
    "the client changes an option",
    shows=(
        capability(
            "sessions.option",
            "An option is changed before the prompt is sent.",
            link="schema#setsessionconfigoptionrequest",
            fix="Send `session/set_config_option` with `type: id`, and wait for its answer.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def options(run: ClientRunV2) -> None:
    method = "session/set_config_option"
    turn = await prompted_after(run, "sessions.option", "set_option", method)
    if isinstance(turn, OpenPrompt):
        length = run.script.lengths.get(turn.session)
        otherwise = f"`length` is {length!r} when the prompt comes, not `long`"
        run.holds("sessions.option", length == "long", otherwise, turn.entry)
        await turn.insert()
        await turn.end()
