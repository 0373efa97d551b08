"""For each requirement of servers a fault that breaks it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from antiphon.conformance.remote.raw_websocket import BINARY, CLOSE, CONT, PONG, TEXT, RawFrame
from tests.conformance.remote.broken_server import TOKEN, Reply, Seen, ServerFault, binary, closed

Fault = Callable[[], ServerFault]
"""Makes a fault: it may remember, so there is one for each check."""


def _status(status: int, of: Callable[[Seen], bool]) -> Fault:
    """Another status for some requests."""

    def reply(seen: Seen, found: Reply) -> None:
        if of(seen):
            found.status = status

    return lambda: ServerFault(reply=reply)


def _header(name: str, value: str | None, of: Callable[[Seen], bool] = lambda seen: True) -> Fault:
    def reply(seen: Seen, found: Reply) -> None:
        if of(seen):
            found.put(name, value)

    return lambda: ServerFault(reply=reply)


def _asks(method: str) -> Callable[[Seen], bool]:
    return lambda seen: seen.method == "POST" and seen.asked == method


def _opens_stream(seen: Seen) -> bool:
    return seen.method == "GET" and not seen.get("upgrade")


def _of_session(seen: Seen) -> bool:
    return _opens_stream(seen) and bool(seen.get("acp-session-id"))


def _drops(wanted: Callable[[Any], bool]) -> Fault:
    """Messages of the server that never come."""
    return lambda: ServerFault(message=lambda message, seen: [] if wanted(message) else [message])


def _answers(*ids: object) -> Callable[[Any], bool]:
    return lambda message: "method" not in message and message.get("id") in ids


def _is_update(message: Any) -> bool:
    return bool(message.get("method") == "session/update")


def _to_connection(wanted: Callable[[Any], bool], *, also: bool = False) -> Fault:
    """Messages that come on the stream of the connection, or also there."""

    def message(found: Any, seen: Seen | None) -> list[Any]:
        if seen is None or not seen.get("acp-session-id") or not wanted(found):
            return [found]
        return [found, ("connection", found)] if also else [("connection", found)]

    return lambda: ServerFault(message=message)


def _once(name: str) -> Fault:
    """The same connection id for all."""

    def made() -> ServerFault:
        first: list[str] = []

        def reply(seen: Seen, found: Reply) -> None:
            if found.get(name):
                first.append(found.get(name))
                found.put(name, first[0])

        return ServerFault(reply=reply)

    return made


def _silent_after_refusal() -> ServerFault:
    refused: list[int] = []

    def reply(seen: Seen, found: Reply) -> None:
        if found.status >= 400:
            refused.append(found.status)

    return ServerFault(reply=reply, message=lambda message, seen: [] if refused else [message])


def _gone_twice() -> ServerFault:
    """A stream of a session is opened once."""
    opened: list[str] = []

    def request(seen: Seen) -> Reply | None:
        if not _of_session(seen):
            return None
        opened.append(seen.get("acp-session-id"))
        return Reply(404, []) if opened.count(opened[-1]) > 1 else None

    return ServerFault(request=request)


def _knows_only_its_own() -> ServerFault:
    """A stream is opened for sessions that this connection has opened."""
    made: set[str] = set()

    def request(seen: Seen) -> Reply | None:
        if _asks("session/new")(seen):
            made.add(seen.get("acp-connection-id"))
        return Reply(404, []) if _of_session(seen) and seen.get("acp-connection-id") not in made else None

    return ServerFault(request=request)


def _forgets_what_was_early() -> ServerFault:
    """What a session sends before its stream is opened is lost."""
    early: list[bool] = []

    def request(seen: Seen) -> Reply | None:
        if _asks("session/prompt")(seen):
            early.append(True)
        return None

    def message(found: Any, seen: Seen | None) -> list[Any]:
        return [] if early and seen is not None and seen.get("acp-session-id") else [found]

    return ServerFault(request=request, message=message)


def _without_last_id() -> ServerFault:
    def request(seen: Seen) -> Reply | None:
        seen.put("Last-Event-ID", None)
        return None

    return ServerFault(request=request)


def _takes(method: str) -> Fault:
    """Messages of the client that go nowhere."""

    def request(seen: Seen) -> Reply | None:
        found = seen.message if seen.method == "POST" else None
        taken = isinstance(found, dict) and (found.get("method", "") == method)
        return Reply(202, []) if taken else None

    def sent(message: Any) -> list[Any]:
        return [] if isinstance(message, dict) and message.get("method", "") == method else [message]

    return lambda: ServerFault(request=request, sent=sent)


def _numbers_alike(message: Any, seen: Seen | None) -> list[Any]:
    return [message | {"id": 71}] if _answers("71")(message) else [message]


def _second_is_another() -> ServerFault:
    """Updates of the second session name one that does not exist."""
    sessions: list[str] = []

    def message(found: Any, seen: Seen | None) -> list[Any]:
        opened = found.get("result", {}).get("sessionId") if isinstance(found.get("result"), dict) else None
        if opened:
            sessions.append(opened)
        if _is_update(found) and sessions[1:2] == [found["params"]["sessionId"]]:
            return [found | {"params": found["params"] | {"sessionId": "another"}}]
        return [found]

    return ServerFault(message=message)


def _second_prompt_lost() -> ServerFault:
    ended: list[object] = []

    def message(found: Any, seen: Seen | None) -> list[Any]:
        if isinstance(found.get("result"), dict) and "stopReason" in found["result"]:
            ended.append(found["id"])
            return []
        return [found]

    return ServerFault(message=message)


def _without_id(message: Any, seen: Seen | None) -> list[Any]:
    if message.get("method") == "session/request_permission":
        return [{key: value for key, value in message.items() if key != "id"}]
    return [message]


def _to_all(message: Any, seen: Seen | None) -> list[Any]:
    return [("all", message)] if _answers("of 0", "of 1")(message) else [message]


def _with_token() -> ServerFault:
    def request(seen: Seen) -> Reply | None:
        seen.put("Authorization", f"Bearer {TOKEN}")
        return None

    return ServerFault(request=request)


def _without_origin() -> ServerFault:
    def request(seen: Seen) -> Reply | None:
        seen.put("Origin", None)
        return None

    return ServerFault(request=request)


def _load_fails(message: Any, seen: Seen | None) -> list[Any]:
    error = {"code": -32603, "message": "lost"}
    return [{"jsonrpc": "2.0", "id": "load", "error": error}] if _answers("load")(message) else [message]


def _changed_body(body: bytes, of: Callable[[Seen], bool]) -> Fault:
    def reply(seen: Seen, found: Reply) -> None:
        if of(seen) and found.status == 202:
            found.body = body

    return lambda: ServerFault(reply=reply)


BOTH: dict[str, Fault] = {
    "ids": lambda: ServerFault(message=_numbers_alike),
    "concurrent": _second_prompt_lost,
    "sessions-apart": _second_is_another,
    "cancel": _takes("session/cancel"),
    "request": lambda: ServerFault(message=_without_id),
    "answer": _takes(""),
    "token": _with_token,
}
"""Those that both profiles have, without the prefix."""

HTTP_FAULTS: dict[str, Fault] = {
    **{f"http.{id}": fault for id, fault in BOTH.items()},
    "http.connections-apart": lambda: ServerFault(message=_to_all),
    "http.initialize": _status(201, _asks("initialize")),
    "http.initialize-type": _header("Content-Type", "text/plain", _asks("initialize")),
    "http.connection-id": _header("Acp-Connection-Id", None),
    "http.connection-unique": _once("Acp-Connection-Id"),
    "http.connection-missing": _status(404, lambda seen: seen.method == "POST" and not seen.get("acp-connection-id") and seen.asked != "initialize"),
    "http.stream-connection-missing": _status(404, lambda seen: seen.method == "GET" and not seen.get("acp-connection-id")),
    "http.connection-unknown": _status(400, lambda seen: seen.method == "POST" and "no-such" in seen.get("acp-connection-id")),
    "http.stream-connection-unknown": _status(400, lambda seen: seen.method == "GET" and "no-such" in seen.get("acp-connection-id")),
    "http.delete-unknown": _status(202, lambda seen: seen.method == "DELETE"),
    "http.content-type": _status(202, lambda seen: seen.method == "POST" and "plain" in seen.get("content-type")),
    "http.accept": _status(200, lambda seen: seen.get("accept") == "application/json"),
    "http.not-json": _status(500, lambda seen: seen.body.startswith(b"{this")),
    "http.not-object": _status(202, lambda seen: seen.body == b"7"),
    "http.batch": _status(202, lambda seen: seen.body.startswith(b"[")),
    "http.initialize-again": _status(200, lambda seen: seen.asked == "initialize" and bool(seen.get("acp-connection-id"))),
    "http.session-mismatch": _status(202, _asks("session/set_mode")),
    "http.method": _status(404, lambda seen: seen.method == "PUT"),
    "http.refusals-survived": _silent_after_refusal,
    "http.delete": _status(500, lambda seen: seen.method == "DELETE"),
    "http.delete-ends": lambda: ServerFault(keeps_streams=True),
    "http.delete-gone": _status(202, _asks("_antiphon/fence")),
    "http.large": _status(413, lambda seen: len(seen.body) > 1_000_000),
    "http.stream": _header("Content-Type", "text/plain", _opens_stream),
    "http.stream-cache": _header("Cache-Control", None, _opens_stream),
    "http.accepted": _status(200, _asks("session/new")),
    "http.accepted-empty": _changed_body(b"{}", _asks("session/new")),
    "http.new-stream": _drops(_answers("new")),
    "http.error-stream": _status(400, _asks("_antiphon/fence")),
    "http.event": lambda: ServerFault(message=lambda message, seen: [message, 7]),
    "http.session-stream": _status(404, _of_session),
    "http.session-updates": _to_connection(_is_update),
    "http.session-only": _to_connection(_is_update, also=True),
    "http.session-response": _to_connection(lambda message: "result" in message),
    "http.buffered": _forgets_what_was_early,
    "http.stream-again": _gone_twice,
    "http.stream-twice": lambda: ServerFault(keeps_streams=True),
    "http.last-event-id": _without_last_id,
    "http.load-stream": _knows_only_its_own,
    "http.load": lambda: ServerFault(message=_load_fails),
    "http.origin": _without_origin,
    "http.cors": _header("Access-Control-Allow-Origin", "*"),
}  # fmt: skip


# --- frames


def _of_server(wanted: int, change: Callable[[RawFrame], list[RawFrame]]) -> Fault:
    def frame(of_client: bool, found: RawFrame) -> list[RawFrame]:
        return change(found) if not of_client and found.opcode == wanted else [found]

    return lambda: ServerFault(frame=frame)


def _closes(code: int, wanted: Callable[[RawFrame], bool]) -> Fault:
    """A server that closes the connection because of what a client sent."""

    def frame(of_client: bool, found: RawFrame) -> list[RawFrame]:
        return [closed(code)] if of_client and wanted(found) else [found]

    return lambda: ServerFault(frame=frame)


def _changes(change: Callable[[RawFrame], list[RawFrame]]) -> Fault:
    """A server that takes what a client sent for something else."""
    return lambda: ServerFault(frame=lambda of_client, found: change(found) if of_client else [found])


def _early_session(message: Any, seen: Seen | None) -> list[Any]:
    return (
        [{"jsonrpc": "2.0", "id": "early", "result": {"sessionId": "one"}}] if _answers("early")(message) else [message]
    )


def _error_at_first(message: Any, seen: Seen | None) -> list[Any]:
    error = {"code": -32603, "message": "failed"}
    return [{"jsonrpc": "2.0", "id": "first", "error": error}] if _answers("first")(message) else [message]


def _not_ours(message: Any, seen: Seen | None) -> list[Any]:
    """The response to one connection, once more with the id that another used."""
    return [message, message | {"id": "of 0"}] if _answers("of 1")(message) else [message]


def _dies_with_another() -> ServerFault:
    return ServerFault(ends_all=True)


SOCKET_FAULTS: dict[str, Fault] = {
    **{f"ws.{id}": fault for id, fault in BOTH.items()},
    "ws.connections-apart": lambda: ServerFault(message=_not_ours),
    "ws.upgrade": _header("Sec-WebSocket-Accept", "bm90IHRoZSByaWdodCBvbmUhISE="),
    "ws.connection-id": _header("Acp-Connection-Id", None),
    "ws.connection-unique": _once("Acp-Connection-Id"),
    "ws.not-offered": _header("Sec-WebSocket-Protocol", "acp"),
    "ws.initialize": lambda: ServerFault(message=_error_at_first),
    "ws.text": _of_server(TEXT, lambda frame: [frame, binary(b"{}")]),
    "ws.unmasked": _of_server(TEXT, lambda frame: [replace(frame, masked=True)]),
    "ws.pong": _of_server(PONG, lambda frame: [replace(frame, payload=b"x")]),
    "ws.fragments": _changes(lambda frame: [] if frame.opcode == CONT or not frame.fin else [frame]),
    "ws.close": _of_server(CLOSE, lambda frame: []),
    "ws.binary": _closes(1003, lambda frame: frame.opcode == BINARY),
    "ws.junk-survived": _closes(1002, lambda frame: frame.payload.startswith(b"{this")),
    "ws.junk": _drops(lambda message: message.get("error", {}).get("code") == -32700),
    "ws.batch-survived": _closes(1002, lambda frame: frame.payload.startswith(b"[")),
    "ws.batch": _drops(lambda message: message.get("error", {}).get("code") == -32600),
    "ws.initialize-again": _closes(1002, lambda frame: b'"again"' in frame.payload),
    "ws.initialize-first": lambda: ServerFault(message=_early_session),
    "ws.masked": _changes(lambda frame: [replace(frame, masked=True)]),
    "ws.utf8": _changes(lambda frame: [replace(frame, payload=frame.payload.replace(b"\xff\xfe", b"??"))]),
    "ws.large": _closes(1009, lambda frame: len(frame.payload) > 1_000_000),
    "ws.others-stay": _dies_with_another,
    "ws.origin": _without_origin,
}
