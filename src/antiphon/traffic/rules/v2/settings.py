"""Commands and the values of options have names of their own."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in, shown, texts_in, twice_in
from antiphon.traffic.rules.v2.capabilities import OPENING
from antiphon.traffic.state import SECOND, TrafficState, choices_of

ANSWERS = tuple(f"answer {method}" for method in OPENING)


@rule(
    "command.names",
    Side.AGENT,
    Level.MUST,
    "The names of commands are unique and have no blanks.",
    link="schema#command",
    fix="Give each command a name of its own, such as `create-plan`.",
    on=[*ANSWERS, "update available_commands_update"],
    versions=(SECOND,),
)
def command_names(entry: Entry, state: TrafficState) -> list[str] | None:
    source = as_object(entry.params.get("update")) or as_object(entry.msg.get("result"))
    names = texts_in(source.get("availableCommands"), "name")
    if not names:
        return None
    found = [f"more than one command has the name {shown(name)}" for name in twice_in(names)]
    return found + [f"the name {shown(name)} has a blank" for name in names if name.split() != [name]]


@rule(
    "config.values",
    Side.AGENT,
    Level.MUST,
    "The values of an option are unique, across its groups too.",
    link="schema#sessionconfigselect",
    fix="Give each choice of an option a value of its own.",
    on=[*ANSWERS, "answer session/set_config_option", "update config_option_update"],
    versions=(SECOND,),
)
def config_values(entry: Entry, state: TrafficState) -> list[str] | None:
    source = as_object(entry.params.get("update")) or as_object(entry.msg.get("result"))
    options = [one for one in objects_in(source.get("configOptions")) if one.get("type") == "select"]
    if not options:
        return None
    return [
        f"the option {shown(one.get('configId'))} has the value {shown(value)} more than once"
        for one in options
        for value in twice_in(choices_of(one))
    ]
