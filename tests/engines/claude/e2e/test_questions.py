"""Questions that the model has for the user, and the plan that it wants approved."""

import json
import re

from antiphon import v1
from tests.engines.claude.model.asked import Asked
from tests.engines.claude.model.steps import Answer, Call, Text
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import Can, Client, Reply, connected

PLAN = "# The plan\n\n1. Hum\n2. Sing\n"
QUESTIONS = {
    "questions": [
        {
            "question": "Which voice?",
            "header": "Voice",
            "multiSelect": False,
            "options": [{"label": "Alto", "description": "low"}, {"label": "Soprano", "description": "high"}],
        },
        {
            "question": "Which days?",
            "header": "Days",
            "multiSelect": True,
            "options": [{"label": each, "description": each} for each in ("Monday", "Tuesday", "Friday")],
        },
    ]
}


@proves("permission.questions-form", "permission.questions-all", on=BOTH)
async def test_questions_are_one_form_where_the_client_shows_forms(at: Place) -> None:
    at.model.answers(Call("AskUserQuestion", QUESTIONS))

    def fill_in(form: v1.FormElicitation) -> v1.Accepted:
        fields = form.requested_schema.properties
        one = next(name for name, field in fields.items() if isinstance(field, v1.StringProperty) and field.one_of)
        many = next(name for name, field in fields.items() if isinstance(field, v1.MultiSelectProperty))
        return v1.Accepted({one: "Soprano", many: ["Monday", "Friday"]})

    async with connected(at, Can(forms=fill_in)) as client:
        reply = await client.say("ask me")
    assert reply.stop == "end_turn" and client.asked == []
    [form] = client.forms
    shown = json.dumps([str(field) for field in form.requested_schema.properties.values()])
    assert all(words in shown for words in ("Which voice?", "Which days?", "Alto", "Tuesday"))
    [answer] = at.model.last.result_texts
    assert "Soprano" in answer and "Monday" in answer and "Friday" in answer and "Tuesday" not in answer


@proves("permission.questions-choice", "permission.questions-all")
async def test_questions_are_choices_where_the_client_shows_no_forms(at: Place) -> None:
    at.model.answers(Call("AskUserQuestion", QUESTIONS))

    def choose(label: str) -> "object":
        def decide(asked: v1.RequestPermission) -> str:
            return next(each.option_id for each in asked.options if each.name == label)

        return decide

    async with connected(at) as client:
        client.decisions += [choose("Alto"), choose("Tuesday"), choose("Done")]  # type: ignore[list-item]
        reply = await client.say("ask me")
    assert reply.stop == "end_turn"
    assert ["Which voice?" in str(each.tool_call.title) for each in client.asked] == [True, False, False]
    [answer] = at.model.last.result_texts
    assert "Alto" in answer and "Tuesday" in answer and "Monday" not in answer


@proves("permission.questions-form")
async def test_questions_that_are_declined_do_not_end_the_turn(at: Place) -> None:
    at.model.answers(Call("AskUserQuestion", QUESTIONS))
    at.model.answers(Text("Then I decide."))
    async with connected(at, Can(forms=lambda _: v1.Declined())) as client:
        reply = await client.say("ask me")
    assert reply.text == "Then I decide." and "declined" in at.model.last.result_texts[0]


def plan_file(asked: Asked) -> str:
    found = re.search(r"/[^\s\"\\`]+/plans/[^\s\"\\`]+\.md", asked.everything)
    assert found is not None
    return found[0]


def write_plan(asked: Asked) -> Answer:
    return (Call("Write", {"file_path": plan_file(asked), "content": PLAN}),)


async def planned(client: Client, decision: str) -> Reply:
    """The model plans, and wants to begin; the user decides. Then it writes a file."""
    assert isinstance(client.at, Place)
    model = client.at.model
    await client.open()
    await client.session.set_mode("plan")
    model.answers_by(write_plan)
    model.answers(Call("ToolSearch", {"query": "select:ExitPlanMode", "max_results": 1}))
    model.answers(Call("ExitPlanMode"))
    model.answers(Call("Write", {"file_path": str(client.at.folder / "song.txt"), "content": "la\n"}))
    client.decisions.append(decision)
    return await client.say("plan a song")


def modes(client: Client) -> list[str]:
    return [each["currentModeId"] for each in client.updates_of("current_mode_update")]


@proves("permission.plan-shown", "permission.plan-approve", "modes.reported")
async def test_an_approved_plan_is_begun_with_every_edit_asked_for(at: Place) -> None:
    async with connected(at) as client:
        reply = await planned(client, "ask_for_edits")
        assert reply.stop == "end_turn" and client.session.modes is not None
        assert client.session.modes.current_mode_id == "default" and modes(client)[-1] == "default"
    first, second = client.asked
    assert "1. Hum" in json.dumps([str(each) for each in first.tool_call.content or []])
    assert first.tool_call.kind == v1.ToolKind.SWITCH_MODE and second.tool_call.name == "Write"


@proves("permission.plan-accept", "modes.reported")
async def test_an_approved_plan_may_be_begun_with_edits_accepted(at: Place) -> None:
    async with connected(at) as client:
        await planned(client, "accept_edits")
        assert len(client.asked) == 1 and modes(client)[-1] == "acceptEdits"
        assert client.option("mode").current_value == "acceptEdits"
    assert (at.folder / "song.txt").read_text(encoding="utf-8") == "la\n"


@proves("permission.plan-stay")
async def test_a_plan_that_is_not_approved_goes_on_being_made(at: Place) -> None:
    async with connected(at) as client:
        client.decisions.append("keep_planning")
        await planned(client, "reject_once")
        assert client.session.modes is not None and client.session.modes.current_mode_id == "plan"
    assert not (at.folder / "song.txt").exists()
