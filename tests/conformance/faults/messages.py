"""Faults of ids, of errors, and of what is answered at all."""

from typing import Any

from tests.conformance.faults.one_message import (
    Wanted,
    accept,
    after,
    asks,
    change_reply,
    do_not_receive,
    lose_reply,
    refuse,
    say_after,
    when,
)  # fmt: skip
from tests.conformance.faults.wire_faults import Change, Faults
from tests.conformance.memory import Message

FENCE = "_antiphon/fence"


def identified(id: object) -> Wanted:
    """Whether a request has exactly that id."""
    return lambda line: line.get("id") == id and type(line.get("id")) is type(id)


def notifies(method: str) -> Wanted:
    return lambda line: isinstance(line, dict) and line.get("method") == method and "id" not in line


def coded(code: int) -> Change:
    def change(message: Message) -> None:
        message["error"]["code"] = code

    return change


def traced(message: Message) -> None:
    message["error"]["data"] = {"why": ["Traceback (most recent call last):\n  ..."]}


def _names_no_params(line: Any) -> bool:
    return isinstance(line, dict) and line.get("method") == "session/new" and "params" not in line


def _lists_params(line: Any) -> bool:
    return isinstance(line, dict) and line.get("method") == "session/new" and isinstance(line.get("params"), list)


EMPTY = asks("session/new", lambda params: params == {})
NUMBER = asks("session/new", lambda params: params.get("cwd") == 7)
NOWHERE = asks("session/prompt", lambda params: params.get("sessionId") == "antiphon-check-nobody")
OPENS = asks("session/new", lambda params: "cwd" in params)
SESSION = {"sessionId": "made-of-nothing"}


def _is_empty(line: Any) -> bool:
    return EMPTY(line) and line.get("params") == {}


FAULTS: Faults = {
    "id.zero": lose_reply(identified(0)),
    "id.negative": lose_reply(identified(-7)),
    "id.large": lose_reply(identified(2**53 - 1)),
    "id.text": lose_reply(identified("question-1")),
    "id.uuid": lose_reply(identified("5f0c2a4e-8d1b-4c3e-9a77-0b6d2f1e4c58")),
    "id.number-text": lose_reply(identified("17")),
    "id.unicode": lose_reply(identified("\U0001f600\u2028")),
    "rpc.in-flight": lose_reply(asks(FENCE, lambda params: params.get("number") == 2)),
    "notify.unknown": say_after(notifies("session/antiphon_check")),
    "notify.extension": say_after(notifies("_antiphon/check")),
    "notify.dollar": say_after(notifies("$/antiphon_check")),
    "rpc.stray-answer": say_after(lambda line: isinstance(line, dict) and line.get("id") == "nobody-asked"),
    "rpc.while-busy": lose_reply(asks(FENCE, lambda params: "during" in params)),
    "cancel-request.quiet": say_after(notifies("$/cancel_request")),
    "cancel-request.honoured": do_not_receive(notifies("$/cancel_request")),
    "error.unknown-method": accept(asks("session/antiphon_check"), {}),
    "error.unknown-method-code": change_reply(asks("session/antiphon_check"), coded(-32603)),
    "error.unknown-extension": change_reply(asks("_antiphon/unknown"), coded(-32603)),
    "error.missing": accept(_is_empty, SESSION),
    "error.missing-code": change_reply(_is_empty, coded(-32603)),
    "error.wrong-type": accept(NUMBER, SESSION),
    "error.list": accept(_lists_params, SESSION),
    "error.no-params": accept(_names_no_params, SESSION),
    "error.usable": when(refuse, after(_names_no_params, OPENS, times=1)),
    "error.private": change_reply(NUMBER, traced),
    "error.unknown-session-code": change_reply(NOWHERE, coded(-32603)),
}
