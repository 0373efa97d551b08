"""Modes, models and effort as the client sees them."""

from typing import Any

from antiphon.engines.claude.settings import (
    ClaudeOffer,
    commands_of,
    forbids_bypass,
    model_shown,
    offer_of,
    shown_settings,
)
from antiphon.protocol import v1

INITIALIZED: dict[str, Any] = {
    "models": [
        {"value": "default", "resolvedModel": "claude-big-1", "displayName": "Default", "supportsAutoMode": True,
         "supportedEffortLevels": ["low", "medium", "high"]},
        {"value": "big", "resolvedModel": "claude-big-1", "displayName": "Big"},
        {"value": "small", "resolvedModel": "claude-small-1", "displayName": "Small"},
    ],
    "commands": [
        {"name": "review", "description": "Look at\n\n the changes", "argumentHint": "[branch]"},
        {"name": "__internal", "description": "not for people"},
    ],
    "current_permission_mode": "acceptEdits",
}  # fmt: skip


def offer(**applied: object) -> ClaudeOffer:
    return offer_of(INITIALIZED, {"applied": applied})


def shown(
    of: ClaudeOffer, *, bypass: bool = False, mode: str = "default", model: str = "default", effort: str = ""
) -> Any:
    return shown_settings(of, bypass=bypass, mode=mode, model=model, effort=effort)


def test_what_the_cli_reports_is_on_offer() -> None:
    assert [model.value for model in offer().models] == ["default", "big", "small"]
    assert offer().mode == "acceptEdits"
    assert offer(model="claude-small-1", effort="high").model == "small"
    assert offer(model="claude-small-1", effort="high").effort == "high"


def test_an_answer_of_another_shape_gives_what_can_be_understood() -> None:
    assert offer_of({}, {}) == ClaudeOffer()
    odd = offer_of(
        {"models": [{"value": 7}, {"value": "x"}, None], "commands": "none"}, {"applied": {"model": 3, "effort": []}}
    )
    assert [model.value for model in odd.models] == ["x"] and odd.commands == [] and odd.effort == ""


def test_the_mode_without_questions_is_only_there_where_it_may_be() -> None:
    assert "bypassPermissions" not in [mode.id for mode in shown(offer()).modes.available_modes]
    assert "bypassPermissions" in [mode.id for mode in shown(offer(), bypass=True).modes.available_modes]


def test_the_auto_mode_is_only_there_for_models_that_have_it() -> None:
    assert "auto" in [mode.id for mode in shown(offer()).modes.available_modes]
    assert "auto" not in [mode.id for mode in shown(offer(), model="small").modes.available_modes]


def test_a_mode_from_tomorrow_is_shown_while_it_is_in_force() -> None:
    assert shown(offer(), mode="dream").modes.available_modes[-1].id == "dream"


def test_effort_is_a_setting_of_models_that_have_levels() -> None:
    assert [option.id for option in shown(offer()).options] == ["mode", "model", "effort"]
    assert [option.id for option in shown(offer(), model="small").options] == ["mode", "model"]
    assert shown(offer()).options[2].current_value == "medium"
    assert shown(offer(), effort="low").options[2].current_value == "low"


def test_settings_and_their_older_views_agree() -> None:
    choice = shown(offer(), mode="plan", model="big")
    assert (choice.modes.current_mode_id, choice.models.current_model_id) == ("plan", "big")
    assert [option.current_value for option in choice.options[:2]] == ["plan", "big"]
    assert [option.category for option in choice.options[:2]] == [v1.ConfigCategory.MODE, v1.ConfigCategory.MODEL]


def test_a_model_that_only_the_user_knows_is_listed_while_it_is_used() -> None:
    assert [each.model_id for each in shown(offer(), model="mine").models.available_models][-1] == "mine"


def test_two_names_of_one_model_stay_what_was_chosen() -> None:
    models = offer().models
    assert model_shown(models, "claude-big-1", "big") == "big"
    assert model_shown(models, "claude-big-1", "small") == "default"
    assert model_shown(models, "claude-other", "small") == "claude-other"
    assert model_shown(models, "", "small") == "small"


def test_commands_are_short_and_those_of_the_machinery_hidden() -> None:
    command, trust = commands_of(offer())
    assert trust.name == "trust"
    assert (command.name, command.description) == ("review", "Look at the changes")
    assert command.input is not None and command.input.hint == "[branch]"


def test_a_prompt_of_an_mcp_server_has_a_name_that_can_be_typed() -> None:
    of = offer_of({"commands": [{"name": "little:greet (MCP)"}, {"name": "plug:in"}]}, {})
    assert [command.name for command in commands_of(of)] == ["mcp__little__greet", "plug:in", "trust"]


def test_settings_may_forbid_the_mode_without_questions() -> None:
    assert forbids_bypass({"effective": {"permissions": {"disableBypassPermissionsMode": "disable"}}})
    others: list[dict[str, Any]] = [{}, {"effective": None}, {"effective": {"permissions": []}}]
    assert not any(map(forbids_bypass, others))
