"""`initialize` and the first session: versions, capabilities, logins, and agents that send less or more than usual."""

from typing import Final

from antiphon.conformance.client_run import NotAsked
from antiphon.conformance.requirements import NotSeen, OtherVersion
from antiphon.conformance.standin_agent import INFO, StandinAgent
from antiphon.conformance.suites.client.initialization import is_folder
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, advice, must, play_v2, should
from antiphon.conformance.v2.client_run import UNSUPPORTED_VERSION, ClientRunV2
from antiphon.conformance.wire import PeerRefusal
from antiphon.errors import Code
from antiphon.traffic.entries import Entry, JsonObject

__all__: list[str] = []

SESSION_METHODS = ("session/new", "session/resume", "session/list", "session/prompt")

LOGINS: Final = [
    {"type": "terminal", "methodId": "antiphon-terminal", "name": "In a terminal"},
    {"type": "agent", "methodId": "antiphon-check", "name": "Check", "description": "Nothing to type"},
]
ENOUGH: Final = 3
"""Times that a client may ask for a session before it logs in: more is a loop."""


def _first(run: ClientRunV2) -> tuple[Entry, ...]:
    """The first messages, which show how far it came."""
    return tuple(run.connections[0].wire.trace[:4]) if run.connections else ()


def _ended(status: int | None) -> str:
    return "the client did not end" if status is None else f"the client ended with status {status}"


async def _reaches_prompt(run: ClientRunV2, requirement: str) -> None:
    """The requirement is that the client opens a session with this agent and sends its prompt."""
    await run.start()
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        if run.connections:
            run.holds(requirement, False, str(problem), *_first(run))
        raise
    await run.survives(requirement, "the first messages of the agent", *_first(run))
    await turn.end()


@CLIENT_SUITE_V2.scenario(
    "introduction",
    "a client introduces itself, opens a session and sends one prompt",
    shows=(
        must(
            "prompt.comes",
            "Started with its command, the client opens a session and sends a prompt.",
            link="schema#promptrequest",
            fix="See what the client prints; the command has to make it send a prompt to the agent that stands for {agent}.",
        ),
        should(
            "hello.capabilities",
            "`initialize` has the capabilities of the client.",
            link="schema#clientcapabilities",
            fix="Send `capabilities`, an object; what is not in it, or null, is not supported.",
            needs=("prompt.comes",),
        ),
        should(
            "session.folder",
            "The directory that a session is opened in exists.",
            link="schema#newsessionrequest",
            fix="Send as `cwd` the absolute path of a directory that is there.",
            needs=("prompt.comes",),
        ),
        advice(
            "ends.well",
            "After work that ended well the client ends with status 0.",
            link="schema#idlestateupdate",
            fix="Exit with 0 when the session is idle with `end_turn`.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def introduction(run: ClientRunV2) -> None:
    await run.start()
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        asked = [
            one for connection in run.connections for one in connection.wire.received if one.method == "initialize"
        ]
        versions = {one.params.get("protocolVersion") for one in asked}
        if versions and all(isinstance(one, int) and one < 2 for one in versions):
            raise OtherVersion("the client does not speak version 2: it asks for version 1") from None
        run.holds("prompt.comes", False, str(problem), *_first(run))
        return
    run.holds("prompt.comes", True, "", turn.entry)
    hello = run.wire.checker.state.initialize
    able = hello is not None and isinstance(hello.params.get("capabilities"), dict)
    run.holds("hello.capabilities", able, "`initialize` has no `capabilities`", hello)
    cwd = run.script.folders.get(turn.session, "")
    opened = next((one for one in run.wire.received if one.method == "session/new"), None)
    run.holds("session.folder", is_folder(cwd), f"there is no directory `{cwd}`", opened)
    await run.send_text("hello")
    ended = await turn.end()
    status = await run.ended()
    run.holds("ends.well", status == 0, _ended(status), ended)


@CLIENT_SUITE_V2.scenario(
    "another-version",
    "the agent answers with a version that the client does not know",
    shows=(
        must(
            "hello.other-version",
            "A client checks the version of the answer, and opens no session where it does not support it.",
            link="schema#initializeresponse",
            fix="Compare `protocolVersion` of the answer with the versions you support; close the connection and inform the user.",
        ),
    ),
)
@play_v2
async def another_version(run: ClientRunV2) -> None:
    run.script.initialize_result["protocolVersion"] = 99
    await _opens_none(run, "hello.other-version", "with version 99")


@CLIENT_SUITE_V2.scenario(
    "refused-version",
    "the agent supports no version that the client asks for",
    shows=(
        should(
            "hello.refused",
            "A client whose version is refused with -32022 opens no session, and does not wait for ever.",
            link="schema#unsupportedprotocolversionerrordata",
            fix="Ask for one of `data.supported` that you speak, or close the connection and inform the user.",
        ),
    ),
)
@play_v2
async def refused_version(run: ClientRunV2) -> None:
    async def refuse(agent: StandinAgent, params: JsonObject) -> object:
        requested = params.get("protocolVersion")
        raise PeerRefusal(UNSUPPORTED_VERSION, "no such version", requested=requested, supported=[98])

    run.script.does["initialize"] = refuse
    await _opens_none(run, "hello.refused", "after `initialize` was refused")


@CLIENT_SUITE_V2.scenario(
    "no-sessions",
    "the agent does not offer sessions",
    shows=(
        must(
            "hello.no-sessions",
            "A client uses no method of sessions with an agent that does not offer `session`.",
            link="schema#sessioncapabilities",
            fix="Look at `capabilities.session` of the answer to `initialize`, and inform the user where it is missing.",
        ),
    ),
)
@play_v2
async def no_sessions(run: ClientRunV2) -> None:
    run.script.initialize_result["capabilities"] = {}
    await _opens_none(run, "hello.no-sessions", "although the agent does not offer `session`")


async def _opens_none(run: ClientRunV2, requirement: str, how: str) -> None:
    """The requirement is that the client sends nothing about sessions, and ends."""
    run.script.held.add("session/new")
    await run.start()
    try:
        opening = await run.next_request("session/new")
    except NotAsked:
        if not any(one.wire.checker.state.initialize is not None for one in run.connections):
            raise
    else:
        run.holds(requirement, False, f"the client opened a session {how}", opening.entry)
        return
    wires = [one.wire for one in run.connections]
    others = [one for wire in wires for one in wire.received if one.method in SESSION_METHODS]
    status = await run.ended()
    run.holds(requirement, not others, f"the client used a session {how}", *others[:1])
    run.holds(requirement, status is not None, "the client did not end", *_first(run))


@CLIENT_SUITE_V2.scenario(
    "bare-agent",
    "the agent offers sessions and nothing else, and its sessions have only an id",
    shows=(
        must(
            "hello.bare-agent",
            "A client works with an agent that offers sessions and nothing else.",
            link="schema#agentcapabilities",
            fix="Take every capability that is left out as not supported, and every other field as optional.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def bare_agent(run: ClientRunV2) -> None:
    run.script.initialize_result = {"protocolVersion": 2, "info": BARE_INFO, "capabilities": {"session": {}}}
    run.script.does["session/new"] = _only_an_id
    await _reaches_prompt(run, "hello.bare-agent")


BARE_INFO: Final = {"name": "bare", "version": "1"}
NULL_MARKERS: Final = {
    "session": {"prompt": None, "mcp": None, "delete": None, "additionalDirectories": None},
    "auth": None,
    "_meta": None,
}


async def _only_an_id(agent: StandinAgent, params: JsonObject) -> object:
    agent.script.folders["bare"] = params["cwd"]
    return {"sessionId": "bare"}


@CLIENT_SUITE_V2.scenario(
    "null-markers",
    "the agent sends null for what it does not support",
    shows=(
        must(
            "hello.null-markers",
            "A marker that is null means the same as one that is missing: not supported.",
            link="schema#agentcapabilities",
            fix="Take null for missing in all capabilities; `{}` is the marker of something that is supported.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def null_markers(run: ClientRunV2) -> None:
    run.script.initialize_result["capabilities"] = NULL_MARKERS
    await _reaches_prompt(run, "hello.null-markers")


STRANGE_AGENT: Final = {
    "capabilities": {"session": {"antiphon_tomorrow": {"deep": [1, None]}}, "antiphonTomorrow": {"kind": 7}},
    "authMethods": [{"type": "antiphon_tomorrow", "methodId": "tomorrow", "name": "Tomorrow", "vars": [1]}],
    "antiphonTomorrow": "yes",
    "_meta": {"antiphon.example": 1},
}

STRANGE_OPTIONS: Final = [
    {"configId": "dial", "name": "Dial", "type": "antiphon_dial", "currentValue": 3.5},
    {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": True, "category": "_antiphon_tomorrow"},
]
STRANGE_COMMANDS: Final = [{"type": "antiphon_gesture", "wave": 2}]


@CLIENT_SUITE_V2.scenario(
    "strange-introduction",
    "the agent sends more about itself and its session than any specification has",
    shows=(
        must(
            "tolerates.introduction",
            "Fields, capabilities and ways to log in that the client does not know do not stop it.",
            link="extensibility",
            fix="Ignore what you do not know in the answer to `initialize`.",
            needs=("prompt.comes",),
        ),
        must(
            "tolerates.session",
            "Types of options and commands, and categories, that the client does not know do not stop it from using a session.",
            link="schema#sessionconfigoption",
            fix="Skip options and commands of an unknown `type`; take an unknown `category` for none.",
            needs=("tolerates.introduction",),
        ),
    ),
)
@play_v2
async def strange_introduction(run: ClientRunV2) -> None:
    run.script.initialize_result |= STRANGE_AGENT
    run.script.held.add("session/new")
    await run.start()
    try:
        opening = await run.next_request("session/new")
    except NotAsked as problem:
        if run.connections:
            run.holds("tolerates.introduction", False, str(problem), *_first(run))
        raise
    run.holds("tolerates.introduction", True, "")
    agent = opening.connection.agent
    usual = agent.new_session(opening.entry.params)
    usual["configOptions"] += STRANGE_OPTIONS
    usual["availableCommands"] += STRANGE_COMMANDS
    sent = await agent.respond(opening.entry, {**usual, "antiphonTomorrow": [{}]})
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        run.holds("tolerates.session", False, str(problem), sent)
        raise
    await run.survives("tolerates.session", "a strange session", sent)
    await turn.end()


MALFORMED_AGENT: Final = {"info": {**INFO, "title": 7}, "authMethods": "none", "_meta": 7}
MALFORMED_SESSION: Final = {"configOptions": [7, {"configId": "half"}], "availableCommands": 7, "_meta": "none"}


@CLIENT_SUITE_V2.scenario(
    "malformed-introduction",
    "optional fields of the agent that cannot be read",
    shows=(
        must(
            "tolerates.malformed",
            "An optional field or an item of a list that cannot be read is dropped, and the message is kept.",
            link="schema#newsessionresponse",
            fix="Take a field that the schema marks as lenient for missing where it is malformed, and skip such items of lists.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def malformed_introduction(run: ClientRunV2) -> None:
    run.script.initialize_result |= MALFORMED_AGENT
    run.script.offer = dict(MALFORMED_SESSION)
    await _reaches_prompt(run, "tolerates.malformed")


@CLIENT_SUITE_V2.scenario(
    "signing-in",
    "the agent requires a login",
    shows=(
        should(
            "auth.no-loop",
            "A client whose session is refused because no user is logged in does not ask for it again and again.",
            link="schema#loginauthrequest",
            fix="On the error -32000 log in by one of the agent's methods, or stop and inform the user.",
        ),
        should(
            "auth.again",
            "After logging in the client opens its session.",
            link="schema#loginauthrequest",
            fix="Send `session/new` again when `auth/login` has been answered.",
            needs=("prompt.comes",),
        ),
    ),
)
@play_v2
async def signing_in(run: ClientRunV2) -> None:
    logins: list[object] = []
    refused: list[str] = []

    async def new(agent: StandinAgent, params: JsonObject) -> object:
        if logins:
            return await agent.usual("session/new", params)
        refused.append(params["cwd"])
        raise PeerRefusal(Code.AUTH_REQUIRED, "Authentication required")

    async def login(agent: StandinAgent, params: JsonObject) -> object:
        logins.append(params["methodId"])
        return {}

    run.script.initialize_result["authMethods"] = LOGINS
    run.script.does |= {"session/new": new, "auth/login": login}
    await run.start("auth" if run.place.has("auth") else "prompt")
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        if not refused:
            raise
        asked = [one for each in run.connections for one in each.wire.received if one.method == "session/new"]
        often = f"`session/new` was sent {len(refused)} times before a login"
        run.holds("auth.no-loop", len(refused) <= ENOUGH, often, *asked[:5])
        if logins:
            run.holds("auth.again", False, str(problem), *run.connections[-1].wire.trace[-3:])
            return
        raise NotSeen("the client did not log in: a command for `auth` can make it") from None
    run.holds("auth.no-loop", len(refused) <= ENOUGH, f"`session/new` was sent {len(refused)} times", turn.entry)
    if logins:
        run.holds("auth.again", True, "", turn.entry)
    await turn.end()
    if not logins:
        raise NotSeen("the client went on with a session that it had not opened")
