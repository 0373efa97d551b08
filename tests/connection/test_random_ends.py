"""However and whenever a session ends: every request and turn ends, updates are in order and none is lost, nothing is left."""

import asyncio
import gc
import os
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from antiphon.connection.connection import Connection
from antiphon.connection.inbox import CHOKED_FOR, Inbox
from antiphon.connection.router import Router
from antiphon.connection.stream import Stream
from antiphon.errors import AcpError, ConnectionClosed, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from antiphon.transports.pipes import PipeTransport
from tests.connection.ends import END_TURN, against_raw, answer, chunk, text_of
from tests.schedules import Scenario, World, check

LARGE = 1 << 24


class NumberingAgent:
    """The agent's end: says numbered words in each turn, large ones among them, asks in between, and takes `session/cancel`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.router = Router()
        self.router.on_request(m.PROMPT, self.prompt)
        self.router.on_request(m.SET_MODE, self.set_mode)
        self.router.on_notice(m.CANCEL, self.cancel)
        self.connection: Connection
        self.sent: dict[str, list[str]] = {}
        self.at_work = 0
        self.cancelled: dict[str, asyncio.Event] = {}

    async def prompt(self, asked: v1.Prompt) -> v1.PromptResult:
        self.at_work += 1
        cancelled = self.cancelled.setdefault(asked.session_id, asyncio.Event())
        texts = self.sent.setdefault(asked.session_id, [])
        try:
            for number in range(self.world.random.randint(0, 6)):
                word = f"{number} " + "x" * self.world.random.choice([1, 1, 100, 30_000, 70_000])
                texts.append(word)
                chunk = v1.SessionUpdate(asked.session_id, v1.AgentMessageChunk(v1.TextBlock(word)))
                await self.connection.notify(m.SESSION_UPDATE, chunk)
                await self.world.pause()
                if cancelled.is_set():
                    return v1.PromptResult(v1.StopReason.CANCELLED)
                if self.world.random.random() < 0.3:
                    await self.ask(asked.session_id)
            return v1.PromptResult(v1.StopReason.END_TURN)
        finally:
            self.at_work -= 1

    async def ask(self, session_id: str) -> None:
        with suppress(ResponseError):
            await self.connection.request(m.READ_TEXT_FILE, v1.ReadTextFile(session_id, "/a"))

    async def set_mode(self, asked: v1.SetMode) -> v1.SetModeResult:
        await self.world.pause()
        return v1.SetModeResult()

    def cancel(self, asked: v1.Cancel) -> None:
        self.cancelled.setdefault(asked.session_id, asyncio.Event()).set()


class Reader:
    """The client's end: takes turns in every way that there is."""

    def __init__(self, world: World, limit: int) -> None:
        self.world = world
        self.limit = limit
        self.router = Router()
        self.router.on_request(m.READ_TEXT_FILE, self.read)
        self.router.on_notice(m.SESSION_UPDATE, lambda message: self.between.append(message))
        self.connection: Connection
        self.between: list[v1.SessionUpdate] = []
        self.received: dict[str, list[str]] = {}
        self.whole: set[str] = set()
        self.held: list[Any] = []

    async def read(self, asked: v1.ReadTextFile) -> v1.ReadTextFileResult:
        await self.world.pause()
        return v1.ReadTextFileResult("text")

    def stream(self, session: str) -> "Stream[v1.SessionUpdate, v1.PromptResult]":
        return self.connection.stream(m.PROMPT, v1.Prompt(session, [v1.TextBlock("go")]))

    async def iterate(self, session: str) -> None:
        received = self.received[session] = []
        # `async with`, because the request may fail, and its traceback would hold a stream that is not read.
        async with self.stream(session) as stream:
            async for update in stream:
                received.append(text_of(update))
                await self.world.pause()
                if self.world.random.random() < 0.2:
                    await self.connection.request(m.SET_MODE, v1.SetMode(session, "plan"))
        if stream.result.stop_reason == v1.StopReason.END_TURN:
            self.whole.add(session)

    async def take(self, session: str) -> None:
        received = self.received[session] = []
        stream = self.stream(session)
        while (update := await stream.take()) is not None:
            received.append(text_of(update))
            await self.world.pause()
        if stream.result.stop_reason == v1.StopReason.END_TURN:
            self.whole.add(session)

    async def leave_early(self, session: str) -> None:
        async with self.stream(session) as stream:
            async for _ in stream:
                break

    async def forget(self, session: str) -> None:
        """Held in a cycle, so that only the collector ends it."""
        if self.limit == LARGE:
            holder: list[Any] = [self.stream(session)]
            holder.append(holder)
        await self.world.pause()

    async def hold(self, session: str) -> None:
        """Held and not read, until the scenario drops it."""
        if (
            self.limit == LARGE
        ):  # else its updates fill the limit that all turns share, and the others wait for it by design
            self.held.append(self.stream(session))
        await self.world.pause()

    async def result_alone(self, session: str) -> None:
        await self.stream(session)

    async def with_timeout(self, session: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await self.iterate(session)

    async def plain(self, session: str) -> None:
        await self.connection.request(m.SET_MODE, v1.SetMode(session, "plan"))

    def ways(self) -> list[Any]:
        return [
            self.iterate, self.iterate, self.take, self.leave_early, self.forget, self.hold, self.result_alone, self.with_timeout,
            self.plain,
        ]  # fmt: skip


def pipe_pair() -> tuple[Transport, Transport]:
    """Two ends connected by two pipes."""
    (near_read, far_write), (far_read, near_write) = os.pipe(), os.pipe()
    return PipeTransport(near_read, near_write), PipeTransport(far_read, far_write)


async def conversation(world: World) -> None:
    await converse(world, *memory_pair())


async def over_pipes(world: World) -> None:
    await converse(world, *pipe_pair())


async def converse(world: World, near: Transport, far: Transport) -> None:
    speaker = NumberingAgent(world)
    reader = Reader(world, world.random.choice([1, 50_000, LARGE]))
    speaker.connection = Connection(far, speaker.router, version=V1)
    reader.connection = Connection(near, reader.router, inbox_limit=reader.limit, version=V1)
    world.offer("close", reader.connection.close)
    world.offer("kill", speaker.connection.close)
    world.offer("cut", far.close)
    world.offer("collect", reader.held.clear)

    def in_order() -> None:
        for session, each in reader.received.items():
            text = speaker.sent.get(session, [])
            assert each == text[: len(each)], session
            assert session not in reader.whole or each == text, session
        assert not reader.between, "an update of a turn reached the handler for those between turns"
        for connection in (reader.connection, speaker.connection):
            assert not connection._pending and not connection._backlogs and not connection._answers.tasks
            assert not connection.inbox.streams
        assert not speaker.at_work
        assert not reader.connection.inbox.buffered

    world.finally_(in_order)
    async with speaker.connection, reader.connection:
        ways = [world.random.choice(reader.ways()) for _ in range(world.random.randint(1, 5))]
        calls = [world.start(way(f"s{number}")) for number, way in enumerate(ways)]
        try:
            await asyncio.wait(calls)
        finally:
            reader.held.clear()
        await world.pause()


@pytest.mark.parametrize("scenario", [conversation, over_pipes])
def test_every_request_and_turn_ends_and_no_update_is_lost_however_a_connection_ends(scenario: Scenario) -> None:
    check(scenario, ("cancel", "close", "kill", "cut", "collect"))


async def abandoned(world: World) -> None:
    """A caller that is cancelled closes nothing: the next caller of `close` still gets everything ended."""
    near, far = memory_pair()
    speaker = NumberingAgent(world)
    speaker.connection = Connection(far, speaker.router, version=V1)
    reader = Reader(world, 1 << 20)
    reader.connection = Connection(near, reader.router, version=V1)
    speaker.connection.start()
    reader.connection.start()
    world.offer("kill", speaker.connection.close)

    async def take_turn() -> None:
        with suppress(AcpError):
            await reader.iterate("s")

    turn = world.start(take_turn())
    try:
        await world.pause()
        closing = world.start(reader.connection.close())
        await world.pause(2)
        world.offer("close", closing.cancel)
        await asyncio.wait([closing, world.start(reader.connection.close())])
    finally:
        with suppress(AcpError):
            await asyncio.shield(asyncio.gather(reader.connection.close(), speaker.connection.close()))
        await asyncio.wait([turn])


def test_closing_twice_at_once_and_being_cancelled_meanwhile_ends_everything() -> None:
    check(abandoned, ("cancel", "close", "kill"))


class CollectingUpdate(v1.Unknown):
    """Content during whose encoding the collector runs."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name == "raw":
            gc.collect()
        return super().__getattribute__(name)


ODD = b'{"type":"odd","text":"' + b"o" * 5000 + b'"}'


@pytest.mark.parametrize("sent_by", ["notify", "sender", "request", "stream"])
async def test_a_turn_that_is_collected_while_a_frame_is_encoded_is_cancelled_and_the_frame_is_whole(
    sent_by: str,
) -> None:
    async with asyncio.timeout(20), against_raw() as (connection, raw):
        held: list[Any] = [connection.stream(m.PROMPT, v1.Prompt("forgotten", []))]
        held.append(held)
        assert (await raw.receive())["method"] == "session/prompt"
        del held
        odd = CollectingUpdate("odd", ODD)
        rest: list[Any] = []
        match sent_by:
            case "notify":
                connection.post(m.SESSION_UPDATE, v1.SessionUpdate("s", v1.AgentMessageChunk(odd)))
            case "sender":
                await connection.sender("s").update(v1.AgentMessageChunk(odd))
            case "request":
                rest.append(asyncio.create_task(connection.request(m.PROMPT, v1.Prompt("s", [odd]))))
            case _:
                rest.append(connection.stream(m.PROMPT, v1.Prompt("s", [odd])))
        message = [await raw.receive(), await raw.receive()]
        assert [each["method"] for each in message if each["method"] == "session/cancel"] == ["session/cancel"]
        assert any('"odd"' in msgspec.json.encode(each).decode() for each in message)
        await connection.close()
        for each in rest:
            with pytest.raises(ConnectionClosed):
                await each


async def test_what_a_forgotten_turn_has_not_read_no_longer_counts_against_the_limit_after_its_answer_either() -> None:
    async with asyncio.timeout(20), against_raw(inbox_limit=1000) as (connection, raw):
        for number in range(1, 6):
            stream = connection.stream(m.PROMPT, v1.Prompt("s", []))
            await raw.receive()
            await raw.send(chunk("x" * 400), chunk("y" * 400), answer(number, END_TURN))
            async for _ in stream:
                break  # the answer is here, and the second update was not read
            del stream
        last = connection.stream(m.PROMPT, v1.Prompt("s", []))
        await raw.send(chunk("heard"), answer(6, END_TURN))
        assert [text_of(update) async for update in last] == ["heard"]
        assert connection.inbox.buffered == 0 and not connection.inbox.paused


async def choked(world: World) -> None:
    """Reading is paused from the moment that the peer does not read until it does, or until `CHOKED_FOR` seconds later; each time."""
    near, far = memory_pair()
    listener = Connection(far, version=V1)
    listener.start()
    inbox, loop = Inbox(near), asyncio.get_running_loop()
    since: float | None = None
    for _ in range(12):
        match world.random.choice(["choke", "choke", "read", "wait", "wait"]):
            case "choke" if not inbox.paused:
                far.pause()
                near.out += b"\n"
                near.flush()
                inbox.choke()
                since = loop.time()
            case "read":
                far.resume()
                since = None
                await asyncio.sleep(0.001)
            case _:
                await asyncio.sleep(world.random.choice([0.001, 1, 2, 4, 4.99]))
        left = 0 if since is None else since + CHOKED_FOR - loop.time()
        assert inbox.paused == (left > 0) or abs(left) < 0.001, (since, loop.time())
    far.resume()
    await asyncio.sleep(2 * CHOKED_FOR)
    await near.close()
    await listener.close()


def test_a_peer_that_does_not_read_is_not_listened_to_until_it_reads_however_often_it_stops() -> None:
    check(choked, ("collect",), limit=200)
