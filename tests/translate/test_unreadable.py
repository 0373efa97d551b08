"""Lines that cannot be read, behind a translator: they end the wait for what they were meant to be, and nothing else."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.connection.adapter import TranslatedTransport
from antiphon.protocol.exchange import ErrorMessage, RequestFailure, RequestMessage
from antiphon.protocol.translate.base import OWN, requested_id
from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from antiphon.rpc.envelope import Frame, Overlong
from antiphon.transports.memory import MemoryTransport, memory_pair
from tests.limits import limit
from tests.translate.conversations import opened
from tests.translate.pump import Json, Pump

VERSION_2 = {"protocolVersion": 2, "info": {"name": "n", "version": "1"}}


class Received:
    """Keeps what a transport hands over."""

    def __init__(self) -> None:
        self.frames: list[Json] = []

    def block_received(self, block: Frame) -> None:
        assert isinstance(block, bytes | bytearray)
        self.frames += [msgspec.json.decode(line) for line in bytes(block).splitlines()]

    def connection_lost(self, error: object) -> None:
        """The end."""


def unversioned(id: object, body: Json) -> Frame:
    return msgspec.json.encode({"jsonrpc": "1.0", "id": id, **body}) + b"\n"


def broken(id: object, body: Json) -> Frame:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, **body})[:-1] + b",,}\n"


def overlong(id: object, body: Json) -> Frame:
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": id, **body})
    return Overlong(line[:100], line[-100:], 1_000_000_000, 1_000)


def overlong_with_id_at_its_end(id: object, body: Json) -> Frame:
    line = msgspec.json.encode({"jsonrpc": "2.0", **body, "id": id})
    return Overlong(line[:30], line[-40:], 1_000_000_000, 1_000)


unreadable = pytest.mark.parametrize("write", [unversioned, broken, overlong, overlong_with_id_at_its_end])


def translated() -> tuple[TranslatedTransport, MemoryTransport, Received, V1ClientTranslator]:
    """A client of version 1 above, whose requests 2 and 3 wait for the agent below, where they are 1 and 2."""
    below, agent = memory_pair()
    translator, sink = V1ClientTranslator(asyncio.get_running_loop().time), Received()
    transport = TranslatedTransport(below, translator, above="client")
    transport.attach(sink)
    for id in (2, 3):
        translator.client_request(id, "_mine", Raw(b"{}"))
    asked = [message.id for message in translator.to_agent if isinstance(message, RequestMessage)]
    assert asked == [1, 2]
    return transport, agent, sink, translator


@unreadable
async def test_a_response_that_cannot_be_read_ends_the_request_that_it_is_for(
    write: Callable[[object, Json], Frame],
) -> None:
    transport, _, sink, translator = translated()
    transport.block_received(write(2, {"result": {"big": "x" * 200}}))
    [answer] = sink.frames
    assert (answer["id"], "error" in answer) == (3, True)
    assert [each.id for each in translator.of_client.by_new.values()] == [2]
    transport.block_received(write(3, {"result": {"big": "x" * 200}}))  # an id that is open above, and not here
    assert sink.frames == [answer]


@pytest.mark.parametrize("write", [unversioned, broken, overlong])
async def test_a_request_that_cannot_be_read_is_refused_to_its_sender(write: Callable[[object, Json], Frame]) -> None:
    transport, agent, sink, _ = translated()
    before = len(sink.frames)
    transport.block_received(write(2, {"method": "session/request_permission", "params": {"text": "x" * 200}}))
    async with asyncio.timeout(limit()):
        while True:
            line = await agent.receive()
            assert isinstance(line, bytes | bytearray)
            message = msgspec.json.decode(line)
            if "error" in message:
                break
    assert message["id"] == 2
    assert sink.frames[before:] == []


class Silent(Agent):
    """An agent of both versions."""

    async def prompt(self, turn: AgentTurn) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("versions", "first", "code"), [((1, 2), 0, -32022), ((2,), 1, -32022), ((1, 2), "two", -32602)]
)
async def test_a_handshake_behind_a_refused_one_is_translated_though_both_come_at_once(
    versions: tuple[int, ...], first: object, code: int
) -> None:
    client, server = memory_pair()
    serving = asyncio.ensure_future(Silent("silent", versions=versions).serve(server))
    hellos = [{**VERSION_2, "protocolVersion": first}] * 3 + [VERSION_2]
    requests = [
        {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": hello} for id, hello in enumerate(hellos)
    ]
    found: dict[Any, Json] = {}
    async with asyncio.timeout(limit()):
        client.out += b"".join(msgspec.json.encode(each) + b"\n" for each in requests)
        client.flush()
        while len(found) < len(requests):
            line = await client.receive()
            assert isinstance(line, bytes | bytearray)
            answer = msgspec.json.decode(line)
            found[answer["id"]] = answer
        await client.close()
        await serving
    assert [found[id]["error"]["code"] for id in range(3)] == [code] * 3
    assert found[3]["result"]["protocolVersion"] == 2


@pytest.mark.parametrize("side", ["client", "agent"])
@pytest.mark.parametrize("named", [[], {}, {"requestId": []}, {"requestId": {}}, {"requestId": {"a": 1}}, 7], ids=str)
def test_a_cancellation_that_names_no_request_cancels_none(side: str, named: object) -> None:
    assert requested_id(Raw(msgspec.json.encode(named))) is OWN
    for kind, version in ((V1ClientTranslator, 1), (V2ClientTranslator, 2)):
        pump = Pump(kind)
        opened(pump, version, {})
        before = len(pump.at_client) + len(pump.at_agent)
        message: Json = {"method": "$/cancel_request", "params": named}
        (pump.client if side == "client" else pump.agent)(message)
        assert len(pump.at_client) + len(pump.at_agent) == before


def test_a_request_with_a_fraction_as_its_id_is_cancelled() -> None:
    pump = Pump(V1ClientTranslator)
    opened(pump, 1, {})
    pump.client({"id": 1.5, "method": "_mine", "params": {}})
    there = pump.at_agent[-1]["id"]
    pump.client({"method": "$/cancel_request", "params": {"requestId": 1.5}})
    assert pump.at_agent[-1] == {"method": "$/cancel_request", "params": {"requestId": there}}


@pytest.mark.parametrize("info", [{}, {"name": 1}, {"name": "n"}], ids=str)
def test_an_introduction_that_makes_no_sense_is_an_error_of_the_handshake(info: Json) -> None:
    pump = Pump(V1ClientTranslator)
    pump.client({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
    pump.agent({"id": pump.at_agent[-1]["id"], "result": {"protocolVersion": 2, "info": info}})
    [answer] = pump.at_client
    assert answer["id"] == 1 and answer["error"]["code"] == -32603


def test_a_first_answer_that_makes_no_sense_is_no_way_out_of_a_refused_handshake() -> None:
    translator = V2ClientTranslator(lambda: 0.0, Raw(b'{"protocolVersion":"one"}'))
    translator.client_request(1, "initialize", Raw(msgspec.json.encode(VERSION_2)))
    translator.agent_response(1, None, RequestFailure(-32603, "no"))
    [answer] = translator.to_client
    assert isinstance(answer, ErrorMessage) and answer.code == -32603
