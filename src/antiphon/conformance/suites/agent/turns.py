"""What scenarios about sessions and turns share: a turn that runs, one that has ended, its text and its tool calls."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse, NotSeen
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry, JsonObject, as_object, as_text, objects_in
from antiphon.traffic.state import CROSSING_SECONDS

__all__ = [
    "STOP_REASONS",
    "UNKNOWN_SESSION",
    "SeenCall",
    "breaks_off",
    "busy",
    "calls",
    "early",
    "ended",
    "hold",
    "interrupted",
    "is_cancelled",
    "is_refused",
    "reason",
    "requests",
    "still_runs",
    "text_of",
    "usable",
    "writes",
]

STOP_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")

CROSSINGS: Final = 5
"""Times that a turn may end by itself in the moment in which it is stopped. One that does so each time was not stopped."""

UNKNOWN_SESSION: Final = "antiphon-no-such-session"
"""The id of a session that does not exist."""


def breaks_off(*requirements: str) -> None:
    """Declare that an agent which breaks these may do so by never answering, or by exiting."""
    for one in requirements:
        SUITE.follows[one] = (*SUITE.follows.get(one, ()), "rpc.answered", "process.stays")


def reason(response: PeerResponse) -> object:
    """Why a turn ended, by its response; None where that is an error."""
    return response.get("stopReason")


def is_refused(response: PeerResponse) -> bool:
    """Whether it was answered with an error."""
    return response.error is not None


async def ended(run: AgentRun, requirement: str, pending: PendingRequest, otherwise: str) -> PeerResponse:
    """The response to something that a careless agent never answers: if it does not come, the requirement is broken.

    Raises:
        NoResponse: it did not come.
    """
    try:
        return await pending.response()
    except NoResponse as silence:
        if not (silence.left and run.inherited):  # else it is run again with another agent
            awaited = pending.request
            run.holds(requirement, False, f"{otherwise}: {silence.reason}", awaited, awaited=awaited)
        raise


def is_cancelled(run: AgentRun, requirement: str, response: PeerResponse) -> None:
    """Judge whether a turn ended with `cancelled`."""
    seen = f"it ended with {reason(response)}" if response.error is None else "it was answered with an error"
    run.holds(requirement, reason(response) == "cancelled", seen, response)


async def interrupted(
    run: AgentRun,
    requirement: str,
    begun: Callable[[], Awaitable[PendingRequest]],
    stop: Callable[[str], Awaitable[Entry]],
) -> None:
    """Begin a turn, stop it and judge its end; again if that may have crossed with what stopped it, which is not a fault."""
    crossings = 0
    while True:
        pending = await begun()
        sent = await stop(pending.request.params["sessionId"])
        response = await ended(run, requirement, pending, "the turn went on")
        crossings += 1
        if reason(response) == "cancelled" or response.entry.t - sent.t > CROSSING_SECONDS or crossings == CROSSINGS:
            is_cancelled(run, requirement, response)
            return
        await run.settle()


async def usable(run: AgentRun, requirement: str, session: str) -> bool:
    """Whether another turn works, as the requirement demands."""
    pending = await run.prompt(session, run.words("say"))
    response = await ended(run, requirement, pending, "the next turn did not end")
    return run.holds(requirement, response.error is None, "the next turn was answered with an error", response)


async def early(pending: PendingRequest, seconds: float) -> PeerResponse | None:
    """The response, if it comes within that time."""
    with suppress(NoResponse):
        return await pending.response(seconds)
    return None


async def still_runs(run: AgentRun, session: str, pending: PendingRequest) -> None:
    """Go on only if a turn goes on by itself: one that ends at once would cross with whatever we do to it.

    Raises:
        Unseen: it has ended.
    """
    if await early(pending, run.options.silence) is not None:
        raise NotSeen(
            "the turn ended by itself, so there was nothing to interrupt: a prompt file can name a longer one"
        )
    if run.wire.closed:
        raise Blocked("the agent had left")


async def busy(run: AgentRun, session: str, purpose: str = "long", **places: object) -> PendingRequest:
    """A turn that runs until it is cancelled.

    Raises:
        Unseen: the agent does not do anything that takes so long.
    """
    pending = await run.prompt(session, run.words(purpose, **places))
    await run.first_sign(session, pending)
    await still_runs(run, session, pending)
    return pending


async def hold(
    run: AgentRun, method: str, session: str, purpose: str, *others: str, **places: object
) -> tuple[PendingRequest, Entry]:
    """A turn that waits for our response to a request of that kind, in its session or one of the others, and the request. What else is
    asked meanwhile is answered: an agent may ask several things at once.

    Raises:
        Unseen: it did not ask.
    """
    run.client.held.add(method)
    pending = await run.prompt(session, run.words(purpose, **places))
    asked = await run.next_from_agent(method, pending, *others)
    run.client.held.discard(method)
    besides = [one for one in run.client.waiting if one is not asked]
    run.client.waiting.clear()
    for one in besides:
        await run.client.handle(one)
    return pending, asked


def requests(run: AgentRun, method: str, *, after: int) -> list[Entry]:
    """The agent's requests of a kind since a line of the trace."""
    return [entry for entry in run.wire.received if entry.number > after and entry.method == method]


def text_of(updates: Collection[Entry], kind: str = "agent_message_chunk") -> str:
    """The text of the chunks of a kind, together."""
    pieces: list[str] = []
    for entry in updates:
        update: object = entry.params.get("update")
        content = update.get("content") if isinstance(update, dict) and update.get("sessionUpdate") == kind else None
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            pieces.append(content["text"])
    return "".join(pieces)


# --- tool calls, each put together from all of its updates


@dataclass
class SeenCall:
    """A tool call of a turn: its kind and status as of its last update."""

    kind: str | None = None
    status: str | None = None
    entries: list[Entry] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """The paths of the changes that it shows."""

    def take(self, update: JsonObject, entry: Entry) -> None:
        """Add an update of it."""
        self.kind = as_text(update.get("kind")) or self.kind
        self.status = as_text(update.get("status")) or self.status
        self.entries.append(entry)
        shown = [one for one in objects_in(update.get("content")) if one.get("type") == "diff"]
        self.changed += [str(one.get("path")) for one in shown]

    def names(self, text: str) -> bool:
        """Whether a text is anywhere in its updates."""
        return any(text.encode() in one.raw for one in self.entries)


def calls(run: AgentRun, session: str, *, after: int, before: int | None = None) -> dict[str, SeenCall]:
    """The calls of a session, as they stood between two lines of the trace."""
    found: dict[str, SeenCall] = {}
    for entry in run.wire.received:
        if entry.number > after and (before is None or entry.number < before):
            update = _call_update(entry) if entry.params.get("sessionId") == session else {}
            if (id := as_text(update.get("toolCallId"))) is not None:
                found.setdefault(id, SeenCall()).take(update, entry)
    return found


def _call_update(entry: Entry) -> JsonObject:
    if entry.method == "session/request_permission":
        return as_object(entry.params.get("toolCall"))
    return as_object(entry.params.get("update")) if entry.method == "session/update" else {}


def writes(found: Iterable[SeenCall], file: Path, text: str) -> list[SeenCall]:
    """Tool calls that claim to write a text into a file: they show the change, or are an edit of that file, or name file and text. One that
    reads or runs something may name a file as well."""
    return [one for one in found if _writes(one, file, text)]


def _writes(call: SeenCall, file: Path, text: str) -> bool:
    if any(Path(path).name == file.name for path in call.changed):
        return True
    if call.kind == "edit":
        return call.names(file.name)
    return call.kind in (None, "other") and call.names(file.name) and call.names(text)
