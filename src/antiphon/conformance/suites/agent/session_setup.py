"""`session/new`: what it has to take, and what it has to refuse."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, Requirement, advice, capability, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import is_refused, requests

__all__: list[str] = []

INVALID_PARAMS = -32602
CLOSED_PORT = "http://127.0.0.1:9/"
"""An address that refuses at once: the port of a service that no machine has any more."""


@SUITE.scenario(
    "session-new",
    "a client opens a session",
    shows=(
        must(
            "session.opens",
            "`session/new` with an absolute directory and no MCP servers is answered with the id of a session.",
            link="session-setup#creating-a-session",
            fix="Answer with a new `sessionId`; where one has to sign in first, with the error -32000.",
        ),
    ),
)
async def opening(run: AgentRun) -> None:
    response = await run.new_session()
    found = response.get("sessionId")
    run.holds("session.opens", isinstance(found, str) and bool(found), "there is no id in the answer", response)


@SUITE.scenario(
    "session-refused",
    "a client asks for a session that cannot be",
    provokes=True,
    shows=(
        should(
            "session.relative-directory",
            "`session/new` with a relative directory is refused.",
            link="session-setup#working-directory",
            fix="Answer with the error -32602 if `cwd` is not absolute: there is nothing to resolve it against.",
        ),
    ),
)
async def refused(run: AgentRun) -> None:
    await run.session()  # so that it is this one that is refused, and not every session
    relative = await run.request("session/new", {"cwd": "some/where", "mcpServers": []})
    run.holds("session.relative-directory", is_refused(relative), "it was accepted", relative)


@SUITE.scenario(
    "session-mcp",
    "a client has an MCP server that is not installed",
    shows=(
        advice(
            "session.lost-server",
            "A session opens although an MCP server of it cannot be started.",
            link="session-setup#stdio-transport",
            fix="Open the session without that server, and inform the user.",
        ),
    ),
)
async def servers(run: AgentRun) -> None:
    lost = {"name": "lost", "command": str(run.cwd / "no-such-program"), "args": [], "env": []}
    response = await run.new_session(mcpServers=[lost])
    run.holds("session.lost-server", not is_refused(response), "the session was refused", response)


async def _far(run: AgentRun, kind: str) -> None:
    """A session with a server that has an address, for an agent that offers to take one. No server listens there."""
    run.need("mcpCapabilities", kind)
    far: dict[str, object] = {"type": kind, "name": "far", "url": CLOSED_PORT, "headers": []}
    response = await run.new_session(mcpServers=[far])
    run.holds(f"session.{kind}-server", response.code != INVALID_PARAMS, "it calls such a server invalid", response)


def _taken(kind: str) -> Requirement:
    return capability(
        f"session.{kind}-server",
        f"An agent that offers `mcpCapabilities.{kind}` takes a server of that type.",
        link=f"session-setup#{kind}-transport",
        fix=f"Take servers of the type `{kind}`, or do not offer them.",
    )


@SUITE.scenario("session-http", "a client has an MCP server with an address", shows=(_taken("http"),))
async def http_server(run: AgentRun) -> None:
    await _far(run, "http")


@SUITE.scenario("session-sse", "a client has an MCP server of the older kind", shows=(_taken("sse"),))
async def sse_server(run: AgentRun) -> None:
    await _far(run, "sse")


@SUITE.scenario(
    "session-directories",
    "a client opens more directories than one",
    files=True,
    shows=(
        capability(
            "session.directories",
            "An agent that offers `sessionCapabilities.additionalDirectories` takes them.",
            link="session-setup#additional-workspace-roots",
            fix="Take `additionalDirectories`, or do not offer them.",
        ),
    ),
)
async def directories(run: AgentRun) -> None:
    run.need("sessionCapabilities", "additionalDirectories")
    more = run.cwd / "more"
    more.mkdir(exist_ok=True)
    response = await run.new_session(additionalDirectories=[str(more)])
    run.holds("session.directories", not is_refused(response), "the session was refused", response)


@SUITE.scenario(
    "session-cwd",
    "a command is run in a session",
    files=True,
    shows=(
        must(
            "session.directory",
            "What an agent does in a session it does in the directory of that session, wherever the agent was started.",
            link="session-setup#working-directory",
            fix="Send the session's `cwd` with `terminal/create`, not the directory of your own process.",
        ),
    ),
)
async def directory(run: AgentRun) -> None:
    session = await run.session()
    turn = await run.turn(session, "run", command="pwd")
    made = next(iter(requests(run, "terminal/create", after=turn.request.number)), None)
    where = None if made is None else made.params.get("cwd")
    if not isinstance(where, str):
        raise NotSeen("the agent created no terminal, or left its directory to the client")
    run.holds("session.directory", where == str(run.cwd), f"the terminal was wanted in {where}", made)
