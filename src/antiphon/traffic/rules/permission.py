"""Permission requests offer options, and their response names one of these."""

from antiphon.traffic.checker import ALL_VERSIONS, Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in, shown, texts_in, twice_in
from antiphon.traffic.state import TrafficState


@rule(
    "permission.options",
    Side.AGENT,
    Level.MUST,
    "Each option of a permission request has an id of its own.",
    link="tool-calls#requesting-permission",
    fix="Give each option another `optionId`: the response identifies an option by it alone.",
    on=["session/request_permission"],
    link_v2="schema#permissionoption",
    versions=ALL_VERSIONS,
)
def options(entry: Entry, state: TrafficState) -> list[str] | None:
    offered = texts_in(entry.params.get("options"), "optionId")
    return [f"more than one option has the id {shown(id)}" for id in twice_in(offered)] if offered else None


@rule(
    "permission.choice",
    Side.AGENT,
    Level.SHOULD,
    "A permission request has at least one option.",
    link="tool-calls#requesting-permission",
    fix="Offer what the user can choose from: without any option the turn can only be cancelled.",
    on=["session/request_permission"],
)
def choice(entry: Entry, state: TrafficState) -> list[str] | None:
    offered = entry.params.get("options")
    if not isinstance(offered, list):
        return None
    return [] if offered else ["`params.options` is empty"]


@rule(
    "permission.option",
    Side.CLIENT,
    Level.MUST,
    "The answer to a permission request selects an option that was offered.",
    link="tool-calls#requesting-permission",
    fix="Answer with the `optionId` of the option that the user chose, not with its name or kind.",
    on=["answer session/request_permission"],
    link_v2="schema#requestpermissionoutcome",
    versions=ALL_VERSIONS,
)
def option(entry: Entry, state: TrafficState) -> list[str] | None:
    outcome = as_object(as_object(entry.msg.get("result")).get("outcome"))
    if outcome.get("outcome") != "selected" or state.request is None:
        return None
    offered = texts_in(state.request.params.get("options"), "optionId")
    if outcome.get("optionId") in offered:
        return []
    kinds = texts_in(objects_in(state.request.params.get("options")), "kind")
    hint = "; it is the kind of one" if outcome.get("optionId") in kinds else ""
    return [f"the option {shown(outcome.get('optionId'))} was not offered{hint}"]


@rule(
    "cancel.permission",
    Side.CLIENT,
    Level.MUST,
    "A client that cancels a turn answers its open permission requests with `cancelled`.",
    link="prompt-turn#cancellation",
    fix="After `session/cancel`, answer every open `session/request_permission` with the outcome `cancelled`.",
    on=["answer session/request_permission"],
)
def after_cancel(entry: Entry, state: TrafficState) -> list[str] | None:
    """Both lines are the client's own, so nothing crosses: what was open when it cancelled, it knew to be open.

    A request that came after the cancellation may have been on its way, and is not judged; nor is an error.
    """
    session = state.session(state.request)
    if session is None or state.request is None or session.last_cancel < state.request.number:
        return None
    outcome = as_object(as_object(entry.msg.get("result")).get("outcome")).get("outcome")
    if outcome == "selected":
        return [f"the turn was cancelled in message {session.last_cancel}, and yet an option was selected"]
    return [] if outcome == "cancelled" else None
