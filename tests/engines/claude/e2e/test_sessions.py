"""Sessions: resumed, forked, loaded, listed, deleted; and the turns that Claude Code starts by itself."""

import json
import os
from pathlib import Path
from uuid import uuid4

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from tests.engines.claude.model.steps import Call, Gate, Text, Think, Wait
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.driving import connected

MANY = 500


@proves("sessions.new", on=BOTH)
async def test_a_new_session_works_in_its_own_directory_and_in_those_that_are_added(at: Place, tmp_path: Path) -> None:
    other, song = tmp_path / "other", at.write("../added/song.txt", "la la la\n").resolve()
    other.mkdir()
    async with connected(at) as client:
        await client.open(other, additional_directories=[song.parent])
        at.model.answers(Call("Bash", {"command": "pwd", "description": "Where am I?"}))
        at.model.answers(Call("Read", {"file_path": str(song)}))
        told = await client.say("where are you?")
        assert client.asked == [] and str(other) in str(told.call("Bash")["rawOutput"])
        assert "la la la" in at.model.last.result_texts[0]


@proves("sessions.resume", on=BOTH)
async def test_a_session_is_resumed_in_another_process_and_knows_what_was_said(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        told = await client.say("what was it?")
        assert client.session.id == id
    assert told.text == "echo: what was it?" and at.model.last.texts == ["remember the river", "what was it?"]
    assert not [each for each in client.updates if "river" in str(each) and "chunk" in each["sessionUpdate"]]


@proves("sessions.fork", on=BOTH)
async def test_a_fork_knows_what_was_said_and_leaves_the_first_session_alone(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        first = client.session
        await at.keeps("echo: remember the river")
        fork = await client.fork(first.id)
        assert fork.id != first.id
        await client.say("the fork goes on")
        assert at.model.last.texts == ["remember the river", "the fork goes on"]
        await client.say("and so does the first", first)
        assert at.model.last.texts == ["remember the river", "and so does the first"]


@proves("sessions.load", on=BOTH)
async def test_a_loaded_session_tells_all_of_it_again(at: Place) -> None:
    song = at.write("song.txt", "do\nre\nmi\n")
    at.model.answers(Think("how to begin"), Text("I read it. "), Call("Read", {"file_path": str(song)}))
    at.model.answers(Call("Edit", {"file_path": str(song), "old_string": "re", "new_string": "RE"}))
    at.model.answers(Call("Bash", {"command": "echo sung", "description": "Sing"}))
    at.model.answers(Text("All is sung."))
    async with connected(at) as client:
        before = await client.say("sing the song")
        id = client.session.id
    async with connected(at) as client:
        again = await client.load(id)
        said = "".join(each.content.text for each in again.of(v1.UserMessageChunk))
        assert said == "sing the song"
        assert again.text == before.text == "I read it. All is sung." and again.thoughts == "how to begin"
        for name in ("Read", "Edit", "Bash"):
            then, now = before.call(name), again.call(name)
            assert now["status"] == then["status"] == "completed" and now["title"] == then["title"]
            assert now["rawInput"] == then["rawInput"] and now["kind"] == then["kind"]
        [diff] = [each for each in again.call("Edit")["content"] if each["type"] == "diff"]
        assert (diff["oldText"], diff["newText"]) == ("do\nre\nmi\n", "do\nRE\nmi\n")
        assert "sung" in str(again.call("Bash")["content"])
        assert (await client.say("more")).text == "echo: more"
    assert at.model.last.texts == ["sing the song", "more"]


@proves("sessions.load-subagent", on=BOTH)
async def test_what_a_sub_agent_did_is_folded_into_its_call(at: Place) -> None:
    song = at.write("song.txt", "do re mi\n")
    task = {"description": "Read it", "prompt": "read it", "subagent_type": "general-purpose"}
    at.model.answers(Text("I send somebody. "), Call("Agent", {**task, "run_in_background": False}))
    at.model.agent_answers(Text("on my way"), Call("Read", {"file_path": str(song)}))
    at.model.agent_answers(Text("it says do re mi"))
    at.model.answers(Text("They came back."))
    async with connected(at) as client:
        await client.say("delegate")
        id = client.session.id
    async with connected(at) as client:
        again = await client.load(id)
    assert again.text == "I send somebody. They came back."
    assert (
        "it says do re mi" in json.dumps(again.call("Agent")["content"])
        and again.call("Agent")["status"] == "completed"
    )
    assert "read it" not in "".join(each.content.text for each in again.of(v1.UserMessageChunk))


@proves("sessions.list", "sessions.delete", on=BOTH)
async def test_sessions_are_listed_also_those_of_a_terminal_and_can_be_deleted(at: Place) -> None:
    done = at.run("-p", "a song from the terminal")
    assert done.returncode == 0 and "echo: a song from the terminal" in done.stdout
    async with connected(at) as client:
        await client.say("a song from the editor")
        await at.keeps("echo: a song from the editor")
        ours = client.session.id
        listed = [each async for each in client.agent.list_sessions()]
        editor, terminal = listed
        assert editor.session_id == ours
        assert "editor" in str(editor.title) and "terminal" in str(terminal.title)
        assert {each.cwd for each in listed} == {str(at.folder)} and all(each.updated_at for each in listed)
        assert [each async for each in client.agent.list_sessions(at.home)] == []
        again = await client.load(terminal.session_id)
        assert again.text == "echo: a song from the terminal"
        await client.session.close()
        await client.agent.delete_session(terminal.session_id)
        assert [each.session_id async for each in client.agent.list_sessions(at.folder)] == [ours]


@proves("sessions.paging", "sessions.fast-list")
async def test_five_hundred_sessions_are_listed_in_pages(at: Place) -> None:
    at.model.answers(Text("la " * 30_000, size=1000))
    async with connected(at) as client:
        await client.say("sing at length")
        await at.keeps("la la la")
    copy(at, client.session.id)
    async with connected(at) as client:
        listed = [each async for each in client.agent.list_sessions()]
        pages = [each for each in client.frames if "sessions" in (each.get("result") or {})]
    assert len({each.session_id for each in listed}) == MANY + 1
    assert len(pages) > 1 and all(each.title for each in listed)


def copy(at: Place, id: str) -> None:
    """Make many sessions of 100 kB, each like the one that Claude Code has written."""
    [path] = at.projects.rglob(f"{id}.jsonl")
    text = path.read_text(encoding="utf-8")
    assert len(text) > 90_000
    for _ in range(MANY):
        other = str(uuid4())
        Path(path.parent, f"{other}.jsonl").write_text(text.replace(id, other), encoding="utf-8")


@proves("sessions.own-turns")
async def test_turns_that_the_program_starts_by_itself_are_told(at: Place) -> None:
    pipe = Path(at.environment["TMPDIR"]) / "pipe"
    os.mkfifo(pipe)
    run = {"command": f"cat {pipe}", "description": "Wait", "run_in_background": True}
    at.model.answers(Call("Bash", run))
    at.model.answers(Text("It runs. "))
    at.model.answers(Text("It has ended."))
    async with connected(at) as client:
        told = await client.say("run something long")
        assert told.text == "It runs. " and told.stop == "end_turn"
        pipe.write_text("done\n", encoding="utf-8")  # and now nobody asks anything
        await client.until(lambda: client.said.endswith("It has ended."))
        assert (await client.say("thank you")).text == "echo: thank you"


@proves("sessions.own-turns", "permission.asked", on=BOTH)
async def test_permission_is_asked_also_where_nobody_had_said_anything(at: Place) -> None:
    gate = Gate()
    task = {"description": "Look", "prompt": "look", "subagent_type": "general-purpose", "run_in_background": True}
    at.model.answers(Text("I send somebody. "), Call("Agent", task))
    at.model.answers(Text("They are gone. "))
    at.model.agent_answers(Wait(gate), Text("seen it all"))
    at.model.answers(Call("Bash", {"command": "touch sung", "description": "Sing"}))
    at.model.answers(Text("All is sung."))
    async with connected(at) as client:
        told = await client.say("delegate")
        assert told.call("Agent")["status"] == "in_progress"  # it works on
        gate.open()
        await client.until(lambda: client.said.endswith("All is sung."))
        assert (at.folder / "sung").exists() and [each.tool_call.name for each in client.asked] == ["Bash"]
        agent = told.call("Agent")["toolCallId"]
        news = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == agent]
        assert news[-1]["status"] == "completed" and "seen it all" in json.dumps(news[-1]["content"])


@proves("sessions.load")
async def test_a_session_that_does_not_exist_is_an_error_that_says_so(at: Place) -> None:
    async with connected(at) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.load(str(uuid4()))
    assert caught.value.code == Code.RESOURCE_NOT_FOUND


@proves("sessions.own-turns")
async def test_a_prompt_that_comes_while_the_program_works_by_itself_gets_its_own_answer(at: Place) -> None:
    pipe, gate = Path(at.environment["TMPDIR"]) / "pipe", Gate()
    os.mkfifo(pipe)
    at.model.answers(Call("Bash", {"command": f"cat {pipe}", "description": "Wait", "run_in_background": True}))
    at.model.answers(Text("It runs. "))
    at.model.answers(Text("It has "), Wait(gate), Text("ended."))
    async with connected(at) as client:
        await client.say("run something long")
        pipe.write_text("done\n", encoding="utf-8")
        await gate.is_reached()
        turn = client.session.prompt("and now?")
        await client.until(lambda: any("and now?" in str(each) for each in client.sent))
        gate.open()
        assert (await turn).stop_reason is v1.StopReason.END_TURN
    assert client.said == "It runs. It has ended.echo: and now?"
