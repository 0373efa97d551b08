"""An agent as an editor has it: a program on the other side of two pipes."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from antiphon.errors import ProcessDied
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.transports.process import spawn
from tests.agent.editor import Editor
from tests.transports.children import gone

HELLO = Path(__file__).parents[2] / "examples" / "hello.py"

WORKING = """
import asyncio, pathlib, sys
from antiphon import Agent

agent = Agent("working")

@agent.on
async def prompt(turn):
    print("a stray print")
    async with turn.run("echo $$; exec sleep 600") as running:
        async for pid in running:
            await turn.say(pid)

@agent.on
async def close_session(session):
    await asyncio.sleep(0)
    pathlib.Path(session.cwd, "closed").write_text(session.id, encoding="utf-8")

agent.run()
"""


async def test_hello_world_answers_an_editor() -> None:
    async with asyncio.timeout(30):
        editor = Editor(await spawn([sys.executable, str(HELLO)]))
        async with editor.connection:
            answer = await editor.introduce()
            assert answer.agent_info == v1.Implementation("hello", "1.0")
            session = await editor.open("/")
            for words in ("one", "two"):
                assert (await editor.prompt(session, words)).stop_reason == v1.StopReason.END_TURN
            assert editor.order[2:] == [
                "Hello! You said: one",
                "answer:session/prompt",
                "Hello! You said: two",
                "answer:session/prompt",
            ]


async def test_an_agent_answers_initialize_before_it_imports_an_event_loop() -> None:
    looking = (
        "import sys\n"
        "from antiphon import Agent\n"
        "class Looking(Agent):\n"
        "    def initialize(self, asked):\n"
        "        answer = super().initialize(asked)\n"
        "        print(sorted({'asyncio', 'antiphon.agent.session', 'antiphon.protocol.v1.session'} & set(sys.modules)), file=sys.stderr)\n"
        "        return answer\n"
        "    def prompt(self, turn): pass\n"
        "Looking().run()\n"
    )
    agent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", looking, stdin=-1, stdout=-1, stderr=-1, limit=1 << 20
    )
    async with asyncio.timeout(30):
        out, err = await agent.communicate(b'{"id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    assert b'"id":1' in out and b'"agentInfo"' in out
    assert err.decode().splitlines() == ["[]"] and agent.returncode == 0


async def test_requests_that_are_sent_together_are_all_answered() -> None:
    """`printf '…' | python hello.py`: the whole session is there before the agent is."""
    asked = (
        b'{"id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
        b'{"id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
        b'{"id":3,"method":"session/new","params":{"cwd":"nowhere","mcpServers":[]}}\n'
    )
    agent = await asyncio.create_subprocess_exec(sys.executable, str(HELLO), stdin=-1, stdout=-1, stderr=-1)
    async with asyncio.timeout(30):
        out, err = await agent.communicate(asked)
    lines = out.splitlines()
    assert [f'"id":{id}'.encode() in line for id, line in enumerate(lines, 1)] == [True] * 3
    assert b'"sessionId"' in lines[1] and b"must be an absolute path" in lines[2]
    assert (err, agent.returncode) == (b"", 0)


async def test_a_client_that_does_not_send_initialize_gets_an_error() -> None:
    agent = await asyncio.create_subprocess_exec(sys.executable, str(HELLO), stdin=-1, stdout=-1, stderr=-1)
    async with asyncio.timeout(30):
        out, _ = await agent.communicate(b'{"id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n')
    assert b"send `initialize` first" in out and agent.returncode == 0


async def working(place: Path) -> tuple[Editor, str, "asyncio.Task[v1.PromptResult]", int]:
    """An agent in the middle of a turn, with a command of its own that runs, and that command's process."""
    editor = Editor(await spawn([sys.executable, "-c", WORKING]))
    await editor.connection.__aenter__()
    await editor.introduce()
    session = await editor.open(str(place))
    running = editor.prompt(session)
    await editor.until(lambda: bool(editor.updates()))
    return editor, session, running, int(editor.order[-1])


async def test_a_cancelled_turn_of_a_program_ends_its_command_and_leaves_the_program(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        editor, session, running, pid = await working(tmp_path)
        editor.cancel(session)
        assert (await running).stop_reason == v1.StopReason.CANCELLED
        await gone(pid)
        await editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session))
        assert (tmp_path / "closed").read_text(encoding="utf-8") == session
        await editor.connection.close()


async def test_an_editor_that_closes_stdin_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        editor, session, running, pid = await working(tmp_path)
        await editor.connection.close()
        await asyncio.gather(running, return_exceptions=True)
        await gone(pid)
    assert (tmp_path / "closed").read_text(encoding="utf-8") == session


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["KILL", "INT"])
async def test_a_program_that_is_ended_takes_its_command_with_it(tmp_path: Path, how: signal.Signals) -> None:
    async with asyncio.timeout(30):
        editor, session, running, pid = await working(tmp_path)
        os.kill(editor.connection.transport.pid, how)  # type: ignore[attr-defined]
        if how == signal.SIGKILL:
            with pytest.raises(ProcessDied):
                await running
        else:  # Ctrl-C: there is time to answer, and to close
            assert (await running).stop_reason == v1.StopReason.CANCELLED
            await editor.connection.wait_closed()
            assert (tmp_path / "closed").read_text(encoding="utf-8") == session
        await gone(pid)
        await editor.connection.close()


async def test_a_program_whose_handler_ignores_everything_still_ends_with_its_input() -> None:
    stubborn = (
        "import asyncio\n"
        "from antiphon import Agent\n"
        "from antiphon.agent import agent as agents, prompts\n"
        "agents.EXIT_GRACE = prompts.TURN_GRACE = 0.1\n"
        "agent = Agent('stubborn')\n"
        "@agent.on\n"
        "async def prompt(turn):\n"
        "    await turn.say('here')\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "agent.run()\n"
    )
    said = (
        b'{"id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
        b'{"id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
    )
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", stubborn, stdin=-1, stdout=-1, stderr=-1)
    async with asyncio.timeout(30):
        assert agent.stdin is not None and agent.stdout is not None
        agent.stdin.write(said)
        await agent.stdout.readline()
        session = msgspec.json.decode(await agent.stdout.readline())["result"]["sessionId"]
        prompt = {"id": 3, "method": "session/prompt", "params": {"sessionId": session, "prompt": []}}
        agent.stdin.write(msgspec.json.encode(prompt) + b"\n")
        assert b"here" in await agent.stdout.readline()
        agent.stdin.close()
        _, err = await agent.communicate()
    assert agent.returncode == 1 and b"ignore their cancellation" in err
