"""Tool calls are announced, told about and finished."""

from antiphon.traffic.entries import Entry
from antiphon.traffic.judging import Level, Side, rule
from antiphon.traffic.ledger import Ledger
from antiphon.traffic.values import as_object, as_text, shown


@rule(
    "call.announced",
    Side.AGENT,
    Level.SHOULD,
    "A tool call is announced by `tool_call` before anything else is said about it.",
    link="tool-calls#creating",
    fix="Send `tool_call` first, then ask for permission and send `tool_call_update`.",
    on=["update tool_call_update", "session/request_permission"],
)
def announced(entry: Entry, ledger: Ledger) -> list[str] | None:
    session = ledger.session(entry)
    named = entry.params.get("update" if entry.method == "session/update" else "toolCall")
    id = as_text(as_object(named).get("toolCallId"))
    if session is None or id is None:
        return None
    if id in session.calls:
        return [] if session.calls[id].announced else None  # it was told when it was named first
    what = "`tool_call_update`" if entry.method == "session/update" else "a question for permission"
    return [f"{what} names the tool call {shown(id)}, which no `tool_call` has announced"]


@rule(
    "call.once",
    Side.AGENT,
    Level.ADVICE,
    "A tool call is announced once; what changes comes as `tool_call_update`.",
    link="tool-calls#updating",
    fix="Send `tool_call_update` for a tool call that is known already.",
    on=["update tool_call"],
)
def once(entry: Entry, ledger: Ledger) -> list[str] | None:
    session = ledger.session(entry)
    id = as_text(as_object(entry.params.get("update")).get("toolCallId"))
    if session is None or id is None:
        return None
    known = session.calls.get(id)
    if known is None or known.turn != session.number or not known.announced:
        return []
    return [f"`tool_call` announces {shown(id)} a second time in this turn"]


@rule(
    "call.ends",
    Side.AGENT,
    Level.SHOULD,
    "When a turn ends, its tool calls have ended: completed or failed.",
    link="tool-calls#status",
    fix="Send a last `tool_call_update` with `completed` or `failed` before `session/prompt` is answered.",
    on=["answer session/prompt"],
)
def ends(entry: Entry, ledger: Ledger) -> list[str] | None:
    """Not where the turn was cancelled or failed: then the client marks what was left, as the specification says."""
    session = ledger.session(ledger.asked)
    turn = session.turn_of(ledger.asked) if session is not None else None
    reason = as_object(entry.msg.get("result")).get("stopReason")
    if session is None or turn is None or len(session.turns) > 1 or reason in (None, "cancelled"):
        return None
    if not session.current:
        return None
    return [
        f"the tool call {shown(id)} is still {call.status}"
        for id, call in session.current.items()
        if call.status in ("pending", "in_progress")
    ]
