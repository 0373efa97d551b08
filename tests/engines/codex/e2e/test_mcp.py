"""MCP servers that the client gives to a session."""

import sys

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import connected
from tests.engines.codex.model.steps import Call
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.serving import serving, stdio_server

TELL = "mcp__little__tell"


def tell(name: str) -> Call:
    return Call("tell", {"name": name}, namespace="mcp__little")


@proves("mcp.stdio", "turn.mcp-call", on=BOTH)
async def test_a_program_is_started_with_its_arguments_and_environment(at: Place) -> None:
    at.model.answers(tell("SECRET_SONG"))
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server(SECRET_SONG="la la la")])
        told = await client.say("what is the song?")
    call = told.call(TELL)
    assert "la la la" in at.model.last.results[0] and call["status"] == "completed"
    assert call["rawInput"] == {"name": "SECRET_SONG"} and "la la la" in str(call["rawOutput"])
    assert [asked.tool_call.name for asked in client.asked] == [TELL]


@proves("mcp.http", on=BOTH)
async def test_a_server_over_http_is_reached_with_its_headers(at: Place) -> None:
    at.model.answers(tell("X-Song"))
    with serving("http") as url:
        async with connected(at) as client:
            await client.open(mcp_servers=[v1.HttpServer("little", url, [v1.HttpHeader("X-Song", "la la la")])])
            told = await client.say("what is the song?")
    assert "la la la" in at.model.last.results[0] and told.call(TELL)["status"] == "completed"


@proves("mcp.failed")
async def test_a_server_that_fails_is_a_notice_and_the_session_works_without_it(at: Place) -> None:
    broken = v1.StdioServer("broken", sys.executable, ["-c", "raise SystemExit(3)"], [])
    at.model.answers(tell("SECRET_SONG"))
    async with connected(at) as client:
        await client.open(mcp_servers=[broken, stdio_server(SECRET_SONG="la la la")])
        await client.say("what is the song?")
        await client.until(lambda: [each for each in client.updates_of("notice") if "broken" in str(each)])
    assert "la la la" in at.model.last.results[0]
