"""MCP servers that ask the user something: passed on to clients that can show it, declined for all others."""

from typing import Any

import msgspec
import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.engines.claude import wire
from antiphon.engines.claude.questions import MOST_PAGES, ClaudeAsker
from antiphon.engines.questions import form_of
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.agent.editor import FULL
from tests.engines.claude.ask.user import NO_FORMS, User, answer_to, wants

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1},
        "bars": {"type": "integer", "minimum": 1},
        "loud": {"type": "boolean", "default": False},
        "voice": {"type": "string", "enum": ["h", "l"], "enumNames": ["High", "Low"]},
        "parts": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    },
    "required": ["name"],
}
FORM = wants(mode="form", requested_schema=SCHEMA)
PAGE = wants(mode="url", url="https://songs.example/in", elicitation_id="e-1")
DECLINED = {"action": "decline"}


async def elicited(request: wire.ElicitationRequest, user: User, capabilities: v1.ClientCapabilities = FULL) -> Any:
    return await answer_to(lambda asker, turn: asker.elicit(request, turn), user, capabilities)


async def test_a_form_is_shown_and_its_answers_go_back() -> None:
    content: dict[str, Any] = {"name": "Ada", "bars": 4, "loud": True, "voice": "h", "parts": ["a"]}
    user = User(v1.Accepted(content))
    assert await elicited(FORM, user) == {"action": "accept", "content": content}
    (asked,) = user.asked
    assert asked.message == "songs asks: Who sings?"
    assert list(asked.requested_schema.properties) == ["name", "bars", "loud", "voice", "parts"]
    assert asked.requested_schema.required == ["name"]
    voice = asked.requested_schema.properties["voice"]
    assert [(each.const, each.title) for each in voice.one_of] == [("h", "High"), ("l", "Low")]


async def test_the_title_that_a_server_wants_is_shown_too() -> None:
    user = User(v1.Declined())
    await elicited(wants(display_name="Song book", title="Sign up", description="Once only"), user)
    assert user.asked[0].message == "Song book asks: Who sings?\nSign up\nOnce only"


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (v1.Declined(), DECLINED),
        (v1.Dismissed(), {"action": "cancel"}),
        (v1.Unknown("later", b'{"action":"later"}'), {"action": "cancel"}),
        (v1.Accepted({"bars": 4}), DECLINED),
        (v1.Accepted({"name": "Ada", "voice": "x"}), DECLINED),
        (RequestError(Code.METHOD_NOT_FOUND, "Method not found"), DECLINED),
    ],
)
async def test_anything_but_a_filled_in_form_gives_no_answers(reply: Any, body: dict[str, Any]) -> None:
    assert await elicited(FORM, User(reply)) == body


@pytest.mark.parametrize("request_", [FORM, PAGE], ids=["form", "page"])
async def test_a_client_that_shows_neither_is_not_asked(request_: wire.ElicitationRequest) -> None:
    user = User()
    assert await elicited(request_, user, NO_FORMS) == DECLINED
    assert user.asked == []


async def test_a_page_is_opened_and_the_client_is_notified_when_it_is_done() -> None:
    user = User(v1.Accepted())

    async def ask(asker: ClaudeAsker, turn: AgentTurn) -> Any:
        body = await asker.elicit(PAGE, turn)
        await asker.page_done("another")
        await asker.page_done("e-1")
        await asker.page_done("e-1")
        return body

    assert await answer_to(ask, user) == {"action": "accept"}
    (asked,) = user.asked
    assert (asked.url, asked.message) == ("https://songs.example/in", "songs asks: Who sings?")
    assert user.completed == [asked.elicitation_id]


async def test_pages_that_no_server_completes_are_forgotten() -> None:
    user = User(*[v1.Accepted()] * (MOST_PAGES + 1))

    async def ask(asker: ClaudeAsker, turn: AgentTurn) -> Any:
        for number in range(MOST_PAGES + 1):
            await asker.elicit(msgspec.structs.replace(PAGE, elicitation_id=f"e-{number}"), turn)
        await asker.page_done("e-0")
        await asker.page_done("e-1")

    await answer_to(ask, user)
    assert len(user.completed) == 1


async def test_a_page_that_the_user_does_not_want_is_declined() -> None:
    assert await elicited(PAGE, User(v1.Declined())) == DECLINED


@pytest.mark.parametrize("url", [None, "", "file:///etc/passwd", "javascript:alert(1)", "vscode://x"])
async def test_only_pages_of_the_web_are_opened(url: str | None) -> None:
    user = User()
    assert await elicited(wants(mode="url", url=url), user) == DECLINED
    assert user.asked == []


def test_a_schema_without_fields_is_not_a_form() -> None:
    assert form_of({"properties": [1]}) is None
    assert form_of({"properties": {"a": {"type": "string"}}, "required": "a"}) is None
    assert form_of(None) == form_of({"type": "object"}) == v1.Form()


def test_names_that_do_not_fit_the_values_are_left_out() -> None:
    form = form_of({"properties": {"a": {"type": "string", "enum": ["x", "y"], "enumNames": ["X"]}}})
    assert form == v1.Form(properties={"a": v1.StringProperty(enum=["x", "y"])})
