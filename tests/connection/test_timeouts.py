"""Every wait for a peer has a timeout with a name: the table is whole, the page says the same, and no request is sent around it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.connection.reports import Report
from antiphon.errors import AcpError, RequestTimeout
from antiphon.protocol import timeouts, v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from antiphon.rpc.peer import Stray
from tests.connection.ends import Raw, against_raw, answer

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "antiphon"
CALLS = [each for each in m.ALL if isinstance(each, Call)]
NAMES = ("START_TIMEOUT", "OPEN_TIMEOUT", "REQUEST_TIMEOUT", "APPROVAL_TIMEOUT", "NO_TIMEOUT")
SENDS = ("request", "stream", "work", "control", "call")
"""The methods of ours that send a request and wait for its response."""

OTHERS = {
    "agent/prompts.py": "a turn: it ends with its answer or its cancellation, which TURN_GRACE bounds",
    "agent/work.py": "the end of work that was cancelled: WORK_GRACE",
    "doctor/runner.py": "a check of `doctor`: its --timeout",
    "client/updates.py": "a person; released when the turn is cancelled or the session closed",
    "client/relay.py": "the reader of the updates, who may be slow; released when the session is closed",
    "client/sync.py": "the connection that is made, which has START_TIMEOUT",
    "client/worker.py": "a person: a handler of the user; released when its thread ends",
    "connection/bridge.py": "two peers; what one of them waits for is bounded at its own end",
    "connection/connection.py": "the table",
    "connection/stream.py": "the response to a prompt, which may be cancelled: then CANCEL_GRACE",
    "duet/history/writer.py": "the disk",
    "journal/runs.py": "the disk",
    "fleet/access/tokens.py": "ECHO_LIMIT, around it",
    "fleet/journal.py": "the broker: an append is tried until it is known; over when the session is, and closing has a limit",
    "fleet/local.py": "START_TIMEOUT, around it",
    "fleet/nats/answers.py": "the limit that its caller gives",
    "fleet/nats/server_link.py": "CONNECT_LIMIT and CLOSE_LIMIT; pings find a server that is gone",
    "fleet/records/appends.py": "the broker: an append is tried until it is known; over when the session is, and closing has a limit",
    "fleet/records/queue.py": "the broker: an append is tried until it is known; over when the session is, and closing has a limit",
    "fleet/rows.py": "WRITE_TIMEOUT, around it",
    "fleet/simulation/server.py": "the schedule of a test",
    "gateway/access/login.py": "LOGIN_TIMEOUT, around it",
    "gateway/agents/link.py": "the timeout that its caller gives",
    "gateway/requests.py": "a person: `answer_timeout` of the limits, if there is one; over when the turn or the agent is",
    "gateway/session.py": "the disk; over when the session is",
    "gateway/session_methods.py": "the response of an agent to `session/load`; over when its process is",
    "gateway/turns.py": "a turn: the caller of `drain` gives its seconds; over when the session is",
    "engines/cli_driver.py": "a turn, which may be cancelled: then INTERRUPT_LIMIT",
    "engines/codex/prompt.py": "the id of a turn, which may be cancelled: then INTERRUPT_LIMIT and END_LIMIT",
    "engines/process.py": "output of a program; ends with it. A response of a CLI: CONTROL_LIMIT, REQUEST_LIMIT",
    "local/commands.py": "output of a command; ends with it",
    "remote/connection.py": "OPEN_TIMEOUT, around it",
    "remote/link.py": "OPEN_TIMEOUT, around it",
    "store/database.py": "the disk",
    "transports/asgi/connections.py": "the response to `initialize`, INITIALIZE_TIMEOUT; and the end of a connection: that is what it is for",
    "transports/pipes.py": "the peer reads what was sent; ends with the connection",
}
"""Where something is waited for in another way than by a request on a connection, and what bounds it."""


SDKS = ("rpc", "connection", "transports", "remote", "permission", "agent", "client")

_READER = "a peer that does not read: back-pressure, which ends with the connection; closing waits CLOSE_GRACE"
_TURN = "a turn, which may be cancelled: then CANCEL_GRACE, after which the agent is ended"
_LADDER = "the ladder: STDIN_GRACE, TERM_GRACE, KILL_GRACE"

WAITS = {
    "agent/commands.py::__aenter__": "APPROVAL_TIMEOUT, around it",
    "agent/commands.py::_ended": "a command that runs: the `timeout` of the caller, or the end of the turn",
    "agent/service.py::serve": "the client, until it is gone; closing has HANDLER_GRACE and CLOSE_GRACE",
    "agent/sessions.py::_end": "a hook of the agent's own; the client that waits for it has REQUEST_TIMEOUT",
    "agent/prompts.py::_end": "TURN_GRACE, in the task that is waited for",
    "agent/prompts.py::_perform": "a turn: its answer, or its cancellation, then TURN_GRACE",
    "agent/prompts.py::wait_idle": "turns: each ends with its answer or its cancellation, which TURN_GRACE bounds",
    "agent/prompts.py::take": "the turn before, or the cancellation of this one",
    "client/link.py::_ask_to_sign_in": "a person who signs in for another request",
    "client/link.py::connected": "another caller that starts the agent: START_TIMEOUT",
    "client/link.py::close": f"a start that is given up; {_LADDER}",
    "client/link.py::kill": f"another caller that starts or kills the agent: START_TIMEOUT; {_LADDER}",
    "client/updates.py::wait": "the next state, or the end of the connection: that is what it is for; `wait_idle` takes a timeout",
    "client/updates.py::wait_for": "a person; released when the turn is cancelled or the session closed",
    "client/relay.py::close": "a task of ours that was cancelled",
    "client/turn.py::_read_out": "CANCEL_GRACE, around it",
    "client/turn.py::_more": _TURN,
    "client/turn.py::_wait": _TURN,
    "client/session.py::_cancel_turns": _TURN,
    "client/session.py::close": "turns that are cancelled, CANCEL_GRACE; then `session/close`, REQUEST_TIMEOUT",
    "client/session.py::_ready": "another caller that opens the session: OPEN_TIMEOUT",
    "client/sync.py::_hold": "the caller, until it leaves the block",
    "client/sync.py::begin": "the connection that is made: START_TIMEOUT",
    "client/sync.py::end": _LADDER,
    "client/terminals.py::_end": _LADDER,
    "client/terminals.py::close": _LADDER,
    "client/terminals.py::wait_for_exit": "a command that runs; released with its terminal",
    "client/turn.py::__aexit__": _TURN,
    "client/turn.py::cancel": _TURN,
    "client/worker.py::_until_stopped": "the caller, until it leaves the block",
    "client/worker.py::run": "what it runs, each with its own timeout; it ends with the loop",
    "client/worker.py::start": "our own thread, which ends if it cannot make a loop",
    "connection/answers.py::wait_idle": "our own handlers: EOF_GRACE after the peer is gone, then they are cancelled",
    "connection/adapter.py::drain": _READER,
    "connection/bridge.py::_close": f"CLOSE_GRACE; {_LADDER}",
    "connection/bridge.py::_wait_for_responses": "EOF_GRACE, around it",
    "connection/bridge.py::run": "the two peers, until one is gone: that is what it is for",
    "connection/connection.py::close": f"HANDLER_GRACE; {_LADDER}",
    "connection/connection.py::wait_closed": "the peer, until it is gone: that is what it is for",
    "connection/stream.py::__anext__": _TURN,
    "connection/stream.py::close": _TURN,
    "connection/stream.py::take": _TURN,
    "connection/outbox.py::__await__": _READER,
    "connection/outbox.py::drain": _READER,
    "remote/reconnection.py::_use": "the connection, until it is lost: that is what it is for",
    "remote/link.py::_establish": "OPEN_TIMEOUT, around it, as long as the server sends something",
    "remote/reconnection.py::close": "tasks of ours that were cancelled; closing the connection has CLOSE_TIMEOUT",
    "remote/reconnection.py::drain": f"the next connection: requests wait WAIT_TIMEOUT for it; {_READER}",
    "transports/asgi/connections.py::_take": "our own reader that pauses: back-pressure, which ends with the connection",
    "transports/asgi/connections.py::_wait": "KEEP_ALIVE_INTERVAL, around it",
    "transports/asgi/connections.py::_write": "the next frame, or the end of the connection: that is what it is for",
    "transports/asgi/connections.py::close": "CLOSE_TIMEOUT, around it; then a task of ours that was cancelled",
    "transports/asgi/connections.py::drain": _READER,
    "transports/asgi/endpoint.py::_initialize": "INITIALIZE_TIMEOUT, around it",
    "transports/asgi/endpoint.py::_run": "the connection, until it is over: that is what it is for; IDLE_TIMEOUT without its client",
    "transports/asgi/endpoint.py::_websocket": "the connection, until it is over: that is what it is for; PING_INTERVAL finds a client that is gone",
    "transports/asgi/endpoint.py::close": "CLOSE_TIMEOUT for each connection",
    "transports/asgi/http2.py::listen_http2": "the end of the server: SHUTDOWN_TIMEOUT",
    "transports/asgi/server.py::listen": "the end of the server: SHUTDOWN_TIMEOUT",
    "transports/base.py::_call_when_drained": f"{_READER}; CHOKED_FOR goes on without it",
    "transports/base.py::send": _READER,
    "transports/base.py::take": "the next frame, or the end of the connection: that is what it is for",
    "transports/http.py::_close": "CLOSE_TIMEOUT, around it; then tasks of ours that were cancelled",
    "transports/http.py::_receive_stream": "our own reader that pauses: back-pressure, which ends with the connection",
    "transports/http.py::_post_all": "the next message, or the end of the connection: that is what it is for",
    "transports/http.py::close": "CLOSE_TIMEOUT, twice: what is left to post, and the last request",
    "transports/http.py::drain": _READER,
    "transports/http.py::events": "our own reader that pauses: back-pressure, which ends with the connection",
    "transports/http.py::quiet": "QUIET, around it, as long as the history of a session arrives",
    "transports/http.py::ready": "a stream that is opened or refused: OPEN_TIMEOUT",
    "transports/http.py::run": "STREAM_RETRIES, around it",
    "transports/process.py::release": "RELEASE_LIMIT, around it",
    "transports/memory.py::drain": _READER,
    "transports/pipes.py::_send_the_rest": "CLOSE_GRACE, around it",
    "transports/process.py::_wait": "the seconds that it is given: EXIT_GRACE, STDIN_GRACE, KILL_GRACE",
    "transports/process.py::close": _LADDER,
    "transports/websocket.py::close": "CLOSE_TIMEOUT, around it",
    "transports/websocket.py::drain": _READER,
}
"""Every wait of the core and the two SDKs that has no timeout in its own call, with what bounds it or why nothing does."""


def test_every_wait_of_the_core_and_the_sdks_has_a_limit_with_a_name_or_a_reason() -> None:
    paths = [path for room in SDKS for path in sorted((SOURCE / room).rglob("*.py"))]
    found = {f"{path.relative_to(SOURCE)}::{function}" for path in paths for function in _waits(_tree(path))}
    assert found - set(WAITS) == set(), "a new wait: give it a timeout, or list it here with what bounds it"
    assert set(WAITS) - found == set(), "no longer there"


def test_the_limits_that_bound_a_wait_are_there() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    named = {
        name for reason in (*WAITS.values(), *OTHERS.values()) for name in re.findall(r"\b[A-Z]{3,}_[A-Z_]+\b", reason)
    }
    assert len(named) > 10
    for name in named:
        assert re.search(rf"^{name}(: Final)? = ", source, re.MULTILINE), name


def _waits(tree: ast.Module) -> Iterator[str]:
    """Yield the functions that wait without a timeout in the call itself: for an event, a task, a lock, a reader or a thread."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        match node:
            case ast.AsyncWith(items=items):
                waits = any(isinstance(item.context_expr, ast.Attribute) for item in items)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="wait"), keywords=keywords):
                waits = "timeout" not in {word.arg for word in keywords}
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="shield" | "gather")):
                waits = True
            case ast.Call(func=ast.Attribute(attr="wait" | "join" | "acquire" | "drain"), args=[], keywords=[]):
                waits = True
            case _:
                waits = False
        if waits and isinstance(node, ast.AsyncWith | ast.Call):
            around = [each.name for each in functions if each.lineno <= node.lineno <= (each.end_lineno or 0)]
            yield around[-1] if around else ""


def test_the_page_has_the_timeout_of_every_method() -> None:
    page = (ROOT / "docs" / "core.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+_TIMEOUT)` \| ([^|]+) \| (.+) \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == list(NAMES)
    shown = {method: name for name, _, methods in rows for method in re.findall(r"`([^`]+)`", methods)}
    for name, seconds, _ in rows:
        value = getattr(timeouts, name)
        assert seconds.strip() == ("none" if value is None else f"{value:g} s"), name
    known = {call.name for call in CALLS}
    assert set(shown) == known, "a method without a row, or a row without a method"
    assert {method: getattr(timeouts, name) for method, name in shown.items()} == {
        call.name: call.timeout for call in CALLS
    }


@given(
    st.sampled_from(CALLS) | st.builds(Call, st.text(), st.just(v1.Logout), st.just(v1.LogoutResult)),
    st.none() | st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
)
def test_what_is_given_counts_then_the_general_timeout_then_the_default(
    call: Call[Any, Any], own: float | None, general: float | None
) -> None:
    assert call.timeout_for() == call.timeout
    assert call.timeout_for(own, general) == own
    assert call.timeout_for(general=general) == (None if call.timeout is None else general)
    assert call in CALLS or call.timeout == timeouts.REQUEST_TIMEOUT


def test_every_request_in_the_source_has_a_timeout() -> None:
    """By its method, which the table has, or by one that is passed on."""
    found = list(_requests())
    assert len(found) > 40, "the search is broken"
    bare = [where for where, call, taken in found if not _is_bounded(call, taken)]
    assert bare == []


def test_every_other_wait_is_listed_with_its_bound() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(isinstance(node, ast.Attribute) and node.attr == "create_future" for node in ast.walk(_tree(path)))
    }
    assert found - set(OTHERS) == set()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _requests() -> Iterator[tuple[str, ast.Call, set[str]]]:
    """Yield where a request is sent, the call that sends it, and the parameters of the functions around it."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = _tree(path)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SENDS):
                continue
            if path.is_relative_to(SOURCE / "conformance"):
                continue  # it sends raw frames, and has a limit of its own (`--timeout`)
            if isinstance(node.func.value, ast.Name) and node.func.value.id in ("router", "wire", "self"):
                continue  # a table of handlers, frames as bytes, and ourselves: that is where these are defined
            if len(node.args) < 2 and node.func.attr != "control":
                continue
            around = [each.args for each in functions if each.lineno <= node.lineno <= (each.end_lineno or 0)]
            where = f"{path.relative_to(SOURCE)}:{node.lineno}"
            yield where, node, {each.arg for taken in around for each in taken.args + taken.kwonlyargs}


def _is_bounded(call: ast.Call, taken: set[str]) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="server" | "process"))):
            return True  # a request to a CLI: REQUEST_LIMIT and CONTROL_LIMIT are the defaults of the parameter there
        case ast.Call(args=[ast.Constant() | ast.JoinedStr(), *_]):
            return True
        case ast.Call(args=[ast.Attribute(value=ast.Name(id="m"), attr=name), *_]):
            return hasattr(m, name)
        case ast.Call(args=[ast.Name(id=name), *_]) if name.isupper():
            return True  # a constant of the module: the default of methods that the protocol does not know
    return "timeout" in {word.arg for word in call.keywords} and "timeout" in taken


# What a timeout does.


async def _timed_out(raw: Raw, id: int) -> None:
    asked = await raw.receive()
    assert asked["id"] == id
    assert await raw.receive() == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}}


async def test_a_request_that_times_out_is_cancelled_and_its_late_response_dropped() -> None:
    reports: list[Report] = []
    async with against_raw(reports=reports) as (connection, raw):
        with pytest.raises(RequestTimeout) as caught:
            await connection.request(m.SET_MODE, v1.SetMode("s", "plan"), timeout=0.01)
        assert AcpError in type(caught.value).__mro__ and "\nhint: " in str(caught.value)
        assert (caught.value.method, caught.value.timeout) == ("session/set_mode", 0.01)
        await _timed_out(raw, 1)
        await raw.send(answer(1), answer(2, '{"sessions":[]}'))
        listed = connection.request(m.LIST_SESSIONS, v1.ListSessions(), timeout=20)
        assert (await listed).sessions == []
        assert reports == [Stray(1, late=True)]


async def test_a_stream_that_times_out_fails_and_the_turn_is_cancelled() -> None:
    async with against_raw() as (connection, raw):
        stream = connection.stream(m.PROMPT, v1.Prompt("s", [v1.TextBlock("hi")]), timeout=0.01)
        with pytest.raises(RequestTimeout, match="session/prompt"):
            await stream
        messages = [(await raw.receive())["method"] for _ in range(3)]
        assert messages == ["session/prompt", "session/cancel", "$/cancel_request"]


async def test_a_response_in_time_leaves_no_timer_behind() -> None:
    async with against_raw() as (connection, raw):
        asking = connection.request(m.LIST_SESSIONS, v1.ListSessions(), timeout=3600)
        await raw.send(answer(1, '{"sessions":[]}'))
        assert (await asking).sessions == []
        timers = [timer for timer in vars(connection.transport.loop).get("_scheduled", ()) if not timer.cancelled()]
        assert not [timer for timer in timers if timer.when() - connection.transport.loop.time() > 1800]
