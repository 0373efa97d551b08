"""Modes, models and effort: what is offered, and what a change of them changes."""

import os

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from tests.engines.claude.model.steps import Call, Gate, Text, Wait
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import Can, Client, connected


def values(option: v1.SelectConfig) -> list[str]:
    return [each.value for each in option.options if isinstance(each, v1.SelectOption)]


async def offered(client: Client) -> set[str]:
    """The modes, once the program has reported those that it has."""
    await client.open()
    await client.until(lambda: client.session.commands)
    assert client.session.modes is not None
    return {mode.id for mode in client.session.modes.available_modes}


@proves("modes.offered", "modes.bypass", on=BOTH)
async def test_modes_are_offered_and_the_one_without_questions_only_where_it_is_allowed(at: Place) -> None:
    async with connected(at) as client:
        modes = await offered(client)
        assert {"default", "acceptEdits", "plan", "dontAsk"} <= modes <= set(values(client.option("mode")))
        assert ("bypassPermissions" in modes) == (os.geteuid() != 0)
    at.environment["IS_SANDBOX"] = "1"  # where also root may do without questions
    async with connected(at) as client:
        assert "bypassPermissions" in await offered(client)
        await client.session.set_mode("bypassPermissions")
        at.model.answers(Call("Bash", {"command": "touch sung", "description": "Sing"}))
        await client.say("sing")
        assert client.asked == [] and (at.folder / "sung").exists()


@proves("modes.at-once", on=BOTH)
async def test_a_change_of_mode_changes_the_living_process_at_once(at: Place) -> None:
    def write(name: str) -> Call:
        return Call("Write", {"file_path": str(at.folder / name), "content": name})

    async with connected(at) as client:
        await client.open()
        at.model.answers(write("one"))
        await client.say("write")
        assert len(client.asked) == 1
        before = at.processes()
        await client.session.set_mode("acceptEdits")
        at.model.answers(write("two"))
        await client.say("write")
        assert len(client.asked) == 1 and (at.folder / "two").exists()
        gate = Gate()
        at.model.answers(Text("I begin"), Wait(gate), write("three"))
        turn = client.session.prompt("write")
        await gate.is_reached()
        await client.session.set_config_option("mode", "dontAsk")  # in the middle of a turn
        gate.open()
        await turn
        assert not (at.folder / "three").exists() and len(client.asked) == 1
        assert at.processes() == before and len(before) == 1


@proves("modes.models", "modes.legacy-models", "modes.effort", on=BOTH)
async def test_models_and_effort_are_settings_that_the_next_request_has(at: Place) -> None:
    async with connected(at) as client:
        await client.say("nothing yet")
        await client.open()  # by now it is known what there is
        await client.say("one")
        models = client.session.models
        assert models is not None and values(client.option("model")) == [
            each.model_id for each in models.available_models
        ]
        haiku = next(value for value in values(client.option("model")) if "haiku" in value)
        sonnet = next(value for value in values(client.option("model")) if "sonnet" in value)
        await client.session.set_config_option("model", sonnet)
        await client.session.set_config_option("effort", "low")
        await client.say("two")
        await client.session.set_model(haiku)  # the older way
        await client.say("three")
        await client.until(lambda: client.option("model").current_value == haiku)
        assert client.session.models is not None and client.session.models.current_model_id == haiku
    _, one, two, three = at.model.asked
    assert "sonnet" in two.model and "haiku" in three.model and "sonnet" not in one.model
    assert one.effort != "low" and two.effort == "low"


async def test_a_session_that_is_opened_again_has_the_model_and_effort_that_were_chosen_in_it(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        await client.say("nothing yet")
        await client.open()
        sonnet = next(value for value in values(client.option("model")) if "sonnet" in value)
        await client.session.set_config_option("model", sonnet)
        await client.session.set_config_option("effort", "low")
        await client.say("before")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        assert client.option("model").current_value == sonnet and client.option("effort").current_value == "low"
        await client.say("after")
    before, after = at.model.asked[-2:]
    assert "sonnet" in before.model and after.model == before.model and (before.effort, after.effort) == ("low", "low")


@proves("modes.model-reported")
async def test_a_change_of_model_by_the_program_itself_is_shown(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: client.session.commands)
        before = client.option("model").current_value
        await client.say("/model sonnet")
        await client.say("sing")
        await client.until(lambda: client.option("model").current_value != before)
        assert "sonnet" in client.option("model").current_value and "sonnet" in at.model.last.model


@proves("modes.reported")
async def test_a_change_of_mode_by_the_program_itself_is_shown(at: Place) -> None:
    at.model.answers(Call("ToolSearch", {"query": "select:EnterPlanMode", "max_results": 1}))
    at.model.answers(Call("EnterPlanMode"))
    async with connected(at) as client:
        await client.say("plan first")
        assert client.session.modes is not None and client.session.modes.current_mode_id == "plan"
        assert client.option("mode").current_value == "plan"
        assert [each["currentModeId"] for each in client.updates_of("current_mode_update")] == ["plan"]


@proves("modes.cache", "find.fast")
async def test_what_is_offered_comes_from_the_last_time_and_is_corrected(at: Place) -> None:
    async with connected(at) as client:
        await client.say("nothing yet")
        known = values(client.option("model"))
        assert len(known) > 1
    at.settings(permissions={"defaultMode": "plan"})
    async with connected(at, Can()) as client:
        await client.open()
        assert values(client.option("model")) == known  # the program has not reported anything yet
        assert client.session.modes is not None and client.session.modes.current_mode_id == "default"
        await client.until(lambda: client.updates_of("config_option_update"))
        assert client.option("mode").current_value == "plan"


@proves("modes.bypass", on=BOTH)
async def test_the_mode_without_questions_is_taken_back_where_the_users_settings_forbid_it(at: Place) -> None:
    at.environment["IS_SANDBOX"] = "1"  # where else even root has it
    async with connected(at) as client:
        assert "bypassPermissions" in await offered(client)
    at.settings(permissions={"disableBypassPermissionsMode": "disable"})
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: "bypassPermissions" not in values(client.option("mode")))
        with pytest.raises(RequestRefused) as caught:
            await client.session.set_mode("bypassPermissions")
        assert caught.value.code == Code.INVALID_PARAMS
        at.model.answers(Call("Bash", {"command": "touch sung", "description": "Sing"}))
        client.decisions.append("reject_once")
        await client.say("sing")
        assert len(client.asked) == 1 and not (at.folder / "sung").exists()
