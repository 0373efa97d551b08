"""Sessions: resumed, forked, loaded, listed, deleted; and the turns that Claude Code starts by itself."""

import json
import os
from pathlib import Path
from uuid import uuid4

from antiphon import v1
from tests.engines.claude.model.steps import Call, Gate, Text, Wait
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import connected

MANY = 500


@proves("sessions.new", on=BOTH)
async def test_a_new_session_works_in_its_own_directory_and_in_those_that_are_added(at: Place, tmp_path: Path) -> None:
    other, song = tmp_path / "other", at.write("../added/song.txt", "la la la\n").resolve()
    other.mkdir()
    async with connected(at) as client:
        await client.open(other, additional_directories=[song.parent])
        at.model.answers(Call("Bash", {"command": "pwd", "description": "Where am I?"}))
        at.model.answers(Call("Read", {"file_path": str(song)}))
        reply = await client.say("where are you?")
        assert client.asked == [] and str(other) in str(reply.call("Bash")["rawOutput"])
        assert "la la la" in at.model.last.result_texts[0]


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
async def test_turns_that_the_program_starts_by_itself_are_shown(at: Place) -> None:
    pipe = Path(at.environment["TMPDIR"]) / "pipe"
    os.mkfifo(pipe)
    run = {"command": f"cat {pipe}", "description": "Wait", "run_in_background": True}
    at.model.answers(Call("Bash", run))
    at.model.answers(Text("It runs. "))
    at.model.answers(Text("It has ended."))
    async with connected(at) as client:
        reply = await client.say("run something long")
        assert reply.text == "It runs. " and reply.stop == "end_turn"
        pipe.write_text("done\n", encoding="utf-8")  # and now no prompt is sent
        await client.until(lambda: client.all_text.endswith("It has ended."))
        assert (await client.say("thank you")).text == "echo: thank you"


@proves("sessions.own-turns", "permission.asked", on=BOTH)
async def test_permission_is_asked_also_before_the_first_prompt(at: Place) -> None:
    gate = Gate()
    task = {"description": "Look", "prompt": "look", "subagent_type": "general-purpose", "run_in_background": True}
    at.model.answers(Text("I send somebody. "), Call("Agent", task))
    at.model.answers(Text("They are gone. "))
    at.model.agent_answers(Wait(gate), Text("seen it all"))
    at.model.answers(Call("Bash", {"command": "touch sung", "description": "Sing"}))
    at.model.answers(Text("All is sung."))
    async with connected(at) as client:
        reply = await client.say("delegate")
        assert reply.call("Agent")["status"] == "in_progress"  # it works on
        gate.open()
        await client.until(lambda: client.all_text.endswith("All is sung."))
        assert (at.folder / "sung").exists() and [each.tool_call.name for each in client.asked] == ["Bash"]
        agent = reply.call("Agent")["toolCallId"]
        changes = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == agent]
        assert changes[-1]["status"] == "completed" and "seen it all" in json.dumps(changes[-1]["content"])


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
    assert client.all_text == "It runs. It has ended.echo: and now?"
