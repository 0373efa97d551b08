"""Earlier sessions, modes and settings, each with a command that makes the client use them."""

from antiphon.conformance.client_run import ClientRun, HeldRequest, NotAsked
from antiphon.conformance.requirements import NotSeen, Requirement, capability, must
from antiphon.conformance.standin_agent import LISTED, StandinAgent
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.traffic.entries import Entry, JsonObject

__all__ = ["need_sent", "prompted_after", "requests_sent"]

CURSOR = "antiphon+/=?&ä"


def _uses(id: str, text: str, link: str, method: str, needs: tuple[str, ...] = ("prompt.comes",)) -> Requirement:
    fix = f"Send `{method}`, which the agent offers, and wait for its answer."
    return capability(id, text, link=link, fix=fix, needs=needs)


def requests_sent(run: ClientRun, method: str) -> list[Entry]:
    """The requests of this kind, on all connections."""
    return [one for connection in run.connections for one in connection.wire.received if one.method == method]


def need_sent(run: ClientRun, purpose: str, method: str) -> list[Entry]:
    """The requests of this kind.

    Raises:
        Unseen: the command for the purpose does not make the client send any, which is not the client's fault.
    """
    sent = requests_sent(run, method)
    if not sent:
        raise NotSeen(f"the command for `{purpose}` did not make the client send `{method}`")
    return sent


async def prompted_after(run: ClientRun, id: str, purpose: str, method: str) -> HeldRequest | None:
    """The prompt that comes behind a request of this kind; prompts before it, of commands that prepare it, just end."""
    await run.start(purpose)
    try:
        while True:
            turn = await run.next_request("session/prompt")
            if requests_sent(run, method):
                return turn
            await run.finish(turn)
    except NotAsked as problem:
        run.holds(id, False, str(problem), *need_sent(run, purpose, method))
        return None


async def _goes_on(run: ClientRun, name: str) -> None:
    turn = await prompted_after(run, f"sessions.{name}", name, f"session/{name}")
    if turn is None:
        return
    reopened = requests_sent(run, f"session/{name}")[-1]
    session = reopened.params.get("sessionId")
    otherwise = f"`session/{name}` names `{session}`, the prompt behind it `{turn.session}`"
    run.holds(f"sessions.{name}", session == turn.session, otherwise, reopened, turn.entry)
    await turn.end()


@SUITE.scenario(
    "loading",
    "the client goes on with an earlier session and its history",
    shows=(
        _uses("sessions.load", "A session is loaded and then used.", "session-setup#loading-sessions", "session/load"),
    ),
)
async def loading(run: ClientRun) -> None:
    del run.script.initialize_result["agentCapabilities"]["sessionCapabilities"]["resume"]
    await _goes_on(run, "load")


@SUITE.scenario(
    "resuming",
    "the client goes on with an earlier session without its history",
    shows=(
        _uses(
            "sessions.resume",
            "A session is resumed and then used.",
            "session-setup#resuming-sessions",
            "session/resume",
        ),
    ),
)
async def resuming(run: ClientRun) -> None:
    del run.script.initialize_result["agentCapabilities"]["loadSession"]
    await _goes_on(run, "resume")


@SUITE.scenario(
    "listing",
    "the client lists the agent's sessions",
    shows=(
        _uses(
            "sessions.list",
            "The agent's sessions are listed, page by page or one page of them.",
            "session-list",
            "session/list",
            ("ends.well",),
        ),
        must(
            "sessions.cursor",
            "The next page is asked for with the cursor that the agent gave, as it is.",
            link="session-list",
            fix="Send `nextCursor` back as `cursor`, without looking into it.",
        ),
    ),
)
async def listing(run: ClientRun) -> None:
    async def pages(agent: StandinAgent, params: JsonObject) -> object:
        page = {"sessions": [{"sessionId": LISTED if params.get("cursor") else "stand-in-first", "cwd": str(run.cwd)}]}
        return page if params.get("cursor") else {**page, "nextCursor": CURSOR}

    run.script.does["session/list"] = pages
    run.script.held.clear()
    await run.start("list")
    status = await run.ended()
    listed = need_sent(run, "list", "session/list")
    run.holds("sessions.list", status == 0, f"the client ended with status {status}", *listed)
    cursors = [one for one in listed if one.params.get("cursor") is not None]
    if not cursors:
        raise NotSeen("the client did not ask for the next page")
    proper = all(one.params["cursor"] == CURSOR for one in cursors)
    run.holds("sessions.cursor", proper, f"the cursor was {CURSOR!r}", *cursors)


async def _ends_with(run: ClientRun, purpose: str, id: str) -> None:
    """A command that asks for one thing of a session."""
    run.script.held.clear()
    await run.start(purpose)
    await run.ended()
    sent = need_sent(run, purpose, f"session/{purpose}")
    known = {LISTED, *run.script.folders, *(one.params.get("sessionId") for one in requests_sent(run, "session/load"))}
    if purpose == "delete":
        known |= {f"stand-in-{n}" for n in range(1, 10)}
    proper = any(one.params.get("sessionId") in known for one in sent)
    run.holds(id, proper, f"`session/{purpose}` names no session that there is", *sent)


@SUITE.scenario(
    "closing",
    "the client closes a session",
    shows=(
        _uses(
            "sessions.close",
            "A session that is done with is closed.",
            "session-setup#closing-active-sessions",
            "session/close",
        ),
    ),
)
async def closing(run: ClientRun) -> None:
    await _ends_with(run, "close", "sessions.close")


@SUITE.scenario(
    "deleting",
    "the client deletes a session",
    shows=(_uses("sessions.delete", "A session is deleted.", "session-list", "session/delete"),),
)
async def deleting(run: ClientRun) -> None:
    await _ends_with(run, "delete", "sessions.delete")


@SUITE.scenario(
    "modes",
    "the client chooses a mode",
    shows=(
        _uses(
            "sessions.mode",
            "A mode is chosen before the prompt is sent.",
            "session-modes#setting-the-current-mode",
            "session/set_mode",
        ),
    ),
)
async def modes(run: ClientRun) -> None:
    turn = await prompted_after(run, "sessions.mode", "set_mode", "session/set_mode")
    if turn is not None:
        mode = run.script.modes.get(turn.session)
        run.holds(
            "sessions.mode", mode == "plan", f"the mode is {mode!r} when the prompt comes, not `plan`", turn.entry
        )
        await turn.end()


@SUITE.scenario(
    "settings",
    "the client changes a setting",
    shows=(
        _uses(
            "sessions.option",
            "A setting is changed before the prompt is sent.",
            "session-config-options#setting-a-config-option",
            "session/set_config_option",
        ),
    ),
)
async def options(run: ClientRun) -> None:
    turn = await prompted_after(run, "sessions.option", "set_option", "session/set_config_option")
    if turn is not None:
        length = run.script.lengths.get(turn.session)
        run.holds(
            "sessions.option", length == "long", f"`length` is {length!r} when the prompt comes, not `long`", turn.entry
        )
        await turn.end()


@SUITE.scenario(
    "two-prompts",
    "the client sends a second prompt when the first turn has ended",
    shows=(
        must(
            "turn.second",
            "A second prompt goes to the same session, when the first has been answered.",
            link="prompt-turn#the-prompt-turn-lifecycle",
            fix="Use the session again: its `sessionId` stays valid until it is closed.",
            needs=("prompt.comes",),
        ),
    ),
)
async def two_prompts(run: ClientRun) -> None:
    await run.start("two_prompts")
    first = await run.prompted()
    await first.end()
    try:
        second = await run.prompted()
    except NotAsked as problem:
        run.holds("turn.second", False, str(problem), first.entry)
        return
    same = first.session == second.session
    run.holds(
        "turn.second", same, f"the first went to `{first.session}`, the second to `{second.session}`", second.entry
    )
    await second.end()
