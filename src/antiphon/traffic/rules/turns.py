"""A turn begins with a prompt and ends with its response; updates and tool calls come between the two."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, as_text, shown
from antiphon.traffic.rules.sessions import HISTORY_UPDATES
from antiphon.traffic.state import CROSSING_SECONDS, TrafficState

REQUEST_CANCELLED = -32800


@rule(
    "turn.answer-last",
    Side.AGENT,
    Level.ADVICE,
    "Messages, thoughts and tool calls come within a turn: none before its prompt and none after its answer.",
    link="prompt-turn#the-prompt-turn-lifecycle",
    fix="Answer `session/prompt` when everything has been sent, and use other updates between turns.",
    on=HISTORY_UPDATES,
)
def answer_last(entry: Entry, state: TrafficState) -> list[str] | None:
    session = state.session(entry)
    if session is None or session.opening is not None or (session.replayed and not session.turns):
        return None  # unknown sessions, replays and what follows them have rules of their own
    if session.turns:
        return []
    kind = as_object(entry.params.get("update")).get("sessionUpdate")
    return [f"`{kind}` came when no turn was open"]


@rule(
    "turn.one-at-a-time",
    Side.CLIENT,
    Level.SHOULD,
    "A session has one turn at a time.",
    link="prompt-turn#the-prompt-turn-lifecycle",
    fix="Wait for the answer to `session/prompt`, or cancel the turn, before the next prompt of the same session.",
    on=["session/prompt"],
)
def one_at_a_time(entry: Entry, state: TrafficState) -> list[str] | None:
    session = state.session(entry)
    if session is None:
        return None
    running = [turn.prompt.number for turn in session.turns if turn.cancelled is None]
    return [f"the prompt of message {number} is not answered yet" for number in running[:1]]


@rule(
    "prompt.not-empty",
    Side.CLIENT,
    Level.SHOULD,
    "A prompt is not empty.",
    link="prompt-turn#1-user-message",
    fix="Do not send a prompt without blocks.",
    on=["session/prompt"],
)
def not_empty(entry: Entry, state: TrafficState) -> list[str] | None:
    prompt = entry.params.get("prompt")
    if not isinstance(prompt, list):
        return None
    return [] if prompt else ["`params.prompt` is an empty list"]


@rule(
    "turn.not-silent",
    Side.AGENT,
    Level.ADVICE,
    "A turn that ends well has sent something.",
    link="prompt-turn#3-agent-reports-output",
    fix="Where the model gave nothing, or its service failed, report it: in a message, or with an error.",
    on=["answer session/prompt"],
)
def not_silent(entry: Entry, state: TrafficState) -> list[str] | None:
    session = state.session(state.request)
    turn = session.turn_of(state.request) if session is not None else None
    if turn is None or as_object(entry.msg.get("result")).get("stopReason") != "end_turn":
        return None
    if turn.cancelled is not None:
        return None  # its response may have crossed a cancellation that came before the first word
    if not turn.prompt.params.get("prompt"):
        return None
    return (
        []
        if turn.updates_sent
        else ["the turn ended with `end_turn` and without any message, thought, plan or tool call"]
    )


@rule(
    "cancel.stop-reason",
    Side.AGENT,
    Level.MUST,
    "A prompt that was cancelled is answered with the stop reason `cancelled`, not with an error.",
    link="prompt-turn#cancellation",
    fix="Catch what the cancellation throws in the agent, and answer `session/prompt` with `cancelled`.",
    on=["answer session/prompt"],
)
def stop_reason(entry: Entry, state: TrafficState) -> list[str] | None:
    """Check the stop reason, but only where the agent must have read the cancellation when it answered.

    A response that was on its way when the cancellation was sent is right, and a trace does not show when a side read something.
    Three things do show it: it has answered a request that came after the cancellation; a request that it had sent to the client
    was open at the cancellation and was answered after it; or the response came so late that it cannot have crossed.
    """
    session = state.session(state.request)
    turn = session.turn_of(state.request) if session is not None else None
    if turn is None or turn.cancelled is None:
        return None
    reason = as_object(entry.msg.get("result")).get("stopReason")
    if reason == "cancelled":
        return []
    if as_object(entry.msg.get("error")).get("code") == REQUEST_CANCELLED:
        return None  # the client may have cancelled the request as well, which is answered like this
    if turn.overlapped:
        return None  # a second prompt may be refused, or wait for the end of the first and not be meant by the cancellation
    if not turn.noticed and entry.t - turn.cancelled.t < CROSSING_SECONDS:
        return None
    ending = "an error" if "error" in entry.msg else f"the stop reason {shown(reason)}"
    return [f"the prompt was cancelled in message {turn.cancelled.number} and was answered with {ending}"]


@rule(
    "cancel.unasked",
    Side.AGENT,
    Level.ADVICE,
    "The stop reason `cancelled` is for turns that the client has cancelled.",
    link="prompt-turn#stop-reasons",
    fix="End a turn with `end_turn` where the user has rejected something, and with `refusal` where the agent will not go on.",
    on=["answer session/prompt"],
)
def not_cancelled(entry: Entry, state: TrafficState) -> list[str] | None:
    """A second prompt, a request that was cancelled and a session that is being closed may also end a turn."""
    session = state.session(state.request)
    turn = session.turn_of(state.request) if session is not None else None
    if session is None or turn is None or len(session.turns) > 1:
        return None
    if as_object(entry.msg.get("result")).get("stopReason") != "cancelled":
        return None
    return [] if turn.cancelled is not None or turn.interrupted else ["the client has not cancelled this turn"]


# --- tool calls


@rule(
    "call.announced",
    Side.AGENT,
    Level.SHOULD,
    "A tool call is announced by `tool_call` before anything else is sent about it.",
    link="tool-calls#creating",
    fix="Send `tool_call` first, then ask for permission and send `tool_call_update`.",
    on=["update tool_call_update", "session/request_permission"],
)
def announced(entry: Entry, state: TrafficState) -> list[str] | None:
    session = state.session(entry)
    named = entry.params.get("update" if entry.method == "session/update" else "toolCall")
    id = as_text(as_object(named).get("toolCallId"))
    if session is None or id is None:
        return None
    if id in session.calls:
        return [] if session.calls[id].announced else None  # it was reported when it was named first
    what = "`tool_call_update`" if entry.method == "session/update" else "a permission request"
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
def once(entry: Entry, state: TrafficState) -> list[str] | None:
    session = state.session(entry)
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
def ends(entry: Entry, state: TrafficState) -> list[str] | None:
    """Check that calls end, unless the turn was cancelled or failed: then the client marks what was left, as the specification demands."""
    session = state.session(state.request)
    turn = session.turn_of(state.request) if session is not None else None
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
