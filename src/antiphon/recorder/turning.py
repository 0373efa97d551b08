"""The turns of a conversation as they go: their tool calls, the questions in them, and the silences. Pure; fed by `Telling`."""

from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.recorder.labels import clip, content_text, said, thing
from antiphon.recorder.story import Call, Slow, Story, Turn, Wait

__all__ = ["Turns", "lasted"]

ENDED: Final = ("completed", "failed", "cancelled")
ECHOES: Final = ("user_message", "user_message_chunk", "state_update")
"""Updates that tell the client what it knows: the agent has not begun to answer with them."""

QUESTIONS: Final = {"session/request_permission": "permission", "elicitation/create": "elicitation"}
PROMPT: Final = 200
"""Letters that are kept of a prompt."""


def lasted(start: float, end: float) -> float:
    """Seconds between two times, as exact as recordings are. Clocks that go backwards give nothing."""
    return max(round(end - start, 6), 0.0)


@dataclass(slots=True)
class _Open:
    """A turn that goes on."""

    turn: Turn
    last: float
    asking: int = 0
    """Requests of the agent that are open: while there is one, a silence is not the agent's."""
    waits: int = 0
    waiting_since: float = 0.0
    chunked: set[str] = field(default_factory=set)


class Turns:
    """Those of one conversation; writes what it finds into the story."""

    def __init__(self, story: Story, slow: float) -> None:
        self._story = story
        self._slow = slow
        self._open: dict[str, list[_Open]] = {}
        self._calls: dict[tuple[str, str], Call] = {}

    def number(self, session: str | None) -> int | None:
        """The turn that goes on in a session."""
        going = self._open.get(session) if session is not None else None
        return going[0].turn.number if going else None

    def begin(self, session: str, prompt: object, message: int, t: float) -> Turn:
        """A prompt was sent."""
        turn = Turn(len(self._story.turns) + 1, session, clip(content_text(prompt), PROMPT), message, t)
        self._story.turns.append(turn)
        self._open.setdefault(session, []).append(_Open(turn, t))
        return turn

    def end(self, turn: Turn, t: float, stop_reason: str | None, error: str | None = None) -> None:
        """A turn has ended."""
        going = self._open.get(turn.session, [])
        for one in [one for one in going if one.turn is turn]:
            going.remove(one)
            if one.waits:  # nobody answered, and nobody has to any more
                turn.waited = round(turn.waited + lasted(one.waiting_since, t), 6)
        turn.end, turn.duration = t, lasted(turn.start, t)
        turn.stop_reason, turn.error = stop_reason, error

    def pass_time(self, session: str | None, name: str, message: int, t: float) -> None:
        """Something was said in a session: whether it was silent for long before."""
        for one in self._open.get(session, ()) if session is not None else ():
            if one.asking == 0 and t - one.last >= self._slow:
                self._story.slow.append(Slow(message, f"silence before {name}", lasted(one.last, t)))
            one.last = t

    def pass_time_quietly(self, session: str | None, t: float) -> None:
        """The client has answered: the time before it was not the agent's."""
        for one in self._open.get(session, ()) if session is not None else ():
            one.last = t

    def asked(self, session: str | None, more: int) -> None:
        """The agent asks the client for something (1), or was answered (-1)."""
        for one in self._open.get(session, ()) if session is not None else ():
            one.asking = max(one.asking + more, 0)

    # Updates.

    def update(self, session: str, update: dict[str, Any], message: int, t: float) -> Call | None:
        """The agent tells something of a session; the call that it is about."""
        kind = update.get("sessionUpdate")
        going = self._open.get(session)
        if going:
            turn = going[0].turn
            turn.updates += 1
            if turn.first_update is None and kind not in ECHOES:
                turn.first_update = lasted(turn.start, t)
            if kind in ("agent_message_chunk", "agent_message"):
                _count_text(going[0], update)
            elif kind == "state_update" and update.get("state") == "idle":
                for one in list(going):
                    self.end(one.turn, t, said(update.get("stopReason")))
        return self.call(session, update, message, t) if kind in ("tool_call", "tool_call_update") else None

    def call(self, session: str, told: dict[str, Any], message: int, t: float) -> Call | None:
        """Something about a tool call: updates, announcements and questions may each be the first to name it."""
        id = said(told.get("toolCallId"))
        if id is None:
            return None
        turn = self.number(session)
        call = self._calls.get((session, id))
        if call is not None and call.end is not None and turn != call.turn:
            if turn is None:  # a session that is told again when it is loaded
                return call
            call = (
                call if told.get("sessionUpdate") == "tool_call_update" else None
            )  # ids are used again in later turns
        if call is None:
            call = self._calls[session, id] = Call(id, session, turn, message, t)
            self._story.calls.append(call)
            if turn is not None:
                self._story.turns[turn - 1].calls += 1
        title, kind, status = said(told.get("title")), said(told.get("kind")), said(told.get("status"))
        call.title = clip(title) if title else call.title
        call.kind = kind or call.kind
        call.status = status or call.status
        if status in ENDED and call.end is None:
            call.end, call.duration = t, lasted(call.start, t)
        return call

    # Questions.

    def ask(self, method: str, session: str | None, params: dict[str, Any], message: int, t: float) -> Wait:
        """The user is asked."""
        told = thing(params.get("toolCall") or thing(params.get("subject")).get("toolCall"))
        call = self.call(session, told, message, t) if session is not None else None
        title = said(params.get("title")) or said(told.get("title")) or said(params.get("message"))
        wait = Wait(message, session, self.number(session), QUESTIONS[method], t)
        wait.call = call.id if call else None
        wait.title = clip(title) if title else call.title if call else None
        self._story.waits.append(wait)
        for one in self._open.get(session, ())[:1] if session is not None else ():
            one.waiting_since = one.waiting_since if one.waits else t
            one.waits += 1
        return wait

    def answer(self, wait: Wait, message: int, t: float, outcome: str) -> None:
        """The user has answered."""
        wait.answer, wait.end, wait.duration, wait.outcome = message, t, lasted(wait.start, t), outcome
        if wait.duration >= self._slow:
            self._story.slow.append(Slow(message, f"{wait.kind}: {wait.title or '?'}", wait.duration))
        for one in self._open.get(wait.session, ()) if wait.session is not None else ():
            if one.turn.number == wait.turn and one.waits:
                one.waits -= 1
                if not one.waits:
                    one.turn.waited = round(one.turn.waited + lasted(one.waiting_since, t), 6)


def _count_text(one: _Open, update: dict[str, Any]) -> None:
    """Characters said. A whole message that came in pieces before is not counted twice."""
    id = said(update.get("messageId"))
    content = update.get("content")
    if update.get("sessionUpdate") == "agent_message_chunk":
        if id is not None:
            one.chunked.add(id)
    elif id in one.chunked:
        return
    for block in content if isinstance(content, list) else (content,):
        if isinstance(block, dict) and isinstance(text := block.get("text"), str):
            one.turn.text += len(text)
