"""The settings of a session with Claude Code (mode, model, effort) and its slash commands.

The CLI reports its models and commands only once it runs, and a client wants them at once. So what the same version of the CLI offered the
last time is shown first, and corrected when it differs.
"""

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from antiphon.engines.cli_session import (
    EFFORT,
    MODE,
    MODEL,
    SettingsSync,
    SettingsView,
    effort_option,
    mode_option,
    model_option,
)  # fmt: skip
from antiphon.engines.project import TRUST
from antiphon.errors import Code, ConnectionClosed, RequestError, ResponseError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.agent.session import AgentSession
    from antiphon.engines.claude import wire
    from antiphon.engines.claude.driver import ClaudeProcess
    from antiphon.protocol.base import JsonObject

__all__ = [
    "MODES",
    "ClaudeOffer",
    "ClaudeSettings",
    "CliModel",
    "commands_of",
    "forbids_bypass",
    "model_shown",
    "offer_of",
    "shown_settings",
]

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


def offer_of(initialized: "JsonObject", settings: "JsonObject") -> ClaudeOffer:
    """Read the offer from the CLI's responses to `initialize` and `get_settings`."""
    applied = _object(settings.get("applied"))
    models = _each(initialized.get("models"), CliModel) or ClaudeOffer().models
    resolved = applied.get("model")
    return ClaudeOffer(
        models,
        _each(initialized.get("commands"), CliCommand),
        _text(initialized.get("current_permission_mode")) or "default",
        model_shown(models, resolved if isinstance(resolved, str) else "", "default"),
        _text(applied.get("effort")),
    )


def forbids_bypass(settings: "JsonObject") -> bool:
    """Whether the user's settings, or an administrator's, forbid the mode without questions."""
    permissions = _object(_object(settings.get("effective")).get("permissions"))
    return permissions.get("disableBypassPermissionsMode") == "disable"


def model_shown(models: Sequence[CliModel], name: str, current: str) -> str:
    """The value on offer that stands for a model's name; the current one if it does, else the first that does, else the name itself."""
    meant = [model.value for model in models if name in (model.resolved_model, model.value)]
    if not name or current in meant:
        return current
    return meant[0] if meant else name


def shown_settings(offer: ClaudeOffer, *, bypass: bool, mode: str, model: str, effort: str) -> SettingsView:
    """Modes, models and options as the client is shown them. `bypass`: whether the mode without questions is on offer."""
    models = _with(offer.models, model)
    chosen = next(each for each in models if each.value == model)
    modes = [
        each
        for each in MODES
        if each.id == mode or ((each.id != BYPASS or bypass) and (each.id != "auto" or chosen.supports_auto_mode))
    ]
    if mode not in [each.id for each in modes]:  # a mode of a newer CLI
        modes.append(v1.Mode(mode, mode))
    offered = [
        v1.SessionModel(each.value, each.display_name or each.value, each.description or None) for each in models
    ]
    options: list[v1.ConfigOption] = [mode_option(modes, mode, "When Claude asks you"), model_option(offered, model)]
    if levels := chosen.supported_effort_levels:
        usual = "medium" if "medium" in levels else levels[0]
        options.append(effort_option([(level, None) for level in levels], effort, usual))
    return SettingsView(v1.ModeState(mode, modes), v1.ModelState(offered, model), options)


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


def _object(value: object) -> "JsonObject":
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _each(values: object, kind: type[T]) -> list[T]:
    """The entries that can be understood: one odd entry does not hide the others."""
    understood: list[T] = []
    for value in values if isinstance(values, list) else ():
        try:
            understood.append(msgspec.convert(value, kind))
        except msgspec.ValidationError:
            continue
    return understood


class ClaudeSettings(SettingsSync):
    """Mode, model and effort of one session. The CLI takes a change at once, in the running process."""

    def __init__(self, session: "AgentSession", *, bypass: bool) -> None:
        super().__init__(session, "default")
        self.bypass = bypass
        """Whether the mode without questions is on offer."""
        self.offer = ClaudeOffer()
        self._setting: str | None = None
        """The mode that is being sent to the CLI: its own report of it is no change."""

    async def begin(self, remembered: "JsonObject | None", kept: "Mapping[str, str]" = MappingProxyType({})) -> None:
        """Show what the CLI offered the last time, with the model and effort that were chosen in this session before."""
        try:
            self.offer = msgspec.convert(remembered, ClaudeOffer)
        except msgspec.ValidationError:
            self.offer = ClaudeOffer()
        self.mode, self.model, self.effort = self.offer.mode, self.offer.model, self.offer.effort
        if model := kept.get(MODEL):
            self.model = model
            self._chosen.add(MODEL)
        if effort := kept.get(EFFORT):
            self.effort = effort
            self._chosen.add(EFFORT)
        self._show()
        await self._send_commands()

    def chosen(self) -> dict[str, str]:
        """What a process is started with: only what was chosen here, or the user's own settings would not count."""
        values = {MODE: self.mode, MODEL: self.model, EFFORT: self.effort}
        return {name: value for name, value in values.items() if name in self._chosen and value}

    async def learn(self, offer: ClaudeOffer) -> None:
        """Take over what the CLI really offers, and the settings that it begins with."""
        new_commands = offer.commands != self.offer.commands
        self.offer = offer
        if MODE not in self._chosen:
            self.mode = offer.mode
        if MODEL not in self._chosen:
            self.model = offer.model
        if EFFORT not in self._chosen:
            self.effort = offer.effort
        await self._show_and_send()
        if new_commands:
            await self._send_commands()

    # The client changes a setting.

    async def set_option(self, process: "ClaudeProcess", name: str, value: str) -> None:
        """Change a setting in the CLI.

        Raises:
            RequestError: the CLI refuses, or ended.
        """
        if name == MODE:
            await self._set_mode(process, value)
            self.mode = value
        elif name == MODEL:
            await _set(process, "set_model", {"model": value})
            self.model = value
        elif name == EFFORT:
            await _set(process, "apply_flag_settings", {"settings": {"effortLevel": value}})
            self.effort = value
        else:
            return
        self._chosen.add(name)
        self._show()

    async def _set_mode(self, process: "ClaudeProcess", mode: str) -> None:
        self._setting = mode
        try:
            await _set(process, "set_permission_mode", {"mode": mode})
        except ResponseError:
            if mode == BYPASS:  # the user's or an administrator's settings forbid it
                self.bypass = False
                await self._show_and_send()
            raise
        finally:
            self._setting = None

    # The CLI changes a setting.

    async def mode_is(self, mode: str) -> None:
        """The CLI works in this mode."""
        if mode == self.mode or mode == self._setting:
            return
        self.mode = mode
        self._chosen.add(MODE)
        await self._show_and_send()

    async def model_is(self, name: str) -> None:
        """The CLI uses the model of this name."""
        model = model_shown(self.offer.models, name, self.model)
        if model != self.model:
            self.model = model
            self._chosen.add(MODEL)
            await self._show_and_send()

    async def commands_are(self, commands: "Sequence[wire.SlashCommand]") -> None:
        """The CLI offers these slash commands now."""
        known = [CliCommand(each.name, each.description, each.argument_hint) for each in commands]
        self.offer = msgspec.structs.replace(self.offer, commands=known)
        await self._send_commands()

    async def _send_commands(self) -> None:
        await self._session.offer(*commands_of(self.offer))

    def shown(self) -> SettingsView:
        return shown_settings(self.offer, bypass=self.bypass, mode=self.mode, model=self.model, effort=self.effort)


async def _set(process: "ClaudeProcess", subtype: str, fields: "JsonObject") -> None:
    from antiphon.engines.process import CliRefused  # late: `session/new` needs no process

    try:
        await process.control(subtype, fields)
    except CliRefused as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", error.message) from error
    except ConnectionClosed as error:
        hint = "choose it again: the session goes on in a new process"
        raise RequestError(Code.INTERNAL_ERROR, "Claude Code ended unexpectedly", error.sentence, hint=hint) from error
