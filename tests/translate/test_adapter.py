"""Real peers of one version work with real peers of the other, and only the bytes between them show it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import antiphon
from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.client.agent import ConnectedAgent
from antiphon.connection.adapter import TranslatedTransport
from antiphon.connection.bridge import Bridge
from antiphon.connection.negotiation import AgentNegotiation, ClientNegotiation
from antiphon.errors import LocalProtocolError, RemoteProtocolError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.translate.base import Translator
from antiphon.protocol.translate.choice import by_answer
from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Frame, Transport
from antiphon.transports.memory import memory_pair
from tests.limits import limit

Json = dict[str, Any]


class Notes(Agent):
    """An agent that does a little of everything, as the prompt asks."""

    async def prompt(self, turn: AgentTurn) -> v1.StopReason | None:
        match turn.text.split():
            case ["fail"]:
                raise antiphon.RequestError(-32099, "out of ink")
            case ["wait"]:
                await turn.say("waiting")
                await asyncio.Event().wait()
            case words:
                await turn.think("hm ")
                for word in words:
                    await turn.say(word)
        return None


class Wire:
    """Sees every frame between a client and an agent, and forwards it."""

    def __init__(self) -> None:
        self.frames: list[Json] = []
        self.closing: list[asyncio.Future[None]] = []

    def open(self) -> tuple[Transport, Transport]:
        client, left = memory_pair()
        right, agent = memory_pair()
        left.attach(_Half(self, right))
        right.attach(_Half(self, left))
        return client, agent

    def versions(self) -> set[int]:
        """The versions in the responses to `initialize`."""
        found = (frame.get("result") for frame in self.frames)
        return {
            result["protocolVersion"] for result in found if isinstance(result, dict) and "protocolVersion" in result
        }

    def kinds(self) -> set[str]:
        updates = (frame["params"]["update"] for frame in self.frames if frame.get("method") == "session/update")
        return {update["sessionUpdate"] for update in updates}


class _Half:
    def __init__(self, wire: Wire, other: Transport) -> None:
        self._wire = wire
        self._other = other

    def block_received(self, block: Frame) -> None:
        assert isinstance(block, bytes | bytearray)
        self._wire.frames += [msgspec.json.decode(line) for line in bytes(block).splitlines()]
        self._other.out += block
        self._other.flush()

    def connection_lost(self, error: object) -> None:
        self._wire.closing.append(asyncio.ensure_future(self._other.close()))


@asynccontextmanager
async def connected(agent: Agent, wire: Wire, **options: Any) -> AsyncIterator[ConnectedAgent]:
    client, server = wire.open()
    serving = asyncio.ensure_future(agent.serve(server))
    async with asyncio.timeout(limit()), antiphon.connect(client, **options) as found:
        yield found
    async with asyncio.timeout(limit()):
        await serving


async def text_of(agent: ConnectedAgent, prompt: str) -> str:
    session = await agent.new_session("/")
    turn = session.prompt(prompt)
    updates = [update async for update in turn]
    assert (await turn).stop_reason is v1.StopReason.END_TURN
    return "".join(
        each.content.text
        for each in updates
        if isinstance(each, v1.AgentMessageChunk) and isinstance(each.content, v1.TextBlock)
    )


@pytest.mark.parametrize(
    ("client", "agent", "spoken"),
    [
        ((1,), (1,), 1),
        ((1, 2), (1, 2), 1),
        ((2, 1), (1, 2), 2),
        ((2,), (1, 2), 2),
        ((1, 2), (2,), 2),
        ((2, 1), (1,), 1),
    ],
    ids=str,
)
async def test_a_client_and_an_agent_find_a_version_that_both_speak(
    client: tuple[int, ...], agent: tuple[int, ...], spoken: int
) -> None:
    wire = Wire()
    async with connected(Notes("notes", versions=agent), wire, versions=client) as found:
        assert await text_of(found, "one two") == "onetwo"
        assert found.name == "notes"
    assert wire.versions() == ({spoken} if (client, agent) != ((2, 1), (1,)) else {1})
    assert ("state_update" in wire.kinds()) == (spoken == 2)


async def test_after_the_handshake_nothing_stands_between_a_client_and_an_agent_of_one_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed: list[str] = []

    def noted(kind: type[TranslatedTransport], name: str) -> None:
        method = getattr(kind, name)

        def called(transport: TranslatedTransport, *given: Any) -> Any:
            passed.append(name)
            return method(transport, *given)

        monkeypatch.setattr(kind, name, called)

    for kind in (AgentNegotiation, ClientNegotiation):
        noted(kind, "block_received")
        noted(kind, "flush")
    async with connected(Notes("notes"), Wire(), versions=(1, 2)) as found:
        assert set(passed) == {"block_received", "flush"}
        session = await found.new_session("/")
        passed.clear()
        assert await session.prompt("one two").text() == "onetwo"
        assert passed == []


@pytest.mark.parametrize(("client", "agent"), [((1,), (2,)), ((2,), (1,))], ids=str)
async def test_a_client_and_an_agent_without_a_version_in_common_say_so(
    client: tuple[int, ...], agent: tuple[int, ...]
) -> None:
    with pytest.raises(RemoteProtocolError, match=f"version {client[0] if client == (1,) else 1} of ACP"):
        async with connected(Notes("notes", versions=agent), Wire(), versions=client):
            pass


def test_versions_that_there_are_not_are_refused() -> None:
    for versions in ((), (3,), (1, 1)):
        with pytest.raises(LocalProtocolError, match="no versions of ACP"):
            antiphon.connect("demo", versions=versions)._make()
    with pytest.raises(LocalProtocolError, match="no versions of ACP"):
        Notes("notes", versions=(1, 7))


async def test_an_error_in_a_turn_reaches_the_client_of_either_version() -> None:
    for versions in ((1,), (2,)):
        async with connected(Notes("notes"), Wire(), versions=versions) as found:
            session = await found.new_session("/")
            with pytest.raises(RequestRefused, match="out of ink"):
                await session.prompt("fail")


async def test_a_turn_is_cancelled_through_the_other_version() -> None:
    wire = Wire()
    async with connected(Notes("notes"), wire, versions=(2,)) as found:
        session = await found.new_session("/")
        turn = session.prompt("wait")
        async for update in turn:
            if isinstance(update, v1.AgentMessageChunk):
                await turn.cancel()
        assert (await turn).stop_reason is v1.StopReason.CANCELLED
        assert await text_of(found, "again") == "again"
    idles = [
        f["params"]["update"]
        for f in wire.frames
        if f.get("method") == "session/update" and f["params"]["update"].get("state") == "idle"
    ]
    assert [idle["stopReason"] for idle in idles] == ["cancelled", "end_turn"]


async def test_a_bridge_translates_for_an_agent_that_refuses_the_version_of_the_client() -> None:
    for client_versions, agent_versions in (((1,), (2,)), ((2,), (1,))):
        left, client_side = Wire(), Wire()
        editor, near = left.open()
        far, agent_end = client_side.open()
        clock = asyncio.get_running_loop().time
        serving = asyncio.ensure_future(Notes("notes", versions=agent_versions).serve(agent_end))
        middle = ClientNegotiation(far, partial(by_answer, clock))
        bridging = asyncio.ensure_future(Bridge(near, middle, version=V1).run())
        async with asyncio.timeout(limit()), antiphon.connect(editor, versions=client_versions) as found:
            assert await text_of(found, "one two") == "onetwo"
        async with asyncio.timeout(limit()):
            await bridging
            await serving
        assert left.versions() == set(client_versions)
        assert client_side.versions() - {1} == set(agent_versions) - {1}
        assert ("state_update" in client_side.kinds()) == (agent_versions == (2,))


class Received:
    """Keeps what a transport hands over."""

    def __init__(self) -> None:
        self.frames: list[Json] = []

    def block_received(self, block: Frame) -> None:
        assert isinstance(block, bytes | bytearray)
        self.frames += [msgspec.json.decode(line) for line in bytes(block).splitlines()]

    def connection_lost(self, error: object) -> None:
        """The end."""


def _update(body: Json) -> bytes:
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": body}}
    return msgspec.json.encode(message) + b"\n"


def _piece(text: str, id: str | None = None) -> bytes:
    named = {} if id is None else {"messageId": id}
    content = {"type": "text", "text": text}
    return _update({"sessionUpdate": "agent_message_chunk", "content": content, **named})


@pytest.mark.parametrize("kind", [V1ClientTranslator, V2ClientTranslator])
@pytest.mark.parametrize("size", [1, 3, 100])
async def test_pieces_of_text_keep_their_order_however_they_are_read(kind: type[Translator], size: int) -> None:
    clock = asyncio.get_running_loop().time
    translator, sink = kind(clock), Received()
    below, _ = memory_pair()
    transport = TranslatedTransport(below, translator, above="client")  # type: ignore[arg-type]  # a subclass has the rest
    transport.attach(sink)
    new = kind is V1ClientTranslator
    version = {"protocolVersion": 1 if new else 2, "info": {"name": "n", "version": "1"}}
    answer: Json = {"protocolVersion": 2 if new else 1, "info": {"name": "n", "version": "1"}}
    answer |= {"capabilities": {"session": {}}} if new else {}
    prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}
    calls: list[tuple[str, Json, Json]] = [
        ("initialize", version, answer),
        ("session/new", {"cwd": "/", "mcpServers": []}, {"sessionId": "s"}),
        ("session/prompt", prompt, {"messageId": "u"} if new else {}),
    ]
    for id, (method, params, result) in enumerate(calls, 1):
        translator.client_request(id, method, Raw(msgspec.json.encode(params)))
        if result:
            asked: Any = translator.to_agent[-1]
            translator.agent_response(asked.id, Raw(msgspec.json.encode(result)), None)
    lines, texts = [], []
    for number in range(60):
        if number % 7 == 6:
            lines.append(_update({"sessionUpdate": "session_info_update", "title": f"t{number}"}))
        elif number % 11 == 10:
            lines.append(_piece(f"{number};", f"m{number // 11}"))  # an id of its own, in the middle of others
            texts.append(f"{number};")
        else:
            lines.append(_piece(f"{number};", f"n{number // 20}" if new else None))
            texts.append(f"{number};")
    for start in range(0, len(lines), size):
        transport.block_received(b"".join(lines[start : start + size]))
    updates = [frame["params"]["update"] for frame in sink.frames if frame.get("method") == "session/update"]
    shown = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
    assert shown == texts
    titles = [each["title"] for each in updates if each["sessionUpdate"] == "session_info_update"]
    assert titles == [f"t{number}" for number in range(6, 60, 7)]
    assert new or all("messageId" in each for each in updates if each["sessionUpdate"] == "agent_message_chunk")


class Steered(Notes):
    """An agent that takes what is sent while it works into its turn."""

    def __init__(self) -> None:
        super().__init__("steered")
        self.more: asyncio.Queue[str] = asyncio.Queue()

    async def prompt(self, turn: AgentTurn) -> None:
        await turn.say("ready")
        await turn.say(await self.more.get())

    def steer(self, turn: AgentTurn) -> bool:
        self.more.put_nowait(turn.text)
        return True


async def test_a_prompt_of_version_2_during_a_turn_is_taken_into_it_by_an_agent_that_steers() -> None:
    client, server = memory_pair()
    serving = asyncio.ensure_future(Steered().serve(server))
    frames: list[Json] = []

    async def until(test: Any) -> Json:
        while True:
            line = await client.receive()
            assert isinstance(line, bytes | bytearray)
            frames.append(msgspec.json.decode(line))
            if test(frames[-1]):
                return frames[-1]

    async def send(id: int, method: str, params: Json) -> None:
        await client.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))

    def says(text: str) -> Any:
        return lambda frame: frame.get("params", {}).get("update", {}).get("content") == {"type": "text", "text": text}

    async with asyncio.timeout(limit()):
        await send(1, "initialize", {"protocolVersion": 2, "info": {"name": "n", "version": "1"}})
        await until(lambda frame: frame.get("id") == 1)
        await send(2, "session/new", {"cwd": "/"})
        session = (await until(lambda frame: frame.get("id") == 2))["result"]["sessionId"]
        await send(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
        await until(says("ready"))
        await send(4, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "left"}]})
        await until(lambda frame: frame.get("params", {}).get("update", {}).get("state") == "idle")
        await client.close()
        await serving
    results = {frame["id"]: frame["result"] for frame in frames if "result" in frame}
    assert (results[3], results[4]) == ({"messageId": "user-1"}, {"messageId": "user-2"})
    states = [f["params"]["update"]["state"] for f in frames if "state" in f.get("params", {}).get("update", {})]
    assert states == ["running", "idle"]  # one turn for both
    assert any(map(says("left"), frames))
