"""What can be chosen in a session of the demo: modes, models, and one setting of every category."""

from typing import Final

from antiphon.protocol import v1

__all__ = ["MODELS", "MODES", "OPTIONS"]

MODES: Final = v1.ModeState(
    "default",
    [
        v1.Mode("default", "Ask first", "Asks before it writes or runs anything"),
        v1.Mode("plan", "Only look", "Writes nothing and runs nothing"),
    ],
)

MODELS: Final = v1.ModelState(
    [v1.SessionModel("echo", "Echo", "Answers at once"), v1.SessionModel("canon", "Canon", "Answers twice")], "echo"
)


OPTIONS: Final[tuple[v1.ConfigOption, ...]] = (
    v1.SelectConfig(
        id="mode",
        name="Mode",
        category=v1.ConfigCategory.MODE,
        current_value="default",
        options=[v1.SelectOption(mode.id, mode.name, mode.description) for mode in MODES.available_modes],
    ),
    v1.SelectConfig(
        id="model",
        name="Model",
        category=v1.ConfigCategory.MODEL,
        current_value="echo",
        options=[
            v1.SelectGroup("one", "One voice", [v1.SelectOption("echo", "Echo")]),
            v1.SelectGroup("two", "Two voices", [v1.SelectOption("canon", "Canon")]),
        ],
    ),
    v1.SelectConfig(
        id="length",
        name="Length of answers",
        category=v1.ConfigCategory.MODEL_CONFIG,
        current_value="long",
        options=[v1.SelectOption("short", "Short"), v1.SelectOption("long", "Long")],
    ),
    v1.SelectConfig(
        id="thinking",
        name="Thinking",
        category=v1.ConfigCategory.THOUGHT_LEVEL,
        current_value="off",
        options=[v1.SelectOption("off", "Off"), v1.SelectOption("on", "Aloud")],
    ),
    v1.BooleanConfig(id="greeting", name="Greet", description="Greet before answering", current_value=False),
)
"""One setting of every category, and one that is on or off. They are frozen, so all sessions share them."""
