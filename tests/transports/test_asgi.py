"""The server end of both remote profiles, asked by hand: statuses, streams, and leniency where real clients differ."""

import asyncio
import socket
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from antiphon.transports.asgi import AcpEndpoint, EndpointLimits
from antiphon.transports.asgi.connections import LINES, HttpConnection, SocketConnection
from antiphon.transports.base import Transport
from antiphon.transports.remote import on_lines
from antiphon.transports.sse import EventParser
from tests.limits import limit
from tests.transports.serving import serve_demo, served, served_by_uvicorn
from tests.waits import until

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


class RawClient:
    """HTTP by hand: one connection to the agent, its streams as lists of messages."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.id = ""

    async def open(self) -> None:
        response = await self.post(INITIALIZE)
        assert response.status_code == 200 and response.json()["id"] == 0
        self.id = response.headers["acp-connection-id"]

    async def post(self, message: Any, session: str = "", **headers: str) -> httpx.Response:
        return await self.client.post("/acp", json=message, headers={**self._headers(session), **headers})

    @asynccontextmanager
    async def stream(self, session: str = "", last_id: str = "") -> AsyncIterator["Events"]:
        headers = {**self._headers(session), "Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        async with self.client.stream("GET", "/acp", headers=headers) as response:
            assert response.status_code == 200
            yield Events(response)

    def _headers(self, session: str) -> dict[str, str]:
        found = {"Acp-Connection-Id": self.id} if self.id else {}
        return {**found, "Acp-Session-Id": session} if session else found


class Events:
    """The messages of a stream, one after another."""

    def __init__(self, response: httpx.Response) -> None:
        self._pieces = response.aiter_bytes()
        self._parser = EventParser()
        self._waiting: list[tuple[str, Json]] = []

    async def next(self) -> tuple[str, Json]:
        """Return the next message with the id of its event."""
        while not self._waiting:
            piece = await anext(self._pieces)
            self._waiting += [(event.id, msgspec.json.decode(event.data)) for event in self._parser.feed(piece)]
        return self._waiting.pop(0)

    async def response(self, id: object) -> Json:
        while True:
            _, message = await self.next()
            if message.get("id") == id and "method" not in message:
                return message

    async def end(self) -> None:
        """Read until the server ends the stream."""
        async for _ in self._pieces:
            pass


@asynccontextmanager
async def raw_client(**options: Any) -> AsyncIterator[RawClient]:
    async with (
        asyncio.timeout(limit(60)),
        served(AcpEndpoint(serve_demo, **options)) as host,
        httpx.AsyncClient(base_url=f"http://{host}", timeout=limit(20)) as client,
    ):
        yield RawClient(client)


def new(id: object, cwd: object = "/tmp") -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}}


def prompt(id: object, session: str, text: str) -> Json:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}


async def test_what_makes_no_sense_gets_a_status_and_a_sentence() -> None:
    async with raw_client(limits=EndpointLimits(message=10_000)) as raw:
        await raw.open()
        post, ours = raw.client.post, {"Acp-Connection-Id": raw.id}
        json = {"Content-Type": "application/json"}
        listen = {"Accept": "text/event-stream"}
        table = [
            (await post("/acp", content=b"{}", headers={"Content-Type": "text/plain"}), 415),
            (await post("/acp", content=b"{", headers=json), 400),
            (await post("/acp", content=b"7", headers=json), 400),
            (await post("/acp", content=b"[{}]", headers=json), 501),
            (await post("/acp", content=b'{"x":"%b"}' % (b"x" * 10_000), headers=json), 413),
            (await post("/acp", json={**INITIALIZE, "id": None}), 400),
            (await post("/acp", json=INITIALIZE, headers=ours), 400),
            (await post("/acp", json=new(1)), 400),
            (await post("/acp", json=new(1), headers={"Acp-Connection-Id": "another"}), 404),
            (await post("/acp", json=prompt(1, "a", "x"), headers={**ours, "Acp-Session-Id": "b"}), 400),
            (await post("/acp", json=INITIALIZE, headers={"Origin": "https://elsewhere.example"}), 403),
            (await post("/acp", json=new("x" * 1025), headers=ours), 400),
            (await post("/acp", json={**INITIALIZE, "id": "x" * 1025}), 400),
            (await post("/acp", json=prompt(1, "x" * 1025, "x"), headers=ours), 400),
            (await raw.client.get("/acp", headers={**ours, "Accept": "text/html"}), 406),
            (await raw.client.get("/acp", headers=listen), 400),
            (await raw.client.get("/acp", headers={**listen, "Acp-Connection-Id": "another"}), 404),
            (await raw.client.put("/acp", json={}), 405),
            (await raw.client.delete("/acp", headers={"Acp-Connection-Id": "another"}), 404),
        ]
        assert [response.status_code for response, _ in table] == [status for _, status in table]
        assert all(response.text.strip() for response, _ in table)


async def test_a_response_about_a_session_comes_after_its_updates_on_the_same_stream() -> None:
    async with raw_client() as raw:
        await raw.open()
        async with raw.stream() as connection:
            assert (await raw.post(new("a"))).status_code == 202
            session = (await connection.response("a"))["result"]["sessionId"]
            async with raw.stream(session) as events:
                assert (await raw.post(prompt(7, session, "hello"), session)).status_code == 202
                found = [await events.next()]
                while "method" in found[-1][1]:
                    found.append(await events.next())
                assert found[-1][1]["id"] == 7 and found[-1][1]["result"]["stopReason"] == "end_turn"
                assert [id for id, _ in found] == [str(number) for number in range(1, len(found) + 1)]
                assert any("agent_message_chunk" in str(message) for _, message in found)


async def test_a_client_that_returns_gets_what_it_missed_and_nothing_twice() -> None:
    async with raw_client() as raw:
        await raw.open()
        async with raw.stream() as connection:
            await raw.post(new(1))
            session = (await connection.response(1))["result"]["sessionId"]
            async with raw.stream(session) as events:
                await raw.post(prompt(2, session, "/slow 3"), session)
                seen = [await events.next() for _ in range(2)]
            async with raw.stream(session, last_id=seen[-1][0]) as events:
                while "method" in seen[-1][1]:
                    seen.append(await events.next())
            assert [id for id, _ in seen] == [str(number) for number in range(1, len(seen) + 1)]
            async with raw.stream(session, last_id="1") as events:
                again = [await events.next() for _ in seen[1:]]
            assert again == seen[1:]


async def test_a_second_reader_of_a_stream_takes_the_place_of_the_first() -> None:
    async with raw_client() as raw:
        await raw.open()
        async with raw.stream() as first, raw.stream() as second:
            await first.end()
            await raw.post(new(1))
            assert "sessionId" in (await second.response(1))["result"]


async def test_a_session_that_was_loaded_without_a_stream_is_sent_on_that_of_the_connection() -> None:
    async with raw_client() as raw:
        await raw.open()
        async with raw.stream() as connection:
            await raw.post(new(1))
            session = (await connection.response(1))["result"]["sessionId"]
            async with raw.stream(session) as events:
                await raw.post(prompt(2, session, "hello"))
                await events.response(2)
        await raw.client.delete("/acp", headers={"Acp-Connection-Id": raw.id})
        raw.id = ""
        await raw.open()
        async with raw.stream() as connection:
            load = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
            await raw.post({"jsonrpc": "2.0", "id": 3, "method": "session/load", "params": load})
            found = [(await connection.next())[1]]
            while "method" in found[-1]:
                found.append((await connection.next())[1])
            assert found[-1]["id"] == 3 and "result" in found[-1] and len(found) > 2


async def test_a_deleted_connection_is_gone_with_its_streams() -> None:
    async with raw_client() as raw:
        await raw.open()
        async with raw.stream() as connection:
            assert (await raw.client.delete("/acp", headers={"Acp-Connection-Id": raw.id})).status_code == 202
            await connection.end()
        assert (await raw.post(new(1))).status_code == 404


async def test_a_socket_names_its_connection_and_refuses_batches_and_nonsense() -> None:
    async with served(AcpEndpoint(serve_demo)) as host, connect(f"ws://{host}/acp") as socket:
        assert socket.response is not None and socket.response.headers["Acp-Connection-Id"]
        await socket.send(msgspec.json.encode(INITIALIZE).decode())
        assert msgspec.json.decode(await socket.recv())["id"] == 0
        for sent, code in (("{", -32700), ("[]", -32600), ("7", -32600)):
            await socket.send(sent)
            answer = msgspec.json.decode(await socket.recv())
            assert (answer["id"], answer["error"]["code"]) == (None, code)
        await socket.send(b"binary")
        await socket.send('{"jsonrpc":"2.0",\n"id":"x","method":"session/list",\r\n"params":{}}\n')
        assert msgspec.json.decode(await socket.recv())["id"] == "x"


async def test_a_page_of_another_host_opens_no_socket() -> None:
    async with served(AcpEndpoint(serve_demo, origins=["https://friend.example"])) as host:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{host}/acp", origin="https://elsewhere.example")  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403
        for origin in ("https://friend.example", f"http://{host}"):
            async with connect(f"ws://{host}/acp", origin=origin):  # type: ignore[arg-type]
                pass


async def test_a_message_over_the_limit_closes_the_socket_with_its_reason() -> None:
    async with (
        served(AcpEndpoint(serve_demo, limits=EndpointLimits(message=1000))) as host,
        connect(f"ws://{host}/acp") as socket,
    ):
        await socket.send("x" * 2000)
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1009


@pytest.mark.parametrize("server", [served, served_by_uvicorn])
async def test_several_messages_in_a_frame_are_taken_in_order_on_any_server(server: Any) -> None:
    async with server(AcpEndpoint(serve_demo)) as host, connect(f"ws://{host}/acp") as socket:
        unknown: list[Json] = [{"jsonrpc": "2.0", "id": id, "method": f"_m/{id}", "params": {}} for id in ("a", "b", 3)]
        await socket.send("\n".join(msgspec.json.encode(each).decode() for each in (INITIALIZE, *unknown)) + "\n")
        found = [msgspec.json.decode(await socket.recv()) for _ in range(4)]
        assert {each["id"] for each in found} == {0, "a", "b", 3} and found[0]["id"] == 0


@pytest.mark.parametrize("server", [served, served_by_uvicorn])
async def test_a_flood_arrives_whole_and_in_order_at_a_reader_that_starts_late(server: Any) -> None:
    frames = [b'{"n":%d,"x":"%b"}' % (number, b"x" * (number % 300)) for number in range(20_000)]

    async def flood(transport: Transport) -> None:
        await transport.receive()
        for frame in frames:
            await transport.send(frame)
        await transport.receive()

    async with server(AcpEndpoint(flood)) as host, connect(f"ws://{host}/acp", max_queue=1) as socket:
        await socket.send("{}")
        assert [await socket.recv(decode=False) for _ in frames] == frames


@given(st.binary(max_size=60).map(lambda noise: noise.replace(b"{", b"\r{")))
def test_no_message_reaches_an_agent_with_an_end_of_line_inside(noise: bytes) -> None:
    """A program that takes a lone carriage return for the end of a line would see a message that was never checked."""
    text = b'{"a":\r{"method":"session/new"}\r}\n{"b":1}\r\n' + noise
    assert b"\r" not in on_lines(text) and b"" not in on_lines(text).split(b"\n")


class Kept:
    """A sink that keeps what it is handed."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []

    def block_received(self, block: Any) -> None:
        self.blocks.append(bytes(block))

    def connection_lost(self, error: Exception) -> None:
        pass


async def test_a_connection_that_is_being_closed_takes_nothing_more_and_adds_nothing() -> None:
    kept, transports = Kept(), list[Transport]()
    closing = asyncio.Event()

    async def serve(transport: Transport) -> None:
        transport.attach(kept)
        transports.append(transport)
        transport.out += b'"%b"\n' % (b"x" * 30_000_000)
        transport.flush()
        closed = asyncio.ensure_future(transport.close())
        await asyncio.sleep(0)
        closing.set()
        await closed

    async with (
        asyncio.timeout(limit(60)),
        served(AcpEndpoint(serve)) as host,
        connect(f"ws://{host}/acp", max_size=None, proxy=None) as socket,
    ):
        await closing.wait()
        await socket.send("{}")
        transports[0].out += b"{}\n"
        transports[0].flush_soon()
        assert len(await socket.recv()) == 30_000_002
        with pytest.raises(ConnectionClosed):
            await socket.recv()
    assert not kept.blocks


async def test_a_stream_that_was_opened_for_nothing_is_forgotten() -> None:
    connections: list[HttpConnection] = []

    async def serve(transport: Transport) -> None:
        assert isinstance(transport, HttpConnection)
        connections.append(transport)
        await serve_demo(transport)

    async with (
        asyncio.timeout(limit(60)),
        served(AcpEndpoint(serve)) as host,
        httpx.AsyncClient(base_url=f"http://{host}", timeout=limit(20)) as client,
    ):
        raw = RawClient(client)
        await raw.open()
        for number in range(5):
            async with raw.stream(f"session{number}"):
                pass
        await until(lambda: not connections[0].open_streams)
        assert list(connections[0]._streams) == [None]


async def test_what_is_added_while_a_socket_is_closed_does_not_leave_and_no_part_of_it() -> None:
    sent: list[str] = []
    taken, room = asyncio.Event(), asyncio.Event()

    async def send(message: MutableMapping[str, Any]) -> None:
        taken.set()
        await room.wait()
        sent.append(message.get("text", message["type"]))

    connection = SocketConnection({}, send, 1000)
    connection.out += b"before\n"
    closing = asyncio.create_task(connection.close())
    await taken.wait()
    connection.out += b"behind it\n"
    connection.flush()
    room.set()
    await closing
    assert sent == ["before", "websocket.close"]


async def test_a_frame_does_not_wait_until_the_client_has_confirmed_the_one_before() -> None:
    accepted: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            socket_of = scope["extensions"][LINES].transport.get_extra_info("socket")
            accepted.append(socket_of.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            await send({"type": "websocket.close"})

    async with served(app) as host:
        with pytest.raises(InvalidStatus):
            await connect(f"ws://{host}/acp")
    assert accepted == [1]
