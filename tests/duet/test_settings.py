"""One offer made of several: what the client sees, and the way back."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.agent.settings import SessionSettings
from antiphon.duet.settings import (
    OURS,
    EngineOffer,
    SharedSettings,
    ShownSettings,
    address,
    commands_merged,
    merged,
    on_route,
    shown_id,
)
from antiphon.engines.claude.settings import ClaudeOffer as ClaudeOffer
from antiphon.engines.claude.settings import shown_settings as claude_choices
from antiphon.engines.codex.settings import shown_settings as codex_choices
from antiphon.protocol import v1

TITLES = {"claude": "Claude Code", "codex": "Codex"}
DUET = SharedSettings(TITLES, "duet", "claude")


def claude(mode: str = "default") -> EngineOffer:
    """As the engine has it, with the mode that only Claude has if it is in force."""
    choice = claude_choices(ClaudeOffer(), bypass=True, mode=mode, model="default", effort="")
    return EngineOffer("claude", "Claude Code", choice.modes, choice.models, choice.options)


def codex(mode: str = "default") -> EngineOffer:
    choice = codex_choices([], mode=mode, model="gpt", effort="", summary="auto")
    return EngineOffer("codex", "Codex", choice.modes, choice.models, choice.options)


def ids(found: ShownSettings) -> list[str]:
    return [option.id for option in found.options if isinstance(option, v1.ConfigBase)]


def option(found: ShownSettings, id: str) -> v1.SelectConfig:
    return next(each for each in found.options if isinstance(each, v1.SelectConfig) and each.id == id)


def values(select: v1.SelectConfig) -> list[str]:
    return [each.value for each in select.options if isinstance(each, v1.SelectOption)]


def mode_ids(state: v1.ModeState | None) -> list[str]:
    assert state is not None
    return [mode.id for mode in state.available_modes]


def test_ours_come_first_then_the_mode_then_what_each_engine_has() -> None:
    found = merged(DUET, [claude(), codex()])
    assert ids(found) == [
        "route", "primary_agent", "review", "auto_resume", "mode", "claude_model", "codex_model", "codex_summary",
    ]  # fmt: skip
    assert values(option(found, "route")) == ["claude", "codex", "duet", "review"]
    assert values(option(found, "primary_agent")) == ["claude", "codex"]
    assert values(option(found, "review")) == ["report", "fix"]
    assert (option(found, "auto_resume").current_value, values(option(found, "auto_resume"))) == ("on", ["on", "off"])
    assert option(found, "mode").category == v1.ConfigCategory.MODE
    assert option(found, "codex_model").category == v1.ConfigCategory.MODEL
    assert [option(found, id).name for id in ("claude_model", "codex_summary")] == [
        "Claude Code: Model",
        "Codex: Summary",
    ]


def test_the_client_gets_what_a_session_takes() -> None:
    found = merged(DUET, [claude(), codex()])
    settings = SessionSettings()
    settings.modes, settings.models, settings.options = found.modes, found.models, found.options
    for each in found.options:
        assert isinstance(each, v1.SelectConfig)
        settings.check_option(each.id, each.current_value)
    settings.check_mode("plan")
    settings.check_model("default")


def test_one_engine_alone_has_its_own_ids_and_names() -> None:
    alone = SharedSettings({"codex": "Codex"}, "codex", "codex", auto_resume=False)
    found = merged(alone, [codex("plan")])
    assert ids(found) == ["auto_resume", "mode", "model", "summary"]
    assert option(found, "model").name == "Model" and option(found, "auto_resume").current_value == "off"
    assert found.modes == codex("plan").modes and option(found, "mode").current_value == "plan"


def test_the_models_are_those_of_the_leading_engine() -> None:
    offers = [codex(), claude()]
    assert merged(DUET, offers).models == claude().models
    assert merged(msgspec.structs.replace(DUET, primary="codex"), offers).models == codex().models
    assert merged(msgspec.structs.replace(DUET, route="codex"), offers).models == codex().models


def test_the_modes_are_those_that_all_answering_engines_have_in_the_order_of_the_leading_one() -> None:
    offers = [claude("auto"), codex()]
    found = merged(msgspec.structs.replace(DUET, mode="default"), offers)
    assert mode_ids(found.modes) == ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
    solo = merged(msgspec.structs.replace(DUET, route="claude"), offers)
    assert "auto" in mode_ids(solo.modes)


def test_an_engine_in_another_mode_than_all_is_shown_in_it_and_keeps_it() -> None:
    found = merged(msgspec.structs.replace(DUET, mode="default"), [claude("auto"), codex("plan")])
    assert option(found, "mode").current_value == "default"
    assert option(found, "claude_mode").current_value == "auto" and option(found, "codex_mode").current_value == "plan"
    assert option(found, "codex_mode").category is None  # there is one mode of the session
    assert address("codex_mode", list(TITLES)) == ("codex", "mode")


def test_the_mode_in_force_is_always_in_the_list() -> None:
    found = merged(DUET, [claude("auto"), codex()])
    assert found.modes is not None and found.modes.current_mode_id == "auto" == mode_ids(found.modes)[-1]
    found = merged(msgspec.structs.replace(DUET, mode="tomorrow"), [claude(), codex()])
    assert found.modes is not None and found.modes.available_modes[-1] == v1.Mode("tomorrow", "tomorrow")


def test_engines_with_no_mode_in_common_have_each_their_own() -> None:
    other = EngineOffer("codex", "Codex", v1.ModeState("x", [v1.Mode("x", "X"), v1.Mode("y", "Y")]))
    found = merged(DUET, [claude(), other])
    assert found.modes == claude().modes
    assert values(option(found, "codex_mode")) == ["x", "y"] and "claude_mode" not in ids(found)


def test_an_engine_without_modes_limits_no_other() -> None:
    assert merged(DUET, [claude(), EngineOffer("codex", "Codex")]).modes == claude().modes
    assert merged(DUET, [EngineOffer("claude", "Claude Code"), EngineOffer("codex", "Codex")]).modes is None


def test_modes_that_are_only_a_setting_are_modes_too() -> None:
    grouped = v1.SelectConfig(
        id="permissions", name="Permissions", category=v1.ConfigCategory.MODE, current_value="b",
        options=[v1.SelectGroup("g", "G", [v1.SelectOption("a", "A"), v1.SelectOption("b", "B")])],
    )  # fmt: skip
    found = merged(SharedSettings({"x": "X"}, "x", "x"), [EngineOffer("x", "X", options=[grouped])])
    assert mode_ids(found.modes) == ["a", "b"] and ids(found) == ["auto_resume", "mode"]
    found = merged(DUET, [claude(), EngineOffer("codex", "Codex", options=[grouped])])
    assert "codex_permissions" in ids(found) and address("codex_permissions", list(TITLES)) == (
        "codex",
        "permissions",
    )


def test_engines_that_are_not_open_yet_are_a_route_all_the_same() -> None:
    found = merged(DUET, [codex()])
    assert values(option(found, "route"))[:2] == ["claude", "codex"] and found.models == codex().models
    assert ids(merged(DUET, [])) == ["route", "primary_agent", "review", "auto_resume"]


def test_an_engine_that_does_not_answer_keeps_its_settings_but_not_its_mode() -> None:
    found = merged(msgspec.structs.replace(DUET, route="claude", mode="default"), [claude(), codex("plan")])
    assert "codex_model" in ids(found) and "codex_mode" not in ids(found)


@pytest.mark.parametrize(
    ("route", "primary", "expected"),
    [
        ("duet", "codex", ("codex", "claude")),
        ("review", "claude", ("claude", "codex")),
        ("codex", "claude", ("codex",)),
    ],
)
def test_the_leading_engine_comes_first(route: str, primary: str, expected: tuple[str, ...]) -> None:
    assert on_route(SharedSettings(TITLES, route, primary)) == expected


# The way back.

NAMES = st.lists(
    st.sampled_from(["a", "a_b", "a-b", "a_b_c", "b", "auto", "primary", "model", "claude", "codex"]),
    min_size=1,
    unique=True,
)
OWN = st.sampled_from(
    ["model", "effort", "mode", "b", "b_c", "c", "resume", "agent", "auto_resume", "route", "a_b", "claude_model"]
)


@given(NAMES, st.lists(OWN, unique=True))
def test_every_id_that_is_shown_leads_back_to_whose_it_is(engines: list[str], own: list[str]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for engine in engines:
        for id in own:
            shown = shown_id(engine, id, engines)
            assert shown not in OURS and shown not in seen
            seen[shown] = (engine, id)
            assert address(shown, engines) == (engine, id)


@given(st.text(), NAMES)
def test_no_id_is_too_odd(id: str, engines: Sequence[str]) -> None:
    found = address(id, engines)
    assert found is None or found[0] in engines


def test_ours_belong_to_no_engine_and_model_and_effort_mean_the_leading_one() -> None:
    engines = list(TITLES)
    assert [address(id, engines) for id in OURS] == [None] * len(OURS)
    assert address("gemini_model", engines) is None and address("summary", engines) is None
    assert address("summary", ["codex"]) == ("codex", "summary")


# Commands.


def commands(*names: str) -> list[v1.Command]:
    return [v1.Command(name, f"does {name}") for name in names]


def listed(ours: Sequence[str], theirs: dict[str, list[str]], answering: Sequence[str]) -> list[str]:
    per_engine = {engine: commands(*names) for engine, names in theirs.items()}
    return [command.name for command in commands_merged(commands(*ours), per_engine, answering)]


def test_ours_come_first_and_what_they_hide_has_its_engine_before_it() -> None:
    assert listed(["review", "help"], {"claude": ["init", "review"]}, ["claude"]) == [
        "review",
        "help",
        "init",
        "claude:review",
    ]


def test_in_a_duet_a_command_of_the_leading_engine_is_plain_and_one_of_another_alone_is_not() -> None:
    theirs = {"claude": ["init", "compact"], "codex": ["compact", "diff", "help"]}
    assert listed(["help"], theirs, ["claude", "codex"]) == ["help", "init", "compact", "codex:diff", "codex:help"]
    assert listed(["help"], theirs, ["codex"]) == ["help", "compact", "diff", "codex:help"]


def test_a_word_that_would_be_read_as_another_engines_has_its_own_engine_before_it() -> None:
    theirs = {"claude": ["codex:do", "mcp:do"], "codex": []}
    assert listed([], theirs, ["claude"]) == ["claude:codex:do", "mcp:do"]


def test_a_word_that_is_listed_twice_is_shown_once() -> None:
    assert listed([], {"claude": ["init", "init"]}, ["claude"]) == ["init"]
