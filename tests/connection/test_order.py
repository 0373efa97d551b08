"""Updates reach a handler in the order of the wire, and before the answer that follows them. Always."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.connection.router import Router
from antiphon.connection.stream import Stream
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.session import Prompt, PromptResult, SessionUpdate
from tests.connection.ends import END_TURN, against_raw, answer, chunk, text_of
from tests.waits import idle, until

PROMPT = Prompt("s", [TextBlock("go")])
ODD_UPDATE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"new_kind"}}}'
)


@pytest.mark.parametrize("tapped", [False, True], ids=["fast road", "tapped"])
async def test_an_answer_never_overtakes_an_update(tapped: bool) -> None:
    log: list[str] = []
    router = Router()
    router.on_notice(m.SESSION_UPDATE, lambda update: log.append(text_of(update)))
    async with asyncio.timeout(10), against_raw(router) as (client, agent):
        if tapped:
            client.tap(lambda *_: None)

        async def prompt() -> None:
            await client.request(m.PROMPT, PROMPT)
            log.append("answer")

        asking = asyncio.create_task(prompt())
        asked = await agent.receive()
        await agent.send(chunk("a"), chunk("b"), answer(asked["id"], END_TURN))
        await asking
        assert log == ["a", "b", "answer"]


async def test_every_update_of_a_turn_is_seen_before_its_answer_in_a_stream() -> None:
    async with asyncio.timeout(10), against_raw() as (client, agent):
        turn = client.stream(m.PROMPT, PROMPT, "s")
        asked = await agent.receive()
        await agent.send(chunk("a"), chunk("b"), answer(asked["id"], END_TURN), chunk("after"))
        assert [text_of(update) async for update in turn] == ["a", "b"]
        assert turn.result.stop_reason == "end_turn"


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_wire_order_holds_for_any_mix_and_any_cutting(seed: int) -> None:
    """Good updates, odd ones and answers, cut anywhere: the fast and the general road must not reorder them."""
    chance = random.Random(seed)

    async def scenario() -> None:
        log: list[str] = []
        router = Router()
        router.on_notice(m.SESSION_UPDATE, lambda update: log.append(_name(update)))
        async with asyncio.timeout(10), against_raw(router) as (client, agent):

            async def ask(n: int) -> None:
                await client.request(m.PROMPT, PROMPT)
                log.append(f"answer {n}")

            asking = [asyncio.create_task(ask(n)) for n in range(3)]
            ids = [(await agent.receive())["id"] for _ in asking]
            script = [chunk(f"u{n}") for n in range(20)] + [ODD_UPDATE] * 3
            chance.shuffle(script)
            expected = []
            for n, id in enumerate(ids):
                script.insert(chance.randrange(len(script) + 1), answer(id, END_TURN))
                expected.append(n)
            wire = b"".join(line + b"\n" for line in script)
            while wire:
                cut = chance.randrange(1, 400)
                agent.transport.out += wire[:cut]
                agent.transport.flush()
                wire = wire[cut:]
            await asyncio.gather(*asking)
            _check(log, script, ids)

    asyncio.run(scenario())


def _name(update: SessionUpdate) -> str:
    return "odd" if update.update.__class__.__name__ == "Unknown" else text_of(update)


def _check(log: list[str], script: list[bytes], ids: list[int]) -> None:
    texts: list[str] = []
    seen_before: dict[str, list[str]] = {}
    for line in script:
        number = next((n for n, id in enumerate(ids) if line == answer(id, END_TURN)), None)
        if number is None:
            texts.append("odd" if line == ODD_UPDATE else line.split(b'"text":"')[1].split(b'"')[0].decode())
        else:
            seen_before[f"answer {number}"] = list(texts)
    assert [entry for entry in log if not entry.startswith("answer")] == texts
    for entry, updates in seen_before.items():
        received = [each for each in log[: log.index(entry)] if not each.startswith("answer")]
        assert received[: len(updates)] == updates


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_turns_of_many_sessions_get_their_own_updates_in_order_up_to_their_response(seed: int) -> None:
    """Updates of four sessions, mixed and cut anywhere. Three have a turn; all else is for the handler."""
    chance = random.Random(seed)

    async def scenario() -> None:
        handled: list[tuple[str, str]] = []
        router = Router()
        router.on_notice(m.SESSION_UPDATE, lambda update: handled.append((update.session_id, _name(update))))
        async with asyncio.timeout(10), against_raw(router) as (client, agent):
            turns = {id: client.stream(m.PROMPT, Prompt(id, [TextBlock("go")])) for id in "abc"}
            reading = [asyncio.create_task(_texts(turn)) for turn in turns.values()]
            asked = {id: (await agent.receive())["id"] for id in turns}
            sent = [(chance.choice("abcd"), "odd" if chance.random() < 0.1 else f"u{n}") for n in range(60)]
            ends = {id: chance.randrange(len(sent) + 1) for id in turns}
            script = [
                line
                for n in range(len(sent) + 1)
                for line in (
                    *(answer(asked[id], END_TURN) for id, end in ends.items() if end == n),
                    *(_line(text, id) for id, text in sent[n : n + 1]),
                )
            ]
            wire = b"".join(line + b"\n" for line in script)
            while wire:
                cut = chance.randrange(1, 3000)
                agent.transport.out += wire[:cut]
                agent.transport.flush()
                wire = wire[cut:]
                if chance.random() < 0.5:
                    await idle()  # so that what follows comes in another step of the loop
            read = await asyncio.gather(*reading)
            for (id, end), texts in zip(ends.items(), read, strict=True):
                assert texts == [text for session, text in sent[:end] if session == id]
            rest = [one for n, one in enumerate(sent) if n >= ends.get(one[0], 0)]
            await until(lambda: len(handled) >= len(rest))
            assert sorted(handled) == sorted(rest)
            for id in "abcd":
                assert [one for one in handled if one[0] == id] == [one for one in rest if one[0] == id]

    asyncio.run(scenario())


async def _texts(turn: Stream[SessionUpdate, PromptResult]) -> list[str]:
    return [_name(update) async for update in turn]


def _line(name: str, session: str) -> bytes:
    return ODD_UPDATE.replace(b'"s"', b'"%b"' % session.encode()) if name == "odd" else chunk(name, session)


async def test_an_update_that_came_before_a_prompt_is_not_part_of_its_turn() -> None:
    handled: list[str] = []
    router = Router()
    router.on_notice(m.SESSION_UPDATE, lambda update: handled.append(text_of(update)))
    async with asyncio.timeout(10), against_raw(router) as (client, agent):
        first = client.stream(m.PROMPT, PROMPT)
        # What the transport does, so that the next prompt is sent in the same step of the loop.
        client.block_received(chunk("mine") + b"\n" + chunk("early", "t") + b"\n" + chunk("more") + b"\n")
        second = client.stream(m.PROMPT, Prompt("t", [TextBlock("go")]))
        ids = [(await agent.receive())["id"] for _ in range(2)]
        await agent.send(*(answer(id, END_TURN) for id in ids))
        assert (await _texts(first), await _texts(second), handled) == (["mine", "more"], [], ["early"])


async def test_an_update_is_handled_in_the_turn_it_arrives_even_if_a_handler_fails() -> None:
    log: list[str] = []

    def handle(update: SessionUpdate) -> None:
        log.append(text_of(update))
        if text_of(update) == "b":
            raise ValueError("handler fault")

    router = Router()
    router.on_notice(m.SESSION_UPDATE, handle)
    async with asyncio.timeout(10), against_raw(router) as (client, agent):
        asking = asyncio.create_task(client.request(m.PROMPT, PROMPT))
        asked = await agent.receive()
        await agent.send(chunk("a"), chunk("b"), chunk("c"), answer(asked["id"], END_TURN))
        await asking
        assert log == ["a", "b", "c"]
        assert client.counts["HandlerFailed"] == 1


async def test_our_updates_leave_before_the_answer_we_give() -> None:
    async with asyncio.timeout(10), against_raw() as (agent, client):

        async def prompt(asked: Prompt) -> object:
            agent.post(m.SESSION_UPDATE, m.SESSION_UPDATE.decode_params(_params(chunk("first"))))
            await agent.notify(m.SESSION_UPDATE, m.SESSION_UPDATE.decode_params(_params(chunk("second"))))
            return m.PROMPT.decode_result(END_TURN.encode())

        agent.router.on_request(m.PROMPT, prompt)  # type: ignore[arg-type]
        first = await client.ask("session/prompt", {"sessionId": "s", "prompt": []})
        second, third = await client.receive(), await client.receive()
        assert [first["params"]["update"]["content"]["text"], second["params"]["update"]["content"]["text"]] == [
            "first",
            "second",
        ]
        assert third["result"] == {"stopReason": "end_turn"}


def _params(frame: bytes) -> bytes:
    return frame.split(b'"params":', 1)[1][:-1]
