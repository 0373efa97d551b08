"""The settings of a session (mode, model, options), and the status line."""

import re
from typing import TYPE_CHECKING, Final

from rich.text import Text

from antiphon.client.launch import mode_in_force, set_mode
from antiphon.client.updates import of_category
from antiphon.errors import AcpError
from antiphon.policy import PolicyMode
from antiphon.protocol import v1
from antiphon.tui.display.theme import style_of_engine
from antiphon.tui.display.welcome import ShownEngine
from antiphon.tui.painter import one_line
from antiphon.tui.screen import PROMPT, SPINNER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.client.session import ClientSession
    from antiphon.permission.gate import PermissionGate
    from antiphon.tui.chat import Chat

__all__ = [
    "PERMISSION_MODES",
    "PROMPT",
    "WAITING",
    "ChatModes",
    "Offered",
    "answering",
    "change_mode",
    "mode_and_meaning",
    "mode_of",
    "models_of",
    "modes_of",
    "next_mode",
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
    return [] if option is None else _offered(option)


def _offered(option: v1.SelectConfig) -> Offered:
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


def mode_and_meaning(session: "ClientSession", gate: "PermissionGate") -> tuple[str, str]:
    """Return the mode that the status line shows, and what it means: the policy's, or the agent's own under another name."""
    theirs = next(((id, about) for id, current, about in modes_of(session) if current), None)
    if theirs is not None and theirs[0] not in PERMISSION_NAMES:
        return one_line(theirs[0]), theirs[1]
    force = mode_in_force(session, gate.mode)
    return force.value, PERMISSION_MODES[force]


# --- who answers ------------------------------------------------------------------------------------------------------

ROUTE: Final = "route"
PRIMARY: Final = "primary_agent"
"""Settings of the joint agent: who answers, and who leads where several do."""

_CURRENTLY: Final = re.compile(r"currently ([^)·]+)")
"""A model that stands for another one has its name in its description."""


def answering(session: "ClientSession", agent: str) -> list[ShownEngine]:
    """Return every engine of the agent, those that answer first, with their models. An agent that is one engine is its own."""
    route = _select(session, ROUTE)
    if route is None:
        return [ShownEngine("agent", one_line(agent), model=model_shown(session), answers=True)]
    primary = _select(session, PRIMARY)
    lead = primary.current_value if primary is not None else ""
    titles = {each.value: one_line(each.name) for each in values_in(route) if each.value not in ("duet", "review")}
    on_route = [route.current_value] if route.current_value in titles else sorted(titles, key=lambda name: name != lead)
    order = [*on_route, *(name for name in titles if name not in on_route)]
    return [
        ShownEngine(name, titles[name], model=model_shown(session, f"{name}_model"), answers=name in on_route)
        for name in order
    ]


def model_shown(session: "ClientSession", id: str = "") -> str:
    """Return the name of a model as people know it. `id` is its setting; without one it is that of the session."""
    option = _select(session, id) if id else None
    offered = models_of(session) if option is None else _offered(option)
    if id and option is None and len(offered) and _select(session, ROUTE) is not None:
        return ""  # an engine that is not open yet
    current = next(((value, about) for value, is_current, about in offered if is_current), None)
    if current is None:
        return ""
    value, about = current
    if (meant := _CURRENTLY.search(about)) is not None:
        return one_line(meant[1])
    name = about.partition(":")[0].strip()
    return one_line(value if value != "default" else name if name.lower() != "default" else "")


def _select(session: "ClientSession", id: str) -> v1.SelectConfig | None:
    found = (each for each in session.config_options or () if isinstance(each, v1.SelectConfig) and each.id == id)
    return next(found, None)


def who_answers(engines: "Sequence[ShownEngine]", route: str, *, models: bool = True) -> Text:
    """Return who answers, each with its model: `Claude Code (opus) + Codex`."""
    text = Text()
    for engine in (engine for engine in engines if engine.answers):
        text.append((" reviewed by " if route == "review" else " + ") if text else "", "dim")
        text.append(engine.title, style_of_engine(engine.name))
        text.append(f" ({engine.model})" if engine.model and models else "", "dim")
    return text


def status_text(
    agent: "str | None",
    session: "ClientSession | None",
    gate: "PermissionGate | None",
    doing: str,
    seconds: int | None,
    branch: str = "",
    width: int = 0,
) -> Text:
    """Return the status line: who answers, mode, context, cost, branch and activity.

    In a narrow terminal hints and words are left out first, then models and the branch: who answers, mode, context and cost stay.
    """
    text = Text()
    for less in range(_LEAST + 1):
        text = _who_and_what(agent or "", session, gate, branch, less)
        if seconds is None:
            text.append("" if less else "   /help", "dim")
        else:
            hint = "" if less else _HINTS.get(doing, "")
            if doing == WAITING:
                head = Text(WAITING if less < _LEAST else "waiting", "warning")
            else:
                head = Text(f"{SPINNER[seconds % len(SPINNER)]} {doing} {seconds} s{hint}", "warning")
            text = head.append("   " if less < _LEAST else " · ").append_text(text) if text else head
        if not width or text.cell_len <= width:
            break
    return text


WAITING: Final = "waiting for you"

_LEAST: Final = 4
"""Steps in which the status line gets shorter: hints, the words before values, models, the branch with what else can go."""


def _who_and_what(
    agent: str, session: "ClientSession | None", gate: "PermissionGate | None", branch: str, less: int
) -> Text:
    """Return who answers, mode, context, cost and branch, with less of it the narrower the terminal is."""
    if session is None:
        return Text(one_line(agent), "agent")
    route = _select(session, ROUTE)
    text = who_answers(
        answering(session, agent), "" if route is None else route.current_value, models=less < _LEAST - 1
    )
    usage, parts = session.transcript.usage, _mode_shown(session, gate)
    parts += [f"context {usage.used * 100 // usage.size}%"] if usage is not None and usage.size else []
    if less > 1:
        parts = [part.rpartition(" ")[2] for part in parts]
    parts += [_money(usage.cost)] if usage is not None and usage.cost is not None and usage.cost.amount else []
    parts += [one_line(branch)] if branch and less < _LEAST else []
    return text.append("".join(f" · {part}" for part in parts), "dim")


def _mode_shown(session: "ClientSession", gate: "PermissionGate | None") -> list[str]:
    """Return the mode; also the agent's own mode if it is not about permission."""
    mode = mode_of(session)
    if gate is not None and (mode is None or mode in PERMISSION_NAMES):
        force = mode_in_force(session, gate.mode)
        return [f"mode {force.value}"] if mode is not None or force is not PolicyMode.DEFAULT else []
    shown = [one_line(f"mode {mode}")] if mode else []
    return shown if gate is None or gate.mode is PolicyMode.DEFAULT else [*shown, f"permission {gate.mode.value}"]


def _money(cost: v1.Cost) -> str:
    """Return a cost with as many digits as say something."""
    amount = f"{cost.amount:.2f}" if cost.amount >= 0.01 else f"{cost.amount:.4f}"
    return f"${amount}" if cost.currency == "USD" else f"{amount} {one_line(cost.currency)}"


# --- the next mode ----------------------------------------------------------------------------------------------------

STEPS: Final = (PolicyMode.DEFAULT.value, PolicyMode.ACCEPT_EDITS.value, PolicyMode.PLAN.value)
"""The modes that Shift-Tab goes through. One that asks nothing any more is chosen by name."""


def next_mode(session: "ClientSession", gate: "PermissionGate") -> str:
    """Return the mode after the current one, for one key: of the policy's, or of an agent whose modes have other names.

    An agent's mode is left out if its name says that it asks nothing.
    """
    theirs = [id for id, _, _ in modes_of(session)]
    if not theirs or any(id in PERMISSION_NAMES for id in theirs):
        steps, current = list(STEPS), mode_in_force(session, gate.mode).value
    else:
        steps = [id for id in theirs if not _ASKS_NOTHING.search(id)]
        current = mode_of(session) or ""
    if not steps:
        return current
    return steps[(steps.index(current) + 1) % len(steps)] if current in steps else steps[0]


class ChatModes:
    """The mode of a chat's session, and its changes by single keys."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    @property
    def current(self) -> PolicyMode | None:
        """The mode in force; None before there is a session."""
        try:
            return mode_in_force(self._chat.session, self._chat.gate.mode)
        except AcpError:  # there is none yet
            return None

    def change_to_next(self) -> None:
        """Change to the next mode."""
        if self.current is not None:
            self._chat.run_task(self._change(next_mode(self._chat.session, self._chat.gate)))

    def accept_edits(self) -> None:
        """Allow edits from now on, in this session."""
        mode = PolicyMode.ACCEPT_EDITS
        self._chat.gate.mode = mode  # at once: the next edit may be asked about before the agent has answered
        self._chat.run_task(self._change(mode.value))

    async def _change(self, mode: str) -> None:
        try:
            await change_mode(self._chat.session, self._chat.gate, mode)
        except AcpError as error:
            self._chat.show_error(error)
        self._chat.window.refresh()


_ASKS_NOTHING: Final = re.compile("yolo|bypass|full|never|auto", re.IGNORECASE)

_HINTS: Final = {"working": "   Ctrl-C cancels", "cancelling": "   Ctrl-C again leaves"}


def _about(name: str, description: str | None) -> str:
    return one_line(f"{name}: {description}" if description else name)
