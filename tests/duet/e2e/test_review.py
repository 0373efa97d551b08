"""The route `review`: one works, the other says what is wrong with it."""

import pytest

from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import by, open_with, repository, shown
from tests.engines.claude.model.steps import Call
from tests.engines.client import connected
from tests.engines.codex.model.steps import Fail, patch
from tests.engines.model.steps import Text

pytestmark = pytest.mark.slow

NOTHING = "No findings."


def sings(at: Place, words: str = "la la la", then: str = "I have sung.") -> None:
    """Claude Code writes a song and says so."""
    at.claude.model.answers(
        Text("I will sing. "), Call("Write", {"file_path": str(at.folder / "song.txt"), "content": f"{words}\n"})
    )
    at.claude.model.answers(Text(then))


def prompts(at: Place) -> list[str]:
    """What Claude Code was asked to do, without the requests that bring results of tools."""
    return [asked.prompt for asked in at.claude.model.asked if asked.is_prompt]


async def test_the_reviewer_gets_the_prompt_the_transcript_and_the_diff_of_what_changed(at: Place) -> None:
    at.write("old.txt", "long ago\n")
    repository(at)
    at.write("mine.txt", "of the user\n")  # changed before, and not by the engine
    sings(at)
    at.codex.model.answers(Text("The second note is flat."))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review")
        reply = await client.say("write a song of the river")
    [asked] = at.codex.model.asked
    assert "write a song of the river" in asked.everything
    assert "I will sing." in asked.everything and "I have sung." in asked.everything
    assert "song.txt" in asked.everything and "+la la la" in asked.everything
    assert "of the user" not in asked.everything
    assert reply.stop == "end_turn" and "The second note is flat." in by(client, "codex")
    assert reply.text.index("I have sung.") < reply.text.index("The second note is flat.")
    assert prompts(at) == ["write a song of the river"]  # it is reported, and not handed back


async def test_findings_are_a_message_of_the_reviewer(at: Place) -> None:
    sings(at)
    at.codex.model.answers(Text("The second note is flat."))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review")
        await client.say("write a song")
        lines = shown(client)
    assert lines[-1].kind == "agent" and lines[-1].text.lstrip() == "**Codex**\n\nThe second note is flat."


async def test_a_folder_without_git_has_its_changes_reviewed_as_well(at: Place) -> None:
    at.write("song.txt", "do\n")
    at.claude.model.answers(Call("Read", {"file_path": str(at.folder / "song.txt")}))
    sings(at)
    at.codex.model.answers(Text(NOTHING))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review")
        await client.say("write a song")
    [asked] = at.codex.model.asked
    assert "-do" in asked.everything and "+la la la" in asked.everything


async def test_codex_leads_and_claude_code_reviews_when_that_is_set(at: Place) -> None:
    at.codex.model.answers(patch("*** Add File: song.txt", "+la la la"))
    at.codex.model.answers(Text("I have sung."))
    at.claude.model.answers(Text("The second note is flat."))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", primary_agent="codex")
        reply = await client.say("write a song")
    [asked] = at.claude.model.asked
    assert "write a song" in asked.everything and "I have sung." in asked.everything
    assert "+la la la" in asked.everything and "The second note is flat." in reply.text


async def test_findings_are_handed_back_until_there_are_none(at: Place) -> None:
    sings(at)
    at.codex.model.answers(Text("The second note is flat."))
    sings(at, "la li la", "It is higher now.")
    at.codex.model.answers(Text(NOTHING))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", review="fix")
        reply = await client.say("write a song")
    first, fixing = prompts(at)
    assert first == "write a song" and "The second note is flat." in fixing
    again = at.codex.model.last.everything
    assert len(at.codex.model.asked) == 2 and "It is higher now." in again and "la li la" in again
    assert reply.stop == "end_turn" and reply.text.index("The second note is flat.") < reply.text.index(
        "It is higher now."
    )


async def test_where_nothing_is_found_nothing_is_handed_back(at: Place) -> None:
    sings(at)
    at.codex.model.answers(Text(NOTHING))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", review="fix")
        assert (await client.say("write a song")).stop == "end_turn"
    assert prompts(at) == ["write a song"] and len(at.codex.model.asked) == 1


async def test_findings_are_handed_back_so_often_and_no_more(at: Place) -> None:
    at.configure("[duet]\nreview_rounds = 2\n")
    at.claude.model.otherwise = (Text("I have sung."),)
    sings(at)
    at.codex.model.otherwise = (Text("It is still flat."),)
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", review="fix")
        reply = await client.say("write a song")
    assert len(prompts(at)) == 3 and reply.stop == "end_turn"
    assert 2 <= len(at.codex.model.asked) <= 3


async def test_a_review_that_fails_leaves_the_work_and_names_the_reason(at: Place) -> None:
    sings(at)
    at.codex.model.otherwise = (Fail(400, "invalid_request_error", "no such chord"),)
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review")
        reply = await client.say("write a song")
    assert reply.stop == "end_turn" and (at.folder / "song.txt").exists()
    assert "I have sung." in reply.text and "no such chord" in str(client.updates)
