"""What an MCP server is given may be secret: it stands on no command line, and in no file that outlives the moment."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from antiphon import v1
from antiphon.errors import RequestRefused
from antiphon.transports import tree
from antiphon.transports.process import ProcessTransport
from tests.engines.claude.model.steps import Call
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import Client, connected
from tests.engines.mcp_servers.web_server import serving, stdio_server
from tests.engines.places import comes

SECRET = "hush-b0c1d2e3f4"
HEADER = v1.HttpHeader("Authorization", f"Bearer {SECRET}")
UNKNOWN_USER = v1.HttpServer("nobody", "http://127.0.0.1:9/mcp", [HEADER])

STOPS_AT_THE_DOOR = """#!/bin/sh
case "$1" in --version) echo '2.1.325 (Claude Code)'; exit;; esac
while [ "$1" != --mcp-config ]; do shift; done
grep -c {secret} "$2" > {told}
read -r _ < {door}
exit 3
"""
"""A program that looks whether the secret is where it is sent, and then waits at a pipe before it fails."""


READS_LATE = """#!/bin/sh
case "$1" in --version) echo '2.1.325 (Claude Code)'; exit;; esac
while [ "$1" != --mcp-config ]; do shift; done
echo here > {started}
while read -r _; do :; done
grep -c {secret} "$2" > {found}
"""
"""A program that looks for its servers only when its stdin is closed."""


def files_with_it(at: Place) -> list[Path]:
    """Files anywhere that it could have been written to."""
    return [path for path in at.home.parent.rglob("*") if path.is_file() and has_it(path)]


def has_it(path: Path) -> bool:
    return SECRET.encode() in read(path)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # gone meanwhile
        return b""


def lines_with_it(at: Place) -> list[bytes]:
    """The command lines and environments that have it, of the agent and all that it started but the server itself."""
    found = []
    for pid in tree.processes_with(at.mark):
        of = Path(f"/proc/{pid}")
        serves = b"mcp_servers" in (line := read(of / "cmdline"))
        if SECRET.encode() in line or (SECRET.encode() in read(of / "environ") and not serves):
            found.append(line)
    return found


def is_played_by(at: Place, script: str, **pipes: Path) -> None:
    """Let a script be Claude Code."""
    program = at.tools / "in-its-place"
    program.write_text(script.format(secret=SECRET[:8], **pipes), encoding="utf-8")
    program.chmod(0o755)
    at.environment["CLAUDE_CODE_EXECUTABLE"] = str(program)


class BlockedCli:
    """A program that waits at the pipe: it has been sent all, and has sent nothing yet."""

    def __init__(self, at: Place) -> None:
        self.report, self._door = at.pipe("told"), at.pipe("door")
        is_played_by(at, STOPS_AT_THE_DOOR, told=self.report, door=self._door)

    async def is_reached(self) -> None:
        """It has read its servers, the secret too."""
        assert (await asyncio.to_thread(self.report.read_text, encoding="utf-8")).strip() == "1"

    async def open(self) -> None:
        """Let it fail."""
        await asyncio.to_thread(self._door.write_text, "\n", encoding="utf-8")


@proves("mcp.secret")
async def test_while_it_starts_and_when_that_fails_no_file_has_it(at: Place) -> None:
    door = BlockedCli(at)
    async with connected(at) as client:
        await client.open(mcp_servers=[UNKNOWN_USER])
        for _ in range(2):  # the next one gets it as well
            turn = client.session.prompt("sing")
            await door.is_reached()
            assert files_with_it(at) == [] and lines_with_it(at) == []
            await door.open()
            with pytest.raises(RequestRefused) as caught:
                await turn
            assert SECRET not in f"{caught.value} {caught.value.data}"
            assert files_with_it(at) == [] and descriptors_with_it(client) == []
    assert files_with_it(at) == []


def descriptors_with_it(client: Client) -> list[Path]:
    """What the agent has open that has it."""
    transport = client.agent.connection.transport
    assert isinstance(transport, ProcessTransport)
    links = Path(f"/proc/{transport.pid}/fd").iterdir()
    return [
        link for link in links if link.is_file() and has_it(link)
    ]  # a pipe is none, and what has no name anywhere is


@proves("mcp.secret")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["told", "made"])
async def test_an_agent_that_is_ended_while_it_starts_leaves_nothing(at: Place, end: signal.Signals) -> None:
    door = BlockedCli(at)
    async with connected(at) as client:
        await client.open(mcp_servers=[UNKNOWN_USER])
        await door.is_reached()
        transport = client.agent.connection.transport
        assert isinstance(transport, ProcessTransport)
        os.kill(transport.pid, end)
        program = Path(f"/proc/{transport.pid}/exe")  # of a process that is dead and not yet buried, there is none
        assert await asyncio.to_thread(comes, lambda: not program.exists())
        assert files_with_it(at) == []


@proves("mcp.secret", on=BOTH)
async def test_a_session_that_works_with_it_writes_it_nowhere(at: Place) -> None:
    at.model.answers(Call("mcp__little__tell", {"name": "other"}))
    with serving("http") as url:
        async with connected(at) as client:
            little = stdio_server(SECRET_SONG=SECRET)
            other = v1.HttpServer("other", url, [HEADER])
            await client.open(mcp_servers=[little, other])
            reply = await client.say("sing")
            assert reply.call("mcp__little__tell")["status"] == "completed"
            assert files_with_it(at) == [] and lines_with_it(at) == [] and descriptors_with_it(client) == []
    assert files_with_it(at) == []


@proves("mcp.secret")
async def test_a_cli_that_is_ended_while_it_starts_finds_its_servers_and_nothing_else_under_their_name(
    at: Place,
) -> None:
    """Their name is a number of the agent's. Let go too early, it is that of a pipe to another Claude Code, whose words are then lost."""
    started, found = at.pipe("started"), at.pipe("found")
    is_played_by(at, READS_LATE, started=started, found=found)
    async with connected(at) as client:
        await client.open(mcp_servers=[UNKNOWN_USER])
        await asyncio.to_thread(started.read_text, encoding="utf-8")
        closing = asyncio.create_task(client.session.close())
        assert (await asyncio.to_thread(found.read_text, encoding="utf-8")).strip() == "1"
        await closing
        assert descriptors_with_it(client) == []
