"""A prompt is answered when its message is inserted, and that message is sent to the client."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, as_text, shown
from antiphon.traffic.rules.turns import not_empty
from antiphon.traffic.rules.v2.sessions import live
from antiphon.traffic.state import SECOND, TrafficState

REQUEST_CANCELLED = -32800


rule(
    "prompt.not-empty",
    Side.CLIENT,
    Level.MUST,
    "A prompt is not empty.",
    link="schema#promptrequest",
    fix="Do not send a prompt without blocks.",
    on=["session/prompt"],
    versions=(SECOND,),
)(not_empty)


@rule(
    "prompt.message-id",
    Side.AGENT,
    Level.MUST,
    "Every prompt is answered with the id of a message of its own.",
    link="schema#promptresponse",
    fix="Make an id for each message that is inserted, and answer the prompt with it.",
    on=["answer session/prompt"],
    versions=(SECOND,),
)
def message_id(entry: Entry, state: TrafficState) -> list[str] | None:
    session = live(state, state.request)
    id = as_text(as_object(entry.msg.get("result")).get("messageId"))
    if session is None or id is None:
        return None
    return [f"{shown(id)} is the id of an earlier prompt"] if id in session.prompt_ids else []


@rule(
    "prompt.echo",
    Side.AGENT,
    Level.MUST,
    "The message of a prompt is sent as an update too, with the id that the prompt was answered with.",
    link="schema#promptresponse",
    fix="Send `user_message` or `user_message_chunk` with the `messageId` of the answer, before the work on it is over.",
    on=["update state_update"],
    versions=(SECOND,),
)
def echo(entry: Entry, state: TrafficState) -> list[str] | None:
    """Answer and echo come in either order. Where only one prompt was inserted and none waits, both have come when the work is over."""
    session = live(state, entry)
    if session is None or as_object(entry.params.get("update")).get("state") != "idle" or not session.worked:
        return None
    if len(session.inserted) != 1 or session.prompts:
        return None
    [id] = session.inserted
    return [] if ("user", id) in session.messages else [f"no update has the message {shown(id)} of the user"]


@rule(
    "prompt.refused",
    Side.AGENT,
    Level.MUST,
    "A prompt that is refused has no message: once it is inserted, it is not answered with an error.",
    link="schema#promptrequest",
    fix="Check a prompt before it is inserted; report what goes wrong later by `idle` with the stop reason `error`.",
    on=["answer session/prompt"],
    versions=(SECOND,),
)
def refused(entry: Entry, state: TrafficState) -> list[str] | None:
    session = live(state, state.request)
    prompt = session.prompt_of(state.request) if session is not None else None
    if prompt is None or "error" not in entry.msg:
        return None
    return [] if prompt.suspect is None else [f"its message was sent before, with the id {shown(prompt.suspect)}"]


@rule(
    "cancel.covers",
    Side.AGENT,
    Level.MUST,
    "A cancellation covers the prompts that came before it, and none that comes later.",
    link="schema#cancelsessionnotification",
    fix="Answer with -32800 only what was held when `session/cancel` came; insert or hold what comes after it.",
    on=["answer session/prompt"],
    versions=(SECOND,),
)
def covers(entry: Entry, state: TrafficState) -> list[str] | None:
    """Judged on prompts that came after a cancellation and were not cancelled otherwise, each by itself or with the session."""
    session = live(state, state.request)
    turn = next((one for one in session.turns if one.prompt is state.request), None) if session is not None else None
    if session is None or turn is None or turn.interrupted or not 0 < session.last_cancel < turn.prompt.number:
        return None
    code = as_object(entry.msg.get("error")).get("code")
    if code != REQUEST_CANCELLED:
        return []
    return [f"it was answered as cancelled, and the cancellation is message {session.last_cancel}, before it"]
