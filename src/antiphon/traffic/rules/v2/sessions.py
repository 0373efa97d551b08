"""Sessions are opened, resumed with or without their history, and closed."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, as_text, shown
from antiphon.traffic.state import SECOND, TrafficState
from antiphon.traffic.state_v2 import MESSAGES, StateSession

NEEDS_A_SESSION = (
    "session/prompt", "session/cancel", "session/set_config_option", "tool_call/cancel", "terminal/cancel",
)  # fmt: skip
CHUNKS = tuple(f"update {kind}" for kind in MESSAGES if kind.endswith("_chunk"))
HISTORY_UPDATES = tuple(f"update {kind}" for kind in MESSAGES)


def live(state: TrafficState, entry: Entry | None) -> StateSession | None:
    """The session that a message names, if it is one that we know."""
    found = state.session(entry)
    return found if isinstance(found, StateSession) else None


@rule(
    "session.id",
    Side.CLIENT,
    Level.MUST,
    "The client names sessions that it has opened.",
    link="schema#sessionid",
    fix="Send the `sessionId` of an answer to `session/new`, or open the session with `session/resume`.",
    on=NEEDS_A_SESSION,
    versions=(SECOND,),
)
def opened(entry: Entry, state: TrafficState) -> list[str] | None:
    id = as_text(entry.params.get("sessionId"))
    if id is None or state.initialize is None:
        return None
    if id in state.closed:
        return [f"the session {shown(id)} was closed"]
    return [] if id in state.opened else [f"no session {shown(id)} was opened"]


@rule(
    "resume.state",
    Side.AGENT,
    Level.MUST,
    "The state of a session is sent before `session/resume` is answered, always.",
    link="schema#resumesessionresponse",
    fix="Send a `state_update` with the present state after any replay, and then the answer.",
    on=["answer session/resume"],
    versions=(SECOND,),
)
def resume_state(entry: Entry, state: TrafficState) -> list[str] | None:
    session = live(state, state.request)
    if session is None or "result" not in entry.msg or session.opening is not state.request:
        return None
    return [] if session.reported else ["no `state_update` came before the answer"]


@rule(
    "resume.no-history",
    Side.AGENT,
    Level.MUST,
    "A session that is resumed without `replayFrom` does not replay its history.",
    link="schema#resumesessionrequest",
    fix="Send no messages of the past where the client has not sent `replayFrom`.",
    on=["answer session/resume", *HISTORY_UPDATES],
    versions=(SECOND,),
)
def no_history(entry: Entry, state: TrafficState) -> list[str] | None:
    """A session that this connection had open already may be at work, so what it says may be new."""
    session = live(state, state.request if entry.method is None else entry)
    if session is None or session.opening is None or session.replays or session.was_known:
        return None
    if entry.method is None:
        return [] if "result" in entry.msg else None
    if not state.first_time("resume.no-history", session.opening.number):
        return None
    kind = as_object(entry.params.get("update")).get("sessionUpdate")
    return [f"`{kind}` came while the session was being resumed without `replayFrom`"]


@rule(
    "resume.cleared",
    Side.AGENT,
    Level.MUST,
    "A message that the client may have is cleared before it is replayed in pieces.",
    link="schema#resumesessionrequest",
    fix="Send the message with `content: []` before its first chunk, or send it whole.",
    on=CHUNKS,
    versions=(SECOND,),
)
def cleared(entry: Entry, state: TrafficState) -> list[str] | None:
    session = live(state, entry)
    update = as_object(entry.params.get("update"))
    kind, id = MESSAGES.get(str(update.get("sessionUpdate"))), as_text(update.get("messageId"))
    if session is None or not session.replays or kind is None or id is None or session.is_working:
        return None
    if (kind, id) not in session.messages or (kind, id) in session.cleared:
        return []
    if not state.first_time("resume.cleared", session.number, kind, id):
        return None
    return [f"the message {shown(id)} was sent before and is replayed without being cleared"]


@rule(
    "close.ends",
    Side.AGENT,
    Level.MUST,
    "Before `session/close` is answered, what the session did has ended: it is idle, with `cancelled`.",
    link="schema#closesessionrequest",
    fix="Cancel the work, send its last updates and `idle` with `cancelled`, and answer the close then.",
    on=["answer session/close"],
    versions=(SECOND,),
)
def close_ends(entry: Entry, state: TrafficState) -> list[str] | None:
    session = live(state, state.request)
    if session is None or "result" not in entry.msg:
        return None
    return [f"the session is still {session.state}"] if session.is_working else []


@rule(
    "close.quiet",
    Side.AGENT,
    Level.MUST,
    "Nothing of a session is sent after it was closed.",
    link="schema#closesessionrequest",
    fix="Stop all that belongs to the session, its background work too, before `session/close` is answered.",
    on=["session/update", "session/request_permission", "elicitation/create", "answer session/close"],
    versions=(SECOND,),
)
def close_quiet(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.method is None:
        return [] if "result" in entry.msg else None
    id = as_text(entry.params.get("sessionId"))
    if id not in state.closed or not state.first_time("close.quiet", id):
        return None
    kind = as_object(entry.params.get("update")).get("sessionUpdate", entry.method)
    return [f"`{kind}` came for the session {shown(id)}, which was closed"]
