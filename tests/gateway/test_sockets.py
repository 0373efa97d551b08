"""The hub behind real sockets, with the real file of a gateway and the real process of the demo."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

import antiphon
from antiphon.gateway.base import GatewaySessions, HubJournal
from antiphon.gateway.data import GatewayData
from antiphon.gateway.hub import Hub
from antiphon.protocol import v1
from antiphon.transcript.entries import Message
from antiphon.transports.asgi.endpoint import AcpEndpoint
from tests.gateway.peers import DRIVER, QUICK, RawClient, Stage, chunk, demo, stage
from tests.limits import limit
from tests.transports.serving import cut_before_an_event, served
from tests.transports.test_asgi import RawClient as HttpClient
from tests.transports.test_asgi import new, prompt
from tests.waits import until


@asynccontextmanager
async def gateway(tmp_path: Path, around: Callable[[Any], Any] = lambda app: app) -> AsyncIterator[tuple[Hub, str]]:
    """A hub on a socket; its data stay in the directory. `around`: what stands between the two."""
    async with asyncio.timeout(limit()), GatewayData.open(tmp_path / "data") as data:
        rows: GatewaySessions = data
        journal: HubJournal = data.journal
        async with (
            Hub({"demo": lambda: demo(tmp_path)}, rows, journal, roots=[str(tmp_path)], limits=QUICK) as hub,
            served(around(AcpEndpoint(lambda transport: hub.serve(transport, DRIVER, "demo")))) as host,
        ):
            yield hub, host


@pytest.mark.parametrize("delivered", ["nothing", "the opening"])
async def test_a_new_session_whose_stream_is_cut_before_its_first_event_loses_none(
    delivered: str, tmp_path: Path
) -> None:
    around = partial(cut_before_an_event, delivered=delivered)
    async with gateway(tmp_path, around) as (_, host), antiphon.connect(f"http://{host}/acp") as agent:
        session = await agent.new_session(tmp_path)
        await session.prompt("/many 5")
        said = [entry.text for entry in session.transcript.entries if isinstance(entry, Message)]
        assert said == ["/many 5", "0 1 2 3 4 "]


@pytest.mark.parametrize("method", ["load_session", "resume_session"])
async def test_a_stream_that_is_cut_before_its_first_event_gets_each_event_once(method: str, tmp_path: Path) -> None:
    async with gateway(tmp_path, partial(cut_before_an_event, delivered="the opening")) as (_, host):
        async with antiphon.connect(f"ws://{host}/acp") as agent:
            session = await agent.new_session(tmp_path)
            await session.prompt("/many 3")
        async with antiphon.connect(f"http://{host}/acp") as agent:
            again = await getattr(agent, method)(session.id, tmp_path)
            assert (await again.prompt("/many 5")).stop_reason is v1.StopReason.END_TURN
            said = [entry.text for entry in again.transcript.entries if isinstance(entry, Message)]
            before = ["/many 3", "0 1 2 "] if method == "load_session" else []
            assert said == [*before, "/many 5", "0 1 2 3 4 "]


async def test_our_own_client_prompts_over_both_profiles_and_loads_what_the_other_sent(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (_, host):
        async with antiphon.connect(f"ws://{host}/acp") as agent:
            session = await agent.new_session(tmp_path)
            turn = await session.prompt("/many 50")
            assert turn.stop_reason is v1.StopReason.END_TURN
        async with antiphon.connect(f"http://{host}/acp") as agent:
            again = await agent.load_session(session.id, tmp_path)
            said = [entry.text for entry in again.transcript.entries if isinstance(entry, Message)]
            assert said == ["/many 50", "".join(f"{number} " for number in range(50))]
            assert (await again.prompt("hello")).stop_reason is v1.StopReason.END_TURN


async def test_an_event_stream_has_the_numbers_of_the_journal_and_goes_on_after_the_last_one(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (hub, host),
        httpx.AsyncClient(base_url=f"http://{host}", timeout=limit(20)) as http,
    ):
        raw = HttpClient(http)
        await raw.open()
        async with raw.stream() as events:
            await raw.post(new(1, tmp_path))
            session = (await events.response(1))["result"]["sessionId"]
        here = hub.agents["demo"].sessions[session.encode()]
        seen: list[int] = []
        texts: list[str] = []
        responses = 0
        async with raw.stream(session) as events:
            await raw.post(prompt(2, session, "/many 40"), session)
            while len(seen) < 10:
                seen, texts = await _next(events, seen, texts)
        await until(lambda: not here.turns.running)
        async with raw.stream(session, str(seen[-1])) as events:
            while not responses:
                number, message = await events.next()
                seen.append(int(number))
                texts += _text(message)
                responses += message.get("id") == 2
        assert "".join(texts) == "".join(f"{number} " for number in range(40))
        assert seen == sorted(set(seen)) and seen[-1] == here.last
        stored = await hub.journal.read(here.key)
        shown = [entry.number for entry in stored if entry.data[:1] in (b"{", b"E")]
        assert [number for number in shown if number >= seen[0]] == seen


async def _next(events: object, seen: list[int], texts: list[str]) -> tuple[list[int], list[str]]:
    number, message = await events.next()  # type: ignore[attr-defined]
    return [*seen, int(number)], [*texts, *_text(message)]


def _text(message: dict[str, object]) -> list[str]:
    update = message.get("params", {}).get("update", {})  # type: ignore[attr-defined]
    return [update["content"]["text"]] if update.get("sessionUpdate") == "agent_message_chunk" else []


async def test_a_permission_request_that_was_lost_with_its_stream_is_sent_again(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (hub, host),
        httpx.AsyncClient(base_url=f"http://{host}", timeout=limit(20)) as http,
    ):
        raw = HttpClient(http)
        await raw.open()
        async with raw.stream() as events:
            await raw.post(new(1, tmp_path))
            session = (await events.response(1))["result"]["sessionId"]
        await raw.post(prompt(2, session, "/permission"), session)
        here = hub.agents["demo"].sessions[session.encode()]
        await until(lambda: list(here.requests.waiting()))
        async with raw.stream(session, "0") as events:
            while True:
                _, message = await events.next()
                if message.get("method") == "session/request_permission":
                    break
            option = message["params"]["options"][0]["optionId"]
            answer = {"outcome": {"outcome": "selected", "optionId": option}}
            await raw.post({"jsonrpc": "2.0", "id": message["id"], "result": answer}, session)
            assert (await events.response(2))["result"]["stopReason"] == "end_turn"


@asynccontextmanager
async def scripted(tmp_path: Path) -> AsyncIterator[tuple[Stage, HttpClient, str]]:
    """A hub on a socket with a scripted agent, and a client over HTTP that has a session."""
    async with (
        stage(tmp_path) as place,
        served(AcpEndpoint(lambda transport: place.hub.serve(transport, DRIVER, "demo"))) as host,
        httpx.AsyncClient(base_url=f"http://{host}", timeout=limit(20)) as http,
    ):
        raw = HttpClient(http)
        await raw.open()
        async with raw.stream() as events:
            await raw.post(new(1, tmp_path))
            yield place, raw, (await events.response(1))["result"]["sessionId"]


async def test_what_has_no_number_takes_none_and_is_sent_again_where_it_was(tmp_path: Path) -> None:
    async with scripted(tmp_path) as (place, raw, session):
        place.agent.answers["_vendor/ask"] = lambda _: {"said": 1}
        async with raw.stream(session) as events:
            place.agent.say(session, "a")
            first, message = await events.next()
            assert _text(message) == ["a"]
            ask = {"jsonrpc": "2.0", "id": 2, "method": "_vendor/ask", "params": {"sessionId": session}}
            await raw.post(ask, session)
            second, message = await events.next()
            assert message["id"] == 2 and second != str(int(first) + 1), "the number belongs to the next event"
            place.agent.say(session, "b")
            third, message = await events.next()
            assert int(third) == int(first) + 1
        async with raw.stream(session, second) as events:
            assert _text((await events.next())[1]) == ["b"]
            place.agent.say(session, "c")
            assert _text((await events.next())[1]) == ["c"]
        async with raw.stream(session, first) as events:
            assert (await events.next())[1]["id"] == 2, "it was on its way"
            assert [_text((await events.next())[1]) for _ in "bc"] == [["b"], ["c"]]


async def test_the_response_to_load_comes_after_its_history_also_on_the_next_stream(tmp_path: Path) -> None:
    async with scripted(tmp_path) as (place, raw, session):
        async with raw.stream(session) as events:
            place.agent.say(session, "a", "b", "c")
            seen = [await events.next() for _ in "abc"]
            params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
            await raw.post({"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": params}, session)
            await events.response(2)
        async with raw.stream(session, seen[0][0]) as events:
            assert [_text((await events.next())[1]) for _ in "bc"] == [["b"], ["c"]]
            assert (await events.next())[1]["id"] == 2


async def test_carriage_returns_of_an_agent_end_no_event_and_no_message(tmp_path: Path) -> None:
    async with scripted(tmp_path) as (place, raw, session), raw.stream(session) as events:
        place.agent.send(chunk(session, "a") + b"\r")
        place.agent.send(chunk(session, "b").replace(b'"update":', b'"update":\r'))
        place.agent.say(session, "c")
        assert [_text((await events.next())[1]) for _ in "abc"] == [["a"], ["b"], ["c"]]


async def test_a_session_is_there_after_the_gateway_was_started_again(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (hub, _):
        client = RawClient(hub)
        await client.initialize()
        session = await client.new(tmp_path)
        await client.response(client.prompt(session, "/many 3"))
        await client.leave()
    async with gateway(tmp_path) as (hub, _):
        client = RawClient(hub)
        await client.initialize()
        listed = (await client.request("session/list", {}))["sessions"]
        assert [each["sessionId"] for each in listed].count(session) == 1
        await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert client.texts == ["/many 3", "0 ", "1 ", "2 "]
        await client.response(client.prompt(session, "/many 2"))
        assert client.texts[4:] == ["0 ", "1 "]
        await client.leave()
