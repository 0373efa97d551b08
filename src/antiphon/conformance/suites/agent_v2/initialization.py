"""`initialize`: versions that the agent has and has not, a second one, and ways to log in."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NotOffered
from antiphon.conformance.suites.agent_v2.suite import SUITE_V2, is_code, must, run_of, should
from antiphon.conformance.v2.agent_run import INFO
from antiphon.traffic.entries import objects_in, texts_in

UNSUPPORTED_VERSION = -32022
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601


@SUITE_V2.scenario(
    "version-later",
    "a version that there is not yet",
    shows=(
        must(
            "version.later",
            "Asked for a later version, the agent answers with the highest that it supports.",
            link="schema#initializeresponse",
            fix="Answer with the highest version that you support and that is not higher than the requested one.",
        ),
        should(
            "version.later-shape",
            "What a later version sends and this one cannot read is dropped, and no reason to fail.",
            link="schema#initializeresponse",
            fix="Read the params of a later version leniently: leave out what does not parse.",
            needs=("version.later",),
        ),
    ),
    alone=True,
    provokes=True,
)
async def version_later(run: AgentRun) -> None:
    response = await run_of(run).initialize(99)
    seen = f"the answer is {response.get('protocolVersion')!r}"
    if not run.holds("version.later", response.get("protocolVersion") == 2, seen, response):
        return
    if run.another is None:
        raise Blocked("there is no other agent to ask")
    other = run_of(await run.another())
    params = {"protocolVersion": 99, "info": {"words": 1}, "capabilities": {"songs": True, "auth": 7}}
    response = await other.request("initialize", params)
    seen = f"the answer is {response.get('protocolVersion')!r}"
    run.holds("version.later-shape", response.get("protocolVersion") == 2, seen, response)


@SUITE_V2.scenario(
    "version-none",
    "a version that nobody has",
    shows=(
        must(
            "version.none",
            "Where the agent supports no version that is low enough, it refuses `initialize` with -32022.",
            link="schema#unsupportedprotocolversionerrordata",
            fix="Answer with the error -32022, and the versions that you support in its data.",
            needs=("init.version",),
        ),
        must(
            "version.none-again",
            "After a refused `initialize` another one is accepted.",
            link="schema#clientrequest",
            fix="Keep the connection open: the client may ask for another version.",
        ),
    ),
    alone=True,
    provokes=True,
)
async def version_none(run: AgentRun) -> None:
    response = await run_of(run).initialize(0)
    is_code(run, "version.none", response, UNSUPPORTED_VERSION)
    response = await run_of(run).initialize()
    run.holds("version.none-again", response.error is None, "it was answered with an error", response)


@SUITE_V2.scenario(
    "initialize-again",
    "`initialize` more than once",
    shows=(
        must(
            "init.again",
            "`initialize` may be repeated before the first other request, and the last one counts.",
            link="schema#clientrequest",
            fix="Accept `initialize` until another request comes.",
        ),
        must(
            "init.again-failed",
            "An `initialize` that fails leaves the earlier one in force.",
            link="schema#clientrequest",
            fix="Change what was settled only when the new `initialize` succeeds.",
            needs=("init.again",),
        ),
    ),
    alone=True,
    provokes=True,
)
async def again(run: AgentRun) -> None:
    await run_of(run).start()
    second = await run_of(run).initialize()
    same = second.get("protocolVersion") == 2
    if run.holds("init.again", same, "the second one was not answered with version 2", second):
        await run.request("initialize", {"protocolVersion": "two", "info": INFO})
        response = await run.new_session()
        run.holds("init.again-failed", response.error is None, "no session can be opened after it", response)


@SUITE_V2.scenario(
    "initialize-first",
    "a request before `initialize`",
    shows=(
        should(
            "init.early",
            "A request that comes before `initialize` is refused with -32600.",
            link="initialization",
            fix="Answer every request with -32600 until `initialize` has succeeded.",
        ),
    ),
    alone=True,
    provokes=True,
)
async def first(run: AgentRun) -> None:
    response = await run.request("session/new", {"cwd": str(run.cwd)})
    is_code(run, "init.early", response, INVALID_REQUEST)


@SUITE_V2.scenario(
    "initialize-lenient",
    "optional fields that cannot be read",
    shows=(
        must(
            "init.lenient",
            "An optional field that cannot be read is dropped, and the message is kept.",
            link="schema#initializerequest",
            fix="Take a field that the schema marks as lenient for missing where it is malformed.",
        ),
    ),
    alone=True,
    provokes=True,
)
async def lenient(run: AgentRun) -> None:
    response = await run_of(run).initialize(capabilities={"auth": 7, "elicitation": "yes"})
    run.holds("init.lenient", response.error is None, "`initialize` was answered with an error", response)


@SUITE_V2.scenario(
    "login",
    "logging in and out",
    shows=(
        must(
            "auth.both",
            "An agent with ways to log in serves both `auth/login` and `auth/logout`.",
            link="schema#initializeresponse",
            fix="Implement both methods as soon as `authMethods` has an entry.",
        ),
    ),
    alone=True,
)
async def login(run: AgentRun) -> None:
    await run_of(run).start()
    offered = objects_in(run.initialized.get("authMethods") if run.initialized is not None else None)
    ids = texts_in([one for one in offered if one.get("type") == "agent"], "methodId")
    if not offered:
        raise NotOffered("the agent offers no way to log in")
    asked = [await run.request("auth/logout", {})]
    if run.options.auth in ids:
        asked.insert(0, await run.request("auth/login", {"methodId": run.options.auth}))
    for response in asked:
        served = response.code != METHOD_NOT_FOUND
        run.holds("auth.both", served, f"`{response.request.method}` is not served", response)


@SUITE_V2.scenario(
    "bare-client",
    "a client that offers nothing",
    shows=(
        must(
            "bare.works",
            "An agent works with a client that offers nothing.",
            link="schema#clientcapabilities",
            fix="Do without forms, addresses and logins in a terminal where the client does not offer them.",
        ),
    ),
    alone=True,
)
async def bare(run: AgentRun) -> None:
    await run_of(run).initialize(capabilities={})
    await _works(run, "bare.works")


@SUITE_V2.scenario(
    "null-client",
    "a client that sends null for what it does not support",
    shows=(
        must(
            "bare.null",
            "A marker that is null means the same as one that is missing: not supported.",
            link="schema#clientcapabilities",
            fix="Take null for missing in all capabilities; `{}` is the marker of something that is supported.",
        ),
    ),
    alone=True,
)
async def null_client(run: AgentRun) -> None:
    nulls = {"auth": {"terminal": None}, "elicitation": {"form": None, "url": None}, "_meta": None}
    await run_of(run).initialize(capabilities=nulls)
    await _works(run, "bare.null")


async def _works(run: AgentRun, requirement: str) -> None:
    """The requirement is that a prompt works."""
    session = await run.session()
    pending = await run.prompt(session, run.words("say"))
    response = await pending.response()
    if run.holds(requirement, response.error is None, "a prompt was answered with an error", response):
        await run_of(run).idle(session, pending.request, requirement)
    await run.settle()
