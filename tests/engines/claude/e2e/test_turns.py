"""What a turn sends: text, thoughts, plans, sub-agents, usage, compaction, notices, commands, a title."""

import json
import time

from antiphon import v1
from tests.engines.claude.model.steps import Call, Header, Text
from tests.engines.claude.place import BY_SUBSCRIPTION, Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import connected

TODOS = [
    {"content": "Read the score", "status": "completed", "activeForm": "Reading the score"},
    {"content": "Sing it", "status": "in_progress", "activeForm": "Singing it"},
    {"content": "Bow", "status": "pending", "activeForm": "Bowing"},
]


@proves("turn.plan-todos")
async def test_todos_are_shown_as_a_plan(at: Place) -> None:
    at.environment |= {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1", "CLAUDE_CODE_ENABLE_TASKS": "0"}
    at.model.answers(Call("TodoWrite", {"todos": TODOS}))
    async with connected(at) as client:
        reply = await client.say("plan")
    [*_, plan] = reply.of(v1.Plan)
    assert [(each.content, each.status.value) for each in plan.entries] == [
        (todo["content"], todo["status"]) for todo in TODOS
    ]


@proves("turn.plan-tasks", on=BOTH)
async def test_tasks_are_shown_as_a_plan(at: Place) -> None:
    at.model.answers(
        Call("TaskCreate", {"subject": "Read the score", "description": "All of it"}),
        Call("TaskCreate", {"subject": "Sing it", "description": "Aloud"}),
    )
    at.model.answers(Call("TaskUpdate", {"taskId": "1", "status": "completed"}))
    at.model.answers(Call("TaskUpdate", {"taskId": "2", "status": "in_progress"}))
    async with connected(at) as client:
        reply = await client.say("plan")
    [*_, plan] = reply.of(v1.Plan)
    assert [(each.content, each.status.value) for each in plan.entries] == [
        ("Read the score", "completed"),
        ("Sing it", "in_progress"),
    ]


@proves("turn.subagent", on=BOTH)
async def test_a_sub_agents_work_is_shown_within_its_call(at: Place) -> None:
    at.write("score.txt", "do re mi\n")
    task = {"description": "Read the score", "prompt": "read score.txt", "subagent_type": "general-purpose"}
    at.model.answers(Text("I send somebody. "), Call("Agent", {**task, "run_in_background": False}))
    at.model.agent_answers(Text("on my way"), Call("Read", {"file_path": str(at.folder / "score.txt")}))
    at.model.agent_answers(Text("it says do re mi"))
    at.model.answers(Text("They came back."))
    async with connected(at) as client:
        reply = await client.say("delegate")
    assert reply.text == "I send somebody. They came back."  # and nothing of what the sub-agent sent
    parent, read = reply.call("Agent"), reply.call("Read")
    assert parent["status"] == "completed" and read["status"] == "completed"
    shown = json.dumps(parent["content"])
    assert shown.count("it says do re mi") == 1 and "tools-used" not in shown
    assert read["_meta"]["claudeCode"]["parentToolUseId"] == parent["toolCallId"]
    assert "Read the score" in parent["title"]


@proves("turn.compaction", "turn.commands", on=BOTH)
async def test_compaction_is_shown_with_its_summary(at: Place) -> None:
    at.model.side_answers(Text("<summary>They sang of rivers.</summary>"))
    async with connected(at) as client:
        await client.say("sing of rivers")
        await client.say("and of the sea")
        reply = await client.say("/compact")
        states = [each.status.value for each in reply.of(v1.CompactionUpdate)]
        assert states[0] == "in_progress" and states[-1] == "completed"
        await client.say("and now?")
    assert "They sang of rivers." in at.model.last.everything


@proves("turn.commands")
async def test_slash_commands_are_offered_and_work(at: Place) -> None:
    at.own_command("hum", "Hum a tune", "Hum $ARGUMENTS softly.")
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: any(each.name == "hum" for each in client.session.commands or ()))
        names = {each.name: each.description for each in client.session.commands or ()}
        assert "Hum a tune" in names["hum"] and {"compact", "init"} <= set(names)
        await client.say("/hum the blues")
    assert "Hum the blues softly." in at.model.last.everything


@proves("turn.notices")
async def test_what_the_program_wants_known_is_a_notice(at: Place) -> None:
    at.environment |= BY_SUBSCRIPTION
    limit = {"status": "allowed_warning", "representative-claim": "five_hour", "reset": str(int(time.time()) + 3600)}
    limit |= {"5h-utilization": "0.93", "5h-reset": limit["reset"], "5h-surpassed-threshold": "0.9"}
    headers = [Header(f"anthropic-ratelimit-unified-{name}", value) for name, value in limit.items()]
    at.model.answers(*headers, Text("la"))
    async with connected(at) as client:
        reply = await client.say("sing")
    assert reply.text == "la" and "limit" in reply.notices


@proves("turn.session-title")
async def test_a_session_gets_a_title_and_can_be_renamed(at: Place) -> None:
    async with connected(at) as client:
        await client.say("a song about rivers and the sea")
        assert client.session.title is not None and "rivers" in client.session.title
        await client.say("/rename The river songs")
        await client.until(lambda: client.session.title == "The river songs")
        listed = [each.title async for each in client.agent.list_sessions(at.folder)]
    assert listed == ["The river songs"]
