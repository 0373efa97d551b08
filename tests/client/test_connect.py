"""Connecting: whom, how, and the error where it cannot be done."""

import asyncio
import sys
from pathlib import Path
from socket import socket

import pytest

from antiphon.client.connect import connect
from antiphon.errors import (
    AcpError,
    ConnectionClosed,
    ProcessDied,
    RemoteProtocolError,
    RequestRefused,
    RequestTimeout,
    SpawnFailed,
)
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.transports.memory import memory_pair
from antiphon.transports.process import ProcessTransport
from tests.client import deviations as d
from tests.client.agents import Scripted
from tests.client.talker import Talker
from tests.limits import limit


async def refused(target: object, **options: object) -> str:
    """The error for a target that makes no sense."""
    with pytest.raises(AcpError) as caught:
        async with connect(target, **options):  # type: ignore[arg-type]  # that is the point
            pass
    return str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "HTTPS", "ws", "wss"])
async def test_an_address_that_cannot_be_reached_is_refused_in_one_sentence_without_its_secrets(scheme: str) -> None:
    with socket() as taken:  # bound and not listening: nothing else gets the port, and it refuses
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        said = await refused(f"{scheme}://{host}/acp?token=secret#secret", headers={"X-Key": "secret"})
    sentence, hint = said.split("\n")
    assert host in sentence and "was not reached" in sentence and hint.startswith("hint: ")
    assert "secret" not in said


@pytest.mark.parametrize("address", ["https://user:pw@host/acp?token=secret", "tcp://host:1234?token=secret"])
async def test_an_address_that_is_none_or_has_a_password_is_refused_without_it(address: str) -> None:
    said = await refused(address)
    assert "host" in said and "\nhint: " in said and "secret" not in said and "pw" not in said


@pytest.mark.parametrize("target", ["lute", "echo hello"])
async def test_a_name_that_is_not_an_agent_is_refused_with_a_hint(target: str) -> None:
    said = await refused(target)
    assert f"`{target}`" in said and "list of the words" in said


async def test_what_is_not_a_target_at_all_is_refused() -> None:
    targets: list[object] = [[], None, b"agent", 7]
    for target in targets:
        assert "a list of the words of its command" in await refused(target)


async def test_a_transport_has_no_directory_and_no_environment() -> None:
    assert "cwd" in await refused(memory_pair()[0], cwd="/")


async def test_an_unknown_name_has_its_hint_apart() -> None:
    with pytest.raises(AcpError) as caught:
        async with connect("gemni"):
            pass
    assert caught.value.sentence == "there is no agent named `gemni`"
    assert caught.value.hint.startswith("did you mean `gemini`?")
    assert caught.value.hint.endswith(", or give a list of the words of its command")


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(SpawnFailed, match="no-such-agent"):
        async with connect(["no-such-agent"]):
            pass


async def test_a_program_that_is_not_an_agent_is_not_tried_again() -> None:
    with pytest.raises(ProcessDied, match="sorry"):
        async with connect([sys.executable, "-c", "import sys; sys.exit('sorry')"]):
            pass


async def test_an_agent_is_called_by_the_name_it_gives_itself() -> None:
    talker = Talker()
    info = v1.Implementation("inner", "1", title="Nice Name")
    talker.answers(m.INITIALIZE, v1.InitializeResult(1, agent_info=info))
    async with talker.connect() as agent:
        assert (agent.name, agent.info) == ("Nice Name", info)
    nameless = Talker()
    async with nameless.connect() as agent:
        assert (agent.name, agent.info) == ("the agent", None)


async def test_a_program_starts_in_the_given_directory_and_so_do_its_sessions(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "minimal_agent.py"
    async with asyncio.timeout(limit()), connect([sys.executable, program], cwd=tmp_path) as agent:
        transport = agent.connection.transport
        assert isinstance(transport, ProcessTransport)
        assert Path(f"/proc/{transport.pid}/cwd").readlink() == tmp_path  # noqa: ASYNC240 - no file of a disk
        session = await agent.new_session()
        assert session.cwd == str(tmp_path)
        assert await session.prompt("call and response").text() == "call and response "


async def test_an_agent_that_was_closed_is_not_started_again(tmp_path: Path) -> None:
    script = Scripted(d.Models, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        await agent.close()
        with pytest.raises(AcpError, match="closed"):
            await session.prompt("hi")
        with pytest.raises(AcpError, match="closed"):
            await agent.new_session()
    assert script.received.count("started") == 1


async def test_a_transport_whose_other_end_is_gone_is_not_an_agent() -> None:
    near, far = memory_pair()
    await far.close()
    with pytest.raises(ConnectionClosed):
        async with connect(near):
            pass


async def test_a_program_that_prints_something_else_is_quoted() -> None:
    with pytest.raises(RemoteProtocolError, match="hello world") as caught:
        async with connect([sys.executable, "-c", "print('hello world')"]):
            pass
    assert "\nhint: " in str(caught.value)
    with pytest.raises(RequestTimeout, match="welcome, type something"):
        async with connect([sys.executable, "-uc", "print('welcome, type something'); input(); input()"], timeout=0.5):
            pass


async def test_an_agent_that_fails_has_its_last_words_in_the_error() -> None:
    failing = (
        "from antiphon import Agent\nagent = Agent('x')\n@agent.on\ndef prompt(turn): pass\n"
        "@agent.on\ndef new_session(session): raise KeyError('the reason')\nagent.run()"
    )
    async with asyncio.timeout(limit()), connect([sys.executable, "-c", failing]) as agent:
        with pytest.raises(RequestRefused) as caught:
            await agent.new_session("/")
        assert "the reason" in "".join(caught.value.__notes__) and "the reason" in agent.stderr
