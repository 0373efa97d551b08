"""The settings of a session (mode, model, options), and the status line."""

from typing import TYPE_CHECKING, Final

from rich.text import Text

from antiphon.client.launch import mode_in_force, set_mode
from antiphon.client.updates import of_category
from antiphon.policy import PolicyMode
from antiphon.protocol import v1
from antiphon.tui.painter import one_line
from antiphon.tui.screen import PROMPT, SPINNER

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession
    from antiphon.permission.gate import PermissionGate

__all__ = [
    "PERMISSION_MODES",
    "PROMPT",
    "Offered",
    "change_mode",
    "mode_of",
    "model_of",
    "models_of",
    "modes_of",
    "permission_modes",
    "shares_modes",
    "status_text",
    "values_in",
]

Offered = list[tuple[str, bool, str]]
"""Id, whether it is the one in force, what it is."""

PERMISSION_MODES: Final = {
    PolicyMode.DEFAULT: "ask before anything is changed or run",
    PolicyMode.ACCEPT_EDITS: "edits in this directory need no question",
    PolicyMode.PLAN: "nothing is changed, nothing is run",
    PolicyMode.DONT_ASK: "what would be asked is denied",
    PolicyMode.BYPASS: "everything is allowed unless a rule denies it",
}


PERMISSION_NAMES: Final = frozenset(mode.value for mode in PERMISSION_MODES)


def values_in(option: v1.SelectConfig) -> list[v1.SelectOption]:
    """Return the values of an option, without their groups."""
    found: list[v1.SelectOption] = []
    for entry in option.options:
        found += entry.options if isinstance(entry, v1.SelectGroup) else [entry]
    return found


def _of_option(session: "ClientSession", category: v1.ConfigCategory) -> Offered:
    option = of_category(session, category)
    if option is None:
        return []
    return [
        (each.value, each.value == option.current_value, _about(each.name, each.description))
        for each in values_in(option)
    ]


def modes_of(session: "ClientSession") -> Offered:
    """Return the agent's modes."""
    if session.modes is None:
        return _of_option(session, v1.ConfigCategory.MODE)
    current = session.modes.current_mode_id
    return [
        (mode.id, mode.id == current, _about(mode.name, mode.description)) for mode in session.modes.available_modes
    ]


def models_of(session: "ClientSession") -> Offered:
    """Return the agent's models."""
    if session.models is None:
        return _of_option(session, v1.ConfigCategory.MODEL)
    current = session.models.current_model_id
    return [
        (each.model_id, each.model_id == current, _about(each.name, each.description))
        for each in session.models.available_models
    ]


def permission_modes(session: "ClientSession", gate: "PermissionGate") -> Offered:
    """Return the modes of the policy that the agent does not have, and the current one."""
    theirs = {id for id, _, _ in modes_of(session)}
    force = mode_in_force(session, gate.mode)
    return [(mode.value, mode is force, about) for mode, about in PERMISSION_MODES.items() if mode.value not in theirs]


def shares_modes(session: "ClientSession") -> bool:
    """Whether the agent has modes with the names of the policy: then both change together."""
    return any(id in PERMISSION_NAMES for id, _, _ in modes_of(session))


async def change_mode(session: "ClientSession", gate: "PermissionGate", wanted: str) -> str:
    """Change the mode of the agent, of the policy, or of both, and return the current mode.

    Raises:
        AcpError: there is no such mode.
    """
    await set_mode(session, gate, wanted)
    force = mode_in_force(session, gate.mode)
    if not shares_modes(session) and wanted.lower() != force.value.lower():
        return f"the agent's mode is {one_line(mode_of(session) or wanted)}"
    return f"mode: {force.value} ({PERMISSION_MODES[force]})"


def mode_of(session: "ClientSession") -> str | None:
    """Return the agent's current mode."""
    return next((id for id, current, _ in modes_of(session) if current), None)


def model_of(session: "ClientSession") -> str | None:
    """Return the current model."""
    return next((id for id, current, _ in models_of(session) if current), None)


def status_text(
    agent: "str | None", session: "ClientSession | None", gate: "PermissionGate | None", doing: str, seconds: int | None
) -> Text:
    """Return the status line: agent, mode, model, context and activity."""
    parts = [one_line(agent)] if agent else []
    if session is not None:
        parts += _mode_shown(session, gate)
        parts += [one_line(model)] if (model := model_of(session)) else []
        usage = session.transcript.usage
        parts += [f"context {usage.used * 100 // usage.size}%"] if usage is not None and usage.size else []
    text = Text(" · ".join(parts), "dim")
    if seconds is None:
        return text.append("   /help", "dim")
    hint = _HINTS.get(doing, "")
    head = Text(f"{SPINNER[seconds % len(SPINNER)]} {doing} {seconds} s{hint}", "yellow")
    if doing == "waiting for you":
        head = Text(doing, "yellow")
    return head.append("   ").append_text(text) if parts else head


def _mode_shown(session: "ClientSession", gate: "PermissionGate | None") -> list[str]:
    """Return the mode; also the agent's own mode if it is not about permission."""
    mode = mode_of(session)
    if gate is not None and (mode is None or mode in PERMISSION_NAMES):
        force = mode_in_force(session, gate.mode)
        return [f"mode {force.value}"] if mode is not None or force is not PolicyMode.DEFAULT else []
    shown = [one_line(f"mode {mode}")] if mode else []
    return shown if gate is None or gate.mode is PolicyMode.DEFAULT else [*shown, f"permission {gate.mode.value}"]


_HINTS: Final = {"working": "   Ctrl-C cancels", "cancelling": "   Ctrl-C again leaves"}


def _about(name: str, description: str | None) -> str:
    return one_line(f"{name}: {description}" if description else name)
