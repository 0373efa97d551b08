"""A WebSocket to a real server: messages in order, in frames of any shape; slow readers, refusals and ends of every kind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed as SocketClosed

from antiphon.errors import ConnectionClosed
from antiphon.transports.base import OUTPUT_HIGH
from antiphon.transports.remote import ConnectionRefused, CookieJar
from antiphon.transports.websocket import open_websocket
from tests.limits import limit
from tests.rows import each_row

Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def served(handler: Handler, **options: Any) -> AsyncIterator[str]:
    """Serve WebSockets on a port of the loopback interface and give their address."""
    async with asyncio.timeout(limit(30)), serve(handler, "127.0.0.1", 0, **options) as server:
        yield address(server)


def address(server: Server) -> str:
    port = next(iter(server.sockets)).getsockname()[1]
    return f"ws://127.0.0.1:{port}/acp"


async def echo(socket: ServerConnection) -> None:
    async for message in socket:
        await socket.send(message)


async def test_a_message_is_a_frame_in_both_directions() -> None:
    kinds: list[type] = []

    async def count(socket: ServerConnection) -> None:
        async for message in socket:
            kinds.append(type(message))
            await socket.send(message)

    async with served(count) as url:
        transport = await open_websocket(url)
        for number in range(500):
            await transport.send(b'{"n":%d}' % number)
        assert [await transport.receive() for _ in range(500)] == [b'{"n":%d}' % number for number in range(500)]
        await transport.close()
    assert kinds == [str] * 500


@each_row(
    ("sent", "received"),
    [
        (['{"a":1}\n{"b":2}\n'], [b'{"a":1}', b'{"b":2}']),
        (['{"a":1}\n'], [b'{"a":1}']),
        (['{"a":1}\r\n{"b":2}'], [b'{"a":1}', b'{"b":2}']),
        (['{\n  "a": 1\r\n}'], [b'{   "a": 1  }']),
        ([["{", '"a"', ":1}"]], [b'{"a":1}']),
        ([b"binary", '{"a":1}'], [b'{"a":1}']),
        (["no JSON\nat all"], [b"no JSON", b"at all"]),
        (["", "{}"], [b"{}"]),
    ],
    ids=["two in one frame", "a line end", "CRLF", "pretty", "fragments", "binary", "no JSON", "empty"],
)
async def test_frames_of_any_shape_are_read(sent: list[Any], received: list[bytes]) -> None:
    async def talk(socket: ServerConnection) -> None:
        for one in sent:
            await socket.send(one)
        await socket.wait_closed()

    async with served(talk) as url:
        transport = await open_websocket(url)
        found: list[Any] = []
        while len(found) < len(received):
            frame = await transport.receive()
            if frame:
                found.append(frame)
        assert found == received
        await transport.close()


async def test_what_came_before_the_end_is_read_first_and_the_end_has_a_reason() -> None:
    async def leave(socket: ServerConnection) -> None:
        for number in range(100):
            await socket.send(f'{{"n":{number}}}')
        await socket.close(1001, "until tomorrow")

    async with served(leave) as url:
        transport = await open_websocket(url)
        found = [await transport.receive() for _ in range(101)]
        assert found[-2:] == [b'{"n":99}', None]
        assert transport.lost is not None and str(transport.lost) == "the server is shutting down: until tomorrow"
        await transport.close()


async def test_a_connection_that_is_cut_is_lost() -> None:
    async def cut(socket: ServerConnection) -> None:
        await socket.recv()
        socket.transport.abort()

    async with served(cut) as url:
        transport = await open_websocket(url)
        await transport.send(b"{}")
        assert await transport.receive() is None
        assert str(transport.lost) == "the connection was lost"
        with pytest.raises(ConnectionClosed):
            await transport.drain()
        await transport.close()


async def test_a_server_that_does_not_read_holds_the_sender_up() -> None:
    go_on = asyncio.Event()
    got: list[str | bytes] = []

    async def slow(socket: ServerConnection) -> None:
        await go_on.wait()
        got.extend([message async for message in socket])

    async with served(slow, max_queue=1, max_size=None) as url:
        transport = await open_websocket(url)
        frame = b'{"x":"%b"}' % (b"x" * 100_000)
        sent = 0

        async def flood() -> None:
            nonlocal sent
            for _ in range(300):
                await transport.send(frame)
                sent += 1

        flooding = asyncio.create_task(flood())
        while not (sent and transport.unsent >= OUTPUT_HIGH and transport._socket.paused):
            await asyncio.wait([flooding], timeout=0.01)
        assert transport.unsent < 2 * OUTPUT_HIGH + len(frame) and not flooding.done()
        go_on.set()
        await flooding
        await transport.close()
    assert len(got) == 300


async def test_a_reader_that_pauses_holds_the_server_up() -> None:
    sent = 0

    async def flood(socket: ServerConnection) -> None:
        nonlocal sent
        try:
            for _ in range(400):
                await socket.send("x" * 100_000)
                sent += 1
        except SocketClosed:
            pass

    async with served(flood) as url:
        transport = await open_websocket(url)
        transport.pause()
        before = -1
        while sent != before or not sent:  # until the server waits for us
            before = sent
            await asyncio.wait([asyncio.create_task(asyncio.sleep(limit(0.3)))])
        assert sent < 400
        transport.resume()
        assert [await transport.receive() for _ in range(400)] == [b"x" * 100_000] * 400
        await transport.close()


@pytest.mark.parametrize(
    ("status", "words", "hint"),
    [
        (401, "HTTP status 401", "token"),
        (404, "HTTP status 404", "/acp"),
        (302, "redirects to `https://elsewhere/`", "trust"),
    ],
)
async def test_a_refusal_has_a_reason_and_a_hint(status: int, words: str, hint: str) -> None:
    def refuse(socket: ServerConnection, request: Any) -> Any:
        response = socket.respond(HTTPStatus(status), "no\n")
        response.headers["Location"] = "https://elsewhere/"
        return response

    async with served(echo, process_request=refuse) as url:
        with pytest.raises(ConnectionRefused, match=words) as raised:
            await open_websocket(url, headers={"Authorization": "Bearer secret"})
        assert raised.value.status == status and hint in raised.value.hint


async def test_an_address_without_a_server_is_reported() -> None:
    async with served(echo) as url:
        pass
    with pytest.raises(ConnectionRefused, match="was not reached") as raised:
        await open_websocket(url)
    assert raised.value.hint and raised.value.status is None


async def test_a_silent_server_is_waited_for_no_longer_than_the_timeout() -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            await over.wait()

    over = asyncio.Event()
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(ConnectionRefused, match=r"did not answer within 0\.2 seconds"):
        await open_websocket(f"ws://127.0.0.1:{port}/", timeout=0.2)
    over.set()
    server.close()
    await server.wait_closed()


async def test_cookies_of_one_connection_are_sent_with_the_next() -> None:
    seen: list[str | None] = []

    def note(socket: ServerConnection, request: Any) -> None:
        seen.append(request.headers.get("Cookie"))

    def add(socket: ServerConnection, request: Any, response: Any) -> Any:
        response.headers["Set-Cookie"] = "acp_affinity=node-1; Path=/acp; HttpOnly"
        return response

    async with served(echo, process_request=note, process_response=add) as url:
        jar = CookieJar()
        for _ in range(2):
            transport = await open_websocket(url, cookies=jar)
            await transport.close()
    assert seen == [None, "acp_affinity=node-1"]


async def test_a_message_over_the_limit_ends_the_connection_with_a_reason() -> None:
    async def large(socket: ServerConnection) -> None:
        await socket.send("x" * 2000)
        await socket.wait_closed()

    async with served(large) as url:
        transport = await open_websocket(url, limit=1000)
        assert await transport.receive() is None
        assert str(transport.lost).startswith("a message was too large")
        await transport.close()
