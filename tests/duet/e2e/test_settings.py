"""What the user can choose, how it is shown, and how the environment and the config file choose it in advance."""

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from antiphon.protocol.v1 import methods as m
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with
from tests.engines.client import Client, connected

pytestmark = pytest.mark.slow

MODES = {"default", "acceptEdits", "plan", "dontAsk"}
"""Without `bypassPermissions`, which Claude Code does not have where it runs as root."""


def values(client: Client) -> dict[str, str]:
    """The settings of the session that are a choice, with what is chosen."""
    options = client.session.config_options or ()
    return {each.id: each.current_value for each in options if isinstance(each, v1.SelectConfig)}


def other(client: Client, config_id: str) -> str:
    """A value that a setting does not have now."""
    now = client.option(config_id).current_value
    others = [each for each in client.choices(config_id) if each != now]
    return next((each for each in others if "haiku" in each), others[0])  # some are other names of the same model


async def test_a_session_shows_its_settings_with_the_legacy_modes_and_models_beside_them(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: client.session.modes and client.session.models and "claude_model" in values(client))
        assert {"route", "primary_agent", "review", "auto_resume", "mode"} <= set(values(client))
        assert client.choices("route") == ["claude", "codex", "duet", "review"]
        assert client.choices("primary_agent") == ["claude", "codex"] and client.choices("review") == ["report", "fix"]
        assert values(client)["auto_resume"] == "off" and values(client)["review"] == "report"
        assert client.option("mode").category == v1.ConfigCategory.MODE
        assert client.option("claude_model").category == v1.ConfigCategory.MODEL
        modes, models = client.session.modes, client.session.models
        assert modes is not None and {mode.id for mode in modes.available_modes} >= MODES
        assert modes.current_mode_id == values(client)["mode"]
        assert models is not None and models.available_models


async def test_both_engines_have_their_models_and_efforts_in_a_duet(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="duet", mode="plan")
        at.answer("one", "two")
        await client.say("hello")
        await client.until(
            lambda: {"claude_model", "codex_model", "claude_effort", "codex_effort"} <= set(values(client))
        )
        for engine in ("claude", "codex"):
            assert client.option(f"{engine}_effort").category == v1.ConfigCategory.THOUGHT_LEVEL
            for name in ("model", "effort"):
                wanted = other(client, f"{engine}_{name}")
                await client.session.set_config_option(f"{engine}_{name}", wanted)
                assert values(client)[f"{engine}_{name}"] == wanted
        now = values(client)
        at.answer("one", "two")
        await client.say("again")
    assert at.codex.model.last.model == now["codex_model"] and at.codex.model.last.effort == now["codex_effort"]
    assert at.claude.model.last.effort == now["claude_effort"]
    assert at.claude.model.last.model != at.claude.model.asked[0].model


async def test_the_model_of_the_leading_engine_can_be_set_the_old_way(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await open_with(client, route="codex")
        await client.say("hello")
        await client.until(lambda: client.session.models and "codex_model" in values(client))
        wanted = other(client, "codex_model")
        await client.agent.connection.request(m.SET_MODEL, v1.SetModel(client.session.id, wanted))
        await client.say("again")
        assert values(client)["codex_model"] == wanted
    assert at_codex.codex.model.last.model == wanted != at_codex.codex.model.asked[0].model


async def test_the_mode_is_one_for_all_engines_however_it_is_set(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        at.answer("one", "two")
        await client.say("hello")
        await client.session.set_config_option("mode", "plan")
        at.answer("one", "two")
        await client.say("plan")
        assert client.session.modes is not None and client.session.modes.current_mode_id == "plan"
        await client.session.set_mode("dontAsk")
        assert values(client)["mode"] == "dontAsk"
        at.answer("one", "two")
        await client.say("go")
    [turns] = at.codex.contexts().values()
    sandboxes = [turn["sandbox_policy"]["type"] for turn in turns]
    assert sandboxes == ["read-only"] * 3  # what may be written unasked is decided here
    assert [turn["collaboration_mode"]["mode"] for turn in turns] == ["default", "plan", "default"]
    assert "lan mode" in at.claude.model.asked[1].everything + at.claude.model.asked[1].system


async def test_a_mode_that_was_chosen_holds_for_an_engine_that_comes_in_later(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, mode="dontAsk")
        await client.say("hello")
        await client.session.set_config_option("route", "codex")
        await client.say("and you")
        assert values(client)["mode"] == "dontAsk"
    [[turn]] = at.codex.contexts().values()
    assert turn["sandbox_policy"]["type"] == "read-only" and turn["approval_policy"] == "on-request"


async def test_a_choice_that_does_not_exist_is_an_error_and_changes_nothing(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await client.open()
        before = values(client)["route"]
        for config_id, value in (("route", "choir"), ("primary_agent", "nobody"), ("nothing", "at all")):
            with pytest.raises(RequestRefused) as caught:
                await client.session.set_config_option(config_id, value)
            assert caught.value.code == Code.INVALID_PARAMS
        with pytest.raises(RequestRefused):
            await client.session.set_mode("nonsense")
        assert values(client)["route"] == before
        assert (await client.say("hello")).text == "echo: hello"


@pytest.mark.parametrize("prefix", ["ANTIPHON", pytest.param("BANJO", marks=pytest.mark.prove)])
async def test_the_environment_chooses_route_and_primary(at: Place, prefix: str) -> None:
    at.environment |= {f"{prefix}_ROUTE": "duet", f"{prefix}_PRIMARY_AGENT": "codex"}
    async with connected(at) as client:
        await client.open()
        assert values(client)["route"] == "duet" and values(client)["primary_agent"] == "codex"
        await client.session.set_mode("acceptEdits")
        at.answer("a first voice", "a second voice")
        reply = await client.say("sing")
    assert reply.text.index("a second voice") < reply.text.index("a first voice")


async def test_the_config_file_chooses_and_the_environment_counts_before_it(at: Place) -> None:
    at.configure('[duet]\nroute = "review"\nprimary = "codex"\nreview = "fix"\n')
    async with connected(at) as client:
        await client.open()
        chosen = values(client)
    assert (chosen["route"], chosen["primary_agent"], chosen["review"]) == ("review", "codex", "fix")
    at.environment |= {"ANTIPHON_ROUTE": "codex", "BANJO_ROUTE": "duet"}
    async with connected(at) as client:
        await client.open()
        assert values(client)["route"] == "codex" and values(client)["primary_agent"] == "codex"


async def test_a_route_that_makes_no_sense_is_reported_and_the_session_works(at: Place) -> None:
    at.environment["ANTIPHON_ROUTE"] = "choir"
    async with connected(at) as client:
        assert (await client.say("hello")).text == "echo: hello"
        assert "choir" in str(client.updates)


async def test_an_engine_that_is_alone_has_its_settings_under_plain_names(at: Place) -> None:
    at.configure('[duet]\nengines = ["codex"]\n')
    async with connected(at) as client:
        await client.open()
        await client.until(lambda: "model" in values(client))
        assert "codex_model" not in values(client)
        assert (await client.say("hello")).text == "echo: hello"
    assert at.claude.model.asked == [] and len(at.codex.model.asked) == 1


async def test_engines_named_on_the_command_line_are_those_of_the_session(at: Place) -> None:
    at.answer("a first voice", "a second voice")
    async with connected(at, command=(*at.agent, "--engine", "codex", "--engine", "claude")) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        assert client.choices("primary_agent") == ["codex", "claude"]
        reply = await client.say("sing")
    assert reply.text.index("a second voice") < reply.text.index("a first voice")


async def test_with_nothing_installed_the_demo_answers(at_demo: Place) -> None:
    async with connected(at_demo) as client:
        reply = await client.say("hello")
    assert reply.stop == "end_turn" and reply.text
