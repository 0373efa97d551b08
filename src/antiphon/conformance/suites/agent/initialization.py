"""`initialize`: the version, what the agent reports about itself, and that it assumes nothing about a client that reports little."""

from typing import Final

from antiphon.conformance.agent_run import AUTH_REQUIRED, AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse, NotSeen, advice, must, should
from antiphon.conformance.suites.agent.suite import SUITE, breaks
from antiphon.conformance.wire import PeerResponse
from antiphon.traffic.entries import JsonObject

__all__: list[str] = []


breaks("init.no-echo", by=("init.version", "init.twice"))


@SUITE.scenario(
    "handshake",
    "a client introduces itself with version 1",
    provokes=True,
    alone=True,
    shows=(
        must(
            "init.answers",
            "`initialize` is answered with a result.",
            link="initialization",
            fix="Answer `initialize` with the version, your capabilities and your ways to sign in.",
        ),
        must(
            "init.version",
            "A client that asks for version 1 is answered with version 1.",
            link="initialization#protocol-version",
            fix="Answer with the version that the client asked for, if you support it.",
            needs=("init.answers",),
        ),
        should(
            "init.info",
            "The agent sends its name and version.",
            link="initialization#implementation-information",
            fix="Put `agentInfo` with `name` and `version` into the answer to `initialize`.",
            needs=("init.answers",),
        ),
        should(
            "init.capabilities",
            "The agent sends its capabilities, even if it has none.",
            link="initialization#agent-capabilities",
            fix="Put `agentCapabilities` into the answer to `initialize`; an empty object will do.",
            needs=("init.answers",),
        ),
        advice(
            "init.auth-methods",
            "The agent lists its login methods; the list is empty where no login is needed.",
            link="initialization",
            fix="Put `authMethods` into the answer to `initialize`, `[]` without any.",
            needs=("init.answers",),
        ),
        advice(
            "init.twice",
            "A second `initialize` is refused, or answered with the version of the first.",
            link="initialization",
            fix="Keep what was agreed on: refuse a second `initialize` with -32600, or answer it like the first.",
            needs=("init.answers", "init.version"),
        ),
    ),
)
async def handshake(run: AgentRun) -> None:
    response = await run.initialize()
    if not run.holds("init.answers", response.error is None, "it was answered with an error", response):
        return
    version = response.get("protocolVersion")
    run.holds("init.version", version == 1, f"the response has version {version}", response)
    name = response.get("agentInfo", "name")
    has_info = isinstance(name, str) and bool(name) and isinstance(response.get("agentInfo", "version"), str)
    run.holds("init.info", has_info, "the answer has no `agentInfo` with a name and a version", response)
    able = isinstance(response.get("agentCapabilities"), dict)
    run.holds("init.capabilities", able, "the answer has no `agentCapabilities`", response)
    listed = isinstance(response.get("authMethods"), list)
    run.holds("init.auth-methods", listed, "the answer has no list of `authMethods`", response)
    again = await run.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    same = again.error is not None or again.get("protocolVersion") == version
    run.holds("init.twice", same, f"it now answers version {again.get('protocolVersion')}", response, again)


@SUITE.scenario(
    "bare-client",
    "a client sends its version and nothing else",
    alone=True,
    shows=(
        must(
            "init.bare",
            "A client that sends only its version is answered: all else may be left out.",
            link="initialization#client-capabilities",
            fix="Treat missing `clientCapabilities` as none and a missing `clientInfo` as unknown.",
        ),
        should(
            "init.bare-session",
            "A client that can do nothing gets a session all the same.",
            link="initialization#client-capabilities",
            fix="Do without the client's files and terminals where it offers none.",
            needs=("init.bare",),
        ),
    ),
)
async def bare(run: AgentRun) -> None:
    run.initialized = await run.request("initialize", {"protocolVersion": 1})
    if not run.holds("init.bare", run.initialized.error is None, "it was refused", run.initialized):
        return
    opened = await run.new_session()
    got = isinstance(opened.get("sessionId"), str)
    run.holds("init.bare-session", got, "`session/new` gave no session", opened)


# What an agent may meet in `initialize` and has to take in its stride, each by itself something that a newer or a lazier client sends.
ODD: Final[dict[str, JsonObject]] = {
    "init.unknown-capability": {
        "clientCapabilities": {"fs": {"readTextFile": True, "antiphonCheck": True}, "antiphonCheck": {"deep": [1]}}
    },
    "init.unknown-field": {"antiphonCheck": {"unknown": True}},
    "init.meta": {"_meta": {"antiphon.check/odd": [None, 1.5, "x"], "traceparent": "00-0af7651916cd43dd-01"}},
    "init.nulls": {"clientInfo": None},
}


@SUITE.scenario(
    "odd-client",
    "a client is too early, then introduces itself oddly",
    provokes=True,
    alone=True,
    shows=(
        advice(
            "init.refuses-early",
            "`session/new` before `initialize` is refused.",
            link="initialization",
            fix="Answer everything before `initialize` with -32600.",
        ),
        should(
            "init.after-early",
            "A client that was too early can still introduce itself.",
            link="initialization",
            fix="Refuse what comes too early, and go on waiting for `initialize`.",
        ),
        must(
            "init.unknown-capability",
            "A capability that the agent does not know is ignored: new ones are no new version.",
            link="initialization#capabilities",
            fix="Ignore what you do not know in `clientCapabilities`.",
        ),
        should(
            "init.unknown-field",
            "A field that the agent does not know is ignored.",
            link="extensibility",
            fix="Ignore fields of `initialize` that you do not know.",
        ),
        must(
            "init.meta",
            "`_meta` in `initialize` is taken, whatever is in it.",
            link="extensibility",
            fix="Accept `_meta` with any keys in every message.",
        ),
        should(
            "init.nulls",
            "An optional field that is null counts as left out.",
            link="schema#initializerequest",
            fix="Treat `clientInfo: null` as a client without a name.",
        ),
    ),
)
async def odd(run: AgentRun) -> None:
    early = await run.request("session/new", {"cwd": str(run.cwd), "mcpServers": []})
    if early.code != AUTH_REQUIRED:  # which it may be answered with at any time
        run.holds("init.refuses-early", early.error is not None, "it was answered with a session", early)
    response = await _introduced_with(run, *ODD)
    run.holds("init.after-early", not run.left, "it left after it had answered", early)
    if response is None or response.error is not None:
        response = await _culprits(run, response)
    else:
        for one in ODD:
            run.holds(one, True, "", response)
    taken = response is not None and response.error is None
    run.holds("init.after-early", taken, "no `initialize` was answered with a result", early, response)
    raise Blocked("`session/new` requires a login, early or not")


async def _introduced_with(run: AgentRun, *odd: str) -> PeerResponse | None:
    """The response to `initialize` with these in it, of another agent where one has left after something odd; None where it leaves at it."""
    params: JsonObject = {"protocolVersion": 1}
    for one in odd:
        params |= ODD[one]
    try:
        return await run.provoke("initialize", params)
    except NoResponse as missing:
        if not missing.left or not odd:
            raise
        await run.renew()
        return None


async def _culprits(run: AgentRun, refused: PeerResponse | None) -> PeerResponse | None:
    """Find out which of them it is: the one without which the rest is taken. A refused `initialize` may be tried again."""
    response = refused
    for culprit in ODD:
        response = await _introduced_with(run, *(one for one in ODD if one != culprit))
        if response is not None and response.error is None:
            for one in ODD:
                run.holds(
                    one, one != culprit, "`initialize` is refused with it and answered without", refused, response
                )
            return response
    response = await _introduced_with(run)
    if response is not None and response.error is None:
        for one in ODD:
            run.holds(one, False, "`initialize` is refused with two or more of these and answered without", refused)
    return response


# --- versions that the agent does not know


breaks("init.no-echo", by=("version.no-echo", "version.zero"))
breaks("schema.result", by=("version.word",))

HIGH: Final = 65535
"""The highest version that can be asked for, and one that there will not be for a while."""

NEGOTIATION: Final = "initialization#version-negotiation"


def _number(response: PeerResponse) -> int | None:
    version = response.get("protocolVersion")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


@SUITE.scenario(
    "version-of-the-future",
    f"a client that can do nothing asks for version {HIGH}",
    alone=True,
    shows=(
        must(
            "version.answers",
            "A request for an unknown version is answered with one that the agent supports, not with an error.",
            link=NEGOTIATION,
            fix="Answer `initialize` with the latest version that you support; the client decides whether it goes on.",
            needs=("init.empty-capabilities",),
        ),
        must(
            "version.no-echo",
            "The agent does not promise a version that it does not support.",
            link=NEGOTIATION,
            fix="Answer with the requested version only if you support it, else with your latest one.",
        ),
        must(
            "init.empty-capabilities",
            "A client whose capabilities are an empty object is answered.",
            link="initialization#client-capabilities",
            fix="Treat every capability that is left out as not there.",
        ),
    ),
)
async def future(run: AgentRun) -> None:
    response = await run.initialize(HIGH, {})
    if run.holds("version.answers", response.error is None, "it was answered with an error", response):
        supported = _is_real(response) and _number(response) != HIGH
        run.holds("version.no-echo", supported, _version_found(response), response)
    else:
        response = await run.initialize(1, {})
    run.holds("init.empty-capabilities", response.error is None, "it was answered with an error", response)


@SUITE.scenario(
    "version-2",
    "a client that supports versions 1 and 2 requests version 2",
    alone=True,
    shows=(
        must(
            "version.two",
            "A client that asks for version 2 is answered with version 1, or with version 2 and in its shapes.",
            link=NEGOTIATION,
            fix="Answer with version 1 unless you support version 2, where the answer has `info` and `capabilities`.",
        ),
    ),
)
async def two(run: AgentRun) -> None:
    info = {"name": "antiphon-check", "version": "1"}
    response = await run.request("initialize", {"protocolVersion": 2, "info": info, "capabilities": {}})
    version = _number(response)
    in_shape = isinstance(response.get("info"), dict) and isinstance(response.get("capabilities"), dict)
    text = "it was answered with an error" if response.error else _version_found(response)
    shape = " in the shapes of version 1" if version == 2 else ""
    run.holds("version.two", version == 1 or (version == 2 and in_shape), text + shape, response)


@SUITE.scenario(
    "version-0",
    "a client asks for version 0",
    alone=True,
    shows=(
        should(
            "version.zero",
            "A client that asks for version 0 is refused, or answered with a version that there is.",
            link=NEGOTIATION,
            fix="Answer with the latest version that you support, or with an error; do not repeat what was asked for.",
        ),
    ),
)
async def zero(run: AgentRun) -> None:
    response = await run.request("initialize", {"protocolVersion": 0, "clientCapabilities": {"terminal": False}})
    run.holds("version.zero", response.error is not None or _is_real(response), _version_found(response), response)


@SUITE.scenario(
    "version-in-words",
    "a client asks for a version that is a word, then for version 1",
    provokes=True,
    alone=True,
    shows=(
        should(
            "version.word",
            "A version that is not a number is refused, or taken for an unknown one.",
            link="schema#protocolversion",
            fix="Refuse a `protocolVersion` that is not a number with -32602.",
        ),
        should(
            "version.again",
            "After an `initialize` that was refused a correct one is answered.",
            link=NEGOTIATION,
            fix="Count the handshake as done only when it was; until then let the client try again.",
        ),
    ),
)
async def word(run: AgentRun) -> None:
    response = await run.request("initialize", {"protocolVersion": "one", "clientCapabilities": {}})
    run.holds("version.word", response.error is not None or _is_real(response), _version_found(response), response)
    if response.error is None:
        raise NotSeen("the agent took a word for a version, so nothing was refused")
    try:
        again = await run.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    except NoResponse as missing:
        if missing.left:
            run.holds("version.again", False, "it left after it had refused the first", response, missing.request)
        raise
    run.holds("version.again", again.error is None, "it was answered with an error", response, again)


def _is_real(response: PeerResponse) -> bool:
    return (_number(response) or 0) > 0


def _version_found(response: PeerResponse) -> str:
    return f"the response has version {response.get('protocolVersion')!r}"
