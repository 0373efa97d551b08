"""Terminals belong to the client: the agent requests them, uses those it was given and releases them."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in, shown
from antiphon.traffic.rules.capabilities import TERMINAL_METHODS
from antiphon.traffic.state import TrafficState

REQUEST_CANCELLED = -32800


@rule(
    "terminal.known",
    Side.AGENT,
    Level.SHOULD,
    "A terminal that the agent names is one that the client has created for it.",
    link="terminals#embedding-in-tool-calls",
    fix="Send the `terminalId` of an answer to `terminal/create`; output of the agent's own processes is text.",
    on=[*TERMINAL_METHODS[1:], "update tool_call", "update tool_call_update", "session/request_permission"],
)
def known(entry: Entry, state: TrafficState) -> list[str] | None:
    call = as_object(entry.params.get("update")) or as_object(entry.params.get("toolCall"))
    named = [one.get("terminalId") for one in objects_in(call.get("content")) if one.get("type") == "terminal"]
    if (entry.method or "").startswith("terminal/"):
        named = [entry.params.get("terminalId")]
    ids = [id for id in named if isinstance(id, str)]
    if not ids:
        return None
    if entry.method != "session/update" and ids[0] in state.released:
        return [f"`{entry.method}` names the terminal {shown(ids[0])}, which was released"]
    return [
        f"the terminal {shown(id)} was not made by `terminal/create`"
        for id in ids
        if id not in state.terminals and id not in state.released and state.first_time("terminal.known", id)
    ]


@rule(
    "terminal.released",
    Side.AGENT,
    Level.ADVICE,
    "When a turn ends, the terminals of its session are released.",
    link="terminals#releasing-terminals",
    fix="Call `terminal/release` for every terminal that is not needed any more, also after an error.",
    on=["answer session/prompt"],
)
def released(entry: Entry, state: TrafficState) -> list[str] | None:
    session = state.session(state.request)
    if session is None or not (state.terminals or state.released) or len(session.turns) > 1:
        return None
    stopped = as_object(entry.msg.get("result")).get("stopReason")
    refused = as_object(entry.msg.get("error")).get("code")
    cancelled = any(turn.prompt is state.request and turn.cancelled is not None for turn in session.turns)
    if cancelled or stopped == "cancelled" or refused == REQUEST_CANCELLED:  # what it leaves may take a moment longer
        return None
    return [
        f"the terminal {shown(id)} is not released"
        for id, owner in state.terminals.items()
        if owner == session.id and state.first_time("terminal.released", id)
    ]
