"""What the engines of a session offer, made into one offer for the client, and the way back from an id to who has that setting. Pure.

Our own settings come first, then one mode for all engines of the route, then whatever else each engine has, with its name before it.
A session over one engine has the engine's own ids and names.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from antiphon.config.shapes import REVIEWS
from antiphon.duet.naming import prefixes
from antiphon.duet.wishes import DUET, JOINT_ROUTES, REVIEW
from antiphon.engines.project import TRUST
from antiphon.protocol import v1

__all__ = [
    "AUTO_RESUME",
    "MODE",
    "OURS",
    "PRIMARY",
    "REVIEW_OPTION",
    "ROUTE",
    "EngineOffer",
    "SharedSettings",
    "ShownSettings",
    "address",
    "commands_merged",
    "merged",
    "on_route",
    "shown_id",
]  # fmt: skip

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
