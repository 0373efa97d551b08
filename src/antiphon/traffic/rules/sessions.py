"""Session ids are those that the peer has given, and sessions are what was requested."""

from antiphon.traffic.checker import ALL_VERSIONS, Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, as_text, shown
from antiphon.traffic.rules.capabilities import TERMINAL_METHODS
from antiphon.traffic.state import BRINGS_A_NEW_ONE, HISTORY, TrafficState

NEEDS_A_SESSION = ("session/prompt", "session/cancel", "session/set_mode", "session/set_config_option", "session/close")
HISTORY_UPDATES = tuple(f"update {kind}" for kind in sorted(HISTORY))


@rule(
    "session.known",
    Side.AGENT,
    Level.SHOULD,
    "The agent names a session only when the client knows its id.",
    link="session-setup#creating-a-session",
    fix="Answer `session/new` first and send the updates after it.",
    on=[
        "session/update",
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        *TERMINAL_METHODS,
        "elicitation/create",
    ],
)
def known(entry: Entry, state: TrafficState) -> list[str] | None:
    id = as_text(entry.params.get("sessionId"))
    if id is None or state.initialize is None:
        return None
    if id in state.named:
        return []
    if not state.first_time("session.known", id):
        return None
    kind = as_object(entry.params.get("update")).get("sessionUpdate", entry.method)
    waiting = [one for one in state.pairs.open if one.method in BRINGS_A_NEW_ONE]
    when = f"before the answer to `{waiting[0].method}` had its id" if waiting else "which is not known"
    return [f"`{kind}` is for the session {shown(id)}, {when}"]


@rule(
    "session.id",
    Side.CLIENT,
    Level.MUST,
    "The client names sessions that it has opened.",
    link="session-setup#session-id",
    fix="Send the `sessionId` of an answer to `session/new`, or open the session with `session/load` or `session/resume`.",
    on=NEEDS_A_SESSION,
)
def opened(entry: Entry, state: TrafficState) -> list[str] | None:
    id = as_text(entry.params.get("sessionId"))
    if id is None or state.initialize is None:
        return None
    return [] if id in state.opened else [f"no session {shown(id)} was opened"]


@rule(
    "session.refused",
    Side.AGENT,
    Level.SHOULD,
    "What is asked of a session that does not exist is answered with an error.",
    link="session-setup#session-id",
    fix="Answer with an error (-32002 is for what is not found) when the `sessionId` is unknown.",
    on=["answer session/prompt", "answer session/set_mode", "answer session/set_config_option"],
    link_v2="schema#sessionnotfounderrordata",
    versions=ALL_VERSIONS,
)
def refused(entry: Entry, state: TrafficState) -> list[str] | None:
    id = as_text(state.request.params.get("sessionId")) if state.request is not None else None
    if id is None or state.initialize is None or id in state.opened or state.request is None:
        return None
    return (
        [] if "error" in entry.msg else [f"`{state.request.method}` succeeded for {shown(id)}, which was never opened"]
    )


@rule(
    "session.unique",
    Side.AGENT,
    Level.MUST,
    "Every new session has an id that no other had.",
    link="session-setup#session-id",
    fix="Make ids that cannot come again, for example UUIDs.",
    on=[f"answer {method}" for method in BRINGS_A_NEW_ONE],
    link_v2="schema#newsessionresponse",
    versions=ALL_VERSIONS,
)
def unique(entry: Entry, state: TrafficState) -> list[str] | None:
    id = as_text(as_object(entry.msg.get("result")).get("sessionId"))
    if id is None:
        return None
    return [] if state.first_time("session.unique", id) else [f"{shown(id)} was given before"]


@rule(
    "load.replay-first",
    Side.AGENT,
    Level.MUST,
    "The history of a loaded session is sent before `session/load` is answered.",
    link="session-setup#loading-sessions",
    fix="Answer `session/load` when the whole history has been sent.",
    on=["answer session/load", *HISTORY_UPDATES],
)
def replay_first(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.method is None:
        return [] if "result" in entry.msg else None
    session = state.session(entry)
    if session is None or not session.replayed or session.turns:
        return None
    if not state.first_time("load.replay-first", session.id, session.number):
        return None  # reported once for each load
    kind = as_object(entry.params.get("update")).get("sessionUpdate")
    return [f"`{kind}` came after the answer to `session/load`, and there was no prompt since"]


@rule(
    "resume.no-history",
    Side.AGENT,
    Level.MUST,
    "A session that is resumed does not replay its history.",
    link="session-setup#resuming-sessions",
    fix="Send no messages and tool calls for `session/resume`; that is what `session/load` is for.",
    on=["answer session/resume", *HISTORY_UPDATES],
)
def no_history(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.method is None:
        return [] if "result" in entry.msg else None
    session = state.session(entry)
    if session is None or session.turns or session.opening is None or session.opening.method != "session/resume":
        return None
    if not state.first_time("resume.no-history", session.opening.number):
        return None  # reported once for each time that it is resumed
    kind = as_object(entry.params.get("update")).get("sessionUpdate")
    return [f"`{kind}` came while the session was being resumed"]
