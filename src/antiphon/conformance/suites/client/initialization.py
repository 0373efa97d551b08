"""`initialize` and the first session: what a client reports about itself, and that it accepts every agent."""

import os

from antiphon.conformance.client_run import ClientRun, NotAsked
from antiphon.conformance.requirements import advice, must, should
from antiphon.conformance.suites.client.suite import SUITE

__all__ = ["is_folder"]


@SUITE.scenario(
    "introduction",
    "a client introduces itself, opens a session and has one turn",
    shows=(
        must(
            "prompt.comes",
            "Started with its command, the client opens a session and sends a prompt.",
            link="prompt-turn#1-user-message",
            fix="See what the client prints; the command has to make it send a prompt to the agent that stands for {agent}.",
        ),
        must(
            "hello.version",
            "`initialize` names a version of the protocol: a whole number from 1 on.",
            link="initialization#protocol-version",
            fix="Send `protocolVersion: 1`, a number, in `initialize`.",
            needs=("prompt.comes",),
        ),
        should(
            "hello.capabilities",
            "`initialize` has the capabilities of the client.",
            link="initialization#client-capabilities",
            fix="Send `clientCapabilities`, an object; what is not in it is not supported.",
            needs=("prompt.comes",),
        ),
        should(
            "hello.info",
            "`initialize` has the client's name and version.",
            link="initialization#implementation-information",
            fix="Put `clientInfo` with `name` and `version` into `initialize`.",
            needs=("prompt.comes",),
        ),
        should(
            "session.folder",
            "The directory that a session is opened in exists.",
            link="session-setup#working-directory",
            fix="Send as `cwd` the absolute path of a directory that is there.",
            needs=("prompt.comes",),
        ),
        advice(
            "ends.well",
            "After a turn that ended well the client ends with status 0.",
            link="prompt-turn#4-check-for-completion",
            fix="Exit with 0 when the agent has answered the prompt with `end_turn`.",
            needs=("prompt.comes",),
        ),
    ),
)
async def introduction(run: ClientRun) -> None:
    await run.start()
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        run.holds("prompt.comes", False, str(problem))
        return
    run.holds("prompt.comes", True, "", turn.entry)
    hello = run.wire.checker.state.initialize
    params = hello.params if hello is not None else {}
    version = params.get("protocolVersion")
    proper = isinstance(version, int) and not isinstance(version, bool) and version >= 1
    run.holds("hello.version", proper, f"`protocolVersion` is {version!r}", hello)
    able = isinstance(params.get("clientCapabilities"), dict)
    run.holds("hello.capabilities", able, "`initialize` has no `clientCapabilities`", hello)
    info = params.get("clientInfo")
    has_info = isinstance(info, dict) and all(
        isinstance(info.get(key), str) and info[key] for key in ("name", "version")
    )
    run.holds("hello.info", has_info, "`initialize` has no `clientInfo` with a name and a version", hello)
    cwd = run.script.folders.get(turn.session, "")
    opened = next((one for one in run.wire.received if one.method == "session/new"), None)
    run.holds("session.folder", is_folder(cwd), f"there is no directory `{cwd}`", opened)
    await run.send_text("hello")
    ended = await turn.end()
    status = await run.ended()
    otherwise = "the client did not end" if status is None else f"the client ended with status {status}"
    run.holds("ends.well", status == 0, otherwise, ended)


def is_folder(path: str) -> bool:
    """Whether there is such a directory."""
    return os.path.isdir(path)


@SUITE.scenario(
    "another-version",
    "the agent answers with a version that the client does not know",
    shows=(
        should(
            "hello.other-version",
            "A client does not go on with an agent that answers with a version it does not support.",
            link="initialization#version-negotiation",
            fix="Compare `protocolVersion` of the answer with the versions you support; close the connection and inform the user.",
        ),
    ),
)
async def another_version(run: ClientRun) -> None:
    run.script.initialize_result["protocolVersion"] = 99
    run.script.held.add("session/new")
    await run.start()
    try:
        turn = await run.next_request("session/new")
    except NotAsked:
        if not run.connections or run.connections[0].wire.checker.state.initialized is None:
            raise
        run.holds("hello.other-version", True, "")
    else:
        run.holds("hello.other-version", False, "the client opened a session with version 99", turn.entry)


@SUITE.scenario(
    "bare-agent",
    "the agent sends only its version, and its sessions have only an id",
    shows=(
        must(
            "hello.bare-agent",
            "A client works with an agent that offers nothing beyond the baseline.",
            link="initialization#agent-capabilities",
            fix="Take every capability that is left out as not supported, and every other field as optional.",
            needs=("prompt.comes",),
        ),
    ),
)
async def bare_agent(run: ClientRun) -> None:
    run.script.initialize_result = {"protocolVersion": 1}

    async def new(agent: object, params: dict[str, str]) -> object:
        run.script.folders["bare"] = params["cwd"]
        return {"sessionId": "bare"}

    run.script.does["session/new"] = new
    await run.start()
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        if run.connections:
            run.holds("hello.bare-agent", False, str(problem), *run.connections[0].wire.trace[-2:])
        raise
    await run.survives("hello.bare-agent", "a bare introduction", turn.entry)
    await turn.end()


STRANGE_INITIALIZE_RESULT = {
    "agentCapabilities": {
        "loadSession": False,
        "sessionCapabilities": {"antiphon_tomorrow": {"deep": [1, None]}},
        "antiphonTomorrow": {"kind": 7},
        "_meta": {"antiphon.example": {"a": [True]}},
    },
    "antiphonTomorrow": "yes",
    "_meta": {"antiphon.example": 1},
}

STRANGE_OPTION = {"id": "dial", "name": "Dial", "type": "antiphon_dial", "currentValue": 3.5, "category": "_tomorrow"}

STRANGE_OFFER = {
    "models": {"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}]},
    "antiphonTomorrow": [{}],
    "_meta": {"antiphon.example": None},
}


@SUITE.scenario(
    "strange-introduction",
    "the agent sends more about itself and its session than any specification has",
    shows=(
        must(
            "tolerates.introduction",
            "Fields and capabilities that the client does not know do not stop it.",
            link="extensibility",
            fix="Ignore what you do not know in the answer to `initialize`.",
            needs=("prompt.comes",),
        ),
        should(
            "tolerates.session",
            "Fields and kinds of settings that the client does not know do not stop it from using a session.",
            link="extensibility",
            fix="Ignore what you do not know in the answer to `session/new`: skip list items that you cannot read.",
            needs=("tolerates.introduction",),
        ),
    ),
)
async def strange_introduction(run: ClientRun) -> None:
    run.script.initialize_result |= STRANGE_INITIALIZE_RESULT
    run.script.held.add("session/new")
    await run.start()
    try:
        opening = await run.next_request("session/new")
    except NotAsked as problem:
        if run.connections:
            run.holds("tolerates.introduction", False, str(problem), *run.connections[0].wire.trace[-1:])
        raise
    run.holds("tolerates.introduction", True, "")
    agent = opening.connection.agent
    usual = agent.new_session(opening.entry.params)
    usual["configOptions"].append(STRANGE_OPTION)
    sent = await agent.respond(opening.entry, usual | STRANGE_OFFER)
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        run.holds("tolerates.session", False, str(problem), sent)
        raise
    await run.survives("tolerates.session", "a strange session", sent)
    await turn.end()
