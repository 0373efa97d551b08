"""Questions of the model and of MCP servers to the user."""

import sys
from typing import Any

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import Can, connected
from tests.engines.codex.model.steps import Call
from tests.engines.codex.place import Place
from tests.engines.codex.stand_in_lines import asked, message, notification, responses_received, stand_in_says
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.web_server import LITTLE, stdio_server
from tests.engines.proofs import STAND_IN

ASK = Call(
    "request_user_input",
    {
        "questions": [
            {
                "id": "voice",
                "header": "Voice",
                "question": "Which voice?",
                "options": [{"label": "High", "description": "A soprano"}, {"label": "Low", "description": "A bass"}],
            },
            {
                "id": "pace",
                "header": "Pace",
                "question": "How fast?",
                "options": [{"label": "Slow", "description": "Largo"}, {"label": "Fast", "description": "Presto"}],
            },
        ]
    },
)


@proves("approval.questions-form", "modes.plan", on=BOTH)
async def test_questions_are_a_form_where_the_client_shows_forms(at: Place) -> None:
    def fill_in(form: v1.FormElicitation) -> v1.Accepted:
        names = [name for name in form.requested_schema.properties if not name.endswith("_other")]
        return v1.Accepted({names[0]: "High", names[1]: "Fast"})

    at.model.answers(ASK)
    async with connected(at, Can(forms=fill_in)) as client:
        await client.open()
        await client.session.set_mode("plan")
        reply = await client.say("plan a song")
    [form] = client.forms
    assert "Which voice?" in str(form) and "How fast?" in str(form) and reply.stop == "end_turn"
    assert "High" in at.model.last.results[0] and "Fast" in at.model.last.results[0]


@proves("approval.questions-choice")
async def test_questions_are_choices_where_the_client_shows_no_forms(at: Place) -> None:
    def choose(wanted: str) -> Any:
        return lambda request: next(each.option_id for each in request.options if each.name.startswith(wanted))

    at.model.answers(ASK)
    async with connected(at) as client:
        await client.open()
        await client.session.set_mode("plan")
        client.decisions += [choose("Low"), choose("Slow")]
        await client.say("plan a song")
    assert len(client.asked) == 2
    assert "Low" in at.model.last.results[0] and "Slow" in at.model.last.results[0]


@proves("approval.mcp-tool", "turn.mcp-call", "turn.name", on=BOTH)
async def test_a_tool_of_a_server_is_asked_for_once_or_for_the_session(at: Place) -> None:
    add = Call("add", {"a": 40, "b": 2}, namespace="mcp__little")
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server()])
        await client.session.set_mode("default")
        client.decisions += ["reject", "allow_once", "allow_session"]
        call: dict[str, Any] = {}
        for status in ("failed", "completed", "completed", "completed"):
            at.model.answers(add)
            reply = await client.say("add them")
            call = reply.call("mcp__little__add")
            assert call["status"] == status and call["rawInput"] == {"a": 40, "b": 2}
            assert "little" in call["title"] and "add" in call["title"]
        assert "42" in str(call["content"]) and "42" in at.model.last.results[0]
    assert len(client.asked) == 3 and {each.tool_call.name for each in client.asked} == {"mcp__little__add"}


def tool_asked(id: int, tool: str) -> Any:
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"path": "a"}, "tool_description": f"{tool} it"}
    message = f'Allow the pp MCP server to run tool "{tool}"?'
    return asked(id, "mcpServer/elicitation/request", serverName="pp", mode="form", message=message, _meta=meta)


@proves("approval.mcp-tool", on=[STAND_IN])
async def test_a_tool_is_never_asked_for_as_another(at: Place) -> None:
    calls = [
        {
            "type": "mcpToolCall",
            "id": tool,
            "server": "pp",
            "tool": tool,
            "arguments": {"path": "a"},
            "status": "inProgress",
        }
        for tool in ("look", "destroy")
    ]
    stand_in_says(
        at,
        *[notification("item/started", item=call) for call in calls],
        tool_asked(0, "destroy"),
        tool_asked(1, "look"),
        tool_asked(2, "burn"),
        *[notification("item/completed", item={**call, "status": "completed"}) for call in calls],
        message("m1", "done"),
    )
    async with connected(at) as client:
        client.decisions += ["reject", "allow_once", "reject"]
        await client.say("go")
    shown = [(each.tool_call.tool_call_id, each.tool_call.name) for each in client.asked]
    assert shown[:2] == [("destroy", "mcp__pp__destroy"), ("look", "mcp__pp__look")]
    alone = client.asked[2].tool_call
    assert alone.tool_call_id not in ("look", "destroy") and not alone.name and not alone.raw_input
    assert "burn" in str(alone.title) and "path" in str(alone.content)
    assert [each["action"] for each in responses_received(at)] == ["decline", "accept", "decline"]


@proves("approval.mcp-tool", on=BOTH)
async def test_two_tools_at_once_are_each_asked_for_by_their_own_name(at: Place) -> None:
    at.settings(
        tables=f'[mcp_servers.little]\ncommand = "{sys.executable}"\nargs = ["{LITTLE}", "stdio"]\nsupports_parallel_tool_calls = true'
    )
    at.model.answers(
        Call("add", {"a": 1, "b": 2}, namespace="mcp__little"), Call("draw", {"a": 1, "b": 2}, namespace="mcp__little")
    )
    async with connected(at) as client:
        await client.open()
        await client.session.set_mode("default")
        await client.say("go")
    names = {each.tool_call.tool_call_id: each.tool_call.name for each in client.asked}
    for each in client.asked:
        assert f'"{str(each.tool_call.name).removeprefix("mcp__little__")}"' in str(each.tool_call.content)
    assert set(names.values()) == {"mcp__little__add", "mcp__little__draw"}


@proves("approval.mcp-form", on=BOTH)
async def test_a_question_of_a_server_is_a_form_and_its_answer_reaches_the_server(at: Place) -> None:
    at.model.answers(Call("ask", namespace="mcp__little"))
    async with connected(at, Can(forms=lambda _: v1.Accepted({"name": "Ada"}))) as client:
        await client.open(mcp_servers=[stdio_server()])
        await client.say("who am I?")
    [form] = client.forms
    assert "Who are you?" in str(form.message) and "name" in form.requested_schema.properties
    assert "accept" in at.model.last.results[0] and "Ada" in at.model.last.results[0]
