"""Modes and config options: the current value is one of those offered, and so is a value that is set."""

from antiphon.traffic.checker import ALL_VERSIONS, Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in, shown, texts_in, twice_in
from antiphon.traffic.rules.capabilities import CARRY_OPTIONS, OPENING
from antiphon.traffic.state import SECOND, TrafficState, choices_of


def option_key(state: TrafficState) -> str:
    """The field with the id of an option."""
    return "configId" if state.speaks == SECOND else "id"


@rule(
    "mode.current",
    Side.AGENT,
    Level.MUST,
    "The current mode of a session is one of its modes.",
    link="session-modes#initial-state",
    fix="List the mode in `availableModes`, or name one that is listed.",
    on=[*(f"answer {method}" for method in OPENING), "update current_mode_update"],
)
def mode_current(entry: Entry, state: TrafficState) -> list[str] | None:
    modes = as_object(entry.params.get("update")) or as_object(as_object(entry.msg.get("result")).get("modes"))
    current = modes.get("currentModeId")
    offered = texts_in(modes.get("availableModes"), "id")
    if entry.method is not None:
        session = state.session(entry)
        if session is None or session.modes is None:
            return None
        offered = session.modes
    if not isinstance(current, str):
        return None
    return [] if current in offered else [f"{shown(current)} is not one of the modes ({', '.join(offered) or 'none'})"]


@rule(
    "mode.offered",
    Side.CLIENT,
    Level.MUST,
    "The client sets a mode that the session offers.",
    link="session-modes#setting-the-current-mode",
    fix="Send the `id` of one of `availableModes`.",
    on=["session/set_mode"],
)
def mode_offered(entry: Entry, state: TrafficState) -> list[str] | None:
    session, wanted = state.session(entry), entry.params.get("modeId")
    if session is None or session.opening is not None or not isinstance(wanted, str):
        return None
    offered = session.modes or []
    return [] if wanted in offered else [f"{shown(wanted)} is not one of the modes ({', '.join(offered) or 'none'})"]


@rule(
    "config.current",
    Side.AGENT,
    Level.MUST,
    "The current value of an option is one of its values, and each option has an id of its own.",
    link="session-config-options#initial-state",
    fix="List the value in `options`, or make one current that is listed.",
    on=CARRY_OPTIONS,
    link_v2="schema#sessionconfigselect",
    versions=ALL_VERSIONS,
)
def config_current(entry: Entry, state: TrafficState) -> list[str] | None:
    source = as_object(entry.params.get("update")) or as_object(entry.msg.get("result"))
    options = objects_in(source.get("configOptions"))
    if not options:
        return None
    key = option_key(state)
    found = [f"more than one option has the id {shown(id)}" for id in twice_in(texts_in(options, key))]
    for one in options:
        current = one.get("currentValue")
        if one.get("type") == "select" and isinstance(current, str) and current not in choices_of(one):
            found.append(f"{shown(current)} is not one of the values of the option {shown(one.get(key))}")
    return found


@rule(
    "config.offered",
    Side.CLIENT,
    Level.MUST,
    "The client sets an option that the session has, to a value that it offers.",
    link="session-config-options#from-the-client",
    fix="Send the id of one of `configOptions` and one of its values.",
    on=["session/set_config_option"],
    link_v2="schema#setsessionconfigoptionrequest",
    versions=ALL_VERSIONS,
)
def config_offered(entry: Entry, state: TrafficState) -> list[str] | None:
    session, wanted, value = state.session(entry), entry.params.get("configId"), entry.params.get("value")
    if session is None or session.opening is not None or not isinstance(wanted, str):
        return None
    option = (session.options or {}).get(wanted)
    if option is None:
        return [f"the session has no option {shown(wanted)}"]
    if option.get("type") == "boolean":
        return [] if isinstance(value, bool) else [f"{shown(value)} is not what a boolean option can be"]
    return (
        []
        if value in choices_of(option)
        else [f"{shown(value)} is not one of the values of the option {shown(wanted)}"]
    )


@rule(
    "config.complete",
    Side.AGENT,
    Level.MUST,
    "`session/set_config_option` is answered with all options of the session, not only with the one that was set.",
    link="session-config-options#from-the-client",
    fix="Answer with the whole list of `configOptions`, each with its current value.",
    on=["answer session/set_config_option"],
    link_v2="schema#setsessionconfigoptionresponse",
    versions=ALL_VERSIONS,
)
def config_complete(entry: Entry, state: TrafficState) -> list[str] | None:
    """Options may go when another is set, so a shorter list is no proof; one that has only what was set is."""
    session = state.session(state.request)
    result = entry.msg.get("result")
    if session is None or session.options is None or state.request is None or not isinstance(result, dict):
        return None
    listed: set[object] = set(texts_in(result.get("configOptions"), option_key(state)))
    was_set = state.request.params.get("configId")
    if was_set in session.options and was_set not in listed:
        return [f"the option {shown(was_set)}, which was set, is not in the answer"]
    if len(session.options) > 1 and listed == {was_set}:
        return [f"the answer has only the option {shown(was_set)}, and the session has {len(session.options)}"]
    return []
