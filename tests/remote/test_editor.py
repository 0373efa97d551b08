"""`antiphon agent --connect` as an editor starts it, with `antiphon serve` at the other end: processes, pipes and sockets."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import v1
from antiphon.transports.process import spawn
from tests.gateway.peers import RawClient
from tests.gateway.processes import Gateway, running
from tests.gateway.second import SecondClient
from tests.limits import limit
from tests.transports.serving import served
from tests.waits import until

pytestmark = pytest.mark.slow  # each starts a gateway, its agent and a client

CONNECT = [sys.executable, "-m", "antiphon", "agent", "--connect"]


@pytest.fixture
def gateway(tmp_path: Path) -> Any:
    with running(tmp_path) as gateway:
        yield gateway


def words(gateway: Gateway, *more: str, port: int | None = None) -> list[str]:
    url = f"ws://127.0.0.1:{port or gateway.port}/acp"
    return [*CONNECT, url, "--token-file", str(gateway.place["token_file"]), *more]


@asynccontextmanager
async def editor(command: list[str]) -> AsyncIterator[RawClient]:
    """A client on the pipes of the program."""
    process = await spawn(command)
    client = RawClient(None, transport=process)
    try:
        async with asyncio.timeout(limit()):
            yield client
    finally:
        await client.leave()


class Cable:
    """The way between the program and the gateway, that can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []
        self.opened = 0
        self.port = 0

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Cable"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        """Cut what there is."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self.opened += 1
        self._writers += [writer, back]

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            target.transport.abort()

        await asyncio.gather(copy(reader, back), copy(there, writer))


async def test_prompt_permission_cancel_and_load_by_our_client(gateway: Gateway) -> None:
    root = gateway.directory / "root"
    async with (
        asyncio.timeout(limit()),
        antiphon.connect(words(gateway), permission=lambda request: "allow_once") as agent,
        antiphon.connect(words(gateway)) as other,
    ):
        session = await agent.new_session(root)
        assert "hello" in await session.prompt("/echo hello").text()
        assert (await session.prompt("/permission")).stop_reason == v1.StopReason.END_TURN
        turn = session.prompt("/slow 1000")
        async for _ in turn:
            await turn.cancel()
        assert (await turn).stop_reason == v1.StopReason.CANCELLED
        again = await other.load_session(session.id, root)
        assert "on" in await again.prompt("/echo on").text()


async def test_a_directory_of_this_machine_is_a_directory_of_the_other(gateway: Gateway, tmp_path: Path) -> None:
    root, here = gateway.directory / "root", tmp_path / "here"
    (root / "notes.txt").write_text("from the server", encoding="utf-8")
    here.mkdir()
    async with editor(words(gateway, "--map", f"{here}={root}")) as client:
        await client.initialize()
        session = await client.new(here)
        await client.response(client.prompt(session, "/read notes.txt"))
        updates = [each["params"]["update"] for each in client.messages if each.get("method") == "session/update"]
        places = [place["path"] for each in updates for place in each.get("locations") or ()]
        assert places and set(places) == {str(here / "notes.txt")}
        assert "from the server" in str(updates)
        error = await client.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert str(root) in error["message"] and "--map" in error["data"]["hint"]


async def test_a_socket_that_is_cut_in_a_turn_is_not_noticed(gateway: Gateway) -> None:
    async with Cable(gateway.port).laid() as cable, editor(words(gateway, port=cable.port)) as client:
        await client.initialize()
        session = await client.new(gateway.directory / "root")
        asked = client.prompt(session, "/many 2000")
        await until(lambda: len(client.texts) > 100)
        cable.cut()
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert cable.opened == 2
        assert not any(b'"number":' in frame for frame in client.frames), "they are for those who asked"
        whole = RawClient(None, transport=await spawn(words(gateway)))
        await whole.initialize()
        await whole.request(
            "session/load", {"sessionId": session, "cwd": str(gateway.directory / "root"), "mcpServers": []}
        )
        assert whole.texts == ["/many 2000", *client.texts]
        await whole.leave()


async def test_a_run_whose_socket_is_cut_goes_on_and_says_so(gateway: Gateway) -> None:
    async with Cable(gateway.port).laid() as cable:
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "antiphon", "run", "--agent", f"ws://127.0.0.1:{cable.port}/acp"],
            *["--token-file", str(gateway.place["token_file"]), "/slow 100"],
            cwd=gateway.directory / "root", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        async with asyncio.timeout(limit()):
            begun = await process.stdout.readuntil(b"10 ")
            cable.cut()
            rest, said = await asyncio.gather(process.stdout.read(), process.stderr.read())
        assert await process.wait() == 0, said
        words = (begun + rest).decode().split()
        assert [word for word in words if word.isdecimal()] == [str(number) for number in range(1, 101)]
        assert "the connection was lost" in said.decode() and "again" in said.decode()


async def test_a_run_without_a_directory_of_the_server_uses_the_one_that_the_server_has(
    gateway: Gateway, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    token = ["--token-file", str(gateway.place["token_file"])]
    root, command = str(gateway.directory / "root"), [sys.executable, "-m", "antiphon", "run", "--agent"]

    async def run(*words: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *[*command, f"ws://127.0.0.1:{gateway.port}/acp", "hello", *words],
            cwd=here, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(limit()):
            out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    status, out, err = await run(*token)
    assert status == 0 and "You are in `root`" in out
    assert f"`{here}` is not at" in err and f"working in `{root}` there" in err
    status, out, err = await run(*token, "--cwd", "/srv/not-on-this-machine")
    assert (
        status == 1
        and f"it has `{root}`" in err
        and f"hint: name a directory of that machine, as in `--cwd {root}`" in err
    )
    status, out, err = await run()
    assert status == 1 and "wants its token" in err and "hint: give its token, as in `--token-file`" in err


async def test_a_permission_request_outlives_the_socket_and_its_answer_arrives(gateway: Gateway) -> None:
    async with Cable(gateway.port).laid() as cable, editor(words(gateway, port=cable.port)) as client:
        await client.initialize()
        session = await client.new(gateway.directory / "root")
        asked = client.prompt(session, "/permission")
        request = await client.asked()
        cable.cut()
        client.choose(request)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert len(client.requests()) == 1


async def test_a_gateway_that_is_killed_and_started_again_is_the_same_for_the_editor(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with running(tmp_path, "--port", port) as first:
        command = words(first)
        process = await spawn(command)
        client = RawClient(None, transport=process)
        await client.initialize()
        session = await client.new(tmp_path / "root")
        asked = client.prompt(session, "/slow 1000")
        await until(lambda: len(client.texts) > 3)
        first.kill()
    waiting = client.begin("session/list", {})
    with running(tmp_path, "--port", port):
        async with asyncio.timeout(limit()):
            error = (await client.response(asked))["error"]
            assert error["data"]["antiphon"]["interrupted"] is True
            assert (await client.response(waiting))["result"]["sessions"][0]["sessionId"] == session
            done = await client.response(client.prompt(session, "/echo back"))
            assert done["result"]["stopReason"] == "end_turn" and "back" in client.texts[-1]
            assert [each for each in client.texts if each.startswith("/slow")] == []
            await client.leave()


async def test_a_turn_goes_on_when_the_editor_ends(gateway: Gateway) -> None:
    root = gateway.directory / "root"
    async with editor(words(gateway)) as client:
        await client.initialize()
        session = await client.new(root)
        client.prompt(session, "/permission")
        await client.asked()
    async with editor(words(gateway)) as again:
        await again.initialize()
        await again.request("session/load", {"sessionId": session, "cwd": str(root), "mcpServers": []})
        again.choose(await again.asked())
        await until(lambda: len(again.texts) > 1)


async def test_a_joint_session_behind_the_gateway_is_listed_once(tmp_path: Path) -> None:
    demo = [sys.executable, "-m", "antiphon", "agent", "--engine", "demo"]
    state = {"ANTIPHON_STATE_DIR": str(tmp_path / "state")}
    with running(tmp_path, env=state, agent=[*demo, "--engine", " ".join(demo)]) as gateway:
        async with editor(words(gateway)) as client:
            await client.initialize()
            session = await client.new(tmp_path / "root")
            await client.response(client.prompt(session, "/echo hello"))
            listed = (await client.request("session/list", {}))["sessions"]
            assert [each["sessionId"] for each in listed].count(session) == 1
            done = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", "antiphon", "sessions", "--all", "--json"],
                env={**os.environ, **state}, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            shown = [json.loads(line) for line in (await done.communicate())[0].splitlines()]
        assert [each["id"] for each in shown] == [session]
        assert shown[0]["client"] == "antiphon-gateway" and shown[0]["openIn"]["who"] == "Antiphon gateway"


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (["--token-file", "TOKEN"], 1, "give its token"),
        (["--map", "x"], 2, "pair of directories"),
        (["--engine", "demo"], 2, "in place of"),
    ],
)
async def test_what_cannot_work_is_reported_with_what_to_do(
    gateway: Gateway, tmp_path: Path, more: list[str], status: int, said: str
) -> None:
    (tmp_path / "wrong").write_text("wrong", encoding="utf-8")
    given = [str(tmp_path / "wrong") if word == "TOKEN" else word for word in more]
    process = await asyncio.create_subprocess_exec(
        *words(gateway, *given),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(limit()):
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n')
        out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
    assert await process.wait() == status and "hint:" in err.decode() and said in err.decode() + out.decode()


async def test_an_editor_of_version_2_notices_nothing_of_a_socket_that_is_cut(gateway: Gateway) -> None:
    root = gateway.directory / "root"
    async with Cable(gateway.port).laid() as cable, asyncio.timeout(limit()):
        client = SecondClient(None, transport=await spawn(words(gateway, port=cable.port)))
        assert (await client.initialize())["protocolVersion"] == 2
        session = await client.new(root)
        id = (await client.response(client.prompt(session, "/many 2000")))["result"]["messageId"]
        await until(lambda: len(client.texts) > 100)
        cable.cut()
        await until(lambda: client.ends)
        assert client.states == ["running", "idle end_turn"] and cable.opened == 2
        said = client.transcript
        (text,) = [text for (kind, _), text in said.items() if kind == "agent_message"]
        assert text == "".join(f"{number} " for number in range(2000)) and said["user_message", id] == "/many 2000"
        waiting = client.prompt(session, "/permission")
        question = await client.asked()
        cable.cut()
        await until(lambda: cable.opened == 3)
        client.choose(question)
        await client.response(waiting)
        await until(lambda: len(client.ends) == 2)
        await client.resume(session, root, replayFrom={"type": "start"})
        assert {key: client.transcript[key] for key in said} == said, "a replay has the same messages"
        assert len(client.requests()) == 1
        await client.leave()


async def test_an_editor_of_version_2_uses_a_server_that_is_no_gateway(tmp_path: Path) -> None:
    class Echo(antiphon.Agent):
        async def prompt(self, turn: antiphon.AgentTurn) -> None:
            await turn.say(f"you wrote: {turn.text}")

    async with served(Echo().serve_asgi()) as host:
        client = SecondClient(None, transport=await spawn([*CONNECT, f"ws://{host}/"]))
        assert (await client.initialize())["protocolVersion"] == 2
        session = await client.new(tmp_path)
        waiting = [client.prompt(session, words) for words in ("one", "two")]
        for asked in waiting:
            await client.response(asked)
        await until(lambda: len(client.ends) == 2)
        said = [text for (kind, _), text in client.transcript.items() if kind == "agent_message"]
        assert said == ["you wrote: one", "you wrote: two"], "the second was held until the first had ended"
        await client.leave()
