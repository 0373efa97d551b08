"""Every message is what the schema says."""

from antiphon.traffic.entries import Entry
from antiphon.traffic.judging import Level, Side, rule
from antiphon.traffic.ledger import Ledger
from antiphon.traffic.schema import Look, look, methods


@rule(
    "schema.params",
    Side.BOTH,
    Level.MUST,
    "The params of every request and notification are what the schema says.",
    link="schema",
    fix="Send each field that is required, with the type that the schema gives it.",
)
def params(entry: Entry, ledger: Ledger) -> list[str] | None:
    method = methods().get((entry.method or "", entry.is_request))
    if method is None or entry.method == "session/update":
        return None
    return _told(look(method.params, entry.msg.get("params", {}), "params"))


def _told(seen: Look) -> list[str]:
    return [f"`{fault.path}` {fault.text}" for fault in seen.faults]
