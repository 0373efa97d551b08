"""What the user can choose in a session with Codex: mode, model, effort, summary. Pure values, made from what the server says it has."""

from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.codex.modes import modes_with
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.engines.codex.wire import Model

__all__ = ["EFFORT", "MODE", "MODEL", "SUMMARIES", "SUMMARY", "Choice", "choices_of"]

MODE: Final = "mode"
MODEL: Final = "model"
EFFORT: Final = "effort"
SUMMARY: Final = "summary"
"""The ids of the settings."""

SUMMARIES: Final = {
    "auto": "As the model has it",
    "concise": "Concise",
    "detailed": "Detailed",
    "none": "None",
}
"""How much of its thinking the model tells."""


class Choice(msgspec.Struct, frozen=True):
    """All that a session shows."""

    modes: v1.ModeState
    models: v1.ModelState
    options: list[v1.ConfigOption]


def choices_of(models: "Sequence[Model]", *, mode: str, model: str, effort: str, summary: str) -> Choice:
    """Modes, models and settings, with what is chosen."""
    modes = modes_with(mode)
    offered = [v1.SessionModel(_id(each), each.display_name or _id(each), each.description or None) for each in models]
    if model not in [each.model_id for each in offered]:  # one that only the user's own configuration knows
        offered.insert(0, v1.SessionModel(model, model))
    options: list[v1.ConfigOption] = [
        v1.SelectConfig(
            id=MODE,
            name="Mode",
            description="When Codex asks you, and what it may do",
            category=v1.ConfigCategory.MODE,
            current_value=mode,
            options=[v1.SelectOption(each.id, each.name, each.description) for each in modes],
        ),
        v1.SelectConfig(
            id=MODEL,
            name="Model",
            category=v1.ConfigCategory.MODEL,
            current_value=model,
            options=[v1.SelectOption(each.model_id, each.name, each.description) for each in offered],
        ),
        *_effort(models, model, effort),
        v1.SelectConfig(
            id=SUMMARY,
            name="Summary",
            description="How much of its thinking the model tells",
            category=v1.ConfigCategory.MODEL_CONFIG,
            current_value=summary,
            options=[v1.SelectOption(value, name) for value, name in SUMMARIES.items()],
        ),
    ]
    return Choice(v1.ModeState(mode, modes), v1.ModelState(offered, model), options)


def _effort(models: "Sequence[Model]", model: str, effort: str) -> list[v1.ConfigOption]:
    known = next((each for each in models if _id(each) == model), None)
    levels = known.supported_reasoning_efforts if known is not None else ()
    names = [each.reasoning_effort for each in levels]
    if not names or known is None:
        return []
    usual = known.default_reasoning_effort if known.default_reasoning_effort in names else names[0]
    return [
        v1.SelectConfig(
            id=EFFORT,
            name="Effort",
            description="How much the model thinks",
            category=v1.ConfigCategory.THOUGHT_LEVEL,
            current_value=effort if effort in names else usual or names[0],
            options=[
                v1.SelectOption(each.reasoning_effort, each.reasoning_effort.capitalize(), each.description or None)
                for each in levels
            ],
        )
    ]


def _id(model: "Model") -> str:
    return model.model or model.id
