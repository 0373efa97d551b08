"""An answer and what follows it: nothing that `after` says can overtake the answer."""

import asyncio
import logging

import pytest

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router, Then
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.session import NewSession, NewSessionResult, SetMode, SetModeResult
from tests.connection.ends import Raw, against_raw

NEW = {"cwd": "/w", "mcpServers": []}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def router_with_update(connection: list[Connection], answer: object, form: str) -> Router:
    """A `session/new` that is answered with this, and then by a word."""

    def say() -> None:
        _ = connection[0].sender("s").say("hello")

    async def later(_: NewSession) -> object:
        await asyncio.sleep(0)
        return Then(answer, say)

    router = Router()
    router.on_request(m.NEW_SESSION, later if form == "async def" else lambda _: Then(answer, say))  # type: ignore[arg-type]
    return router


async def kinds_received(peer: Raw, count: int) -> list[str]:
    messages = [await peer.receive() for _ in range(count)]
    return ["result" if "result" in each else "error" if "error" in each else each["method"] for each in messages]


@pytest.mark.parametrize("form", ["def", "async def"])
async def test_what_follows_an_answer_follows_it(form: str) -> None:
    connections: list[Connection] = []
    router = router_with_update(connections, NewSessionResult("s"), form)
    async with asyncio.timeout(10), against_raw(router) as (connection, peer):
        connections.append(connection)
        assert (await peer.ask("session/new", NEW))["result"] == {"sessionId": "s"}
        assert await kinds_received(peer, 1) == ["session/update"]


@pytest.mark.parametrize("form", ["def", "async def"])
@pytest.mark.parametrize("wrong", [None, SetModeResult(), {"a": object()}], ids=["nothing", "another type", "no JSON"])
async def test_nothing_follows_an_answer_that_could_not_be_given(form: str, wrong: object) -> None:
    connections: list[Connection] = []
    router = router_with_update(connections, wrong, form)
    router.on_request(m.SET_MODE, lambda _: SetModeResult())
    async with asyncio.timeout(10), against_raw(router) as (connection, peer):
        connections.append(connection)
        assert "error" in await peer.ask("session/new", NEW)
        assert "result" in await peer.ask("session/set_mode", {"sessionId": "s", "modeId": "m"}, 2)


@pytest.mark.parametrize("form", ["def", "async def"])
async def test_what_follows_may_fail_without_harm_to_the_connection(form: str) -> None:
    def fail() -> None:
        raise KeyError("after")

    async def later(_: SetMode) -> Then[SetModeResult]:
        return Then(SetModeResult(), fail)

    router = Router()
    router.on_request(m.SET_MODE, later if form == "async def" else lambda _: Then(SetModeResult(), fail))
    async with asyncio.timeout(10), against_raw(router) as (connection, peer):
        for id in (1, 2):
            assert "result" in await peer.ask("session/set_mode", {"sessionId": "s", "modeId": "m"}, id)
        assert connection.counts["HandlerFailed"] == 2
