"""Sessions in other words: how they are opened, what they offer, how they are prompted.

The OpenCode dialect asks for a model and a mode when it opens a session, may load one without a directory, and lists
the modes flat. Whoever asks that way is answered that way.
"""

from collections.abc import Iterator
from typing import Final

from antiphon.protocol.dialects.hints import OWN_DIRECTORY
from antiphon.protocol.dialects.rule import (
    Answer,
    Change,
    Fields,
    Rule,
    each,
    fields_of,
    inside,
    is_null,
    items_of,
    packed,
    renamed,
    text_of,
    with_meta,
)
from antiphon.protocol.dialects.sources import BANJO_NOTES, BANJO_WIRE, OPENCODE

__all__ = ["SESSION_RULES"]


def _model_and_mode(fields: Fields) -> Fields | None:
    """Nothing to change: the types have both as legacy fields. What counts is that the answer follows."""
    model = fields_of(fields.get("model")) or {}
    asked = text_of(fields.get("modeId")) is not None or text_of(model.get("providerID")) is not None
    return fields if asked else None


def _without_cwd(fields: Fields) -> Fields | None:
    """The directory is the one that the session had, which only the agent knows. An empty one that was sent stays an error."""
    return with_meta({**fields, "cwd": packed("")}, OWN_DIRECTORY, True) if is_null(fields.get("cwd")) else None


def _with_flat_modes(question: Fields, answer: bytes) -> bytes:
    """`modes` as a list with `currentModeId` beside it, and always a `sessionId`."""
    fields = fields_of(answer)
    if fields is None:
        return answer
    if "sessionId" not in fields and "sessionId" in question:
        fields = {"sessionId": question["sessionId"], **fields}
    modes = fields_of(fields.get("modes"))
    if modes is not None:
        offered, current = modes.get("availableModes", packed([])), modes.get("currentModeId", packed(""))
        fields = {**fields, "modes": offered, "currentModeId": current}
    return bytes(packed(fields))


def _flat_modes(fields: Fields) -> Fields | None:
    """Without a `currentModeId` the current mode is not known, and its id is empty."""
    modes = items_of(fields.get("modes"))
    if modes is None:
        return None
    current = text_of(fields.get("currentModeId")) or ""
    rest = {key: value for key, value in fields.items() if key != "currentModeId"}
    return {**rest, "modes": packed({"availableModes": modes, "currentModeId": current})}


def _prompt(fields: Fields) -> Fields | None:
    is_list = items_of(fields.get("content")) is not None
    return renamed("content", "prompt")(fields) if is_list else None


def _empty(key: str) -> Change:
    """An answer without the list that it is about."""
    return lambda fields: {**fields, key: packed([])} if key not in fields else None


def _opening() -> Iterator[Rule]:
    answer: Answer | None
    yield Rule(
        "session with model or mode", OPENCODE, "session/new", "params", _model_and_mode,
        hints=(b'"modeId"', b'"providerID"'), answer=_with_flat_modes,
    )  # fmt: skip
    for method, source, answer in (
        ("session/load", OPENCODE, _with_flat_modes),
        ("session/resume", BANJO_NOTES, None),
    ):
        yield Rule("session without cwd", source, method, "params", _without_cwd, answer=answer)
    models_by_id = inside("models", each("availableModels", renamed("id", "modelId")))
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        yield Rule("modes as a list", OPENCODE, method, "result", _flat_modes)
        yield Rule("models by id", BANJO_WIRE, method, "result", models_by_id)


_PYTHON_SDK: Final = "Python SDK 0.12.1 and 1.0.0rc3, example agents"

SESSION_RULES: Final = (
    *_opening(),
    Rule("mode for modeId", BANJO_NOTES, "session/set_mode", "params", renamed("mode", "modeId")),
    Rule("content for prompt", OPENCODE, "session/prompt", "params", _prompt),
    Rule("no sessions", _PYTHON_SDK, "session/list", "result", _empty("sessions"), null=b'{"sessions":[]}'),
    Rule(
        "no settings",
        _PYTHON_SDK,
        "session/set_config_option",
        "result",
        _empty("configOptions"),
        null=b'{"configOptions":[]}',
    ),
)
