"""Faults of those who meet odd lines, additions and signing in."""

from collections.abc import Iterable
from typing import Any

from antiphon.traffic.entries import Direction
from tests.conformance.faults.messages import FENCE, OPENS
from tests.conformance.faults.one_message import (
    Wanted,
    accept,
    after,
    asks,
    be_silent_after,
    before,
    leave,
    leave_after,
    lose_reply,
    refuse,
    say_after,
    when,
)  # fmt: skip
from tests.conformance.faults.one_scenario import leaves
from tests.conformance.faults.wire_faults import Faults
from tests.conformance.memory import Fault

REFUSAL = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid Request"}}
MEBIBYTE = 1 << 20


def _is_junk(line: Any) -> bool:
    return isinstance(line, bytes) and line.endswith(b"not JSON")


def _is_no_text(line: Any) -> bool:
    return isinstance(line, bytes) and b"\xff" in line


def _is_batch(line: Any) -> bool:
    return isinstance(line, list)


def _is_nonsense(line: Any) -> bool:
    return isinstance(line, dict) and "foo" in line


def _has_no_id(line: Any) -> bool:
    return isinstance(line, dict) and "method" in line and line.get("id", 0) is None


def _has_no_version(line: Any) -> bool:
    return isinstance(line, dict) and "method" in line and "jsonrpc" not in line


def _is_deep(line: Any) -> bool:
    return isinstance(line, dict) and isinstance(line.get("params"), dict) and "deep" in line["params"]


def _refuses(line: Any) -> bool:
    return isinstance(line, list) or (isinstance(line, dict) and "error" in line and line.get("id") is None)


def _fence(name: str) -> Wanted:
    return asks(FENCE, lambda params: name in params)


def _of_size(size: int) -> Wanted:
    return asks(FENCE, lambda params: len(params.get("text", "")) == size)


def _has_permission(line: Any) -> bool:
    return isinstance(line, dict) and isinstance(line.get("result"), dict) and "antiphonCheck" in line["result"]


def _minds_additions() -> Fault:
    """The turn fails in which an answer about permission had something in it that is not known."""
    minding = False

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        nonlocal minding
        if direction is Direction.C2A:
            minding = minding or _has_permission(message)
        elif minding and isinstance(message, dict) and "stopReason" in (message.get("result") or ()):
            minding = False
            message = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "What is that?"}}
        yield message

    return fault


SIGNS_IN = asks("authenticate", lambda params: params.get("methodId") == "demo")
GUESSES = asks("authenticate", lambda params: params.get("methodId") == "antiphon-check-nothing")
LEAVES_BE = asks("logout")

FAULTS: Faults = {
    "junk.survives": leave(_is_junk),
    "junk.answer": say_after(_is_junk, REFUSAL),
    "utf8.survives": leave(_is_no_text),
    "nonsense.survives": leave(_is_nonsense),
    "nonsense.refused": be_silent_after(_is_nonsense, _refuses),
    "scalar.survives": leave(lambda line: line == 7),
    "blank.ignored": when(say_after, after(_fence("next"), asks(FENCE), times=1)),
    "batch.survives": leave(_is_batch),
    "batch.answered": be_silent_after(_is_batch, _refuses),
    "id-null.survives": leave(_has_no_id),
    "nameless.survives": leave(_has_no_version),
    "nesting.survives": leave(_is_deep),
    "rpc.extra-member": lose_reply(lambda line: "antiphonCheck" in line),
    "line.crlf": lose_reply(lambda line: line.get("id") == "crlf"),
    "line.pieces": lose_reply(_fence("pieces")),
    "line.together": lose_reply(asks(FENCE, lambda params: params.get("line") == 4)),
    "line.long": lose_reply(_of_size(MEBIBYTE)),
    "line.huge": lose_reply(_of_size(8 * MEBIBYTE)),
    "meta.new": refuse(asks("session/new", lambda params: "traceparent" in (params.get("_meta") or ()))),
    "meta.prompt": refuse(asks("session/prompt", lambda params: bool(params.get("_meta")))),
    "unknown.new": refuse(asks("session/new", lambda params: "antiphonCheck" in params)),
    "unknown.prompt": refuse(asks("session/prompt", lambda params: "antiphonCheck" in params)),
    "nulls.new": refuse(asks("session/new", lambda params: params.get("_meta", 0) is None)),
    "unknown.permission": _minds_additions,
    "auth.unknown": accept(GUESSES, {}),
    "auth.session": when(refuse, after(GUESSES, OPENS, times=1)),
    "auth.signs-in": when(refuse, before(LEAVES_BE, SIGNS_IN)),
    "auth.logout": refuse(LEAVES_BE),
    "auth.after-logout": when(refuse, after(LEAVES_BE, OPENS, times=1)),
    "auth.back": when(refuse, after(LEAVES_BE, SIGNS_IN, times=1)),  # the scenarios after this one sign in
    "process.stays": leaves("turn"),
    "error.stays": leave_after(asks("session/new", lambda params: "cwd" not in params)),
}
