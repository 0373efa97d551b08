"""A new session opens where the last one in its directory ended, unless that is turned off."""

import pytest

from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import Line, notices, open_with
from tests.engines.client import Client, connected

pytestmark = pytest.mark.slow


def answered_before_history(client: Client) -> bool:
    """Whether the answer to `session/new` came before the first word of the history."""
    places = {"answer": 0, "history": 0}
    for place, frame in enumerate(client.frames, 1):
        if "sessionId" in (frame.get("result") or {}):
            places["answer"] = places["answer"] or place
        if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "user_message_chunk":
            places["history"] = places["history"] or place
    return 0 < places["answer"] < places["history"]


def replayed(client: Client) -> list[Line]:
    """What the client was sent outside of turns."""
    kinds = {"user_message_chunk": "user", "agent_message_chunk": "agent"}
    found = [each for each in client.updates if each["sessionUpdate"] in kinds]
    return [Line(kinds[each["sessionUpdate"]], each["content"]["text"]) for each in found]


async def test_a_new_session_goes_on_where_the_last_one_ended(at: Place) -> None:
    at.resumes()
    async with connected(at) as client:
        await client.say("remember the river")
        id = client.session.id
    async with connected(at) as client:
        await client.open()
        assert client.session.id == id
        await client.until(lambda: len(replayed(client)) >= 2 and notices(client))
        assert answered_before_history(client)
        assert replayed(client)[:2] == [
            Line("user", "remember the river"),
            Line("agent", "echo: remember the river"),
        ]
        assert (await client.say("what was it?")).text == "echo: what was it?"
    assert at.claude.model.last.texts == ["remember the river", "what was it?"]
    assert "/clear" in notices(client)  # how to begin afresh


@pytest.mark.parametrize(
    "variable", ["ANTIPHON_AUTO_RESUME", pytest.param("BANJO_AUTO_RESUME", marks=pytest.mark.prove)]
)
async def test_it_does_not_when_the_environment_turns_it_off(at_codex: Place, variable: str) -> None:
    at_codex.resumes()
    at_codex.environment[variable] = "false"
    async with connected(at_codex) as client:
        await client.say("remember the river")
        id = client.session.id
    async with connected(at_codex) as client:
        await client.say("hello")
        assert (
            client.session.id != id and client.all_text == "echo: hello" and not client.updates_of("user_message_chunk")
        )
    assert at_codex.codex.model.last.texts == ["hello"]


async def test_it_does_not_when_the_user_switched_it_off(at_codex: Place) -> None:
    at_codex.resumes()
    async with connected(at_codex) as client:
        await open_with(client, auto_resume="off")
        await client.say("remember the river")
        id = client.session.id
    async with connected(at_codex) as client:
        await client.open()
        assert client.session.id != id and client.option("auto_resume").current_value == "off"


async def test_what_was_cleared_is_not_gone_on_with(at_codex: Place) -> None:
    at_codex.resumes()
    async with connected(at_codex) as client:
        await client.say("remember the river")
        await client.say("/clear")
    async with connected(at_codex) as client:
        await client.say("what was it?")
        assert not any("river" in line.text for line in replayed(client))
    assert "river" not in at_codex.codex.model.last.everything


async def test_each_directory_has_its_own(at_codex: Place) -> None:
    at_codex.resumes()
    elsewhere = at_codex.write("elsewhere/notes.txt", "la\n").parent
    async with connected(at_codex) as client:
        await client.say("remember the river")
        here = client.session.id
        there = (await client.open(elsewhere)).id
        await client.say("remember the sea")
        assert here != there
    async with connected(at_codex) as client:
        assert (await client.open()).id == here
        assert (await client.open(elsewhere)).id == there


async def test_a_session_that_is_open_elsewhere_is_not_taken_away(at_codex: Place) -> None:
    at_codex.resumes()
    async with connected(at_codex) as other:
        await other.say("remember the river")
        async with connected(at_codex) as client:
            assert (await client.open()).id != other.session.id
            assert (await client.say("hello")).text == "echo: hello"
        assert (await other.say("go on")).text == "echo: go on"


async def test_a_second_session_of_one_process_is_a_new_one(at_codex: Place) -> None:
    at_codex.resumes()
    async with connected(at_codex) as client:
        await client.say("remember the river")
        first = client.session.id
        assert (await client.open()).id != first
