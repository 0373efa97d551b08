"""Bad input gets a clear error, the connection lives on, and a good request follows: as bytes at a real process."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from antiphon.connection.outbox import NOISE_KEPT
from antiphon.connection.reports import Report
from antiphon.errors import Code
from antiphon.rpc.envelope import NOISE_KEPT as LINE_KEPT
from antiphon.transports.process import ProcessTransport, spawn
from tests.connection.ends import against_raw
from tests.rows import each_row

ROOT = Path(__file__).parents[2]
LIMIT = 100_000

MIRROR = f"""
import asyncio
from antiphon.connection.connection import Connection
from antiphon.protocol.v1.version import V1
from antiphon.transports.stdio import open_stdio
from tests.dialects.mirror import Mirror

async def main():
    mirror = Mirror()
    transport = open_stdio(limit={LIMIT})
    async with Connection(transport, mirror.router(), version=V1, observer=mirror.observe) as mirror.connection:
        await mirror.connection.wait_closed()

asyncio.run(main())
"""

DEEP = b"[" * 10_000 + b"]" * 10_000
LONG = b"x" * (2 * LIMIT)
READ = b'"method":"fs/read_text_file"'

ROWS: dict[str, tuple[bytes, int, object]] = {
    "not JSON": (b"hello", Code.PARSE_ERROR, None),
    "a log line": (b"[INFO] starting", Code.PARSE_ERROR, None),
    "JSON cut short": (b'{"jsonrpc":"2.0","id":3,' + READ + b',"params":{', Code.PARSE_ERROR, 3),
    "a number": (b"42", Code.INVALID_REQUEST, None),
    "a string": (b'"hello"', Code.INVALID_REQUEST, None),
    "null": (b"null", Code.INVALID_REQUEST, None),
    "an object of somebody else": (b'{"foo":1}', Code.INVALID_REQUEST, None),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', Code.INVALID_REQUEST, None),
    "an empty batch": (b"[]", Code.INVALID_REQUEST, None),
    "no method": (b'{"jsonrpc":"2.0","id":4}', Code.INVALID_REQUEST, 4),
    "no method and no id": (b'{"jsonrpc":"2.0"}', Code.INVALID_REQUEST, None),
    "a method that is not a string": (b'{"jsonrpc":"2.0","id":4,"method":7}', Code.INVALID_REQUEST, 4),
    "another version": (b'{"jsonrpc":"1.0","id":4,"method":"logout"}', Code.INVALID_REQUEST, 4),
    "an unanswerable id: bool": (b'{"jsonrpc":"2.0","id":true,"method":"logout"}', Code.INVALID_REQUEST, None),
    "an unanswerable id: object": (b'{"jsonrpc":"2.0","id":{},"method":"logout"}', Code.INVALID_REQUEST, None),
    "an unanswerable id: list": (b'{"jsonrpc":"2.0","id":[1],"method":"logout"}', Code.INVALID_REQUEST, None),
    "wrong params": (b'{"jsonrpc":"2.0","id":5,' + READ + b',"params":{"path":7}}', Code.INVALID_PARAMS, 5),
    "params in a list": (b'{"jsonrpc":"2.0","id":5,' + READ + b',"params":["s","/f"]}', Code.INVALID_PARAMS, 5),
    "params that are text": (b'{"jsonrpc":"2.0","id":5,' + READ + b',"params":"/f"}', Code.INVALID_PARAMS, 5),
    "no params where some are needed": (b'{"jsonrpc":"2.0","id":5,' + READ + b"}", Code.INVALID_PARAMS, 5),
    "an unknown method": (b'{"jsonrpc":"2.0","id":"u","method":"no/such"}', Code.METHOD_NOT_FOUND, "u"),
    "invalid UTF-8 in text": (
        b'{"jsonrpc":"2.0","id":6,' + READ + b',"params":{"sessionId":"s","path":"\xff\xfe"}}',
        Code.PARSE_ERROR,
        6,
    ),
    "invalid UTF-8 in what is ignored": (
        b'{"jsonrpc":"2.0","id":6,"method":"logout","x":"\xc3\x28"}',
        Code.PARSE_ERROR,
        6,
    ),
    "half a surrogate pair": (
        b'{"jsonrpc":"2.0","id":7,' + READ + b',"params":{"sessionId":"s","path":"\\ud83d"}}',
        Code.PARSE_ERROR,
        7,
    ),
    "nesting 10,000 deep": (b'{"jsonrpc":"2.0","id":8,"method":"logout","params":' + DEEP + b"}", Code.PARSE_ERROR, 8),
    "nesting 10,000 deep in what is carried": (
        b'{"jsonrpc":"2.0","id":8,"method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":{"x":'
        + DEEP
        + b"}}}",
        Code.PARSE_ERROR,
        8,
    ),
    "a line over the limit": (
        b'{"jsonrpc":"2.0","id":9,' + READ + b',"params":{"sessionId":"s","path":"' + LONG + b'"}}',
        Code.INVALID_REQUEST,
        9,
    ),
    "a line over the limit with its id at the end": (
        b'{"jsonrpc":"2.0",' + READ + b',"params":{"sessionId":"s","path":"' + LONG + b'"},"id":"end"}',
        Code.INVALID_REQUEST,
        "end",
    ),
}

SILENT: dict[str, bytes] = {
    "an unknown notification": b'{"jsonrpc":"2.0","method":"no/such","params":{}}',
    "a notification with wrong params": b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}',
    "a notification of another version": b'{"jsonrpc":"1.0","method":"session/cancel","params":{"sessionId":"s"}}',
    "a notification over the limit": b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"'
    + LONG
    + b'"}}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":12345,"result":{}}',
    "an answer over the limit": b'{"jsonrpc":"2.0","id":12345,"result":"' + LONG + b'"}',
    "an error for nobody": b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}',
    "an error with a null id": b'{"jsonrpc":"2.0","id":null,"error":{"code":"odd","message":7}}',
    "an empty line": b"",
    "a line of blanks": b" \r",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="mirror")
async def start_mirror() -> AsyncIterator[ProcessTransport]:
    mirror = await spawn([sys.executable, "-c", MIRROR], cwd=ROOT)
    yield mirror
    await mirror.close()


async def receive(mirror: ProcessTransport) -> dict[str, Any]:
    frame = await mirror.receive()
    assert isinstance(frame, bytes), mirror.stderr
    message: dict[str, Any] = msgspec.json.decode(frame)
    return message


async def a_good_request_works(mirror: ProcessTransport) -> None:
    await mirror.send(b'{"jsonrpc":"2.0","id":"good",' + READ + b',"params":{"sessionId":"s","path":"/f","line":3}}')
    message = await receive(mirror)
    assert (message["id"], message["result"]) == ("good", {"content": "text"})
    await mirror.send(b'{"jsonrpc":"2.0","id":"seen","method":"_seen"}')
    assert (await receive(mirror))["result"]["value"] == {"sessionId": "s", "path": "/f", "line": 3}


@pytest.mark.asyncio(loop_scope="module")
@each_row("name", ROWS)
async def test_bad_input_gets_a_clear_error_and_a_good_request_follows(mirror: ProcessTransport, name: str) -> None:
    line, code, id = ROWS[name]
    async with asyncio.timeout(10):
        await mirror.send(line)
        message = await receive(mirror)
        assert (message["error"]["code"], message["id"]) == (code, id), message
        assert message["error"]["message"] and message["error"]["data"]
        await a_good_request_works(mirror)


@pytest.mark.asyncio(loop_scope="module")
@each_row("name", SILENT)
async def test_a_message_that_needs_no_response_gets_none(mirror: ProcessTransport, name: str) -> None:
    async with asyncio.timeout(10):
        await mirror.send(SILENT[name])
        await a_good_request_works(mirror)


@pytest.mark.asyncio(loop_scope="module")
async def test_half_a_surrogate_pair_in_a_notification_arrives_repaired(mirror: ProcessTransport) -> None:
    update = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud83d!"}}'
    async with asyncio.timeout(10):
        await mirror.send(b'{"method":"session/update","params":{"sessionId":"s","update":' + update + b"}}")
        await mirror.send(b'{"jsonrpc":"2.0","id":"seen","method":"_seen"}')
        seen = (await receive(mirror))["result"]
        assert seen["value"]["update"]["content"]["text"] == "�!"
        await a_good_request_works(mirror)


@each_row(
    "line",
    [
        b"[INFO] %b",
        b'{"level":"info","payload":"%b"}',
        b'  {"level":"info","payload":{"deep":["%b"]}}  ',
        b"\xff%b",
        b"2026 %b",
        b'"%b"',
        b'[{"a":"%b"}]',
        b'{"a":"%b"',
    ],
)
async def test_lines_that_are_not_protocol_take_a_bounded_amount_of_memory(line: bytes) -> None:
    reports: list[Report] = []
    async with asyncio.timeout(20), against_raw(tolerant=True, reports=reports) as (connection, raw):
        for _ in range(2 * NOISE_KEPT):
            await raw.send(line % (b"x" * 20_000))
        await raw.send(b'{"jsonrpc":"2.0","id":1,"method":"_last","params":{}}')
        while "error" not in (message := await raw.receive()) or message.get("id") != 1:
            pass
        assert len(reports) == 2 * NOISE_KEPT
        assert sum(map(len, connection.noise)) <= NOISE_KEPT * LINE_KEPT
