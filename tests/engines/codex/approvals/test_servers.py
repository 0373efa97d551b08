"""MCP servers and their tools: may one run, and what does a server want to know."""

from typing import Any

import pytest

from antiphon.agent.questions import is_question
from antiphon.agent.turn import AgentTurn
from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals import ApprovalAsker
from antiphon.errors import Code, RequestError
from antiphon.policy import Action
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.engines.codex.approvals.user import NO_FORMS, SERVER, User, answer, asks
from tests.rows import each_row

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "voice": {"type": "string", "enum": ["h", "l"], "enumNames": ["High", "Low"]},
    },
    "required": ["name"],
}
CALL = v1.ToolCallPatch("call_1", title="songs: sing", name="mcp__songs__sing", raw_input={"text": "la"})
DECLINED = {"action": "decline"}


def tool(persist: Any = ("session", "always"), schema: dict[str, Any] = EMPTY) -> wire.ServerRequest:
    meta = {
        "codex_approval_kind": "mcp_tool_call", "persist": persist, "tool_description": "Sings", "tool_params": {"text": "la"},
    }  # fmt: skip
    return asks(
        SERVER,
        serverName="songs",
        mode="form",
        message='Allow songs to run "sing"?',
        requestedSchema=schema,
        _meta=meta,
    )


def accepted(persist: str | None) -> dict[str, Any]:
    return {"action": "accept", "content": None, "_meta": None if persist is None else {"persist": persist}}


@each_row(
    ("reply", "body"),
    [
        (v1.Selected("allow"), accepted(None)),
        (v1.Selected("allow_session"), accepted("session")),
        (v1.Selected("allow_always_tool"), accepted("always")),
        (v1.Selected("reject"), DECLINED),
        (v1.Selected("accept"), DECLINED),
        (v1.Selected("allow_always"), DECLINED),
        (v1.Cancelled(), {"action": "cancel"}),
        (RequestError(Code.METHOD_NOT_FOUND, "Method not found"), DECLINED),
    ],
)
async def test_whether_a_tool_may_run_is_a_question_for_permission(reply: Any, body: dict[str, Any]) -> None:
    user = User(reply)
    assert await answer(tool(), user, call=CALL) == body
    assert user.names == [
        "Allow once",
        "Always allow this tool in this session",
        "Always allow this tool, in all projects",
        "Reject",
    ]
    assert user.asked[0].tool_call.tool_call_id == "call_1"
    assert user.shown == 'Allow songs to run "sing"?\n\nSings'


@pytest.mark.parametrize(
    ("persist", "ids"),
    [
        (None, ["allow", "reject"]),
        ("session", ["allow", "allow_session", "reject"]),
        (["always"], ["allow", "allow_always_tool", "reject"]),
        (["never", 3], ["allow", "reject"]),
    ],
)
async def test_only_what_codex_would_remember_is_offered(persist: Any, ids: list[str]) -> None:
    user = User(v1.Selected("allow"))
    await answer(tool(persist), user, call=CALL)
    assert user.ids == ids


async def test_a_server_that_the_client_brought_is_not_in_codexs_settings() -> None:
    user, asked = User(v1.Selected("allow_session")), tool()

    async def prompt(turn: AgentTurn) -> None:
        await ApprovalAsker(turn.session).answer(asked.method, asked.params, turn, CALL)

    async with playing(only_prompt(prompt), FULL, user.router) as editor:
        brought = v1.NewSession("/w", [v1.StdioServer(name="songs", command="/bin/songs", args=[], env=[])])
        session = await editor.connection.request(m.NEW_SESSION, brought)
        await editor.prompt(session.session_id)
    assert user.ids == ["allow", "allow_session", "reject"]


async def test_a_tool_call_without_an_item_is_shown_with_the_question() -> None:
    user = User(v1.Selected("allow"))
    assert await answer(tool(), user, call=None) == accepted(None)
    (shown,) = user.updates_of("tool_call")
    assert shown["title"] == 'Allow songs to run "sing"?' and '"text": "la"' in str(shown["content"])


@pytest.mark.parametrize("arguments", [{"command": "ls"}, {"path": "a"}, {"url": "https://x.example"}, ["ls"]])
async def test_no_rule_for_another_tool_can_allow_a_call_without_an_item(arguments: Any) -> None:
    asked, user = tool(), User(v1.Selected("allow"))
    assert isinstance(asked.params, wire.McpElicitation) and asked.params.meta is not None
    asked.params.meta["tool_params"] = arguments
    await answer(asked, user, call=None)
    action = Action.of_tool_call(user.asked[0].tool_call, "/w", ["/w"])
    assert (action.tool, action.name, action.kind, action.paths) == (None, None, "other", ())


async def test_a_form_that_calls_itself_an_approval_is_a_form_still() -> None:
    user = User(v1.Accepted({"name": "Ada"}))
    assert await answer(tool(schema=SCHEMA), user, call=CALL) == {"action": "accept", "content": {"name": "Ada"}}


def wants(**fields: Any) -> wire.ServerRequest:
    return asks(SERVER, **{"serverName": "songs", "message": "Who sings?", "_meta": None, **fields})


FORM = wants(mode="form", requestedSchema=SCHEMA)
PAGE = wants(mode="url", url="https://songs.example/in", elicitationId="e-1")


@pytest.mark.parametrize("mode", ["form", "openai/form", "openaiForm"])
async def test_a_form_is_shown_and_its_answers_go_back(mode: str) -> None:
    user = User(v1.Accepted({"name": "Ada", "voice": "h"}))
    body = await answer(wants(mode=mode, requestedSchema=SCHEMA), user)
    assert body == {"action": "accept", "content": {"name": "Ada", "voice": "h"}}
    (asked,) = user.asked
    assert asked.message == "songs asks: Who sings?"
    voice = asked.requested_schema.properties["voice"]
    assert [(each.const, each.title) for each in voice.one_of] == [("h", "High"), ("l", "Low")]


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (v1.Declined(), DECLINED),
        (v1.Dismissed(), {"action": "cancel"}),
        (v1.Accepted({"voice": "x"}), DECLINED),
        (RequestError(Code.METHOD_NOT_FOUND, "Method not found"), DECLINED),
    ],
)
async def test_anything_but_a_filled_in_form_gives_no_answers(reply: Any, body: dict[str, Any]) -> None:
    assert await answer(FORM, User(reply)) == body


@pytest.mark.parametrize("asked", [FORM, PAGE], ids=["form", "page"])
async def test_a_client_that_shows_neither_is_not_asked(asked: wire.ServerRequest) -> None:
    user = User()
    assert await answer(asked, user, NO_FORMS) == DECLINED
    assert user.asked == []


@pytest.mark.parametrize(("reply", "body"), [(v1.Accepted(), {"action": "accept"}), (v1.Declined(), DECLINED)])
async def test_a_page_is_opened_if_the_user_agrees(reply: Any, body: dict[str, Any]) -> None:
    user = User(reply)
    assert await answer(PAGE, user) == body
    assert user.asked[0].url == "https://songs.example/in"


async def test_only_pages_of_the_web_are_opened() -> None:
    user = User()
    assert await answer(wants(mode="url", url="file:///etc/passwd", elicitationId="e"), user) == DECLINED
    assert user.asked == []


@pytest.mark.parametrize(
    ("chosen", "body"),
    [("accept", {"action": "accept", "content": {}}), ("decline", DECLINED), ("allow", DECLINED)],
)
async def test_a_form_with_nothing_to_fill_in_needs_no_forms(chosen: str, body: dict[str, Any]) -> None:
    user = User(v1.Selected(chosen))
    assert await answer(wants(mode="form", requestedSchema=EMPTY), user, NO_FORMS) == body
    assert user.asked[0].tool_call.title == "songs asks: Who sings?" and is_question(user.asked[0])


async def test_a_proof_that_no_client_can_give_is_declined_with_a_notice() -> None:
    user = User()
    asked = asks(SERVER, serverName="songs", mode="openai/userVerification", challenge="c", title="t", description="d")
    assert await answer(asked, user, FULL) == DECLINED
    assert "openai/userVerification" in str(user.updates_of("notice"))
