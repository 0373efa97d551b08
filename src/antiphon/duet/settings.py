"""The settings of a joint session: what is chosen, what the client may choose from, and the way back from an id to its engine.

`JointState` is what is stored, `JointSettings` is the one owner of it in a running session, and `merged` puts together what the client
sees. Our own settings come first there, then one mode for all engines of the route, then whatever else each engine has, with its name
before it. A session over one engine has the engine's own ids and names. Does no I/O.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.config.shapes import REVIEWS
from antiphon.duet.commands import offered, prefixes
from antiphon.duet.preferences import DUET, JOINT_ROUTES, REVIEW
from antiphon.engines.project import TRUST
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.duet.preferences import DuetPreferences
    from antiphon.engines.base import Engine

__all__ = [
    "AUTO_RESUME",
    "MODE",
    "OURS",
    "PRIMARY",
    "REVIEW_OPTION",
    "ROUTE",
    "EngineOffer",
    "EngineState",
    "JointSettings",
    "JointState",
    "SharedSettings",
    "ShownSettings",
    "address",
    "commands_merged",
    "merged",
    "on_route",
    "shown_id",
]

_log = logging.getLogger(__name__)


class EngineState(msgspec.Struct, omit_defaults=True):
    """What is stored of one engine in a joint session."""

    session_id: str = msgspec.field(default="", name="conversation")
    """The engine's own id of it, once it was given something; empty: it knows nothing yet. Stored as `conversation`."""
    source: str = ""
    """The engine session that it begins as a copy of."""
    dropped: list[str] = []
    """The prompts of the source that the copy leaves out, with what followed them."""
    mode: str = ""
    """A mode for it alone, if the user chose one."""
    options: dict[str, str] = {}
    """What the user chose, by the engine's own ids."""


class JointState(msgspec.Struct, omit_defaults=True):
    """The stored part of the settings of a joint session."""

    route: str = ""
    primary: str = ""
    routed: bool = False
    """Whether the user chose the route in this session."""
    review: str = ""
    """What becomes of a reviewer's findings: `report` or `fix`."""
    mode: str = ""
    """The mode that the user chose, or an engine changed to; empty: the engines' defaults."""
    auto_resume: bool | None = None
    """Whether a new session goes on with this one, if the user chose that here."""
    nudge: bool | None = None
    """The same for going on by itself at a limit."""
    engines: dict[str, EngineState] = {}

    @classmethod
    def read(cls, kept: bytes) -> "JointState":
        """Decode the stored settings; what cannot be read gets its default."""
        try:
            return msgspec.json.decode(kept, type=cls) if kept else cls()
        except msgspec.DecodeError as error:
            _log.warning("what was chosen in a session cannot be read, so it begins anew: %s", error)
            return cls()

    def packed(self) -> bytes:
        """Encode it to be stored."""
        return msgspec.json.encode(self)


ROUTE: Final = "route"
PRIMARY: Final = "primary_agent"
REVIEW_OPTION: Final = "review"
AUTO_RESUME: Final = "auto_resume"
MODE: Final = "mode"
OURS: Final = (ROUTE, PRIMARY, REVIEW_OPTION, AUTO_RESUME, MODE)
"""The ids of our own settings."""


class EngineOffer(msgspec.Struct, frozen=True):
    """The settings that one engine offers."""

    engine: str
    """Short name of the engine."""
    title: str
    modes: v1.ModeState | None = None
    models: v1.ModelState | None = None
    options: Sequence[v1.ConfigOption] = ()


class SharedSettings(msgspec.Struct, frozen=True):
    """The settings that hold for all engines, for one view of them."""

    engines: Mapping[str, str]
    """Every engine of the session, open or not, in order of preference: short name → title."""
    route: str
    primary: str
    review: str = "report"
    auto_resume: bool = True
    mode: str | None = None
    """The mode in force; None: the leading engine's."""


class ShownSettings(msgspec.Struct, frozen=True):
    """The settings as the client sees them."""

    modes: v1.ModeState | None
    models: v1.ModelState | None
    options: list[v1.ConfigOption]


def on_route(shared: SharedSettings) -> tuple[str, ...]:
    """The engines that answer, the primary first."""
    if shared.route not in JOINT_ROUTES:
        return (shared.route,)
    return (shared.primary, *(engine for engine in shared.engines if engine != shared.primary))


def merged(shared: SharedSettings, offers: Sequence[EngineOffer]) -> ShownSettings:
    """Put the offers of all open engines together. Of the engines that are not open, nothing is known yet."""
    by_engine = {offer.engine: offer for offer in offers}
    answering = [by_engine[engine] for engine in on_route(shared) if engine in by_engine]
    others = [offer for offer in offers if offer not in answering]
    modes = _modes(shared, answering)
    options = [*_ours(shared), *_mode_option(modes, answering)]
    for offer in answering:
        options += _own_mode(shared, offer, modes)
        options += _rest(shared, offer)
    for offer in others:
        options += _rest(shared, offer)
    return ShownSettings(modes, answering[0].models if answering else None, options)


def shown_id(engine: str, own: str, engines: Sequence[str]) -> str:
    """The id by which the client knows an engine's setting."""
    prefix = prefixes(engines)[engine]
    if len(engines) > 1 or own in OURS or own.startswith(f"{prefix}_"):
        return f"{prefix}_{own}"
    return own


def address(config_id: str, engines: Sequence[str]) -> tuple[str, str] | None:
    """The engine of a setting, and the setting's own id there; None: it is one of ours, or there is no such setting."""
    if config_id in OURS:
        return None
    before, mark, own = config_id.partition("_")
    for engine, prefix in prefixes(engines).items():
        if mark and own and before == prefix:
            return engine, own
    return (engines[0], config_id) if len(engines) == 1 else None


# Settings.


def _ours(shared: SharedSettings) -> list[v1.ConfigOption]:
    resume = _select(
        AUTO_RESUME,
        "Auto-resume",
        "Whether a new session goes on where the last one in its directory ended",
        "on" if shared.auto_resume else "off",
        [v1.SelectOption("on", "On"), v1.SelectOption("off", "Off")],
    )
    if len(shared.engines) < 2:
        return [resume]
    engines = [v1.SelectOption(name, title) for name, title in shared.engines.items()]
    all_titles = " and ".join(shared.engines.values())
    routes = [
        *(v1.SelectOption(name, title, f"{title} answers alone") for name, title in shared.engines.items()),
        v1.SelectOption(DUET, "Duet", f"{all_titles} answer"),
        v1.SelectOption(REVIEW, "Review", "The primary engine works, and another one reports what is wrong"),
    ]
    findings = {"report": ("Report", "They are shown"), "fix": ("Fix", "They are handed back to the primary engine")}
    return [
        _select(ROUTE, "Route", "Who answers", shared.route, routes),
        _select(PRIMARY, "Primary", "Who leads in a duet and works in a review", shared.primary, engines),
        _select(
            REVIEW_OPTION,
            "Review",
            "What becomes of the reviewer's findings",
            shared.review,
            [v1.SelectOption(value, *findings[value]) for value in REVIEWS],
        ),
        resume,
    ]


def _select(
    id: str, name: str, description: str | None, value: str, options: Sequence[v1.SelectOption]
) -> v1.SelectConfig:
    return v1.SelectConfig(id=id, name=name, description=description, current_value=value, options=list(options))


def _rest(shared: SharedSettings, offer: EngineOffer) -> list[v1.ConfigOption]:
    """An engine's settings besides its mode, by ids and names that have the engine in them."""
    engines = list(shared.engines)
    shown: list[v1.ConfigOption] = []
    for option in offer.options:
        if not isinstance(option, v1.SelectConfig | v1.BooleanConfig):
            if len(engines) == 1:  # a setting of an unknown type cannot be given another id
                shown.append(option)
            continue
        if _is_mode(option):
            continue
        name = f"{offer.title}: {option.name}" if len(engines) > 1 else option.name
        shown.append(msgspec.structs.replace(option, id=shown_id(offer.engine, option.id, engines), name=name))
    return shown


def _is_mode(option: v1.ConfigOption) -> bool:
    return isinstance(option, v1.SelectConfig) and (option.category == v1.ConfigCategory.MODE or option.id == MODE)


# Modes.


def _modes_of(offer: EngineOffer) -> v1.ModeState | None:
    """An engine's modes, from either of the two ways to offer them."""
    if offer.modes is not None:
        return offer.modes
    option = _mode_setting(offer)
    if option is None:
        return None
    entries = [
        entry for each in option.options for entry in (each.options if isinstance(each, v1.SelectGroup) else [each])
    ]
    return v1.ModeState(option.current_value, [v1.Mode(each.value, each.name, each.description) for each in entries])


def _mode_setting(offer: EngineOffer) -> v1.SelectConfig | None:
    return next((each for each in offer.options if isinstance(each, v1.SelectConfig) and _is_mode(each)), None)


def _modes(shared: SharedSettings, answering: Sequence[EngineOffer]) -> v1.ModeState | None:
    """The modes that all answering engines have, in the order of the one that leads; only its own if they have none in common."""
    states = [state for offer in answering if (state := _modes_of(offer)) is not None]
    if not states:
        return None
    lead = states[0]
    common = [
        mode
        for mode in lead.available_modes
        if all(mode.id in [each.id for each in state.available_modes] for state in states[1:])
    ] or list(lead.available_modes)
    current = shared.mode or lead.current_mode_id
    if current not in [mode.id for mode in common]:
        known = (mode for state in states for mode in state.available_modes if mode.id == current)
        common.append(next(known, v1.Mode(current, current)))  # in force, so it has to be in the list
    return v1.ModeState(current, common)


def _mode_option(modes: v1.ModeState | None, answering: Sequence[EngineOffer]) -> list[v1.ConfigOption]:
    if modes is None:
        return []
    setting = _mode_setting(answering[0])
    options = [v1.SelectOption(mode.id, mode.name, mode.description) for mode in modes.available_modes]
    alone = setting.description if setting is not None and len(answering) == 1 else None
    option = _select(MODE, "Mode", alone or "When the engines ask you", modes.current_mode_id, options)
    return [msgspec.structs.replace(option, category=v1.ConfigCategory.MODE)]


def _own_mode(shared: SharedSettings, offer: EngineOffer, modes: v1.ModeState | None) -> list[v1.ConfigOption]:
    """A setting for the mode of one engine alone, where the joint one is not enough: it is in another mode, or has more of them.

    It is of no category: clients take the one setting of the category `mode` for the session's.
    """
    theirs = _modes_of(offer)
    if theirs is None or modes is None or len(shared.engines) < 2:
        return []
    common = {mode.id for mode in modes.available_modes}
    if theirs.current_mode_id == modes.current_mode_id and {mode.id for mode in theirs.available_modes} <= common:
        return []
    setting = _mode_setting(offer)
    id = shown_id(offer.engine, setting.id if setting is not None else MODE, list(shared.engines))
    options = [v1.SelectOption(mode.id, mode.name, mode.description) for mode in theirs.available_modes]
    return [_select(id, f"{offer.title}: Mode", f"The mode of {offer.title} alone", theirs.current_mode_id, options)]


# Commands.


def commands_merged(
    ours: Sequence[v1.Command], per_engine: Mapping[str, Sequence[v1.Command]], answering: Sequence[str]
) -> list[v1.Command]:
    """Our commands, then those of the engines that answer, the one that leads first.

    A command of the engine that leads is typed as it is. One that only another engine has, or that one of ours hides, has its engine before it.
    """
    taken = {command.name for command in ours}
    engines = {*per_engine, *answering}
    listed = list(ours)
    for place, engine in enumerate(answering):
        for command in per_engine.get(engine, ()):
            if command.name == TRUST.name:
                continue  # the same for all of them, and ours
            hidden = command.name in {each.name for each in ours} or command.name.partition(":")[0] in engines
            if place and not hidden and command.name in taken:
                continue  # the engine that leads has it too: one command for both
            name = f"{engine}:{command.name}" if place or hidden else command.name
            if name not in taken:
                taken.add(name)
                listed.append(msgspec.structs.replace(command, name=name))
    return listed


class JointSettings:
    """Route, mode and options of one joint session. They are kept here and nowhere else: everything that depends on them asks here."""

    def __init__(self, engines: "Mapping[str, Engine]", preferences: "DuetPreferences", state: JointState) -> None:
        self.engines = engines
        self.preferences = preferences
        """The preferences from environment and config files, used where the user has chosen nothing in the session."""
        self.titles = {name: engine.title or name for name, engine in engines.items()}
        """What people call the engines."""
        self._state = state

    # The route.

    @property
    def route(self) -> str:
        """The route of prompts: an engine's name, `duet` or `review`."""
        return self._state.route

    @property
    def primary(self) -> str:
        """The engine that answers first where several do."""
        return self._state.primary if self._state.primary in self.engines else next(iter(self.engines))

    @property
    def lead(self) -> str:
        """The engine that answers, or answers first."""
        return self.engines_of(self._state.route)[0]

    @property
    def is_route_chosen(self) -> bool:
        """Whether the user chose who answers, in this session or in the config."""
        return self._state.routed or self.preferences.route is not None

    def engines_of(self, route: str) -> list[str]:
        """The engines of a route, the primary first."""
        if route in self.engines:
            return [route]
        rest = [name for name in self.engines if name != self.primary]
        return [self.primary, *(rest[:1] if route == REVIEW else rest)]

    def choose_route(self, route: str, *, by_user: bool = True) -> None:
        """Let other engines answer from now on."""
        self._state.route = route
        self._state.routed = self._state.routed or by_user

    # What holds for all of them.

    @property
    def mode(self) -> str:
        """The mode that the user chose, or an engine changed to; empty: as the engines begin."""
        return self._state.mode

    def choose_mode(self, mode: str, *, for_all: bool = True) -> None:
        """Set another mode. `for_all`: modes that were chosen for one engine alone are dropped."""
        self._state.mode = mode
        for each in self._state.engines.values() if for_all else ():
            each.mode = ""

    @property
    def review(self) -> str:
        """What becomes of the findings of a reviewer: `report` or `fix`."""
        return self._state.review

    @property
    def auto_resume(self) -> bool:
        """Whether the next new session in this directory goes on with this one."""
        return self.preferences.auto_resume if self._state.auto_resume is None else self._state.auto_resume

    @property
    def nudge(self) -> bool:
        """Whether the engines go on by themselves after a limit while tasks are left."""
        return self.preferences.nudge if self._state.nudge is None else self._state.nudge

    def choose(
        self,
        *,
        primary: str | None = None,
        review: str | None = None,
        auto_resume: bool | None = None,
        nudge: bool | None = None,
    ) -> None:
        """Change what is given."""
        state = self._state
        state.primary = state.primary if primary is None else primary
        state.review = state.review if review is None else review
        state.auto_resume = state.auto_resume if auto_resume is None else auto_resume
        state.nudge = state.nudge if nudge is None else nudge

    # What is known of one engine.

    def of(self, engine: str) -> EngineState:
        """What is known of an engine in this session, to be read and changed."""
        return self._state.engines.setdefault(engine, EngineState())

    def mode_of(self, engine: str) -> str:
        """The mode that an engine is to be in: its own, or that of all; empty: as it begins."""
        return self.of(engine).mode or self._state.mode

    def engine_sessions(self) -> dict[str, str]:
        """The engines' own ids of their sessions, as far as there are any."""
        return {name: each.session_id for name, each in self._state.engines.items() if each.session_id}

    def forget_engine_sessions(self) -> None:
        """The engines begin new sessions of their own."""
        for each in self._state.engines.values():
            each.session_id = each.source = ""

    # Storing.

    def packed(self) -> bytes:
        """Everything that was chosen, as it is stored."""
        return self._state.packed()

    def take_over(self, state: JointState) -> None:
        """Go by what was chosen in another session, as far as the same engines are here."""
        mine = self._state
        if state.route in (*self.engines, *(JOINT_ROUTES if len(self.engines) > 1 else ())):
            mine.route, mine.routed = state.route, state.routed
        if state.primary in self.engines:
            mine.primary = state.primary
        mine.review = state.review or mine.review
        mine.mode, mine.engines = state.mode, state.engines

    # What the client sees.

    def shown(self, offers: Sequence[EngineOffer]) -> ShownSettings:
        """What the client may choose, from what the engines that are open offer."""
        state = self._state
        shared = SharedSettings(
            self.titles, state.route, self.primary, state.review, self.auto_resume, state.mode or None
        )
        names = self.engines_of(state.route)
        return merged(shared, sorted(offers, key=lambda offer: _position(offer.engine, names)))

    def commands(self, per_engine: Mapping[str, Sequence[v1.Command]]) -> list[v1.Command]:
        """The slash commands that there are: ours, and those of the engines that answer."""
        return commands_merged(offered(self.titles), per_engine, self.engines_of(self._state.route))


def _position(name: str, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)
