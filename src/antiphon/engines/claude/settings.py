"""What the user can choose in a session with Claude Code: mode, model, effort. Pure values, made from what the CLI says it has.

The CLI tells its models and commands only once it runs, and a client wants them at once. So what one version told the last time is
shown first, and corrected when it differs.
"""

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from antiphon.engines.project import TRUST
from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.agent.session import AgentSession
    from antiphon.engines.claude import wire
    from antiphon.engines.claude.process import ClaudeProcess

__all__ = [
    "EFFORT",
    "MODE",
    "MODEL",
    "MODES",
    "ClaudeOffer",
    "ClaudeSettings",
    "CliModel",
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


class ClaudeOffer(msgspec.Struct, frozen=True):
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


def offer_of(initialized: dict[str, Any], told: dict[str, Any]) -> ClaudeOffer:
    """From the CLI's answers to `initialize` and `get_settings`."""
    applied = _object(told.get("applied"))
    models = _each(initialized.get("models"), CliModel) or ClaudeOffer().models
    resolved = applied.get("model")
    return ClaudeOffer(
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


def choices_of(offer: ClaudeOffer, *, bypass: bool, mode: str, model: str, effort: str) -> Choice:
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


def commands_of(offer: ClaudeOffer) -> list[v1.Command]:
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


# --- What is chosen in a session, kept the same on both sides: the client changes it, the CLI changes it, each hears of the other


class ClaudeSettings:
    """Mode, model and effort of one session."""

    def __init__(self, session: "AgentSession", *, bypass: bool) -> None:
        self._session = session
        self.bypass = bypass
        """Whether the mode without questions is on offer."""
        self.offer = ClaudeOffer()
        self._mode = self._model = "default"
        self._effort = ""
        self._told = {MODE: False, MODEL: False, EFFORT: False}
        self._setting: str | None = None

    async def begin(self, remembered: dict[str, Any] | None, kept: "Mapping[str, str]" = MappingProxyType({})) -> None:
        """Show what the CLI had on offer the last time, with the model and effort that were chosen in this session before."""
        try:
            self.offer = msgspec.convert(remembered, ClaudeOffer)
        except msgspec.ValidationError:
            self.offer = ClaudeOffer()
        self._mode, self._model, self._effort = self.offer.mode, self.offer.model, self.offer.effort
        if model := kept.get(MODEL):
            self._model, self._told[MODEL] = model, True
        if effort := kept.get(EFFORT):
            self._effort, self._told[EFFORT] = effort, True
        self._show()
        await self._offer_commands()

    def chosen(self) -> dict[str, str]:
        """What a process is started with: only what was chosen here, or the user's own settings would not count."""
        values = {MODE: self._mode, MODEL: self._model, EFFORT: self._effort}
        return {name: value for name, value in values.items() if self._told[name] and value}

    async def learn(self, offer: ClaudeOffer) -> None:
        """What it really has on offer, and what it begins with."""
        new_commands = offer.commands != self.offer.commands
        self.offer = offer
        if not self._told[MODE]:
            self._mode = offer.mode
        if not self._told[MODEL]:
            self._model = offer.model
        if not self._told[EFFORT]:
            self._effort = offer.effort
        await self._show_and_tell()
        if new_commands:
            await self._offer_commands()

    # The client changes something.

    async def set_mode(self, process: "ClaudeProcess", mode: str) -> None:
        """Another mode, now."""
        self._setting = mode
        try:
            await _set(process, "set_permission_mode", {"mode": mode})
        except RequestError:
            if mode == BYPASS:  # the user's or an administrator's settings forbid it
                self.bypass = False
                await self._show_and_tell()
            raise
        finally:
            self._setting = None
        self._mode = mode
        self._told[MODE] = True
        self._show()

    async def set_model(self, process: "ClaudeProcess", model: str) -> None:
        """Another model, from the next step on."""
        await _set(process, "set_model", {"model": model})
        self._model = model
        self._told[MODEL] = True
        self._show()

    async def set_option(self, process: "ClaudeProcess", name: str, value: str) -> None:
        """A setting, in the way of newer clients."""
        if name == MODE:
            await self.set_mode(process, value)
        elif name == MODEL:
            await self.set_model(process, value)
        elif name == EFFORT:
            await _set(process, "apply_flag_settings", {"settings": {"effortLevel": value}})
            self._effort = value
            self._told[EFFORT] = True
            self._show()

    # The CLI changes something.

    async def mode_is(self, mode: str) -> None:
        """It works in this mode."""
        if mode == self._mode or mode == self._setting:
            return
        self._mode = mode
        self._told[MODE] = True
        await self._show_and_tell()

    async def model_is(self, name: str) -> None:
        """It uses the model of this name."""
        model = model_shown(self.offer.models, name, self._model)
        if model != self._model:
            self._model = model
            self._told[MODEL] = True
            await self._show_and_tell()

    async def commands_are(self, commands: "Sequence[wire.SlashCommand]") -> None:
        """It has these slash commands now."""
        known = [CliCommand(each.name, each.description, each.argument_hint) for each in commands]
        self.offer = msgspec.structs.replace(self.offer, commands=known)
        await self._offer_commands()

    # Showing.

    async def _offer_commands(self) -> None:
        await self._session.offer(*commands_of(self.offer))

    def _show(self) -> None:
        choice = choices_of(self.offer, bypass=self.bypass, mode=self._mode, model=self._model, effort=self._effort)
        session = self._session
        session.modes, session.models, session.config_options = choice.modes, choice.models, choice.options

    async def _show_and_tell(self) -> None:
        session = self._session
        modes, models, options = session.modes, session.models, list(session.config_options)
        self._show()
        if session.config_options != options:
            await session.tell_options()
        if modes is not None and session.modes is not None and modes.current_mode_id != session.modes.current_mode_id:
            await session.update(v1.CurrentModeUpdate(session.modes.current_mode_id))
        if (
            models is not None
            and session.models is not None
            and models.current_model_id != session.models.current_model_id
        ):
            await session.tell_model(session.models.current_model_id)


async def _set(process: "ClaudeProcess", subtype: str, fields: dict[str, Any]) -> None:
    from antiphon.engines.process import CliRefused  # late: `session/new` needs no process

    try:
        await process.control(subtype, fields)
    except CliRefused as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", error.message) from error
    except ConnectionClosed as error:
        hint = "choose it again: the conversation goes on in a new process"
        raise RequestError(Code.INTERNAL_ERROR, "Claude Code ended unexpectedly", error.sentence, hint=hint) from error
