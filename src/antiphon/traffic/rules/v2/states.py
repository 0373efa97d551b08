"""The session says what it does: `running`, `requires_action` when only the user can go on, and `idle` with the reason why it stopped."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, JsonObject, as_object, shown
from antiphon.traffic.rules.v2.sessions import live
from antiphon.traffic.state import CROSSING_SECONDS, SECOND, TrafficState
from antiphon.traffic.state_v2 import FINAL, StateSession, WorkItem, background_in

STATE = ["update state_update"]


def _idle(entry: Entry, state: TrafficState) -> tuple[StateSession, JsonObject] | None:
    """The session and the update, where work ends here."""
    session, update = live(state, entry), as_object(entry.params.get("update"))
    if session is None or update.get("state") != "idle" or session.opening is not None:
        return None
    return session, update


@rule(
    "state.running",
    Side.AGENT,
    Level.MUST,
    "The session says that it is running when it begins to work, and `idle` only after that.",
    link="schema#stateupdate",
    fix="Send a `state_update` with `running` when the work on a prompt begins.",
    on=STATE,
    versions=(SECOND,),
)
def running(entry: Entry, state: TrafficState) -> list[str] | None:
    session = live(state, entry)
    if session is None or session.opening is not None:
        return None
    is_idle = as_object(entry.params.get("update")).get("state") == "idle"
    return ["`idle` came after a prompt and without `running`"] if is_idle and session.fresh else []


@rule(
    "state.stop-reason",
    Side.AGENT,
    Level.SHOULD,
    "The `idle` that ends work says why it stopped.",
    link="schema#idlestateupdate",
    fix="Send `stopReason` with `idle`.",
    on=STATE,
    versions=(SECOND,),
)
def stop_reason(entry: Entry, state: TrafficState) -> list[str] | None:
    found = _idle(entry, state)
    if found is None or not found[0].worked:
        return None
    return [] if found[1].get("stopReason") is not None else ["`idle` ends the work without a `stopReason`"]


@rule(
    "state.error",
    Side.AGENT,
    Level.SHOULD,
    "The stop reason `error` comes with the error.",
    link="schema#idlestateupdate",
    fix='Send `error` beside it: `{"code": -32603, "message": "what happened"}`.',
    on=STATE,
    versions=(SECOND,),
)
def error(entry: Entry, state: TrafficState) -> list[str] | None:
    found = _idle(entry, state)
    if found is None or found[1].get("stopReason") != "error":
        return None
    return [] if isinstance(found[1].get("error"), dict) else ["`idle` has the stop reason `error` and no `error`"]


@rule(
    "cancel.stop-reason",
    Side.AGENT,
    Level.MUST,
    "Work that was cancelled ends with the stop reason `cancelled`, also where stopping it raises an error.",
    link="schema#idlestateupdate",
    fix="Catch what the cancellation throws in the agent, and send `idle` with `cancelled`.",
    on=STATE,
    versions=(SECOND,),
)
def cancelled(entry: Entry, state: TrafficState) -> list[str] | None:
    """Judged only where the agent must have read the cancellation: it answered a later request, or the end came too late to cross it."""
    found = _idle(entry, state)
    cancel = found[0].cancel if found is not None else None
    if found is None or cancel is None:
        return None
    session, update = found
    reason = update.get("stopReason")
    if reason == "cancelled":
        return []
    if any(one.sent.number > cancel.number for one in session.prompts) or any(
        answer.number > cancel.number for answer in session.inserted.values()
    ):
        return None  # a prompt that came later is not covered, and may be what ends here
    if not session.noticed and entry.t - cancel.t < CROSSING_SECONDS:
        return None
    return [f"the work was cancelled in message {cancel.number} and ended with {shown(reason)}"]


@rule(
    "cancel.unasked",
    Side.AGENT,
    Level.ADVICE,
    "The stop reason `cancelled` is for work that the client has cancelled.",
    link="schema#idlestateupdate",
    fix="End work with `end_turn` where the user has rejected something, and with `refusal` where the agent will not go on.",
    on=STATE,
    versions=(SECOND,),
)
def not_cancelled(entry: Entry, state: TrafficState) -> list[str] | None:
    found = _idle(entry, state)
    if found is None or found[1].get("stopReason") != "cancelled" or not found[0].worked:
        return None
    session = found[0]
    asked = session.cancel is not None or session.closing is not None or session.last_cancel
    return [] if asked else ["the client has not cancelled this work"]


@rule(
    "state.background",
    Side.AGENT,
    Level.MUST,
    "Background work is listed whole in every `state_update` once it was listed; each item once, announced before and ended when it goes.",
    link="schema#backgroundwork",
    fix="Send `background` with each state, an empty list for none; announce an item before and end it before it is removed.",
    on=STATE,
    versions=(SECOND,),
)
def background(entry: Entry, state: TrafficState) -> list[str] | None:
    session, update = live(state, entry), as_object(entry.params.get("update"))
    if session is None:
        return None
    listed = update.get("background")
    if not isinstance(listed, list):
        return None if session.background is None else ["`background` was sent before and is missing"]
    now = background_in(listed)
    found = [f"{_named(one)} is listed and was not announced" for one in now if not session.is_known(one)]
    found += [f"{_named(one)} is listed more than once" for one in sorted(set(now)) if now.count(one) > 1]
    gone = [one for one in session.background or () if one not in now and not session.has_ended(one)]
    return found + [f"{_named(one)} is not listed any more and has not ended" for one in sorted(gone)]


def _named(item: WorkItem) -> str:
    return f"the {item.type.replace('_', ' ')} {shown(item.id)}"


@rule(
    "call.ends",
    Side.AGENT,
    Level.ADVICE,
    "When the work is over, its tool calls have ended, but for those that are listed as background work.",
    link="schema#toolcallstatus",
    fix="Send a last `tool_call_update` with `completed`, `failed` or `cancelled` before `idle`.",
    on=STATE,
    versions=(SECOND,),
)
def ends(entry: Entry, state: TrafficState) -> list[str] | None:
    found = _idle(entry, state)
    if found is None or found[1].get("stopReason") in (None, "cancelled", "error") or not found[0].items:
        return None
    session, update = found
    listed = {one.id for one in background_in(update.get("background"))}
    left = [(id, call) for id, call in session.items.items() if call.status not in FINAL and id not in listed]
    return [
        f"the tool call {shown(id)} is still {call.status}"
        for id, call in left
        if state.first_time("call.ends", session.id, id)
    ]
