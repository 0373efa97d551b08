"""Permission requests offer at least one option, and are given up with the work that asks."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, as_text
from antiphon.traffic.rules.permission import choice
from antiphon.traffic.rules.v2.sessions import live
from antiphon.traffic.state import SECOND, TrafficState
from antiphon.traffic.state_v2 import WorkItem

rule(
    "permission.choice",
    Side.AGENT,
    Level.MUST,
    "A permission request has at least one option.",
    link="schema#requestpermissionrequest",
    fix="Offer what the user can choose from.",
    on=["session/request_permission"],
    versions=(SECOND,),
)(choice)


@rule(
    "cancel.permission",
    Side.CLIENT,
    Level.MUST,
    "A client that cancels the work answers its open permission requests with `cancelled`.",
    link="schema#requestpermissionoutcome",
    fix="After `session/cancel`, answer every open `session/request_permission` with the outcome `cancelled`.",
    on=["answer session/request_permission"],
    versions=(SECOND,),
)
def after_cancel(entry: Entry, state: TrafficState) -> list[str] | None:
    """What asks for something in the background is not covered by a cancellation."""
    session, asked = live(state, state.request), state.request
    if session is None or asked is None or session.last_cancel < asked.number:
        return None
    subject = as_object(asked.params.get("subject"))
    call = as_text(as_object(subject.get("toolCall")).get("toolCallId")) or as_text(subject.get("toolCallId"))
    if call is not None and WorkItem("tool_call", call) in (session.background or ()):
        return None
    outcome = as_object(as_object(entry.msg.get("result")).get("outcome")).get("outcome")
    if outcome == "selected":
        return [f"the work was cancelled in message {session.last_cancel}, and yet an option was selected"]
    return [] if outcome == "cancelled" else None
