"""Terminals in other words."""

from typing import Final

from antiphon.protocol.dialects.rule import Fields, Rule, is_null, named_values, packed, renamed
from antiphon.protocol.dialects.sources import OPENCODE

__all__ = ["TERMINAL_RULES"]


def _variables(fields: Fields) -> Fields | None:
    listed = named_values(fields.get("env"))
    return None if listed is None else {**fields, "env": listed}


def _flat_exit(fields: Fields) -> Fields | None:
    """`{output, exitCode?, signal?}`: the end stands beside the output, and nothing says what was cut off."""
    if "truncated" in fields or "output" not in fields:
        return None
    rest = {key: value for key, value in fields.items() if key not in ("exitCode", "signal")}
    status = {key: fields[key] for key in ("exitCode", "signal") if not is_null(fields.get(key))}
    if status and "exitStatus" not in fields:
        rest["exitStatus"] = packed(status)
    return {**rest, "truncated": packed(False)}


TERMINAL_RULES: Final = (
    Rule("variables as a map", OPENCODE, "terminal/create", "params", _variables),
    Rule(
        "outputBytesLimit", OPENCODE, "terminal/create", "params", renamed("outputBytesLimit", "outputByteLimit"),
        hints=(b'"outputBytesLimit"',),
    ),
    Rule("flat exit status", OPENCODE, "terminal/output", "result", _flat_exit),
)  # fmt: skip
