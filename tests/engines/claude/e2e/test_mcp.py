"""MCP servers that the client gives to a session."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from antiphon import v1
from tests.engines.claude.model.steps import Call
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.driving import connected
from tests.engines.mcp_servers.serving import serving, stdio_server

TELL = "mcp__little__tell"


def tell(name: str) -> Call:
    return Call(TELL, {"name": name})


@proves("mcp.stdio", "turn.name", on=BOTH)
async def test_a_program_is_started_with_its_arguments_and_environment(at: Place) -> None:
    at.model.answers(tell("SECRET_SONG"))
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server(SECRET_SONG="la la la")])
        told = await client.say("what is the song?")
        words = [path.read_bytes() for path in command_lines(at)]
    call = told.call(TELL)
    assert "la la la" in at.model.last.result_texts[0] and call["status"] == "completed" and call["name"] == TELL
    assert [asked.tool_call.name for asked in client.asked] == [TELL]
    assert not any(b"la la la" in each for each in words)  # where everybody on the machine could read it


def command_lines(at: Place) -> list[Path]:
    return [Path(f"/proc/{pid}/cmdline") for pid in at.processes()]


def over_http(url: str) -> v1.McpServer:
    return v1.HttpServer("little", url, [v1.HttpHeader("X-Song", "la la la")])


def over_sse(url: str) -> v1.McpServer:
    return v1.SseServer("little", url, [v1.HttpHeader("X-Song", "la la la")])


async def reached(at: Place, way: Literal["http", "sse"], server: Callable[[str], v1.McpServer]) -> None:
    at.model.answers(tell("X-Song"))
    with serving(way) as url:
        async with connected(at) as client:
            await client.open(mcp_servers=[server(url)])
            told = await client.say("what is the song?")
    assert "la la la" in at.model.last.result_texts[0] and told.call(TELL)["status"] == "completed"


@proves("mcp.http", on=BOTH)
async def test_a_server_over_http_is_reached_with_its_headers(at: Place) -> None:
    await reached(at, "http", over_http)


@proves("mcp.sse", on=BOTH)
async def test_a_server_over_sse_is_reached_with_its_headers(at: Place) -> None:
    await reached(at, "sse", over_sse)


@proves("mcp.failed", on=BOTH)
async def test_a_server_that_fails_is_a_notice_and_the_session_works_without_it(at: Place) -> None:
    broken = v1.StdioServer("broken", sys.executable, ["-c", "raise SystemExit(3)"], [])
    at.model.answers(tell("SECRET_SONG"))
    async with connected(at) as client:
        await client.open(mcp_servers=[broken, stdio_server(SECRET_SONG="la la la")])
        await client.say("what is the song?")
        await client.until(lambda: client.updates_of("notice"))
    assert "la la la" in at.model.last.result_texts[0]
    assert any("broken" in str(each) for each in client.updates_of("notice"))
