"""The table of dialect rules, and how it is applied."""

from functools import partial
from typing import Final

import msgspec

from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.v1.dialects.content import CONTENT_RULES
from antiphon.protocol.v1.dialects.hints import Half, Reply
from antiphon.protocol.v1.dialects.initialize import INITIALIZE_RULES
from antiphon.protocol.v1.dialects.rule import OPENCODE, Answer, Fields, Rule, fields_of, forget_parts, is_null
from antiphon.protocol.v1.dialects.session import MCP_RULES, SESSION_RULES
from antiphon.protocol.v1.dialects.tool_calls import PERMISSION_RULES, TERMINAL_RULES, TOOL_CALL_RULES
from antiphon.protocol.v1.dialects.updates import UPDATE_RULES

__all__ = ["NOTHING_RULES", "NULL_IS_ENOUGH", "RULES", "repair"]

# Empty results: `null` where the schema has an object without required fields.

NULL_IS_ENOUGH: Final = (
    "authenticate", "fs/write_text_file", "logout", "providers/disable", "providers/set", "session/archive",
    "session/close", "session/delete", "session/load", "session/resume", "session/set_mode", "session/set_model",
    "session/unarchive", "terminal/kill", "terminal/release", "terminal/wait_for_exit",
)  # fmt: skip
"""Calls whose answer may be empty. Not `mcp/message`: there, saying neither result nor error is a mistake."""


def _no_change(fields: Fields) -> Fields | None:
    """An object is left as it is."""
    return None


NOTHING_RULES: Final = tuple(
    Rule("null for an empty answer", OPENCODE, method, "result", _no_change, null=b"{}") for method in NULL_IS_ENOUGH
)


RULES: Final[tuple[Rule, ...]] = (
    # The order counts within a method: from the outside in, so that a rule finds things where the schema has them.
    *INITIALIZE_RULES,
    *SESSION_RULES,
    *MCP_RULES,
    *UPDATE_RULES,
    *PERMISSION_RULES,
    *TOOL_CALL_RULES,
    *CONTENT_RULES,
    *TERMINAL_RULES,
    *NOTHING_RULES,
)


def _by_place() -> dict[tuple[str, Half], tuple[Rule, ...]]:
    places: dict[tuple[str, Half], tuple[Rule, ...]] = {}
    for rule in RULES:
        places[rule.method, rule.half] = (*places.get((rule.method, rule.half), ()), rule)
    return places


_PLACES: Final = _by_place()


def repair(method: str, half: Half, raw: bytes) -> tuple[bytes, tuple[str, ...], Reply | None]:
    """The message in the schema's words, the names of the rules used, and how to answer in the dialect.

    Never raises: what no rule understands comes back as it was.
    """
    rules = _PLACES.get((method, half), ())
    try:
        question = _opened(raw.strip())
        if question is None:
            return _instead_of_null(rules, raw)
        fields, used = _applied(rules, question)
    finally:
        forget_parts()
    if not used:
        return raw, (), None
    answers = tuple(rule.answer for rule in used if rule.answer is not None)
    reply = partial(_reply, answers, question) if answers else None
    return msgspec.json.encode(fields), tuple(rule.name for rule in used), reply


def _instead_of_null(rules: tuple[Rule, ...], raw: bytes) -> tuple[bytes, tuple[str, ...], None]:
    for rule in rules:
        if rule.null is not None and is_null(raw.strip()):
            return rule.null, (rule.name,), None
    return raw, (), None


def _opened(raw: bytes) -> Fields | None:
    try:
        return fields_of(raw)
    except BAD_INPUT:
        return None


def _applied(rules: tuple[Rule, ...], fields: Fields) -> tuple[Fields, list[Rule]]:
    used: list[Rule] = []
    for rule in rules:
        try:
            changed = rule.apply(fields)
        except BAD_INPUT:  # a part that cannot be opened belongs to no dialect
            continue
        if changed is not None:
            fields = changed
            used.append(rule)
    return fields, used


def _reply(answers: tuple[Answer, ...], question: Fields, answer: bytes) -> bytes:
    try:
        for say in answers:
            answer = say(question, answer)
    finally:
        forget_parts()
    return answer
