"""A route with one engine: it answers alone, and knows what was sent before it came."""

import pytest

from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with, shown
from tests.engines.client import connected
from tests.engines.model.steps import Text

pytestmark = pytest.mark.slow


async def test_initialize_is_answered_and_no_engine_is_started(at: Place) -> None:
    async with connected(at) as client:
        assert client.agent.info is not None and "antiphon" in client.agent.info.name.lower()
        assert at.claude.processes() == [] and at.codex.processes() == []


async def test_the_first_engine_answers_alone_unless_another_is_chosen(at: Place) -> None:
    async with connected(at) as client:
        reply = await client.say("hello")
        assert client.option("route").current_value == "claude"
        assert at.codex.processes() == []
    assert reply.text == "echo: hello" and reply.stop == "end_turn"  # and no label: there is no other engine
    assert [asked.prompt for asked in at.claude.model.asked] == ["hello"] and at.codex.model.asked == []


async def test_the_other_engine_answers_alone_when_it_is_chosen(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="codex")
        reply = await client.say("hello")
    assert reply.text == "echo: hello" and reply.stop == "end_turn"
    assert [asked.prompt for asked in at.codex.model.asked] == ["hello"] and at.claude.model.asked == []


async def test_an_engine_that_is_opened_later_gets_the_earlier_history(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        at.claude.model.answers(Text("The river is called Lethe."))
        await client.say("name a river")
        await client.session.set_config_option("route", "codex")
        at.codex.model.answers(Text("You spoke of Lethe."))
        reply = await client.say("which one was it?")
    assert reply.text == "You spoke of Lethe."
    received = at.codex.model.last.everything
    assert "name a river" in received and "The river is called Lethe." in received and "which one was it?" in received


async def test_an_engine_gets_once_the_messages_of_the_other_since_its_last_turn(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        at.claude.model.answers(Text("Lethe."))
        await client.say("name a river")
        await client.session.set_config_option("route", "codex")
        at.codex.model.answers(Text("Mnemosyne."))
        await client.say("name another")
        await client.session.set_config_option("route", "claude")
        at.claude.model.answers(Text("Both are rivers."))
        await client.say("compare them")
        await client.say("and now?")
    compared, last = at.claude.model.asked[-2:]
    assert "Mnemosyne." in compared.everything and "name another" in compared.everything
    assert last.everything.count("Mnemosyne.") == 1  # it stands where it was first given, and is not repeated
    assert last.everything.count("name a river") == 1  # what it was asked itself, it knows


async def test_the_user_sees_the_messages_and_no_summary(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        await client.say("name a river")
        await client.session.set_config_option("route", "codex")
        at.codex.model.answers(Text("Mnemosyne."))
        await client.say("name another")
        lines = [(line.kind, line.text) for line in shown(client)]
    assert lines == [
        ("user", "name a river"),
        ("agent", "echo: name a river"),
        ("user", "name another"),
        ("agent", "Mnemosyne."),
    ]
