"""Content, settings and commands: what has no state, in both directions."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypedDict

import msgspec

from antiphon.protocol import v1, v2
from antiphon.protocol.base import JsonObject, Unknown, encode

__all__ = [
    "MODELS_OPTION",
    "MODES_OPTION",
    "block_to_v1",
    "block_to_v2",
    "commands_to_v1",
    "commands_to_v2",
    "mode_option",
    "models_to_option",
    "modes_of",
    "modes_to_option",
    "option_to_v1",
    "option_to_v2",
    "with_value",
]  # fmt: skip

Report = Callable[[str, str], None]
"""Takes what was lost, and the reason."""

MODES_OPTION: Final = "mode"
"""The id of the option that stands for the modes of version 1."""
MODELS_OPTION: Final = "model"
"""The id of the option that stands for the models of version 1."""


# Content blocks. Most are the same class in both versions.


def block_to_v1(block: v2.ContentBlock, report: Report) -> v1.ContentBlock:
    """Return a block of version 2 for a client or an agent of version 1, whose blocks are a closed list."""
    if isinstance(block, v2.ResourceLink):
        if block.icons:
            report("resource_link", "icons have no place in version 1")
        return v1.ResourceLink(
            name=block.name,
            uri=block.uri,
            title=block.title,
            description=block.description,
            mime_type=block.mime_type,
            size=block.size,
            annotations=block.annotations,
            meta=block.meta,
        )
    if isinstance(block, Unknown):
        report("content", f"version 1 has no block `{block.kind}`")
        return v1.TextBlock(text=f"[{block.kind}]")
    return block


def block_to_v2(block: v1.ContentBlock) -> v2.ContentBlock:
    """Return a block of version 1 in version 2."""
    if isinstance(block, v1.ResourceLink):
        return v2.ResourceLink(
            name=block.name,
            uri=block.uri,
            title=block.title,
            description=block.description,
            mime_type=block.mime_type,
            size=block.size if block.size is None or block.size >= 0 else None,
            annotations=block.annotations,
            meta=block.meta,
        )
    return own_name(block)


def own_name(value: "v1.ContentBlock") -> "v2.ContentBlock":
    """Return an unknown block under a name that version 2 leaves to implementers: others belong to its future versions."""
    if not isinstance(value, Unknown) or value.kind.startswith("_"):
        return value  # type: ignore[return-value]  # the other classes are in both unions
    fields = {**value.fields, "type": f"_{value.kind}"}
    return Unknown(f"_{value.kind}", encode(fields))


# Options, modes and models.


class _OptionFields(TypedDict):
    name: str
    description: str | None
    category: v1.ConfigCategory | None
    meta: JsonObject | None


def _fields_of(option: v1.SelectConfig | v1.BooleanConfig | v2.SelectConfig | v2.BooleanConfig) -> _OptionFields:
    """Return the fields that every option has in both versions."""
    return {
        "name": option.name,
        "description": option.description,
        "category": option.category,
        "meta": option.meta,
    }


def option_to_v1(option: v2.ConfigOption, report: Report) -> v1.ConfigOption | None:
    """Return an option of version 2 in version 1; None if it has no form there."""
    if isinstance(option, v2.SelectConfig):
        entries: list[v1.SelectEntry] = [
            v1.SelectGroup(group=entry.group_id, name=entry.name, options=entry.options, meta=entry.meta)
            if isinstance(entry, v2.SelectGroup)
            else entry
            for entry in option.options
        ]
        return v1.SelectConfig(
            id=option.config_id, current_value=option.current_value, options=entries, **_fields_of(option)
        )
    if isinstance(option, v2.BooleanConfig):
        return v1.BooleanConfig(id=option.config_id, current_value=option.current_value, **_fields_of(option))
    report("config option", f"version 1 has no option of type `{option.kind}`")
    return None


def option_to_v2(option: v1.ConfigOption) -> v2.ConfigOption:
    """Return an option of version 1 in version 2."""
    if isinstance(option, v1.SelectConfig):
        entries: list[v2.SelectEntry] = [
            v2.SelectGroup(group_id=entry.group, name=entry.name, options=entry.options, meta=entry.meta)
            if isinstance(entry, v1.SelectGroup)
            else entry
            for entry in option.options
        ]
        return v2.SelectConfig(
            config_id=option.id, current_value=option.current_value, options=entries, **_fields_of(option)
        )
    if isinstance(option, v1.BooleanConfig):
        return v2.BooleanConfig(config_id=option.id, current_value=option.current_value, **_fields_of(option))
    return option


def mode_option(options: Sequence[v2.ConfigOption]) -> v2.SelectConfig | None:
    """Return the first option that is a choice of modes."""
    for option in options:
        if isinstance(option, v2.SelectConfig) and option.category is v2.ConfigCategory.MODE:
            return option
    return None


def modes_of(option: v2.SelectConfig) -> v1.ModeState:
    """Return a choice of modes as version 1 offers modes."""
    values: list[v1.SelectOption] = []
    for entry in option.options:
        values += entry.options if isinstance(entry, v2.SelectGroup) else [entry]
    modes = [v1.Mode(id=value.value, name=value.name, description=value.description) for value in values]
    return v1.ModeState(current_mode_id=option.current_value, available_modes=modes)


def modes_to_option(modes: v1.ModeState) -> v2.SelectConfig:
    """Return the modes of version 1 as an option."""
    return v2.SelectConfig(
        config_id=MODES_OPTION,
        name="Mode",
        category=v2.ConfigCategory.MODE,
        current_value=modes.current_mode_id,
        options=[v2.SelectOption(value=m.id, name=m.name, description=m.description) for m in modes.available_modes],
    )


def models_to_option(models: v1.ModelState) -> v2.SelectConfig:
    """Return the models of older agents as an option."""
    return v2.SelectConfig(
        config_id=MODELS_OPTION,
        name="Model",
        category=v2.ConfigCategory.MODEL,
        current_value=models.current_model_id,
        options=[
            v2.SelectOption(value=m.model_id, name=m.name, description=m.description) for m in models.available_models
        ],
    )


def with_value(options: Sequence[v2.ConfigOption], config_id: str, value: "str | bool") -> "list[v2.ConfigOption]":
    """Return the options with another current value of one of them."""
    return [
        msgspec.structs.replace(option, current_value=value)
        if not isinstance(option, Unknown) and option.config_id == config_id
        else option
        for option in options
    ]


# Commands.


def commands_to_v1(commands: Iterable[v2.AvailableCommand], report: Report) -> list[v1.Command]:
    """Return the commands on offer in version 1."""
    found: list[v1.Command] = []
    for command in commands:
        if isinstance(command, Unknown):
            report("available_commands_update", f"version 1 has no command of type `{command.kind}`")
            continue
        given = command.input
        if isinstance(given, Unknown):
            report("available_commands_update", f"version 1 has no input of type `{given.kind}`")
            given = None
        hint = None if given is None else v1.CommandInput(hint=given.hint, meta=given.meta)
        found.append(v1.Command(name=command.name, description=command.description, input=hint, meta=command.meta))
    return found


def commands_to_v2(commands: Iterable[v1.Command]) -> "list[v2.AvailableCommand]":
    """Return the commands on offer in version 2."""
    return [
        v2.Command(
            name=command.name,
            description=command.description,
            input=None
            if command.input is None
            else v2.TextCommandInput(hint=command.input.hint, meta=command.input.meta),
            meta=command.meta,
        )
        for command in commands
    ]


def kind_of(value: object) -> str:
    """Return the word that a member of a union is known by."""
    if isinstance(value, Unknown):
        return value.kind
    return str(type(value).__struct_config__.tag) if isinstance(value, msgspec.Struct) else type(value).__name__
