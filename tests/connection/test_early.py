"""The handshake before the loop: quick, and nothing lost in the handover."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.connection.connection import Connection
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import Initialize
from antiphon.protocol.v1.session import NewSession, Prompt
from antiphon.protocol.v1.version import V1
from antiphon.transports.process import spawn
from tests.limits import limit

AGENT = Path(__file__).parents[2] / "examples" / "quick_agent.py"
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
NEW = b'{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'


def answers(frame: bytes) -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, str(AGENT)], input=frame, capture_output=True, check=True, timeout=limit())
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


async def test_a_whole_session_with_a_quick_agent() -> None:
    async with (
        asyncio.timeout(20),
        Connection(await spawn([sys.executable, str(AGENT)]), tolerant=True, version=V1) as agent,
    ):
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
        "from antiphon.protocol.v1 import methods as m\n"
        "def initialize(asked): return v1.InitializeResult(1, meta={'asyncio': 'asyncio' in sys.modules})\n"
        "answer_initialize(m.INITIALIZE, initialize)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=HELLO, capture_output=True, check=True, timeout=limit()
    )
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
        (NEW, "error"),  # a client introduces itself first
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


BOASTER = """
import sys
from antiphon.agent import Agent

class Boaster(Agent):
    def initialize(self, asked):
        print("asked", file=sys.stderr, flush=True)
        return super().initialize(asked)

    async def prompt(self, turn): ...

Boaster("boaster", title="x" * int(sys.argv[1])).run()
"""


def wait_until_it_sleeps(pid: int) -> None:
    """Until the process waits for something. Where that cannot be seen, go on."""
    state, deadline = Path(f"/proc/{pid}/stat"), time.monotonic() + 20
    while state.exists() and state.read_text("utf-8").rpartition(") ")[2][0] == "R" and time.monotonic() < deadline:
        os.sched_yield()


@pytest.mark.parametrize(("size", "room"), [(10, 0), (9000, 5000), (200_000, 1)])
def test_the_first_answer_is_whole_also_where_stdout_does_not_block_and_has_little_space(size: int, room: int) -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    filled = 0
    with suppress(BlockingIOError):
        while True:
            filled += os.write(write_fd, b"." * 4096)
    filled -= len(os.read(read_fd, room)) if room else 0
    command = [sys.executable, "-c", BOASTER, str(size)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=write_fd, stderr=subprocess.PIPE) as agent,
        os.fdopen(read_fd, "rb") as output,
    ):
        os.close(write_fd)
        assert agent.stdin is not None and agent.stderr is not None
        agent.stdin.write(HELLO + NEW)
        agent.stdin.close()
        assert agent.stderr.readline() == b"asked\n"
        wait_until_it_sleeps(agent.pid)
        assert output.read(filled) == b"." * filled
        lines = [msgspec.json.decode(line) for line in output.read().splitlines()]
    assert agent.returncode == 0
    assert [line["id"] for line in lines] == [0, "n"] and "x" * size in lines[0]["result"]["agentInfo"]["title"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is Linux's")
def test_an_agent_whose_first_answer_cannot_be_written_ends() -> None:
    command = [sys.executable, "-c", BOASTER, "10"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, input=HELLO + NEW, stdout=full, stderr=subprocess.PIPE, check=False, timeout=limit()
        )
    assert done.returncode == 0 and done.stderr == b"asked\n"
