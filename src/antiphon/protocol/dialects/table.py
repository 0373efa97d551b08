"""The table of dialect rules, and how it is applied."""

import msgspec

from antiphon.protocol.dialects.hints import Half, Reply
from antiphon.protocol.dialects.rule import Fields, Rule, fields_of

__all__ = ["RULES", "repair"]

RULES: tuple[Rule, ...] = ()


def repair(method: str, half: Half, raw: bytes) -> tuple[bytes, tuple[str, ...], Reply | None]:
    """The message in the schema's words, the names of the rules used, and how to answer in the dialect."""
    fields: Fields | None = fields_of(raw)
    if fields is None:
        return raw, (), None
    used: list[str] = []
    reply: Reply | None = None
    for rule in RULES:
        if rule.method == method and rule.half == half and (changed := rule.apply(fields)) is not None:
            fields = changed
            used.append(rule.name)
            reply = rule.reply or reply
    return (msgspec.json.encode(fields), tuple(used), reply) if used else (raw, (), None)
