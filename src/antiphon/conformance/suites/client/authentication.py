"""An agent that wants a user to sign in before it opens a session."""

from typing import Final

from antiphon.conformance.client_run import ClientRun, NotAsked
from antiphon.conformance.requirements import NotSeen, should
from antiphon.conformance.standin_agent import StandinAgent
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerRefusal
from antiphon.errors import Code
from antiphon.traffic.entries import JsonObject

__all__: list[str] = []

METHODS: Final = [{"id": "antiphon-check", "name": "Check", "description": "Nothing to type"}]
ENOUGH: Final = 3
"""Times that a client may ask for a session before it signs in: more is a loop."""

LINK = "authentication"


@SUITE.scenario(
    "signing-in",
    "the agent requires a login",
    shows=(
        should(
            "auth.no-loop",
            "A client whose session is refused for the lack of a sign-in does not ask for it again and again.",
            link=LINK,
            fix="On the error -32000 sign in by one of the agent's methods, or stop and inform the user.",
        ),
        should(
            "auth.again",
            "After signing in the client opens its session.",
            link=LINK,
            fix="Send `session/new` again when `authenticate` has been answered.",
            needs=("prompt.comes",),
        ),
    ),
)
async def signing_in(run: ClientRun) -> None:
    signed_in: list[str] = []
    refused: list[str] = []

    async def new(agent: StandinAgent, params: JsonObject) -> object:
        if signed_in:
            return await agent.usual("session/new", params)
        refused.append(params["cwd"])
        raise PeerRefusal(Code.AUTH_REQUIRED, "Authentication required")

    async def authenticate(agent: StandinAgent, params: JsonObject) -> object:
        signed_in.append(params["methodId"])
        return {}

    run.script.initialize_result["authMethods"] = METHODS
    run.script.does |= {"session/new": new, "authenticate": authenticate}
    await run.start("auth" if run.place.has("auth") else "prompt")
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        if not refused and any(one.wire.checker.state.initialized for one in run.connections):
            raise NotSeen("the client did not ask for a session: it gave up when it saw that one can sign in") from None
        if not refused:
            raise
        asked = [
            one for connection in run.connections for one in connection.wire.received if one.method == "session/new"
        ]
        otherwise = f"`session/new` was sent {len(refused)} times before a sign-in"
        run.holds("auth.no-loop", len(refused) <= ENOUGH, otherwise, *asked[:5])
        if signed_in:
            run.holds("auth.again", False, str(problem), *run.connections[-1].wire.trace[-3:])
            return
        raise NotSeen("the client did not sign in: a command for `auth` can make it") from None
    run.holds("auth.no-loop", len(refused) <= ENOUGH, f"`session/new` was sent {len(refused)} times", turn.entry)
    if signed_in:
        run.holds("auth.again", True, "", turn.entry)
    await turn.end()
    if not signed_in:
        raise NotSeen("the client went on with a session that it had not opened")
