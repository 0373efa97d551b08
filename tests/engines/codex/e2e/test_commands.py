"""The slash commands of a session."""

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.web_server import stdio_server
from tests.engines.model.steps import Text

FOUND = '{"findings": [{"title": "Out of tune", "body": "The high note is flat.", "confidence_score": 0.9, "priority": 1, "code_location": {"absolute_file_path": "%s", "line_range": {"start": 1, "end": 1}}}], "overall_correctness": "patch is incorrect", "overall_explanation": "One note is flat.", "overall_confidence_score": 0.9}'


@proves("commands.review", on=BOTH)
async def test_a_review_shows_its_findings(at: Place) -> None:
    at.git("init", "--quiet")
    at.write("song.txt", "la\n")
    at.git("add", ".")
    at.git("commit", "--quiet", "-m", "a song")
    song = at.write("song.txt", "laa\n")
    at.model.answers(Text(FOUND % song))
    async with connected(at) as client:
        reply = await client.say("/review")
        assert reply.stop == "end_turn" and "Out of tune" in reply.text and "The high note is flat." in reply.text
        at.model.answers(Text("nothing to say"))
        reply = await client.say("/review only the last verse")
        assert "only the last verse" in at.model.last.everything and reply.stop == "end_turn"
        assert (await client.say("thank you")).text == "echo: thank you"


@proves("commands.rename", on=BOTH)
async def test_a_session_gets_another_title(at: Place) -> None:
    async with connected(at) as client:
        await client.say("a song")
        reply = await client.say("/rename The river song")
        assert "The river song" in reply.text
        await client.until(lambda: client.updates_of("session_info_update")[-1]["title"] == "The river song")
        [listed] = [each async for each in client.agent.list_sessions()]
    assert listed.title == "The river song"


@proves("commands.archive", on=BOTH)
async def test_a_session_that_is_archived_is_off_the_list_until_it_is_gone_on_with(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        assert "off the list until" in (await client.say("/archive")).text
        assert [each async for each in client.agent.list_sessions()] == []
        assert (await client.say("go on")).text == "echo: go on" and "remember the river" in at.model.last.texts
        assert [each.session_id async for each in client.agent.list_sessions()] == [client.session.id]


@proves("commands.archive", on=BOTH)
async def test_a_session_that_is_archived_can_be_loaded_but_not_forked(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        id = client.session.id
        await client.say("/archive")
    async with connected(at) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.fork(id)
        assert "archived" in str(caught.value) and "load or resume it first" in str(caught.value)
        assert "echo: remember the river" in (await client.load(id)).text
        assert (await client.say("go on")).text == "echo: go on" and "remember the river" in at.model.last.texts


@proves("commands.reports")
async def test_reports_show_account_servers_and_skills(at: Place) -> None:
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server()])
        commands = await client.until(lambda: client.session.commands)
        assert {"review", "compact", "rename", "archive", "status", "mcp", "skills"} <= {each.name for each in commands}
        status = await client.say("/status")
        assert client.session.id in status.text and isinstance(status.result, v1.PromptResult)
        assert "Account: none is needed" in status.text and "Model: " in status.text and "Mode: " in status.text
        servers = await client.say("/mcp")
        assert "little" in servers.text and "`tell`" in servers.text
        assert (await client.say("/skills")).text
    assert at.model.asked == []


@proves("commands.compact", "commands.review", on=BOTH)
async def test_commands_that_have_nothing_to_do_come_to_an_end(at: Place) -> None:
    async with connected(at) as client:
        for command in ("/compact", "/review"):
            reply = await client.say(command)
            assert reply.stop == "end_turn"
        assert (await client.say("go on")).text == "echo: go on"


@proves("commands.rename")
async def test_a_command_without_the_word_that_it_needs_is_an_error(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        for command in ("/rename", "/review-branch", "/review-commit"):
            with pytest.raises(RequestRefused) as caught:
                await client.say(command)
            assert caught.value.code == Code.INVALID_PARAMS and "needs a word" in str(caught.value)
        assert (await client.say("go on")).text == "echo: go on"
