"""The slash commands: ours, the engines' own, and those of theirs that ours hide."""

import pytest

from antiphon import __version__
from antiphon.errors import RequestRefused
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import by, open_with
from tests.engines.client import Client, connected
from tests.engines.model.steps import Text

pytestmark = pytest.mark.slow

OURS = {"claude", "codex", "duet", "review", "clear", "nudge", "status", "version", "explain", "sessions", "help"}
FOUND = (
    '{"findings": [{"title": "Out of tune", "body": "The high note is flat.", "confidence_score": 0.9, "priority": 1, "code_location":'
    ' {"absolute_file_path": "%s", "line_range": {"start": 1, "end": 1}}}], "overall_correctness": "patch is incorrect",'
    ' "overall_explanation": "One note is flat.", "overall_confidence_score": 0.9}'
)


def offered(client: Client) -> dict[str, str]:
    return {each.name: each.description for each in client.session.commands or ()}


async def test_our_commands_are_offered_with_the_engines_own(at: Place) -> None:
    at.claude.own_command("hum", "Hum a tune", "Hum $ARGUMENTS softly.")
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: {"hum", "compact"} | OURS <= set(offered(client)))
        assert "Hum a tune" in offered(client)["hum"]
        names = [each.name for each in client.session.commands or ()]
        assert len(names) == len(set(names))  # each once, whichever engine has it
        await client.say("/hum the blues")
    assert "Hum the blues softly." in at.claude.model.last.everything


async def test_the_commands_of_the_route_are_offered(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await open_with(client, route="codex")
        await client.say("hello")
        await client.until(lambda: {"rename", "mcp", "skills"} | OURS <= set(offered(client)))


async def test_a_command_of_an_engine_that_ours_hides_is_reached_by_the_engines_name(at: Place) -> None:
    at.claude.own_command("sessions", "Sessions of song", "Sing $ARGUMENTS in turn.")
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: "claude:sessions" in offered(client))
        assert "Sessions of song" in offered(client)["claude:sessions"]
        await client.say("/sessions")
        assert at.claude.model.asked == []
        await client.say("/claude:sessions the blues")
    assert "Sing the blues in turn." in at.claude.model.last.everything


async def test_codexs_own_review_is_reached_by_its_name(at_codex: Place) -> None:
    at_codex.git("init", "--quiet")
    song = at_codex.write("song.txt", "la\n")
    at_codex.codex.model.answers(Text(FOUND % song))
    async with connected(at_codex) as client:
        await open_with(client, route="codex")
        reply = await client.say("/codex:review")
        assert "Out of tune" in reply.text and reply.stop == "end_turn"
        assert client.option("route").current_value == "codex"


async def test_an_engines_name_alone_makes_it_the_route(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        reply = await client.say("/codex")
        assert reply.stop == "end_turn" and at.codex.model.asked == []
        assert client.option("route").current_value == "codex"
        assert (await client.say("hello")).text == "echo: hello"
        await client.say("/claude")
        assert client.option("route").current_value == "claude"
    assert [asked.prompt for asked in at.codex.model.asked] == ["hello"] and at.claude.model.asked == []


async def test_an_engines_name_with_a_prompt_has_that_engine_answer(at: Place) -> None:
    at.codex.model.answers(Text("a second voice"))
    async with connected(at) as client:
        await client.open()
        reply = await client.say("/codex sing of the river")
    assert "a second voice" in reply.text and at.claude.model.asked == []
    assert "sing of the river" in at.codex.model.last.prompt and "/codex" not in at.codex.model.last.everything


async def test_duet_with_a_prompt_has_both_answer(at: Place) -> None:
    at.answer("a first voice", "a second voice")
    async with connected(at) as client:
        await client.open()
        await client.say("/duet sing of the river")
        assert "a first voice" in by(client, "claude") and "a second voice" in by(client, "codex")
        await client.say("/duet")
        assert client.option("route").current_value == "duet"
    assert "/duet" not in at.claude.model.last.everything


async def test_review_with_a_prompt_has_it_reviewed(at: Place) -> None:
    at.answer("I have sung.", "It is flat.")
    async with connected(at) as client:
        await client.open()
        reply = await client.say("/review sing of the river")
        assert "I have sung." in at.codex.model.last.everything and "It is flat." in reply.text
        for word in ("fix", "report"):
            await client.say(f"/review {word}")
            assert client.option("review").current_value == word
        assert client.option("route").current_value == "review"
    assert len(at.claude.model.asked) == len(at.codex.model.asked) == 1


async def test_clear_begins_afresh_in_the_same_session_and_loses_nothing(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await client.say("remember the river")
        id = client.session.id
        assert (await client.say("/clear")).stop == "end_turn"
        await client.say("what was it?")
        assert client.session.id == id and "river" not in at_codex.codex.model.last.everything
    async with connected(at_codex) as client:
        again = await client.load(id)
        assert "echo: what was it?" in again.text and "river" not in again.text
        listed = [each.session_id async for each in client.agent.list_sessions(at_codex.folder)]
        [archived] = [each for each in listed if each != id]
        assert "echo: remember the river" in (await client.load(archived)).text


async def test_clear_makes_every_engine_forget(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        at.answer("Lethe.", "Mnemosyne.")
        await client.say("name a river")
        await client.say("/clear")
        at.answer("Which one?", "What river?")
        await client.say("which one was it?")
    for each in (at.claude.model.last.everything, at.codex.model.last.everything):
        assert "Lethe." not in each and "Mnemosyne." not in each


async def test_status_version_and_help_ask_no_engine(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        status = (await client.say("/status")).text
        version = (await client.say("/version")).text
        reply = await client.say("/help")
    assert [
        words for words in (client.session.id, "duet", "Claude Code", "Codex", "acceptEdits") if words not in status
    ] == []
    assert __version__ in version and "2.1.325" in version and "0.163.0" in version
    assert [name for name in OURS if f"/{name}" not in reply.text] == []
    assert at.claude.model.asked == [] and at.codex.model.asked == []


async def test_sessions_lists_the_sessions_of_this_directory(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await client.say("a song about rivers")
        await client.open()
        reply = await client.say("/sessions")
    assert "a song about rivers" in reply.text and len(at_codex.codex.model.asked) == 1


async def test_explain_gives_the_engine_the_code_that_is_meant(at_codex: Place) -> None:
    lines = [f"line {number} = sing({number})" for number in range(1, 401)]
    at_codex.write("choir.py", "\n".join(lines) + "\n")
    at_codex.codex.model.answers(Text("It sings the two hundredth note."))
    async with connected(at_codex) as client:
        await client.open()
        reply = await client.say("/explain choir.py:200")
    received = at_codex.codex.model.last.everything
    assert "line 200 = sing(200)" in received and "choir.py" in received and "line 1 = sing(1)" not in received
    assert reply.text == "It sings the two hundredth note."


async def test_explain_without_code_prints_what_it_needs(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await client.open()
        assert "explain" in await answer(client, "/explain")
        assert "nowhere.py" in await answer(client, "/explain nowhere.py:3")
    assert at_codex.codex.model.asked == []


async def answer(client: Client, words: str) -> str:
    """What is answered to this, as a message, as a notice or as an error."""
    try:
        reply = await client.say(words)
    except RequestRefused as error:
        return str(error)
    return reply.text + reply.notices


async def test_what_only_looks_like_a_command_reaches_the_engine(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await open_with(client, route="codex")
        reply = await client.say("/usr/bin/env is a path")
    assert reply.text == "echo: /usr/bin/env is a path"
