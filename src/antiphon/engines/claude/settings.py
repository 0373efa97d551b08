"""What the user can choose in a session with Claude Code: mode, model, effort. Pure values, made from what the CLI says it has.

The CLI tells its models and commands only once it runs, and a client wants them at once. So what one version told the last time is
shown first, and corrected when it differs.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from antiphon.engines.project import TRUST
from antiphon.protocol import v1

__all__ = [
    "EFFORT",
    "MODE",
    "MODEL",
    "MODES",
    "CliModel",
    "Offer",
    "choices_of",
    "commands_of",
    "model_shown",
    "offer_of",
]

MODE: Final = "mode"
MODEL: Final = "model"
EFFORT: Final = "effort"
"""The ids of the settings."""

BYPASS: Final = "bypassPermissions"

MODES: Final = (
    v1.Mode("default", "Default", "Asks before it changes or runs something for the first time"),
    v1.Mode("acceptEdits", "Accept edits", "Edits files without asking, and asks before it runs commands"),
    v1.Mode("plan", "Plan", "Looks and plans; changes nothing until you approve the plan"),
    v1.Mode("auto", "Auto", "A second model decides what is safe, and asks you about the rest"),
    v1.Mode("dontAsk", "Don't ask", "Never asks: what no rule of yours allows is refused"),
    v1.Mode(BYPASS, "Bypass permissions", "Never asks and allows everything: for sandboxes only"),
)
"""Every mode that the CLI has, with what it means there."""

T = TypeVar("T")


class CliModel(msgspec.Struct, frozen=True, rename="camel"):
    """A model as the CLI lists it."""

    value: str
    resolved_model: str = ""
    display_name: str = ""
    description: str = ""
    supported_effort_levels: list[str] = []
    supports_auto_mode: bool = False


class CliCommand(msgspec.Struct, frozen=True):
    """A slash command as the CLI lists it."""

    name: str
    description: str = ""
    argument_hint: str | None = msgspec.field(default=None, name="argumentHint")


class Offer(msgspec.Struct, frozen=True):
    """What one version of the CLI has on offer, as it is remembered."""

    models: list[CliModel] = msgspec.field(default_factory=lambda: [CliModel("default", display_name="Default")])
    commands: list[CliCommand] = []
    mode: str = "default"
    """The mode that a session begins with."""
    model: str = "default"
    effort: str = ""


class Choice(msgspec.Struct, frozen=True):
    """All that a session shows."""

    modes: v1.ModeState
    models: v1.ModelState
    options: list[v1.ConfigOption]


def offer_of(initialized: dict[str, Any], told: dict[str, Any]) -> Offer:
    """From the CLI's answers to `initialize` and `get_settings`."""
    applied = _object(told.get("applied"))
    models = _each(initialized.get("models"), CliModel) or Offer().models
    resolved = applied.get("model")
    return Offer(
        models,
        _each(initialized.get("commands"), CliCommand),
        _text(initialized.get("current_permission_mode")) or "default",
        model_shown(models, resolved if isinstance(resolved, str) else "", "default"),
        _text(applied.get("effort")),
    )


def forbids_bypass(told: dict[str, Any]) -> bool:
    """Whether the user's settings, or an administrator's, forbid the mode without questions."""
    permissions = _object(_object(told.get("effective")).get("permissions"))
    return permissions.get("disableBypassPermissionsMode") == "disable"


def model_shown(models: Sequence[CliModel], name: str, current: str) -> str:
    """The value on offer that stands for a model's name; the current one if it does, else the first that does, else the name itself."""
    meant = [model.value for model in models if name in (model.resolved_model, model.value)]
    if not name or current in meant:
        return current
    return meant[0] if meant else name


def choices_of(offer: Offer, *, bypass: bool, mode: str, model: str, effort: str) -> Choice:
    """Modes, models and settings, with what is chosen."""
    models = _with(offer.models, model)
    chosen = next(each for each in models if each.value == model)
    modes = [
        each
        for each in MODES
        if each.id == mode or ((each.id != BYPASS or bypass) and (each.id != "auto" or chosen.supports_auto_mode))
    ]
    if mode not in [each.id for each in modes]:  # one from tomorrow
        modes.append(v1.Mode(mode, mode))
    options: list[v1.ConfigOption] = [
        v1.SelectConfig(
            id=MODE,
            name="Mode",
            description="When Claude asks you",
            category=v1.ConfigCategory.MODE,
            current_value=mode,
            options=[v1.SelectOption(each.id, each.name, each.description) for each in modes],
        ),
        v1.SelectConfig(
            id=MODEL,
            name="Model",
            category=v1.ConfigCategory.MODEL,
            current_value=model,
            options=[v1.SelectOption(each.value, _name(each), each.description or None) for each in models],
        ),
    ]
    levels = chosen.supported_effort_levels
    if levels:
        options.append(
            v1.SelectConfig(
                id=EFFORT,
                name="Effort",
                description="How much the model thinks",
                category=v1.ConfigCategory.THOUGHT_LEVEL,
                current_value=effort if effort in levels else _middle(levels),
                options=[v1.SelectOption(level, level.capitalize()) for level in levels],
            )
        )
    return Choice(
        v1.ModeState(mode, modes),
        v1.ModelState([v1.SessionModel(each.value, _name(each), each.description or None) for each in models], model),
        options,
    )


def commands_of(offer: Offer) -> list[v1.Command]:
    """The slash commands, for a client."""
    theirs = [
        v1.Command(
            _typed(each.name), _brief(each.description), v1.CommandInput(hint) if (hint := _hint(each)) else None
        )
        for each in offer.commands
        if not each.name.startswith("_") and each.name not in (*_HIDDEN, TRUST.name)
    ]
    return [*theirs, TRUST]


_HIDDEN: Final = frozenset({"workflow-launch-exec", "heapdump"})
"""Commands that are for the CLI's own machinery."""

DESCRIPTION: Final = 200
"""Characters of a command's description: some are pages for the model, and a client shows a line."""


_OF_SERVER: Final = re.compile(r"(.+?):(.+) \(MCP\)")


def _typed(name: str) -> str:
    """The name as a user types it: prompts of MCP servers are listed as words with a space, and have another name without."""
    found = _OF_SERVER.fullmatch(name)
    return f"mcp__{found[1]}__{found[2]}" if found else name


def _brief(description: str) -> str:
    line = " ".join(description.split())
    return line if len(line) <= DESCRIPTION else line[: DESCRIPTION - 1].rstrip() + "…"


def _hint(command: CliCommand) -> str:
    return command.argument_hint or ""


def _with(models: Sequence[CliModel], value: str) -> list[CliModel]:
    """The models, with the one in use: it may be one that only the user's own settings know."""
    known = list(models)
    if value not in [model.value for model in known]:
        known.append(CliModel(value, value, value))
    return known


def _name(model: CliModel) -> str:
    return model.display_name or model.value


def _middle(levels: Sequence[str]) -> str:
    return "medium" if "medium" in levels else levels[0]


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _each(values: object, kind: type[T]) -> list[T]:
    """Those that can be understood: one odd entry does not hide the others."""
    understood: list[T] = []
    for value in values if isinstance(values, list) else ():
        try:
            understood.append(msgspec.convert(value, kind))
        except msgspec.ValidationError:
            continue
    return understood
