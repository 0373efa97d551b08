"""Faults of doing things: after a no, with files, with terminals, with a client that offers nothing; and of settings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from antiphon.traffic.entries import Direction
from tests.conformance.faults.one_scenario import (
    PROMPT,
    UPDATE,
    Made,
    MessageOnItsWay,
    SessionNotes,
    accept,
    answer,
    change_sent,
    in_scene,
    leaves,
    prompt,
    refuse,
)
from tests.conformance.faults.wire_faults import Change, Faults, Message

PERMISSION, READ, WRITE = "session/request_permission", "fs/read_text_file", "fs/write_text_file"
SET_MODE, SET_OPTION = "session/set_mode", "session/set_config_option"


def _file(exchange: SessionNotes, reply: MessageOnItsWay) -> Path:
    """The file that the first prompt of the scenario names."""
    if reply.direction is Direction.C2A and reply.message.get("method") == PROMPT:
        exchange.notes.setdefault("file", reply.message["params"]["prompt"][0]["text"].split()[1])
    return Path(exchange.notes.get("file", "/"))


def writes_all_the_same(record: str) -> Made:
    """The file is written, whatever the client answered."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        file = _file(exchange, reply)
        if reply.is_reply(PERMISSION):
            file.write_text("all the same", encoding="utf-8")
        yield reply.message

    return in_scene(record, meddle)


def writes_first() -> Made:
    """The file is written before the question, and taken away after the no."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        file = _file(exchange, reply)
        if reply.has_method(PERMISSION):
            file.write_text("before", encoding="utf-8")
        elif reply.is_reply(PERMISSION):
            file.unlink()
        yield reply.message

    return in_scene("permission-refused", meddle)


def asks_elsewhere() -> Made:
    """The question names the other session that is open."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers("session/new"):
            exchange.notes.setdefault("first", reply.message["result"]["sessionId"])
        elif reply.has_method(PERMISSION):
            reply.message["params"]["sessionId"] = exchange.notes["first"]
        yield reply.message

    return in_scene("permission-refused", meddle)


def another_path(message: Message) -> None:
    message["params"]["path"] = "/antiphon/elsewhere/" + Path(message["params"]["path"]).name


def another_text(message: Message) -> None:
    message["params"]["content"] = "something else"


def from_the_disk() -> Made:
    """What the client says a file holds is not listened to."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.is_reply(READ):
            reply.message["result"]["content"] = reply.message["result"]["content"].replace("unsaved", "saved")
        yield reply.message

    return in_scene("files-read", meddle)


def as_if_done(message: Message) -> None:
    if message["params"]["update"].get("status") == "failed":
        message["params"]["update"]["status"] = "completed"


def shows_nothing(message: Message) -> None:
    update = message["params"]["update"]
    for key in ("content", "rawOutput"):
        if "toolCallId" in update:
            update.pop(key, None)
    if update["sessionUpdate"] == "agent_message_chunk":
        update["content"]["text"] = "It printed something."


# Settings.


def as_before(wanted: str) -> Change:
    """The answer has another value for one setting than that which it has."""

    def change(message: Message) -> None:
        for option in message["result"]["configOptions"] if "result" in message else []:
            if option["id"] == wanted and option["type"] == "boolean":
                option["currentValue"] = not option["currentValue"]
            elif option["id"] == wanted:
                values = [one["value"] for one in option["options"]]
                option["currentValue"] = next(one for one in values if one != option["currentValue"])

    return change


def takes_anything(number: int) -> Made:
    """A choice that cannot be is answered as if it could: with the settings as they are."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers("session/new"):
            exchange.notes["options"] = reply.message["result"]["configOptions"]
        if reply.answers(SET_OPTION, number):
            accept({"configOptions": exchange.notes["options"]})(reply.message)
        yield reply.message

    return in_scene("settings", meddle)


FAULTS: Faults = {
    "permission.first": writes_first(),
    "permission.session": asks_elsewhere(),
    "permission.refused": writes_all_the_same("permission-refused"),
    "permission.refused-ends": leaves("permission-refused"),
    "permission.dismissed": writes_all_the_same("permission-dismissed"),
    "permission.dismissed-ends": leaves("permission-dismissed"),
    "permission.error": writes_all_the_same("permission-error"),
    "permission.error-ends": leaves("permission-error"),
    "permission.error-next": prompt("permission-error", refuse, 2),
    "permission.strange": writes_all_the_same("permission-strange"),
    "files.read-path": change_sent("files-read", READ, another_path),
    "files.unsaved": from_the_disk(),
    "files.missing": leaves("files-missing"),
    "files.missing-result": prompt("files-missing", refuse),
    "files.missing-next": prompt("files-missing", refuse, 2),
    "files.written": change_sent("files-write", WRITE, another_text),
    "files.locked": leaves("files-locked"),
    "files.locked-told": change_sent("files-locked", UPDATE, as_if_done),
    "files.read-only": leaves("files-read-only"),
    "terminal.shown": change_sent("terminal-run", UPDATE, shows_nothing),
    "terminal.failing": prompt("terminal-failing", refuse),
    "terminal.refused": leaves("terminal-refused"),
    "terminal.refused-next": prompt("terminal-refused", refuse, 2),
    "modest.read": leaves("modest", 1),
    "modest.write": leaves("modest", 2),
    "modest.run": leaves("modest", 3),
    "modest.form": leaves("modest", 4),
    "modest.visit": leaves("modest", 5),
    "mode.switches": answer("modes", SET_MODE, refuse, 2),
    "mode.unknown": answer("modes", SET_MODE, accept({}), 1),
    "mode.in-step": answer("modes", SET_OPTION, as_before("mode")),
    "config.chosen": answer("settings", SET_OPTION, as_before("length")),
    "config.switched": answer("settings", SET_OPTION, as_before("greeting")),
    "config.unknown": takes_anything(1),
    "config.unknown-value": takes_anything(2),
    "config.busy": answer("settings-busy", SET_OPTION, refuse),
}
