"""MCP servers that the client gives to a session."""

import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from antiphon import v1
from tests.engines.client import connected
from tests.engines.mcp_servers.web_server import serving, stdio_server
from tests.engines.places import Place
from tests.engines.subjects import proves

SONG = "la la la"


def command_lines(at: Place) -> list[str]:
    found = []
    for pid in at.processes():
        with suppress(OSError):  # it has ended
            found.append(Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"))
    return found


@proves("mcp.stdio", "mcp.http", "mcp.failed", "turn.name", claude=["mcp.sse"], codex=["turn.mcp-call"])
async def test_servers_get_their_environment_and_headers_and_one_that_fails_is_a_notice(at: Place) -> None:
    headers = [v1.HttpHeader("X-Song", SONG)]
    broken = v1.StdioServer("broken", sys.executable, ["-c", "raise SystemExit(3)"], [])
    wanted = {"program": "SECRET_SONG", "web": "X-Song"}
    with ExitStack() as stack:
        servers = [broken, stdio_server("program", SECRET_SONG=SONG)]
        servers.append(v1.HttpServer("web", stack.enter_context(serving("http")), headers))  # type: ignore[arg-type]
        if at.engine == "claude":  # Codex knows no such servers
            servers.append(v1.SseServer("stream", stack.enter_context(serving("sse")), headers))  # type: ignore[arg-type]
            wanted["stream"] = "X-Song"
        async with connected(at) as client:
            await client.open(mcp_servers=servers)
            for server, name in wanted.items():
                at.model.answers(at.calls.mcp_tool(server, "tell", name=name))
                reply = await client.say("what is the song?")
                call = reply.call(f"mcp__{server}__tell")
                assert SONG in at.results()[0] and SONG in str(call["rawOutput"]) and call["status"] == "completed"
                assert call["rawInput"] == {"name": name}
            await client.until(lambda: [each for each in client.updates_of("notice") if "broken" in str(each)])
            lines = command_lines(at)
    assert [asked.tool_call.name for asked in client.asked] == [f"mcp__{server}__tell" for server in wanted]
    assert not any(SONG in each for each in lines)  # where every user of the machine could read it
