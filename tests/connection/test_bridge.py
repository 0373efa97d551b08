"""A bridge forwards the very bytes, keeps ids apart, waits for slow readers and ends in order, whatever its peers do."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from antiphon.connection import bridge as module
from antiphon.connection.bridge import Bridge, BridgeState
from antiphon.connection.reports import Report
from antiphon.protocol.v1.version import V1
from antiphon.rpc.envelope import RequestId
from antiphon.rpc.peer import Rejected, Stray
from antiphon.transports.base import Transport
from antiphon.transports.memory import MemoryTransport, memory_pair
from antiphon.transports.pipes import PipeTransport
from tests.connection.ends import chunk
from tests.connection.test_random_ends import converse, pipe_pair
from tests.limits import limit
from tests.rows import each_row
from tests.schedules import World, check
from tests.waits import idle, turns


class End:
    """A peer of the bridge, byte for byte."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def send(self, *lines: bytes) -> None:
        """Send these lines in one piece."""
        self.transport.out += b"".join(line + b"\n" for line in lines)
        self.transport.flush()

    async def receive(self) -> bytes:
        """The next line."""
        line = await self.transport.receive()
        assert isinstance(line, bytes), "the bridge is closed"
        return line

    async def opened(self) -> dict[str, Any]:
        """The next message, decoded."""
        message: dict[str, Any] = msgspec.json.decode(await self.receive())
        return message

    async def is_closed(self) -> bool:
        """Whether nothing more comes."""
        return await self.transport.receive() is None


class Across:
    """A bridge with a peer at each end."""

    def __init__(self, client: End, agent: End, between: Bridge, reports: list[Report], running: "asyncio.Task[None]"):
        self.client, self.agent, self.bridge, self.reports, self.running = client, agent, between, reports, running

    async def nothing_else_arrived(self) -> None:
        """Whether both ends still work, and have nothing before what is sent now."""
        for one, other in ((self.client, self.agent), (self.agent, self.client)):
            one.send(b'{"jsonrpc":"2.0","method":"_mark"}')
            assert await other.receive() == b'{"jsonrpc":"2.0","method":"_mark"}'


@asynccontextmanager
async def across(size: int = 1 << 20, *, pipes: bool = False) -> AsyncIterator[Across]:
    """A client, a bridge and an agent."""
    (client, left), (right, agent) = (pipe_pair(), pipe_pair()) if pipes else (memory_pair(size), memory_pair(size))
    reports: list[Report] = []
    between = Bridge(left, right, version=V1, observer=reports.append)
    running = asyncio.ensure_future(between.run())
    async with asyncio.timeout(limit()):
        try:
            yield Across(End(client), End(agent), between, reports, running)
        finally:
            await client.close()
            await agent.close()
            await asyncio.wait([running])
    assert between.state is BridgeState.CLOSED
    assert between.open_requests == (0, 0)


def request(id: bytes, method: str = "session/prompt", params: bytes = b"{}") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (id, method.encode(), params)


def response(id: bytes, result: bytes = b"{}") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result)


def id_in(line: bytes) -> bytes:
    """The id of a message as it is written."""
    return bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])["id"])


# Ids.


async def test_a_request_gets_another_id_and_its_response_the_first_one() -> None:
    async with across() as end:
        end.client.send(request(b"1"))
        end.agent.send(request(b"1", "fs/read_text_file"))
        to_agent, to_client = await end.agent.receive(), await end.client.receive()
        assert to_agent == request(id_in(to_agent))
        end.client.send(response(id_in(to_client), b'"file"'))
        end.agent.send(response(id_in(to_agent), b'"prompt"'))
        assert await end.agent.receive() == response(b"1", b'"file"')
        assert await end.client.receive() == response(b"1", b'"prompt"')


@each_row(
    "id",
    [b"0", b"-7", b"1.0", b"1e3", b"null", b'"1"', b'""', b'"\\u0061\\/b"', '"für"'.encode(), b"9007199254740993", b'"%b"' % (b"x" * 1000)],
)  # fmt: skip
async def test_an_id_comes_back_in_the_bytes_that_it_was_written_in(id: bytes) -> None:
    async with across() as end:
        end.client.send(request(id))
        passed = id_in(await end.agent.receive())
        assert passed.startswith(b'"') == id.startswith(b'"'), "a string stays a string and a number a number"
        end.agent.send(response(passed))
        assert await end.client.receive() == response(id)


async def test_1_and_the_string_1_are_two_requests_also_to_a_peer_that_takes_them_for_one() -> None:
    async with across() as end:
        ids = [b"1", b'"1"', b"1.0"]
        end.client.send(*map(request, ids))
        passed = [id_in(await end.agent.receive()) for _ in ids]
        assert len({id.strip(b'"') for id in passed}) == 3
        for id in reversed(passed):
            end.agent.send(response(id))
        assert [await end.client.receive() for _ in ids] == [response(id) for id in reversed(ids)]


async def test_a_cancellation_names_the_request_by_its_id_on_the_other_side() -> None:
    async with across() as end:
        end.client.send(request(b'"a"'), request(b'"b"'))
        _, second = id_in(await end.agent.receive()), id_in(await end.agent.receive())
        end.client.send(b'{"jsonrpc":"2.0","method":"$\\/cancel_request","params":{"x":[1],"requestId" : "\\u0062"}}')
        expected = b'{"jsonrpc":"2.0","method":"$\\/cancel_request","params":{"x":[1],"requestId" : %b}}' % second
        assert await end.agent.receive() == expected


@pytest.mark.parametrize("id", [b"7", b'"1"', b"1.0", b"null", b"{}", b"[1]", b"true"])
async def test_a_cancellation_of_nothing_that_is_open_goes_no_further(id: bytes) -> None:
    async with across() as end:
        end.client.send(request(b"1"))
        await end.agent.receive()
        end.client.send(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % id)
        await end.nothing_else_arrived()
        assert [type(report) for report in end.reports] == [Stray]


async def test_an_elicitation_about_a_request_names_it_by_the_id_of_its_sender() -> None:
    async with across() as end:
        end.client.send(request(b'"login"', "authenticate"))
        passed = id_in(await end.agent.receive())
        asked = b'{"mode":"form","message":"who?","requestId":%b,"requestedSchema":{"requestId":5}}'
        end.agent.send(request(b"9", "elicitation/create", asked % passed))
        message = await end.client.receive()
        assert message == request(id_in(message), "elicitation/create", asked % b'"login"')


async def test_an_elicitation_about_a_request_that_is_not_open_is_refused() -> None:
    async with across() as end:
        end.agent.send(request(b"9", "elicitation/create", b'{"mode":"form","message":"who?","requestId":3}'))
        refused = await end.agent.opened()
        assert (refused["id"], refused["error"]["code"]) == (9, -32602)
        end.agent.send(request(b"10", "elicitation/create", b'{"mode":"form","message":"who?","sessionId":"s"}'))
        assert (await end.client.opened())["params"]["sessionId"] == "s"
        await end.nothing_else_arrived()


# The very bytes.

ODD = {
    "members that nobody knows": b'{"x":[1,{"id":5}],"jsonrpc":"2.0","id":ID,"method":"m","y":{"id":"z"},"params":{}}',
    "white space": b' {\t"jsonrpc" : "2.0" ,  "method":"m" , "id"\t: ID , "params" : { } } ',
    "numbers": b'{"jsonrpc":"2.0","id":ID,"method":"m","params":[1.0,1e400,-0,12345678901234567890123]}',
    "escapes": b'{"jsonrpc":"2.0","\\u0069d":ID,"method":"m","params":{"a":"\\u00e9\\ud83d\\ude00\\/"}}',
    "an id that is text somewhere else": b'{"jsonrpc":"2.0","method":"\\"id\\":1","params":{"id":1,"requestId":2},"id":ID}',
    "repeated keys": b'{"jsonrpc":"2.0","id":ID,"params":{"a":1,"a":2},"id":ID,"method":"m","params":{"b":[{"id":1}]},"id":ID}',
    "a repeated key with another value": b'{"jsonrpc":"2.0","params":{"a":1},"params":[1,"],"],"method":"x","method":"m","id":ID}',
    "no version": b'{"id":ID,"method":"m"}',
    "a carriage return": b'{"jsonrpc":"2.0","id":ID,"method":"m"}\r',
    "an empty key": b'{"":{"":[]},"jsonrpc":"2.0","id":ID,"method":"m"}',
}


@each_row("line", ODD.values(), ids=ODD)
@each_row("id", [b"12", b'"12"', b"null", b"1.50"])
async def test_nothing_is_changed_but_the_id(line: bytes, id: bytes) -> None:
    async with across() as end:
        end.client.send(line.replace(b"ID", id))
        message = await end.agent.receive()
        passed = id_in(message)
        assert message == line.replace(b"ID", passed).rstrip(b"\r")
        answered = re.sub(rb'"method"\s*:\s*"(?:[^"\\]|\\.)*"', b'"result":1', line)
        end.agent.send(answered.replace(b"ID", passed))
        assert await end.client.receive() == answered.replace(b"ID", id).rstrip(b"\r")


words = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["id", "params", "requestId", "sessionId"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A message with the id left open, and an id. Its members stand in any order, some of them twice."""
    members = [("jsonrpc", '"2.0"'), ("method", draw(st.sampled_from(['"m"', '"session/prompt"', '"\\u006d"'])))]
    members += [(draw(words), draw(texts)) for _ in range(draw(st.integers(0, 4)))]
    members = [(key, value) for key, value in members if key not in ("id", "error", "result", "params")]
    known = {"jsonrpc": members[0][1], "method": members[1][1]}
    members = [(key, known.get(key, value)) for key, value in members]
    members += [("params", draw(texts)) for _ in range(draw(st.integers(0, 2)))]
    members += [("id", "\0")] * draw(st.integers(1, 2))
    space = draw(st.sampled_from(["", " ", "\t "]))
    written = (f"{space}{draw(keys(key))}{space}:{space}{value}" for key, value in draw(st.permutations(members)))
    line = (space + "{" + f"{space},".join(written) + "}").encode()
    id = draw(st.integers(-(10**20), 10**20) | words | st.none() | st.floats(-1e9, 1e9))
    return line, json.dumps(id).encode()


texts = json_values.flatmap(
    lambda value: st.builds(
        lambda indent, ascii: json.dumps(value, separators=indent, ensure_ascii=ascii),
        st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
        st.booleans(),
    )
)


def keys(key: str) -> st.SearchStrategy[str]:
    """The key as it is, or with its first letter escaped."""
    plain = json.dumps(key, ensure_ascii=False)
    odd = f'"\\u{ord(key[0]):04x}{json.dumps(key[1:], ensure_ascii=False)[1:]}' if key and ord(key[0]) < 0x80 else plain
    return st.sampled_from([plain, odd])


@given(messages())
async def test_any_message_passes_byte_for_byte_but_for_its_id(message: tuple[bytes, bytes]) -> None:
    line, id = message
    async with across() as end:
        end.client.send(line.replace(b"\0", id))
        frame = await end.agent.receive()
        try:
            passed = id_in(frame)
        except KeyError:  # the agent's `"id"` may be written with an escape
            passed = b"1"
        assert frame == line.replace(b"\0", passed)
        assert (passed[:1] == b'"') == (id[:1] == b'"')
        end.agent.send(response(passed))
        assert await end.client.receive() == response(id)


@given(st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")), max_size=6))
async def test_whatever_bytes_come_the_next_request_passes_and_the_bridge_goes_on(lines: list[bytes]) -> None:
    async with across() as end:
        end.client.send(*lines, request(b'"after"', "_after"))
        while b'"_after"' not in (message := await end.agent.receive()):
            assert b'"id"' not in message
        end.agent.send(response(id_in(message)))
        while await end.client.receive() != response(b'"after"'):
            pass


# Hostile peers.


async def test_a_second_request_with_an_open_id_is_not_forwarded_and_the_first_keeps_its_response() -> None:
    async with across() as end:
        end.client.send(request(b"1", "first"), request(b"1", "second"))
        first = await end.agent.receive()
        await end.nothing_else_arrived()
        end.agent.send(response(id_in(first), b'"first"'))
        assert await end.client.receive() == response(b"1", b'"first"')
        assert [type(report) for report in end.reports] == [Rejected]
        end.client.send(request(b"1", "third"))
        assert b"third" in await end.agent.receive()


@pytest.mark.parametrize("id", [b"1", b"99", b'"1"', b"1.0", b"null", b'"x"'])
async def test_a_response_that_nothing_waits_for_is_not_forwarded(id: bytes) -> None:
    async with across() as end:
        if id != b"1":  # 1 is the first that the bridge gives
            end.client.send(request(b"1"))
            await end.agent.receive()
        end.agent.send(response(id))
        await end.nothing_else_arrived()
        assert [type(report) for report in end.reports] == [Stray]


async def test_a_second_response_is_not_forwarded() -> None:
    async with across() as end:
        end.client.send(request(b"5"))
        passed = id_in(await end.agent.receive())
        end.agent.send(response(passed, b"1"), response(passed, b"2"))
        assert await end.client.receive() == response(b"5", b"1")
        await end.nothing_else_arrived()


async def test_an_error_about_something_that_could_not_be_read_is_forwarded() -> None:
    async with across() as end:
        error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
        end.agent.send(error)
        assert await end.client.receive() == error
        end.client.send(request(b"null"))
        await end.agent.receive()
        end.agent.send(error)  # now it could be taken for the response
        await end.nothing_else_arrived()


REFUSED = {
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', -32600),
    "an id in a list": (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', -32600),
    "an id in an object": (b'{"jsonrpc":"2.0","id":{"id":1},"method":"m"}', -32600),
    "an id that is a boolean": (b'{"jsonrpc":"2.0","id":true,"method":"m"}', -32600),
    "half a message": (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{', -32700),
    "no JSON": (b'DEBUG {"id": 1}', -32700),
    "another version": (b'{"jsonrpc":"1.0","id":1,"method":"m"}', -32600),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"m","params":"\xff"}', -32700),
    "too many members": (b'{"jsonrpc":"2.0",' + b",".join(b'"%d":0' % n for n in range(2000)) + b',"id":1,"method":"m"}', -32600),
    "a long member twice": (b'{"jsonrpc":"2.0","x":[%b0],"x":1,"id":1,"method":"m"}' % (b"0," * 50_000), -32600),
}  # fmt: skip


@each_row(("line", "code"), REFUSED.values(), ids=REFUSED)
async def test_what_has_an_id_and_is_not_a_message_is_refused_and_not_forwarded(line: bytes, code: int) -> None:
    async with across() as end:
        end.client.send(line)
        assert (await end.client.opened())["error"]["code"] == code
        await end.nothing_else_arrived()


async def test_log_lines_of_a_program_are_forwarded_unless_they_have_ids() -> None:
    async with across() as end:
        end.agent.send(b"INFO: ready", b"")
        assert await end.client.receive() == b"INFO: ready"
        await end.nothing_else_arrived()


async def test_a_response_that_cannot_be_read_ends_its_request_with_an_error() -> None:
    async with across() as end:
        end.client.send(request(b'"q"'))
        passed = id_in(await end.agent.receive())
        end.agent.send(b'{"jsonrpc":"2.0","id":%b,"result":{' % passed)
        failed = await end.client.opened()
        assert failed["id"] == "q" and failed["error"]["code"] == -32700


async def test_a_message_over_the_limit_is_refused_and_a_response_over_it_is_an_error() -> None:
    async with across(size=10_000) as end:
        end.client.send(request(b"1", params=b'"%b"' % (b"x" * 20_000)))
        assert (await end.client.opened())["error"]["code"] == -32600
        end.client.send(request(b"2"))
        passed = id_in(await end.agent.receive())
        end.agent.send(response(passed, b'"%b"' % (b"x" * 20_000)))
        failed = await end.client.opened()
        assert failed["id"] == 2 and "limit" in failed["error"]["data"]


async def test_a_huge_message_passes_as_it_is() -> None:
    async with across(size=64 << 20, pipes=True) as end:
        params = b'{"id":1,"x":[%b0],"text":"%b"}' % (b"0, " * 100_000, b"\\n" * 5_000_000)
        end.client.send(request(b"1", params=params))
        message = await end.agent.receive()
        assert message == request(id_in(message), params=params)


async def test_more_requests_than_may_be_open_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    async with across() as end:
        end.client.send(*(request(b"%d" % number) for number in range(5)))
        refused = [await end.client.opened() for _ in range(2)]
        assert [each["id"] for each in refused] == [3, 4]
        assert end.bridge.open_requests == (3, 0)


# Back-pressure.


async def test_a_side_is_not_read_while_the_other_does_not_read_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with across(pipes=True) as end:
        lines = [chunk(f"{number} " + "x" * 300) for number in range(20_000)]
        end.client.transport.out += b"".join(line + b"\n" for line in lines)
        end.client.transport.flush()
        right = end.bridge._right.transport
        held = asyncio.Event()
        left_pause = end.bridge._left.transport.pause

        def pause() -> None:
            left_pause()
            held.set()

        monkeypatch.setattr(end.bridge._left.transport, "pause", pause)
        await held.wait()
        assert end.client.transport.unsent > 1 << 20, "most of it waits at its sender"
        assert right.unsent < 512 * 1024
        end.agent.send(request(b"1", "fs/read_text_file"))
        assert b"fs/read_text_file" in await end.client.receive(), "the way back is open"
        assert [await end.agent.receive() for _ in lines] == lines


async def test_a_side_that_sends_nonsense_and_does_not_read_its_refusals_costs_little_memory() -> None:
    async with across(pipes=True) as end:
        for _ in range(50):
            end.client.send(*[b'[{"id":1}]'] * 1000)
            await idle()
        end.client.send(request(b"1"))
        assert b"session/prompt" in await end.agent.receive()
        assert end.bridge._left.transport.unsent < 1 << 20


# The end.


async def test_when_a_side_ends_the_requests_of_the_other_fail_and_its_own_are_cancelled() -> None:
    async with across() as end:
        end.client.send(request(b'"mine"'))
        passed = id_in(await end.agent.receive())
        end.agent.send(request(b"7", "fs/read_text_file"))
        await end.client.receive()
        await end.client.transport.close()
        failed = await end.agent.opened()
        assert failed["id"] == 7 and failed["error"]["code"] == -32603
        cancelled = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % passed
        assert await end.agent.receive() == cancelled
        assert await end.agent.is_closed()


async def test_a_server_that_outlives_its_clients_keeps_its_requests_open_when_one_ends() -> None:
    async with across() as end:
        end.bridge.keep_requests = True
        end.agent.send(request(b"7", "session/request_permission"))
        await end.client.receive()
        await end.client.transport.close()
        end.agent.send(request(b"8", "session/request_permission"))
        assert await end.agent.is_closed(), "no error"


async def test_what_is_on_its_way_arrives_before_the_end() -> None:
    async with across(pipes=True) as end:
        lines = [chunk(f"{number}") for number in range(2000)]
        end.agent.send(*lines)
        closing = asyncio.ensure_future(end.agent.transport.close())
        assert [await end.client.receive() for _ in lines] == lines
        assert await end.client.is_closed()
        await closing


def half_closed() -> "tuple[int, int, PipeTransport]":
    """What a client reads and writes, and the transport of the bridge for it."""
    (read, far_write), (far_read, write) = os.pipe(), os.pipe()
    return read, write, PipeTransport(far_read, far_write)


async def test_a_side_that_only_stops_sending_gets_its_responses() -> None:
    read, write, left = half_closed()
    right, agent = memory_pair()
    running = asyncio.ensure_future(Bridge(left, right, version=V1).run())
    os.write(write, request(b"1") + b"\n")
    os.close(write)
    end = End(agent)
    async with asyncio.timeout(limit()):
        passed = id_in(await end.receive())
        end.send(chunk("last"), response(passed))
        assert await end.is_closed()
        await running
    assert os.read(read, 10_000).splitlines() == [chunk("last"), response(b"1")]
    os.close(read)
    await agent.close()


async def test_a_side_that_stops_sending_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EOF_GRACE", 0.01)
    read, write, left = half_closed()
    right, agent = memory_pair()
    running = asyncio.ensure_future(Bridge(left, right, version=V1).run())
    os.write(write, request(b"1") + b"\n")
    os.close(write)
    end = End(agent)
    async with asyncio.timeout(limit()):
        passed = id_in(await end.receive())
        assert b"$/cancel_request" in (cancelled := await end.receive()) and passed in cancelled
        assert await end.is_closed()
        await running
    assert msgspec.json.decode(os.read(read, 10_000))["error"]["code"] == -32603
    os.close(read)
    await agent.close()


async def test_cancelling_a_bridge_closes_both_sides_in_order() -> None:
    async with across() as end:
        end.client.send(request(b"1"))
        await end.agent.receive()
        end.running.cancel()
        assert (await end.client.opened())["id"] == 1
        assert b"$/cancel_request" in await end.agent.receive()
        assert await end.client.is_closed() and await end.agent.is_closed()
        with pytest.raises(asyncio.CancelledError):
            await end.running
        assert end.bridge.state is BridgeState.CLOSED


# Frames that each go their own way.


class Routed(MemoryTransport):
    """A transport that notes where each frame belongs."""

    routed = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bytes, str | None, object]] = []
        self._more = asyncio.Event()

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        self.seen.append((frame, session_id, answers))
        self._more.set()

    async def has_seen(self, count: int) -> None:
        """Until so many frames were handed over."""
        while len(self.seen) < count:
            self._more.clear()
            await self._more.wait()


async def test_a_routed_transport_gets_each_frame_with_its_session_and_the_request_that_it_answers() -> None:
    left, client = Routed(), MemoryTransport()
    left._connect(client)
    client._connect(left)
    right, agent = memory_pair()
    running = asyncio.ensure_future(Bridge(left, right, version=V1).run())
    near, far = End(client), End(agent)
    async with asyncio.timeout(limit()):
        near.send(request(b'"ask"'))
        passed = id_in(await far.receive())
        asked = request(b"5", "session/request_permission", b'{"sessionId":"t"}')
        far.send(chunk("a", "s"), asked, b'{"jsonrpc":"2.0","method":"_x"}', response(passed))
        await left.has_seen(4)
        await agent.close()
        await running
    assert [(session, answers) for _, session, answers in left.seen] == [
        ("s", UNSET), ("t", UNSET), (None, UNSET), (None, "ask"), (None, UNSET),
    ]  # fmt: skip
    assert b"$/cancel_request" in left.seen[4][0]
    assert left.seen[0][0] == chunk("a", "s")


# Any end at any step.


async def bridged(world: World, pipes: bool) -> None:
    make = pipe_pair if pipes else memory_pair
    (near, left), (right, far) = make(), make()
    between = Bridge(left, right, version=V1)
    world.finally_(lambda: _is_over(between))
    running = world.start(between.run())
    try:
        await turns(1)  # a task that is cancelled before its first step can close nothing
        world.offer("unbridge", running.cancel)
        await converse(world, near, far)
    finally:
        await asyncio.shield(asyncio.gather(near.close(), far.close()))
        await asyncio.wait([running])


def _is_over(between: Bridge) -> None:
    assert between.state is BridgeState.CLOSED
    assert between.open_requests == (0, 0)


async def over_memory(world: World) -> None:
    await bridged(world, pipes=False)


async def over_pipes(world: World) -> None:
    await bridged(world, pipes=True)


@pytest.mark.parametrize("scenario", [over_memory, over_pipes])
def test_every_request_and_turn_across_a_bridge_ends_and_no_update_is_lost_however_it_ends(scenario: Any) -> None:
    check(scenario, ("cancel", "close", "kill", "cut", "collect", "unbridge"))
