"""The handshake before the loop: quick, and nothing lost in the handover."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.connection.connection import Connection
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import Initialize
from antiphon.protocol.v1.session import NewSession, Prompt
from antiphon.transports.process import spawn

AGENT = Path(__file__).parents[2] / "examples" / "quick_agent.py"
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
NEW = b'{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'


def answers(said: bytes) -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, str(AGENT)], input=said, capture_output=True, check=True, timeout=20)
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


async def test_a_whole_conversation_with_a_quick_agent() -> None:
    async with asyncio.timeout(20), Connection(await spawn([sys.executable, str(AGENT)]), tolerant=True) as agent:
        first = await agent.request(m.INITIALIZE, Initialize(1))
        assert first.agent_info is not None and first.agent_info.name == "quick"
        session = (await agent.request(m.NEW_SESSION, NewSession("/", []))).session_id
        assert (await agent.request(m.PROMPT, Prompt(session, [TextBlock("x")]))).stop_reason == "end_turn"
        assert await agent.request(m.INITIALIZE, Initialize(1)) == first


def test_the_loop_is_not_imported_before_the_answer() -> None:
    program = (
        "import sys\n"
        "from antiphon.connection.early import answer_initialize\n"
        "from antiphon.protocol import v1\n"
        "def initialize(asked): return v1.InitializeResult(1, meta={'asyncio': 'asyncio' in sys.modules})\n"
        "answer_initialize(initialize)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=HELLO, capture_output=True, check=True, timeout=20)
    assert msgspec.json.decode(done.stdout)["result"]["_meta"] == {"asyncio": False}


def test_what_is_read_with_the_first_line_is_answered_too() -> None:
    assert [answer["id"] for answer in answers(HELLO + NEW + NEW.replace(b'"n"', b'"m"'))] == [0, "n", "m"]


def test_half_a_second_line_is_not_lost() -> None:
    with subprocess.Popen(
        [sys.executable, str(AGENT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        agent.stdin.write(HELLO + NEW[:30])
        assert msgspec.json.decode(agent.stdout.readline())["id"] == 0
        agent.stdin.write(NEW[30:])
        assert msgspec.json.decode(agent.stdout.readline())["id"] == "n"
        agent.stdin.close()


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (NEW, "result"),
        (b"not json\n", "error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}\n', "error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + b"[" * 3000 + b"\n", "error"),
        (b"x" * 2_000_000 + b"\n", "error"),
    ],
    ids=["another method", "noise", "bad params", "broken", "very long"],
)
def test_any_other_first_line_is_left_to_the_connection(first: bytes, outcome: str) -> None:
    other, hello = answers(first + HELLO)
    assert outcome in other and hello["id"] == 0 and "result" in hello


def test_no_first_line_is_the_end() -> None:
    assert answers(b"") == []
    assert [answer["id"] for answer in answers(HELLO.rstrip())] == [0]


def test_a_question_in_a_dialect_is_answered_in_it() -> None:
    (answer,) = answers(b'{"id":1,"method":"initialize","params":{"protocolVersion":1,"capabilities":{}}}\n')
    assert "capabilities" in answer["result"]
