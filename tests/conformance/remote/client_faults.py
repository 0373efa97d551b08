"""For each requirement of clients of the remote profiles a fault that breaks it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from antiphon.conformance.remote.raw_websocket import BINARY, CLOSE, CONT, PONG, TEXT, RawFrame
from tests.conformance.remote.broken_client import ClientFault
from tests.conformance.remote.broken_server import Reply, Seen, ServerFault, closed

Fault = Callable[[], ClientFault]


def _changes(change: Callable[[Seen], None], of: Callable[[Seen], bool] = lambda seen: True) -> Fault:
    """Requests that a client sends otherwise."""

    def request(seen: Seen) -> Reply | None:
        if of(seen):
            change(seen)
        return None

    return lambda: ClientFault(ServerFault(request=request))


def _header(name: str, value: str | None, of: Callable[[Seen], bool]) -> Fault:
    return _changes(lambda seen: seen.put(name, value), of)


def _asks(method: str) -> Callable[[Seen], bool]:
    return lambda seen: seen.method == "POST" and seen.asked == method


def _answers(seen: Seen) -> bool:
    return seen.method == "POST" and isinstance(seen.message, dict) and "result" in seen.message


def _of_session(seen: Seen) -> bool:
    return seen.method == "GET" and bool(seen.get("acp-session-id"))


def _swallows(status: int, of: Callable[[Seen], bool], times: int = 99) -> Fault:
    """Requests that a client does not send."""

    def made() -> ClientFault:
        left = [times]

        def request(seen: Seen) -> Reply | None:
            if not of(seen) or not left[0]:
                return None
            left[0] -= 1
            return Reply(status, [])

        return ClientFault(ServerFault(request=request))

    return made


def _only_first_stream() -> ClientFault:
    opened: list[str] = []

    def request(seen: Seen) -> Reply | None:
        if not _of_session(seen):
            return None
        opened.append(seen.get("acp-session-id"))
        return Reply(404, []) if len(opened) > 1 else None

    return ClientFault(ServerFault(request=request))


def _status(status: int, of: Callable[[Seen], bool]) -> Fault:
    """Replies that a client takes for others."""

    def reply(seen: Seen, found: Reply) -> None:
        if of(seen):
            found.status, found.body = status, b""

    return lambda: ClientFault(ServerFault(reply=reply))


def _ignores_end(message: Any, seen: Seen | None) -> list[Any]:
    ends = isinstance(message, dict) and isinstance(message.get("result"), dict) and "stopReason" in message["result"]
    return [] if ends else [message]


def _naive(message: Any, seen: Seen | None) -> list[Any]:
    """A parser that takes every `data:` line for a message, as that of the proxy does."""
    return [message]


def _twice(of: Callable[[Seen], bool]) -> Fault:
    return lambda: ClientFault(ServerFault(twice=of))


def _frames(change: Callable[[bool, RawFrame], list[RawFrame]]) -> Fault:
    return lambda: ClientFault(ServerFault(frame=change))


def _early(message: Any) -> list[Any]:
    first = {"jsonrpc": "2.0", "method": "_antiphon/early", "params": {}}
    return [first, message] if isinstance(message, dict) and message.get("method") == "initialize" else [message]


def _drops_cancel(message: Any) -> list[Any]:
    return [] if isinstance(message, dict) and message.get("method") == "session/cancel" else [message]


def _with_binary(of_client: bool, frame: RawFrame) -> list[RawFrame]:
    return [frame, RawFrame(BINARY, b"{}", masked=True)] if of_client and frame.opcode == TEXT else [frame]


BOTH: dict[str, Fault] = {
    "turn": lambda: ClientFault(ServerFault(message=_ignores_end)),
    "redirect": lambda: ClientFault(ServerFault(follows="without")),
    "redirect-token": lambda: ClientFault(ServerFault(follows="token")),
    "lost": lambda: ClientFault(forgives=True),
}

HTTP_FAULTS: dict[str, Fault] = {
    **{f"http.{id}": fault for id, fault in BOTH.items()},
    "http.prompt-once": _twice(_asks("session/prompt")),
    "http.initialize-bare": _header("Acp-Connection-Id", "mine", _asks("initialize")),
    "http.post-type": _header("Content-Type", "text/plain", _asks("session/new")),
    "http.connection-header": _header("Acp-Connection-Id", None, _asks("session/prompt")),
    "http.accept": _header("Accept", "*/*", _of_session),
    "http.connection-stream": _twice(lambda seen: seen.method == "GET" and not seen.get("acp-session-id")),
    "http.session-stream": _twice(_of_session),
    "http.session-header": _header("Acp-Session-Id", None, _asks("session/prompt")),
    "http.response-header": _header("Acp-Session-Id", None, _answers),
    "http.cookies": _header("Cookie", None, _asks("session/prompt")),
    "http.delete": _swallows(202, lambda seen: seen.method == "DELETE"),
    "http.events": lambda: ClientFault(ServerFault(message=_naive)),
    "http.stream-again": _only_first_stream,
    "http.last-event-id": _header("Last-Event-ID", None, _of_session),
    "http.refused": _status(202, _asks("session/new")),
    "http.cancel": _header("Acp-Session-Id", None, _asks("session/cancel")),
    "http.load-stream": _swallows(404, _of_session, times=1),
}

SOCKET_FAULTS: dict[str, Fault] = {
    **{f"ws.{id}": fault for id, fault in BOTH.items()},
    "ws.prompt-once": lambda: ClientFault(repeats=True),
    "ws.handshake": _changes(lambda seen: seen.put("Sec-WebSocket-Version", "8")),
    "ws.initialize-first": lambda: ClientFault(ServerFault(sent=_early)),
    "ws.text": _frames(_with_binary),
    "ws.masked": _frames(lambda of_client, frame: [replace(frame, masked=False)]),
    "ws.close": _frames(lambda of_client, frame: [] if of_client and frame.opcode == CLOSE else [frame]),
    "ws.fragments": _frames(
        lambda of_client, frame: [] if not of_client and (frame.opcode == CONT or not frame.fin) else [frame]
    ),
    "ws.pong": _frames(lambda of_client, frame: [] if of_client and frame.opcode == PONG else [frame]),
    "ws.binary": _frames(
        lambda of_client, frame: [closed(1003)] if not of_client and frame.opcode == BINARY else [frame]
    ),
    "ws.large": _frames(lambda of_client, frame: [closed(1009)] if len(frame.payload) > 1_000_000 else [frame]),
    "ws.cancel": lambda: ClientFault(ServerFault(sent=_drops_cancel)),
}
