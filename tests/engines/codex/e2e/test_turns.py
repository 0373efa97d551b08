"""What a turn sends: text, thoughts, plans, searches, pictures, usage, compaction, notices, a title."""

import asyncio
from base64 import b64decode

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.model.steps import Call, Patch, Search, plan
from tests.engines.codex.place import Place
from tests.engines.codex.stand_in_lines import notification as told_of
from tests.engines.codex.stand_in_lines import stand_in_says
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.web_server import stdio_server
from tests.engines.model.steps import Cut, Gate, Text, Think, Wait
from tests.engines.pictures import DOT
from tests.engines.proofs import STAND_IN


@proves("turn.retried", "turn.once", "turn.notices", on=BOTH)
async def test_a_stream_that_breaks_and_is_tried_again_repeats_nothing(at: Place) -> None:
    at.model.answers(Think("what might rhyme"), Text("a first line, "), Text("and then a"), Cut())
    at.model.answers(Think("what might rhyme"), Text("a first line, "), Text("and then a second"))
    async with connected(at) as client:
        reply = await client.say("sing")
    assert reply.text == "a first line, and then a second" and reply.thoughts == "what might rhyme"
    assert reply.stop == "end_turn" and len(at.model.asked) == 2 and reply.notices


@proves("turn.retried")
async def test_what_is_new_after_a_broken_stream_is_shown(at: Place) -> None:
    at.model.answers(Text("a line that is lost"), Cut())
    at.model.answers(Text("another line"))
    async with connected(at) as client:
        reply = await client.say("sing")
    ids = list(dict.fromkeys(each.message_id for each in reply.of(v1.AgentMessageChunk)))
    assert reply.text == "a line that is lostanother line" and len(ids) == 2


@proves("turn.plan", on=BOTH)
async def test_a_plan_is_shown_as_a_plan(at: Place) -> None:
    steps = {"Read the score": "completed", "Sing it": "in_progress", "Bow": "pending"}
    at.model.answers(plan(**steps))
    async with connected(at) as client:
        reply = await client.say("plan")
    [*_, shown] = reply.of(v1.Plan)
    assert {each.content: each.status.value for each in shown.entries} == steps


@proves("turn.web-search", on=BOTH)
async def test_a_search_of_the_web_is_shown_with_what_was_searched_for(at: Place) -> None:
    at.model.answers(Search("songs of the river"), Text("found"))
    async with connected(at) as client:
        reply = await client.say("search")
    call = reply.call("WebSearch")
    assert call["status"] == "completed" and call["kind"] == "fetch" and "songs of the river" in call["title"]
    assert call["rawInput"] == {"query": "songs of the river"}


@proves("turn.images-out", on=BOTH)
async def test_a_picture_that_a_tool_makes_is_shown(at: Place) -> None:
    at.model.answers(Call("draw", namespace="mcp__little"))
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server()])
        reply = await client.say("draw")
    call = reply.call("mcp__little__draw")
    [picture] = [each["content"] for each in call["content"] if each["type"] == "content"]
    assert (picture["type"], picture["data"], picture["mimeType"]) == ("image", DOT, "image/png")


@proves("turn.images-out", on=[STAND_IN])
async def test_a_picture_that_the_model_makes_is_shown(at: Place) -> None:
    made = {"type": "imageGeneration", "id": "ig_1", "status": "completed", "revisedPrompt": "a dot", "result": DOT}
    begun = {**made, "status": "generating", "result": ""}
    stand_in_says(at, told_of("item/started", item=begun), told_of("item/completed", item=made))
    async with connected(at) as client:
        reply = await client.say("draw")
    call = reply.call("ImageGeneration")
    [picture] = [each["content"] for each in call["content"] if each["type"] == "content"]
    assert call["status"] == "completed" and "a dot" in call["title"]
    assert (picture["type"], picture["data"], picture["mimeType"]) == ("image", DOT, "image/png")


@proves("turn.image-view")
async def test_a_picture_that_the_model_looks_at_is_shown(at: Place) -> None:
    dot = at.folder / "dot.png"
    dot.write_bytes(b64decode(DOT))
    at.model.answers(Call("view_image", {"path": str(dot)}))
    async with connected(at) as client:
        reply = await client.say("look")
    call = reply.call("Read")
    assert call["status"] == "completed" and call["locations"] == [{"path": str(dot)}] and "dot.png" in call["title"]


@proves("turn.compaction", "commands.compact", on=BOTH)
async def test_compaction_is_shown_and_the_session_goes_on_with_a_summary(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        at.model.answers(Text("They spoke of a river."))
        reply = await client.say("/compact")
        assert reply.stop == "end_turn"
        shown = [each for each in client.updates if "compact" in str(each).lower()]
        assert shown
        await client.say("go on")
    assert "They spoke of a river." in at.model.last.everything


@proves("turn.notices")
async def test_what_the_program_warns_of_is_a_notice(at: Place) -> None:
    at.settings(top='model_provider = "choir"', model="a-model-of-tomorrow")
    async with connected(at) as client:
        reply = await client.say("sing")
    assert "a-model-of-tomorrow" in reply.notices and reply.text == "echo: sing"


@proves("turn.session-title")
async def test_the_session_gets_a_title(at: Place) -> None:
    async with connected(at) as client:
        await client.say("write a song about the river")
        [info] = client.updates_of("session_info_update")
    assert "song about the river" in info["title"]


@proves("turn.script", on=BOTH)
async def test_the_calls_of_a_script_are_shown_like_any_others(at: Place) -> None:
    script = "const r = await tools.exec_command({cmd: 'echo sung aloud'});\ntext(JSON.stringify(r));"
    async with connected(at) as client:
        await client.open()
        scripting = next(each for each in client.choices("model") if "5.6" in each)
        await client.session.set_config_option("model", scripting)
        at.model.answers(Patch(script, "exec"))
        reply = await client.say("sing")
    call = reply.call("Bash")
    assert call["status"] == "completed" and call["title"] == "echo sung aloud"
    assert call["rawOutput"]["aggregatedOutput"] == "sung aloud\n" and len(reply.of(v1.ToolCall)) == 1


@proves("server.one")
async def test_one_process_serves_all_sessions_at_the_same_time(at: Place) -> None:
    gates = Gate(), Gate()
    for gate in gates:
        at.model.answers_by(lambda asked, gate=gate: (Text(f"{asked.prompt}: la "), Wait(gate), Text("la")))  # type: ignore[misc]
    async with connected(at) as client:
        first, second = await client.open(), await client.open()
        turns = [asyncio.create_task(client.say(name, session)) for name, session in (("one", first), ("two", second))]
        for gate in gates:
            await gate.is_reached()
        assert len(at.processes()) == 1
        for gate in gates:
            gate.open()
        sent = [await turn for turn in turns]
    assert [each.text for each in sent] == ["one: la la", "two: la la"]
