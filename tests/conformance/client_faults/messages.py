"""Faults of what a client receives in a turn: updates, permission, requests, lines, noise, questions to the user."""

from typing import Any

from tests.conformance.client_faults.client_faults import (
    Answers,
    Faults,
    Message,
    Wanted,
    answers,
    as_error,
    as_result,
    asks,
    dies,
    keeps_silent,
    updates,
    with_result,
)  # fmt: skip
from tests.conformance.client_memory import Broken


def shows(kind: str) -> Wanted:
    """A message with content of this type."""
    return lambda message: updates()(message) and _content(message).get("type") == kind


def message_begins(start: str) -> Wanted:
    """A message that begins like this."""
    return lambda message: updates()(message) and _content(message).get("text", "").startswith(start)


def _content(message: Message) -> dict[str, Any]:
    content = message["params"]["update"].get("content")
    return content if isinstance(content, dict) else {}


def permits(call: str) -> Wanted:
    """A question for permission for this call."""

    def wanted(message: Message) -> bool:
        params = message.get("params") or {}
        return message.get("method") == "session/request_permission" and _id(params) == call

    return wanted


def _id(params: Message) -> object:
    call = params.get("toolCall")
    return call.get("toolCallId") if isinstance(call, dict) else None


def allows(message: Message) -> None:
    if message["result"]["outcome"].get("optionId") == "no":
        message["result"]["outcome"]["optionId"] = "yes"


def is_stray(message: Any) -> bool:
    return isinstance(message, dict) and message.get("id") == 987654


def has_no_id(message: Any) -> bool:
    return isinstance(message, dict) and "error" in message and message.get("id") is None


def another_code(message: Message) -> None:
    message["error"]["code"] = -32603


def id_is(id: object) -> Wanted:
    return lambda message: message.get("id") == id and type(message.get("id")) is type(id)


def has_hologram(message: Any) -> bool:
    return shows("antiphon_hologram")(message)


FAULTS: Faults = {
    "updates.messages": dies(shows("audio")),
    "updates.tool-calls": dies(updates(toolCallId="c-2")),
    "updates.plan": dies(updates(sessionUpdate="plan")),
    "updates.commands": dies(lambda message: updates(sessionUpdate="available_commands_update")(message) and bool(message["params"]["update"]["availableCommands"])),
    "updates.mode": dies(updates(sessionUpdate="current_mode_update")),
    "updates.options": dies(updates(sessionUpdate="config_option_update")),
    "updates.session": dies(updates(sessionUpdate="session_info_update")),
    "updates.notices": dies(updates(sessionUpdate="notice")),
    "updates.compaction": dies(updates(sessionUpdate="compaction_update")),
    "updates.unknown-kind": dies(updates(sessionUpdate="antiphon_tomorrow")),
    "updates.unknown-content": dies(has_hologram),
    "updates.unknown-words": dies(updates(kind="antiphon_sing")),
    "updates.more-fields": dies(updates(timestamp=5)),
    "updates.unannounced": dies(updates(title="So it was")),
    "updates.again": dies(updates(toolCallId="twice", kind="edit")),
    "updates.unknown-terminal": dies(updates(toolCallId="t")),
    "updates.other-session": dies(asks("session/update", sessionId="antiphon-somebody-else")),
    "permission.outcome": answers(permits("p-1"), as_error),
    "permission.unannounced": answers(permits("p-unannounced"), as_error),
    "permission.same-kind": answers(permits("p-twins"), as_error),
    "permission.unknown-kind": answers(permits("p-strange"), as_error),
    "permission.many": answers(permits("p-many-2"), as_error),
    "permission.refuses": answers(permits("p-1"), allows),
    "requests.answered": keeps_silent(asks("terminal/output", terminalId="antiphon-nobody")),
    "requests.ids": keeps_silent(id_is(0)),
    "requests.unknown": answers(asks("antiphon/unknown_method"), as_result({})),
    "requests.unknown-code": answers(asks("antiphon/unknown_method"), another_code),
    "requests.extension": keeps_silent(asks("_antiphon.example/own_method")),
    "requests.notification": dies(asks("antiphon/unknown_notice")),
    "requests.invalid": answers(asks("session/request_permission", sessionId=7), as_result({"outcome": {"outcome": "cancelled"}})),
    "requests.many": keeps_silent(asks("_antiphon/fence", text="burst 49")),
    "requests.cancelled": keeps_silent(asks("_antiphon/fence", text="slow")),
    "requests.not-offered": Broken(lambda: Answers(asks("fs/read_text_file"), as_result({"content": ""})), able=False),
    "lines.pieces": keeps_silent(id_is("in-pieces")),
    "lines.together": keeps_silent(id_is("together-2")),
    "lines.unicode": keeps_silent(id_is("unicode")),
    "lines.burst": dies(message_begins("999 ")),
    "lines.large": dies(message_begins("large ")),
    "lines.huge": dies(message_begins("huge ")),
    "noise.lines": dies(lambda message: message == b"Loading model..."),
    "noise.objects": dies(lambda message: message == {"foo": 1}),
    "noise.stray": dies(is_stray),
    "noise.no-id": dies(has_no_id),
    "elicitation.form": answers(asks("elicitation/create", mode="form"), with_result(action="perhaps")),
    "elicitation.url": answers(asks("elicitation/create", mode="url"), as_error),
}  # fmt: skip
