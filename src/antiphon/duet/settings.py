"""What a session needs to go on after a restart, besides its history: a small piece of JSON beside it."""

import logging
import os
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.aio import NO_WAIT
from antiphon.config.shapes import REVIEWS
from antiphon.duet.commands import offered, prefixes
from antiphon.duet.history.writer import told
from antiphon.duet.preferences import DUET, JOINT_ROUTES, REVIEW
from antiphon.engines.project import TRUST
from antiphon.errors import AcpError, Code, RequestError
from antiphon.protocol import v1
from antiphon.store.errors import NoSuchSession, StoreError

if TYPE_CHECKING:
    from antiphon.duet.engine_sessions import InnerSession
    from antiphon.duet.session import JointSession

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
    "clear",
    "commands_merged",
    "merged",
    "on_route",
    "put_away",
    "set_mode",
    "set_model",
    "set_option",
    "set_route",
    "shown_id",
]

_log = logging.getLogger(__name__)


class EngineState(msgspec.Struct, omit_defaults=True):
    """What is known of one engine in a session."""

    conversation: str = ""
    """The engine's own id of it, once it was given something; empty: it knows nothing yet."""
    source: str = ""
    """The conversation that it is to begin as a copy of."""
    mode: str = ""
    """A mode for it alone, if the user chose one."""
    options: dict[str, str] = {}
    """What the user chose, by the engine's own ids."""


class JointState(msgspec.Struct, omit_defaults=True):
    """What holds in a session."""

    route: str = ""
    primary: str = ""
    routed: bool = False
    """Whether the user chose the route in this session."""
    review: str = ""
    """What becomes of a reviewer's findings: `report` or `fix`."""
    mode: str = ""
    """The mode that the user chose, or an engine changed to; empty: as the engines begin."""
    auto_resume: bool | None = None
    """Whether a new session goes on with this one, if the user chose that here."""
    nudge: bool | None = None
    """The same for going on by itself at a limit."""
    engines: dict[str, EngineState] = {}

    def of(self, engine: str) -> EngineState:
        """What is known of an engine."""
        return self.engines.setdefault(engine, EngineState())

    @classmethod
    def read(cls, kept: bytes) -> "JointState":
        """As it was; as at the beginning, if it cannot be read."""
        try:
            return msgspec.json.decode(kept, type=cls) if kept else cls()
        except msgspec.DecodeError as error:
            _log.warning("what was chosen in a session cannot be read, so it begins anew: %s", error)
            return cls()

    def packed(self) -> bytes:
        """As it is kept."""
        return msgspec.json.encode(self)


# --- What the engines of a session offer, made into one offer for the client, and the way back from an id to who has that setting. Pure
# Our own settings come first, then one mode for all engines of the route, then whatever else each engine has, with its name before it.
# A session over one engine has the engine's own ids and names.

ROUTE: Final = "route"
PRIMARY: Final = "primary_agent"
REVIEW_OPTION: Final = "review"
AUTO_RESUME: Final = "auto_resume"
MODE: Final = "mode"
OURS: Final = (ROUTE, PRIMARY, REVIEW_OPTION, AUTO_RESUME, MODE)
"""The ids of what is ours to change."""


class EngineOffer(msgspec.Struct, frozen=True):
    """What one engine offers in its part of the session."""

    engine: str
    """Its short name."""
    title: str
    modes: v1.ModeState | None = None
    models: v1.ModelState | None = None
    options: Sequence[v1.ConfigOption] = ()


class SharedSettings(msgspec.Struct, frozen=True):
    """What is chosen for all of them."""

    engines: Mapping[str, str]
    """Every engine of the session, open or not, the preferred first: short name → title."""
    route: str
    primary: str
    review: str = "report"
    auto_resume: bool = True
    mode: str | None = None
    """The mode in force; None: the leading engine's."""


class ShownSettings(msgspec.Struct, frozen=True):
    """What the client sees."""

    modes: v1.ModeState | None
    models: v1.ModelState | None
    options: list[v1.ConfigOption]


def on_route(joint: SharedSettings) -> tuple[str, ...]:
    """The engines that answer, who leads first."""
    if joint.route not in JOINT_ROUTES:
        return (joint.route,)
    return (joint.primary, *(engine for engine in joint.engines if engine != joint.primary))


def merged(joint: SharedSettings, offers: Sequence[EngineOffer]) -> ShownSettings:
    """One offer of all those that are open. Of the engines that are not, nothing is known yet."""
    by_engine = {offer.engine: offer for offer in offers}
    answering = [by_engine[engine] for engine in on_route(joint) if engine in by_engine]
    others = [offer for offer in offers if offer not in answering]
    modes = _modes(joint, answering)
    options = [*_ours(joint), *_mode_option(modes, answering)]
    for offer in answering:
        options += _own_mode(joint, offer, modes)
        options += _rest(joint, offer)
    for offer in others:
        options += _rest(joint, offer)
    return ShownSettings(modes, answering[0].models if answering else None, options)


def shown_id(engine: str, own: str, engines: Sequence[str]) -> str:
    """The id by which the client knows an engine's setting."""
    prefix = prefixes(engines)[engine]
    if len(engines) > 1 or own in OURS or own.startswith(f"{prefix}_"):
        return f"{prefix}_{own}"
    return own


def address(config_id: str, engines: Sequence[str]) -> tuple[str, str] | None:
    """Whose setting this is, and its own id there; None: it is ours, or nobody's."""
    if config_id in OURS:
        return None
    before, mark, own = config_id.partition("_")
    for engine, prefix in prefixes(engines).items():
        if mark and own and before == prefix:
            return engine, own
    return (engines[0], config_id) if len(engines) == 1 else None


# Settings.


def _ours(joint: SharedSettings) -> list[v1.ConfigOption]:
    resume = _select(
        AUTO_RESUME,
        "Auto-resume",
        "Whether a new session goes on where the last one in its directory ended",
        "on" if joint.auto_resume else "off",
        [v1.SelectOption("on", "On"), v1.SelectOption("off", "Off")],
    )
    if len(joint.engines) < 2:
        return [resume]
    engines = [v1.SelectOption(name, title) for name, title in joint.engines.items()]
    all_titles = " and ".join(joint.engines.values())
    routes = [
        *(v1.SelectOption(name, title, f"{title} answers alone") for name, title in joint.engines.items()),
        v1.SelectOption(DUET, "Duet", f"{all_titles} answer"),
        v1.SelectOption(REVIEW, "Review", "The primary engine works, and another one says what is wrong"),
    ]
    findings = {"report": ("Report", "They are shown"), "fix": ("Fix", "They are handed back to the primary engine")}
    return [
        _select(ROUTE, "Route", "Who answers", joint.route, routes),
        _select(PRIMARY, "Primary", "Who leads in a duet and works in a review", joint.primary, engines),
        _select(
            REVIEW_OPTION,
            "Review",
            "What becomes of the reviewer's findings",
            joint.review,
            [v1.SelectOption(value, *findings[value]) for value in REVIEWS],
        ),
        resume,
    ]


def _select(
    id: str, name: str, description: str | None, value: str, options: Sequence[v1.SelectOption]
) -> v1.SelectConfig:
    return v1.SelectConfig(id=id, name=name, description=description, current_value=value, options=list(options))


def _rest(joint: SharedSettings, offer: EngineOffer) -> list[v1.ConfigOption]:
    """An engine's settings besides its mode, by ids and names that tell whose they are."""
    engines = list(joint.engines)
    shown: list[v1.ConfigOption] = []
    for option in offer.options:
        if not isinstance(option, v1.SelectConfig | v1.BooleanConfig):
            if len(engines) == 1:  # we could not give a setting of tomorrow another id
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


def _modes(joint: SharedSettings, answering: Sequence[EngineOffer]) -> v1.ModeState | None:
    """The modes that all who answer have, in the order of who leads; that one's alone if they have none in common."""
    states = [state for offer in answering if (state := _modes_of(offer)) is not None]
    if not states:
        return None
    lead = states[0]
    common = [
        mode
        for mode in lead.available_modes
        if all(mode.id in [each.id for each in state.available_modes] for state in states[1:])
    ] or list(lead.available_modes)
    current = joint.mode or lead.current_mode_id
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


def _own_mode(joint: SharedSettings, offer: EngineOffer, modes: v1.ModeState | None) -> list[v1.ConfigOption]:
    """A setting for the mode of one engine alone, where the joint one does not say it all: it is in another mode, or has more of them.

    It is of no category: clients take the one setting of the category `mode` for the session's.
    """
    theirs = _modes_of(offer)
    if theirs is None or modes is None or len(joint.engines) < 2:
        return []
    shared = {mode.id for mode in modes.available_modes}
    if theirs.current_mode_id == modes.current_mode_id and {mode.id for mode in theirs.available_modes} <= shared:
        return []
    setting = _mode_setting(offer)
    id = shown_id(offer.engine, setting.id if setting is not None else MODE, list(joint.engines))
    options = [v1.SelectOption(mode.id, mode.name, mode.description) for mode in theirs.available_modes]
    return [_select(id, f"{offer.title}: Mode", f"The mode of {offer.title} alone", theirs.current_mode_id, options)]


# Commands.


def commands_merged(
    ours: Sequence[v1.Command], per_engine: Mapping[str, Sequence[v1.Command]], answering: Sequence[str]
) -> list[v1.Command]:
    """Our commands, then those of the engines that answer, who leads first.

    One that who leads has is typed as it is. One that only another has, or that a word of ours hides, has its engine before it.
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
                continue  # who leads has it too: one word for both
            name = f"{engine}:{command.name}" if place or hidden else command.name
            if name not in taken:
                taken.add(name)
                listed.append(msgspec.structs.replace(command, name=name))
    return listed


# --- How a joint session stands: what the client may choose and what is chosen, put together from the engines' parts and our own choices


class JointSettings:
    """Of one session."""

    def __init__(self, joint: "JointSession") -> None:
        self._joint = joint
        self._commands: list[v1.Command] | None = None
        self._told: tuple[list[v1.ConfigOption], str | None, str | None] = ([], None, None)

    @property
    def titles(self) -> dict[str, str]:
        """What people call the engines."""
        cast = self._joint.cast
        return {name: cast.title(name) for name in cast.engines}

    def show(self) -> None:
        """Put together what the client may choose."""
        joint = self._joint
        names = joint.engines_of(joint.state.route)
        parts = joint.cast.parts
        ordered = [*names, *(each for each in parts if each not in names)]
        offers = [
            EngineOffer(name, parts[name].title, parts[name].modes, parts[name].models, parts[name].config_options)
            for name in ordered
            if name in parts
        ]
        shown = merged(self._chosen(), offers)
        outer = joint.outer
        outer.modes, outer.models, outer.config_options = shown.modes, shown.models, shown.options

    def _chosen(self) -> SharedSettings:
        joint, state = self._joint, self._joint.state
        return SharedSettings(
            self.titles, state.route, joint.primary, state.review, joint.auto_resume, state.mode or None
        )

    def known(self) -> None:
        """The client has been told how things stand, by the answer that opened the session."""
        self._told = self._now()

    def _now(self) -> tuple[list[v1.ConfigOption], str | None, str | None]:
        outer = self._joint.outer
        return (
            outer.settings.shown(outer.client.shows_booleans),
            None if outer.modes is None else outer.modes.current_mode_id,
            None if outer.models is None else outer.models.current_model_id,
        )

    def tell(self) -> Awaitable[None]:
        """Tell what has changed of it since the client last heard."""
        self.show()
        journal, before = self._joint.journal, self._told
        options, mode, model = self._told = self._now()
        told: Awaitable[None] = NO_WAIT
        if options != before[0]:
            told = journal.tell(v1.ConfigOptionUpdate(options))
        if mode is not None and mode != before[1]:
            told = journal.tell(v1.CurrentModeUpdate(mode))
        if model is not None and model != before[2] and self._joint.outer.client.chooses_models:
            told = journal.tell(v1.CurrentModelUpdate(model))
        return told

    def tell_commands(self) -> Awaitable[None]:
        """Say which slash commands there are."""
        joint = self._joint
        theirs = {name: part.offered for name, part in joint.cast.parts.items()}
        listed = commands_merged(offered(self.titles), theirs, joint.engines_of(joint.state.route))
        if listed == self._commands:
            return NO_WAIT
        self._commands = listed
        return joint.journal.tell(v1.AvailableCommandsUpdate(listed))


# --- What the user changes about a joint session: route, who leads, mode, models, whatever an engine has to choose from; and a fresh start


async def set_route(joint: "JointSession", route: str) -> None:
    """Let others answer from now on. They are opened while the user types."""
    joint.state.route, joint.state.routed = route, True
    await _changed(joint)


async def _changed(joint: "JointSession") -> None:
    await joint.open(joint.lead)
    await joint.standing.tell()
    await joint.standing.tell_commands()
    joint.prepare()
    await joint.save()


async def set_mode(joint: "JointSession", mode: str) -> None:
    """Another mode for all engines. Those that are open change at once, and the others when they are opened.

    Raises:
        RequestError: the engine that leads refuses.
    """
    lead = await joint.cast.part(joint.lead)
    if mode != _mode_of(lead):
        await joint.cast.set_mode(lead, mode)
    joint.state.mode = joint.guard.mode = mode
    for known in joint.state.engines.values():
        known.mode = ""
    for part in tuple(joint.cast.parts.values()):
        if part is lead or part.looking:  # who looks goes on looking; its next turn is in the new mode
            continue
        try:
            await joint.cast.align(part)
        except AcpError as error:  # it keeps its own, and that is shown among the settings
            await joint.saying.notice(f"{part.title} stays in its mode", told(error)[0])
    await joint.standing.tell()
    await joint.save()


def _mode_of(part: "InnerSession") -> str:
    return "" if part.modes is None else part.modes.current_mode_id


async def set_model(joint: "JointSession", model: str) -> None:
    """Another model of the engine that leads, in the way of older clients."""
    part = await joint.cast.part(joint.lead)
    await joint.cast.set_model(part, model)
    joint.state.of(part.name).options["model"] = model
    await joint.standing.tell()
    await joint.save()


async def set_option(joint: "JointSession", option: str, value: bool | str) -> None:
    """Another value of a setting: one of ours, or an engine's.

    Raises:
        RequestError: there is none, or the engine refuses.
    """
    if option == ROUTE:
        await set_route(joint, str(value))
    elif option == PRIMARY:
        joint.state.primary = str(value)
        await _changed(joint)
    elif option == REVIEW_OPTION:
        joint.state.review = str(value)
        await joint.save()
    elif option == AUTO_RESUME:
        joint.state.auto_resume = value in ("on", True)
        await joint.save()
    elif option == MODE:
        await set_mode(joint, str(value))
    else:
        await _set_of_engine(joint, option, value)


async def _set_of_engine(joint: "JointSession", option: str, value: bool | str) -> None:
    found = address(option, list(joint.cast.engines))
    if found is None:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"there is no setting `{option}`")
    name, own = found
    part = await joint.cast.part(name)
    if own == MODE:  # of this engine alone
        part.settings.check_mode(str(value))
        await joint.cast.set_mode(part, str(value))
        joint.state.of(name).mode = str(value)
    else:
        await joint.cast.set_option(part, own, value)
        joint.state.of(name).options[own] = str(value)
    await joint.standing.tell()
    await joint.save()


async def clear(joint: "JointSession") -> None:
    """Begin afresh. What was said stays in the list of sessions, under an id of its own; the client's session goes on, empty."""
    await put_away(joint)
    joint.prepare()


async def put_away(joint: "JointSession") -> None:
    """End what the engines do, and give what was said a session of its own."""
    await joint.save()
    await joint.stop_preparing()
    await joint.cast.drop()
    for known in joint.state.engines.values():
        known.conversation = known.source = ""
    await joint.journal.settled()
    if not joint.journal.empty:
        with suppress(NoSuchSession):  # somebody deleted it: all the fresher
            await joint.store.archive(joint.outer.id, os.urandom(16).hex(), joint.state.packed())
    joint.journal.restart()
    joint.saying.title = None
    with suppress(StoreError):  # what was allowed in the session that was
        await joint.guard.forget_session(joint.outer.id)
