"""Faults of turns: what a prompt may hold, how a turn ends, how it is cancelled."""

from collections.abc import Iterable
from typing import Any

from antiphon.traffic.entries import Direction
from tests.conformance.faults.one_scenario import (
    PROMPT,
    UPDATE,
    Made,
    MessageOnItsWay,
    SessionNotes,
    answer,
    change_sent,
    in_scene,
    leaves,
    prompt,
    refuse,
    stop,
)
from tests.conformance.faults.wire_faults import Change, Faults, Message


def mixed() -> Made:
    """All that two sessions say goes to one of them."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.direction is Direction.C2A and reply.message.get("method") == PROMPT:
            exchange.notes.setdefault("first", reply.message["params"]["sessionId"])
        if reply.has_method(UPDATE) and "first" in exchange.notes:
            reply.message["params"]["sessionId"] = exchange.notes["first"]
        yield reply.message

    return in_scene("turn-beside", meddle)


def partial(message: Message) -> None:
    """A plan of one entry."""
    update = message["params"]["update"]
    if update["sessionUpdate"] == "plan" and update["entries"][0]["status"] == "completed":
        update["entries"] = update["entries"][:1]


def slashed(message: Message) -> None:
    update = message["params"]["update"]
    if update["sessionUpdate"] == "available_commands_update":
        update["availableCommands"][0]["name"] = "/" + update["availableCommands"][0]["name"]


def cancels_both() -> Made:
    """A cancellation is taken for all sessions, whose turns then end."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        yield reply.message
        if reply.direction is not Direction.C2A:
            return
        if reply.message.get("method") == PROMPT:
            exchange.notes.setdefault("first", reply.message["params"]["sessionId"])
        elif reply.message.get("method") == "session/cancel" and exchange.seen["session/cancel"] == 1:
            yield {**reply.message, "params": {"sessionId": exchange.notes["first"]}}

    return in_scene("cancel-one", meddle)


def kills_only(message: Message) -> None:
    message["method"] = "terminal/kill"


def spoiled(record: str, change: Change) -> Made:
    """Every turn that was cancelled ends otherwise: one alone may have ended by itself just then."""

    def when_cancelled(message: Message) -> None:
        if (message.get("result") or {}).get("stopReason") == "cancelled":
            change(message)

    return answer(record, PROMPT, when_cancelled)


FAULTS: Faults = {
    "turn.ends": prompt("turn", refuse),
    "turn.again": prompt("turn", refuse, 2),
    "turn.beside": prompt("turn-beside", refuse, 2),
    "turn.apart": mixed(),
    "turn.second": leaves("turn-second", 1),
    "turn.after-second": prompt("turn-second", refuse, 3),
    "turn.empty": prompt("turn-odd", refuse, 2),
    "plan.whole": change_sent("plan", UPDATE, partial),
    "commands.names": change_sent("commands", UPDATE, slashed),
    "content.texts": prompt("content-baseline", refuse, 1),
    "content.link": prompt("content-baseline", refuse, 2),
    "content.image": prompt("content-image", refuse),
    "content.audio": prompt("content-audio", refuse),
    "content.embedded": prompt("content-embedded", refuse, 1),
    "content.embedded-bytes": prompt("content-embedded", refuse, 2),
    "content.unknown": prompt("content-unknown", refuse, 2),
    "cancel.talking": spoiled("cancel-streaming", stop("end_turn")),
    "cancel.talking-next": prompt("cancel-streaming", refuse, 2),
    "cancel.asking": prompt("cancel-asking", refuse),
    "cancel.asking-next": prompt("cancel-asking", refuse, 2),
    "cancel.running": spoiled("cancel-running", stop("end_turn")),
    "cancel.running-next": prompt("cancel-running", refuse, 2),
    "cancel.terminals": change_sent("cancel-running", "terminal/release", kills_only),
    "cancel.crossing": spoiled("cancel-crossing", stop("end_turn")),
    "cancel.idle": prompt("cancel-idle", refuse, 1),
    "cancel.unknown-session": prompt("cancel-idle", refuse, 2),
    "cancel.twice": spoiled("cancel-twice", refuse),
    "cancel.twice-next": prompt("cancel-twice", refuse, 2),
    "cancel.one": cancels_both(),
}
