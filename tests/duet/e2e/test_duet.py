"""The route `duet`: both answer, each under its own name."""

import asyncio

import pytest

from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import by, open_with, shown
from tests.engines.claude.model.steps import Call
from tests.engines.client import connected
from tests.engines.codex.model.steps import command
from tests.engines.model.steps import Gate, Text, Wait

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("first", "second"), [("claude", "codex"), pytest.param("codex", "claude", marks=pytest.mark.prove)]
)
async def test_where_they_may_write_the_primary_answers_first_and_then_the_other(
    at: Place, first: str, second: str
) -> None:
    gate = Gate()
    at.model(first).answers(Text("a first voice"), Wait(gate))
    at.model(second).answers(Text("a second voice"))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet", primary_agent=first)
        turn = asyncio.create_task(client.say("sing"))
        await gate.is_reached()
        await client.until(lambda: "a first voice" in client.all_text)
        assert at.model(second).asked == []
        gate.open()
        result = await turn
    assert result.stop == "end_turn"
    assert result.text.index("a first voice") < result.text.index("a second voice")
    assert "a first voice" in by(client, first) and "a second voice" in by(client, second)


async def test_each_message_begins_with_the_name_of_its_engine(at: Place) -> None:
    at.answer("a first voice", "a second voice")
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        await client.say("sing")
        lines = [line for line in shown(client) if line.kind == "agent"]
    claude, codex = lines
    assert claude.text == "**Claude Code**\n\na first voice" and codex.text.lstrip() == "**Codex**\n\na second voice"


async def test_calls_name_their_engine(at: Place) -> None:
    at.write("song.txt", "la\n")
    at.claude.model.answers(Call("Read", {"file_path": str(at.folder / "song.txt")}))
    at.codex.model.answers(command("cat song.txt"))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        await client.say("read it")
        claude, codex = [line.text for line in shown(client) if line.kind == "call"]
    assert claude.startswith("Claude Code: ") and "song.txt" in claude
    assert codex.startswith("Codex: ") and "song.txt" in codex


async def test_where_they_only_read_both_work_at_the_same_time(at: Place) -> None:
    gates = Gate(), Gate()
    at.claude.model.answers(Wait(gates[0]), Text("a first voice"))
    at.codex.model.answers(Wait(gates[1]), Text("a second voice"))
    async with connected(at) as client:
        await open_with(client, mode="plan", route="duet")
        turn = asyncio.create_task(client.say("plan a song"))
        for gate in gates:
            await gate.is_reached()  # each has its request, and neither has answered
        for gate in gates:
            gate.open()
        result = await turn
    assert (
        result.stop == "end_turn"
        and "a first voice" in by(client, "claude")
        and "a second voice" in by(client, "codex")
    )


async def test_no_message_is_cut_in_two_while_both_engines_answer(at: Place) -> None:
    gates = Gate(), Gate()
    at.claude.model.answers(Text("one two "), Wait(gates[0]), Text("three four"))
    at.codex.model.answers(Wait(gates[1]), Text("do re mi fa", size=3))
    async with connected(at) as client:
        await open_with(client, mode="plan", route="duet")
        turn = asyncio.create_task(client.say("plan a song"))
        for gate in gates:
            await gate.is_reached()
        await client.until(lambda: "one two" in client.all_text)
        for gate in reversed(gates):  # the second begins while the first is in the middle of its message
            gate.open()
        result = await turn
        spoken = [line.text for line in shown(client) if line.kind == "agent"]
    assert "one two three four" in result.text and "do re mi fa" in result.text and len(spoken) == 2


async def test_each_engine_sees_earlier_messages_of_the_other(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        at.answer("Lethe is a river.", "Mnemosyne is another.")
        await client.say("name a river")
        at.answer("Both are sung.", "So they are.")
        await client.say("sing of both")
    first, second = at.codex.model.asked
    assert "Lethe is a river." in first.everything  # the second engine gets the first answer
    assert "Mnemosyne is another." in at.claude.model.last.everything
    assert "Both are sung." in second.everything and second.everything.count("Lethe is a river.") == 1


async def test_at_the_same_time_neither_waits_for_the_other_and_both_know_it_the_next_time(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, mode="plan", route="duet")
        at.answer("Lethe is a river.", "Mnemosyne is another.")
        await client.say("name a river")
        at.answer("Both are sung.", "So they are.")
        await client.say("sing of both")
    assert "Mnemosyne is another." in at.claude.model.last.everything
    assert "Lethe is a river." in at.codex.model.last.everything
