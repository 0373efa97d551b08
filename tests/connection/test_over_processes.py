"""A connection to a real program: its noise, its death, its tree."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from antiphon.connection.connection import Connection
from antiphon.connection.reports import Report
from antiphon.errors import ProcessDied
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import Initialize
from antiphon.protocol.v1.session import NewSession, Prompt
from antiphon.protocol.v1.version import V1
from antiphon.rpc.envelope import Noise
from antiphon.transports.process import spawn
from tests.connection.ends import text_of

AGENT = Path(__file__).parents[2] / "examples" / "minimal_agent.py"


async def test_a_whole_session_with_a_real_agent() -> None:
    async with (
        asyncio.timeout(20),
        Connection(await spawn([sys.executable, str(AGENT)]), tolerant=True, version=V1) as agent,
    ):
        assert (await agent.request(m.INITIALIZE, Initialize(1))).protocol_version == 1
        session = (await agent.request(m.NEW_SESSION, NewSession("/", []))).session_id
        turn = agent.stream(m.PROMPT, Prompt(session, [TextBlock("call and response")]), session)
        assert [text_of(update) async for update in turn] == ["call ", "and ", "response "]
        assert turn.result.stop_reason == "end_turn"


async def test_an_agent_answers_what_it_was_asked_before_its_stdin_closed() -> None:
    """`printf '…' | agent` gets its answers."""
    agent = await asyncio.create_subprocess_exec(
        sys.executable, str(AGENT), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    asked = (
        b'{"id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
        b'{"id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
    )
    async with asyncio.timeout(20):
        out, _ = await agent.communicate(asked)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert agent.returncode == 0


async def test_a_log_line_on_stdout_is_kept_counted_reported_and_skipped() -> None:
    noisy = "import runpy, sys\nprint('[INFO] booting', flush=True)\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    reports: list[Report] = []
    child = await spawn([sys.executable, "-c", noisy, str(AGENT)])
    async with asyncio.timeout(20), Connection(child, tolerant=True, observer=reports.append, version=V1) as agent:
        assert (await agent.request(m.INITIALIZE, Initialize(1))).protocol_version == 1
        assert list(agent.noise) == [b"[INFO] booting"]
        assert agent.counts == {"Noise": 1}
    assert reports == [Noise(b"[INFO] booting")]


async def test_when_the_program_dies_every_wait_fails_with_its_status_and_last_words() -> None:
    dying = "import sys\nsys.stdin.readline()\nprint('out of luck', file=sys.stderr)\nsys.exit(7)"
    async with (
        asyncio.timeout(20),
        Connection(await spawn([sys.executable, "-c", dying]), tolerant=True, version=V1) as agent,
    ):
        asking = [asyncio.create_task(agent.request(m.INITIALIZE, Initialize(1))) for _ in range(3)]
        for each in asking:
            with pytest.raises(ProcessDied, match="out of luck") as caught:
                await each
            assert caught.value.status == 7


async def test_an_answer_over_the_limit_fails_the_request_and_not_the_connection() -> None:
    wordy = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    id = json.loads(line)['id']\n"
        "    name = 'x' * 100000 if id == 1 else 'short'\n"
        "    result = {'protocolVersion': 1, 'agentInfo': {'name': name, 'version': '1'}}\n"
        "    print(json.dumps({'result': result, 'id': id}), flush=True)\n"
    )
    child = await spawn([sys.executable, "-c", wordy], limit=10_000)
    async with asyncio.timeout(20), Connection(child, tolerant=True, version=V1) as agent:
        with pytest.raises(Exception, match="over the limit"):
            await agent.request(m.INITIALIZE, Initialize(1))
        assert (await agent.request(m.INITIALIZE, Initialize(1))).protocol_version == 1


async def test_closing_with_a_turn_that_is_not_read_does_not_hang() -> None:
    """The agent has much to say when its stdin ends, our inbox is full, and we close."""
    flood = (
        "import sys\n"
        "sys.stdin.readline()\n"
        'line = \'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":\'\n'
        'line += \'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\' + \'x\' * 1000 + \'"}}}}\'\n'
        "print(line, flush=True)\n"
        "sys.stdin.read()\n"
        "for _ in range(3000): print(line)\n"
    )
    async with asyncio.timeout(20):
        child = await spawn([sys.executable, "-c", flood])
        async with Connection(child, inbox_limit=20_000, version=V1) as agent:
            turn = agent.stream(m.PROMPT, Prompt("s", []))
            assert await anext(turn) is not None
    assert child.status == 0
