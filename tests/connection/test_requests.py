"""Questions and answers: refusals, cancellation in both directions, the end of a session."""

import asyncio
import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.connection.connection import EOF_GRACE, Connection
from antiphon.connection.reports import Report
from antiphon.connection.router import Router
from antiphon.errors import (
    Code,
    ConnectionClosed,
    LocalProtocolError,
    RemoteProtocolError,
    RequestError,
    RequestRefused,
)
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.client_services import ReadTextFile, ReadTextFileResult
from antiphon.protocol.v1.session import Cancel, ListSessions, NewSession, NewSessionResult
from antiphon.protocol.v1.version import V1
from antiphon.transports.memory import memory_pair
from tests.connection.ends import against_raw, answer

READ = ReadTextFile("s", "/f")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


async def test_a_plain_function_answers_on_the_spot_and_a_coroutine_when_it_is_done() -> None:
    router = Router()
    router.on_request(m.READ_TEXT_FILE, lambda asked: ReadTextFileResult(asked.path))

    async def new(asked: NewSession) -> object:
        await asyncio.sleep(0)
        return {"sessionId": asked.cwd}

    router.on_request(m.NEW_SESSION, new)  # type: ignore[arg-type]
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        assert (await peer.ask("fs/read_text_file", {"sessionId": "s", "path": "/f"}))["result"] == {"content": "/f"}
        assert (await peer.ask("session/new", {"cwd": "/w", "mcpServers": []}, "x"))["result"] == {"sessionId": "/w"}


async def test_a_refusal_has_the_message_of_the_handler() -> None:
    def refuse(asked: ReadTextFile) -> ReadTextFileResult:
        raise RequestError(Code.RESOURCE_NOT_FOUND, "No such file", {"path": asked.path})

    router = Router()
    router.on_request(m.READ_TEXT_FILE, refuse)
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        response = await peer.ask("fs/read_text_file", {"sessionId": "s", "path": "/f"})
        assert response["error"] == {"code": -32002, "message": "No such file", "data": {"path": "/f"}}


WORDS = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: bool(text.strip()))
DATA = st.one_of(st.none(), st.just("a path"), st.just({"path": "/f"}), st.just({"hint": "another"}))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=3), WORDS, DATA)
async def test_the_message_of_a_refusal_is_one_line_and_nothing_of_it_is_lost(
    words: list[str], hint: str, data: object
) -> None:
    printed = f"{' '.join(words)}\nhint: {hint}"

    def refuse(asked: ReadTextFile) -> ReadTextFileResult:
        raise RequestError(Code.RESOURCE_NOT_FOUND, printed, data)

    router = Router()
    router.on_request(m.READ_TEXT_FILE, refuse)
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        error = (await peer.ask("fs/read_text_file", {"sessionId": "s", "path": "/f"}))["error"]
    assert len(error["message"].splitlines()) == 1 and error["message"].strip()
    sent = [error["message"], *_texts(error["data"])]
    missing = [line for line in printed.splitlines() if line.strip() and not any(_within(line, text) for text in sent)]
    assert missing == [] or data == {"hint": "another"}, "what the handler put there by itself stays"
    assert data is None or set(_texts(data)) <= set(_texts(error["data"]))


def _texts(data: object) -> list[str]:
    return [data] if isinstance(data, str) else list(data.values()) if isinstance(data, dict) else []


def _within(line: str, text: str) -> bool:
    return line.removeprefix("hint: ") in text


async def test_a_failure_of_ours_is_reported_to_the_peer_without_its_details() -> None:
    def fail(asked: ReadTextFile) -> ReadTextFileResult:
        raise KeyError("secret")

    reports: list[Report] = []
    router = Router()
    router.on_request(m.READ_TEXT_FILE, fail)
    async with asyncio.timeout(10), against_raw(router, reports=reports) as (_, peer):
        response = await peer.ask("fs/read_text_file", {"sessionId": "s", "path": "/f"})
        assert response["error"] == {"code": -32603, "message": "Internal error"}
    assert type(reports[0]).__name__ == "HandlerFailed"


async def test_a_result_with_no_json_form_is_an_internal_error() -> None:
    router = Router()
    router.on_request(m.READ_TEXT_FILE, lambda _: object())  # type: ignore[arg-type, return-value]
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        response = await peer.ask("fs/read_text_file", {"sessionId": "s", "path": "/f"})
        assert response["error"]["code"] == Code.INTERNAL_ERROR


@pytest.mark.parametrize("wrong", [None, ReadTextFile("s", "/f")], ids=["nothing", "another type"])
async def test_a_handler_that_returns_the_wrong_type_is_reported(wrong: object) -> None:
    reports: list[Report] = []
    router = Router()
    router.on_request(m.READ_TEXT_FILE, lambda _: wrong)  # type: ignore[arg-type, return-value]
    async with asyncio.timeout(10), against_raw(router, reports=reports) as (_, peer):
        response = await peer.ask("fs/read_text_file", {"sessionId": "s", "path": "/f"})
        assert response["error"] == {"code": -32603, "message": "Internal error"}
    assert "not ReadTextFileResult" in repr(reports[0])


async def test_an_unknown_method_is_refused_and_an_extension_may_be_taken() -> None:
    async def other(method: str, params: Raw) -> object:
        if method != "_vendor/ping":
            raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        return params

    async with asyncio.timeout(10), against_raw() as (connection, peer):
        refused = await peer.ask("_vendor/ping", {"n": 1})
        assert refused["error"] == {"code": -32601, "message": "Method not found", "data": "_vendor/ping"}
        connection.router.other_request = other
        assert (await peer.ask("_vendor/ping", {"n": 1}))["result"] == {"n": 1}
        assert (await peer.ask("_vendor/pong", {}))["error"]["code"] == -32601


async def test_wrong_params_are_refused_with_the_place() -> None:
    router = Router()
    router.on_request(m.READ_TEXT_FILE, lambda asked: ReadTextFileResult(asked.path))
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        response = await peer.ask("fs/read_text_file", {"sessionId": "s", "path": 7})
        assert response["error"]["code"] == -32602 and "$.path" in response["error"]["data"]


async def test_a_refused_request_raises_with_code_and_data() -> None:
    async with asyncio.timeout(10), against_raw() as (connection, peer):
        asking = asyncio.create_task(connection.request(m.READ_TEXT_FILE, READ))
        id = (await peer.receive())["id"]
        await peer.send(b'{"id":%d,"error":{"code":-32000,"message":"log in","data":[1]}}' % id)
        with pytest.raises(RequestRefused) as caught:
            await asking
        assert (caught.value.code, caught.value.data) == (Code.AUTH_REQUIRED, [1])


async def test_an_answer_that_makes_no_sense_is_the_peers_fault() -> None:
    async with asyncio.timeout(10), against_raw() as (connection, peer):
        asking = asyncio.create_task(connection.request(m.READ_TEXT_FILE, READ))
        await peer.send(answer((await peer.receive())["id"], '{"content":7}'))
        with pytest.raises(RemoteProtocolError, match="fs/read_text_file"):
            await asking


async def test_cancelling_a_wait_cancels_the_request() -> None:
    reports: list[Report] = []
    async with asyncio.timeout(10), against_raw(reports=reports) as (connection, peer):
        asking = asyncio.create_task(connection.request(m.READ_TEXT_FILE, READ))
        id = (await peer.receive())["id"]
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await peer.receive() == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}}
        await peer.send(answer(id, '{"content":"late"}'))
        assert (await peer.ask("x", {}))["error"]["code"] == -32601  # the session lives on
    assert connection.counts["Stray"] == 1


@pytest.mark.parametrize("started", [True, False], ids=["at work", "not yet started"])
async def test_a_cancelled_request_is_answered_once_with_cancelled(started: bool) -> None:
    begun = asyncio.Event()
    cleaned = asyncio.Event()

    async def slow(asked: ReadTextFile) -> ReadTextFileResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        raise AssertionError("unreachable")

    router = Router()
    router.on_request(m.READ_TEXT_FILE, slow)
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        question = b'{"id":"q","method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}'
        cancellation = b'{"method":"$/cancel_request","params":{"requestId":"q"}}'
        if started:
            await peer.send(question)
            await begun.wait()
            await peer.send(cancellation)
        else:
            await peer.send(question, cancellation)
        message = await peer.receive()
        assert (message["id"], message["error"]["code"]) == ("q", Code.REQUEST_CANCELLED)
        await peer.send(cancellation)
        assert (await peer.ask("x", {}, 5))["id"] == 5  # no second answer to "q"
        assert cleaned.is_set() == begun.is_set()


async def test_a_handler_may_answer_a_cancelled_request_after_all() -> None:
    begun = asyncio.Event()

    async def stubborn(asked: ReadTextFile) -> ReadTextFileResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ReadTextFileResult("done anyway")
        raise AssertionError("unreachable")

    router = Router()
    router.on_request(m.READ_TEXT_FILE, stubborn)
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        await peer.send(b'{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}')
        await begun.wait()
        await peer.send(b'{"method":"$/cancel_request","params":{"requestId":1}}')
        assert (await peer.receive())["result"] == {"content": "done anyway"}


async def test_when_the_peer_goes_every_wait_ends_with_the_reason() -> None:
    async with asyncio.timeout(10), against_raw() as (connection, peer):
        asking = [asyncio.create_task(connection.request(m.READ_TEXT_FILE, READ)) for _ in range(3)]
        turn = connection.stream(m.READ_TEXT_FILE, READ, "s")
        for _ in range(4):
            await peer.receive()
        await peer.transport.close()
        for each in asking:
            with pytest.raises(ConnectionClosed):
                await each
        with pytest.raises(ConnectionClosed):
            await turn
        with pytest.raises(ConnectionClosed):
            await connection.request(m.READ_TEXT_FILE, READ)
        with pytest.raises(ConnectionClosed):
            connection.post(m.CANCEL, Cancel("s"))


async def test_a_handler_at_work_when_the_peer_goes_is_cancelled_after_a_moment() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(asked: ReadTextFile) -> ReadTextFileResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    router = Router()
    router.on_request(m.READ_TEXT_FILE, slow)
    async with asyncio.timeout(EOF_GRACE + 10), against_raw(router) as (connection, peer):
        await peer.send(b'{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}')
        await begun.wait()
        await peer.transport.close()
        await connection.wait_closed()
        assert ended.is_set()


async def test_closing_from_inside_a_handler_does_not_hang() -> None:
    async def leave(asked: ReadTextFile) -> ReadTextFileResult:
        await connection.close()
        return ReadTextFileResult("")

    async with asyncio.timeout(10), against_raw() as (connection, peer):
        connection.router.on_request(m.READ_TEXT_FILE, leave)
        await peer.send(b'{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}')
        await connection.wait_closed()


async def test_a_notification_without_a_handler_is_reported_and_not_answered() -> None:
    reports: list[Report] = []
    async with asyncio.timeout(10), against_raw(reports=reports) as (connection, peer):
        await peer.send(b'{"method":"_vendor/hello","params":{}}', b'{"method":"session/update","params":7}')
        assert (await peer.ask("x", {}, 9))["id"] == 9
        received: list[tuple[str, Raw]] = []
        connection.router.other_notice = lambda method, params: received.append((method, params))
        await peer.send(b'{"method":"_vendor/hello","params":{}}')
        await peer.ask("x", {}, 10)
        assert [method for method, _ in received] == ["_vendor/hello"]
    assert [type(report).__name__ for report in reports] == ["Unhandled", "Unhandled"]


async def test_taps_see_every_frame_both_ways_and_can_leave() -> None:
    seen: list[tuple[str, bytes]] = []
    async with asyncio.timeout(10), against_raw() as (connection, peer):
        leave = connection.tap(lambda direction, when, frame: seen.append((direction, frame)))
        connection.tap(lambda *_: 1 / 0)  # type: ignore[arg-type]  # a broken tap does no harm
        connection.post(m.CANCEL, Cancel("s"))
        await peer.receive()
        await peer.ask("x", {}, 1)
        leave()
        await peer.ask("x", {}, 2)
    assert [direction for direction, _ in seen] == ["out", "in", "out"]
    assert seen[0][1] == b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}'


async def test_half_a_frame_is_never_sent() -> None:
    async with asyncio.timeout(10), against_raw() as (connection, peer):
        with pytest.raises(LocalProtocolError, match="no JSON form"):
            connection.post(m.CANCEL, Cancel(object()))  # type: ignore[arg-type]
        connection.post(m.CANCEL, Cancel("s"))
        assert (await peer.receive())["method"] == "session/cancel"


@pytest.mark.parametrize("data", [object(), "caf\udce9.txt"], ids=["no JSON form", "half a surrogate pair"])
async def test_a_refusal_arrives_even_if_its_data_cannot_be_sent_and_so_do_its_neighbours(data: object) -> None:
    def refuse(asked: ReadTextFile) -> ReadTextFileResult:
        raise RequestError(Code.RESOURCE_NOT_FOUND, "No such file", data)

    router = Router()
    router.on_request(m.READ_TEXT_FILE, refuse)
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        question = b'{"id":%d,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}'
        await peer.send(*(question % n for n in (1, 2, 3)))
        messages = [await peer.receive() for _ in range(3)]
        assert [(each["id"], each["error"]["code"], each["error"]["message"]) for each in messages] == [
            (n, -32002, "No such file") for n in (1, 2, 3)
        ]


@pytest.mark.parametrize("code", [b"1e400", b"1" * 5000], ids=["too large", "too long"])
async def test_an_error_that_cannot_be_read_still_ends_the_wait_and_so_does_what_follows(code: bytes) -> None:
    async with asyncio.timeout(10), against_raw() as (connection, peer):
        asking = [asyncio.create_task(connection.request(m.READ_TEXT_FILE, READ)) for _ in range(2)]
        first, second = (await peer.receive())["id"], (await peer.receive())["id"]
        await peer.send(
            b'{"jsonrpc":"2.0","id":%d,"error":{"code":%b,"message":"m"}}' % (first, code),
            answer(second, '{"content":"fine"}'),
        )
        with pytest.raises(RequestRefused):
            await asking[0]
        assert (await asking[1]).content == "fine"


async def test_a_refusal_by_the_peer_inside_a_handler_is_a_failure_of_ours_not_our_answer() -> None:
    async with asyncio.timeout(10), against_raw() as (agent, client):

        async def new(asked: NewSession) -> NewSessionResult:
            return NewSessionResult((await agent.request(m.READ_TEXT_FILE, READ)).content)

        agent.router.on_request(m.NEW_SESSION, new)
        asked = await client.ask("session/new", {"cwd": "/", "mcpServers": []}, "n")
        await client.send(b'{"id":%d,"error":{"code":-32601,"message":"Method not found"}}' % asked["id"])
        message = await client.receive()
        assert (message["id"], message["error"]["code"]) == ("n", Code.INTERNAL_ERROR)
        assert "refused" in message["error"]["data"]


async def test_a_handler_that_fails_because_the_peer_is_gone_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(10), against_raw() as (agent, client):

        async def new(asked: NewSession) -> NewSessionResult:
            return NewSessionResult((await agent.request(m.READ_TEXT_FILE, READ)).content)

        agent.router.on_request(m.NEW_SESSION, new)
        await client.ask("session/new", {"cwd": "/", "mcpServers": []})
        await client.transport.close()
        await agent.wait_closed()
        assert agent.counts["HandlerFailed"] == 0


async def test_mistakes_of_our_own_are_raised() -> None:
    async def asynchronous(_: object) -> None: ...

    router = Router()
    with pytest.raises(LocalProtocolError, match="plain `def`"):
        router.on_notice(m.SESSION_UPDATE, asynchronous)  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError, match="use on_request"):
        router.on_notice(m.PROMPT, print)  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError, match="use on_notice"):
        router.on_request(m.SESSION_UPDATE, print)  # type: ignore[arg-type]
    near, far = memory_pair()
    connection = Connection(near, version=V1)
    with pytest.raises(LocalProtocolError, match="async with"):
        await connection.request(m.READ_TEXT_FILE, READ)
    with pytest.raises(LocalProtocolError, match="async with"):
        await connection.notify(m.CANCEL, Cancel("s"))
    async with connection:
        with pytest.raises(LocalProtocolError, match="use notify"):
            await connection.request(m.CANCEL, Cancel("s"))  # type: ignore[arg-type]
        with pytest.raises(LocalProtocolError, match="use request"):
            await connection.notify(m.READ_TEXT_FILE, READ)  # type: ignore[arg-type]
        with pytest.raises(LocalProtocolError, match="names no session"):
            _ = connection.stream(m.LIST_SESSIONS, ListSessions())
    with pytest.raises(ConnectionClosed, match="this connection was closed"):
        await connection.request(m.READ_TEXT_FILE, READ)
    await far.close()


async def test_a_relay_without_handlers_gets_updates_as_the_bytes_they_are() -> None:
    received: list[tuple[str, Raw]] = []
    router = Router()
    router.other_notice = lambda method, params: received.append((method, params))
    params = b'{"sessionId":"s", "update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"x":1}}'
    async with asyncio.timeout(10), against_raw(router) as (_, peer):
        await peer.send(*[b'{"jsonrpc":"2.0","method":"session/update","params":' + params + b"}"] * 2)
        await peer.ask("x", {})
        assert [(method, bytes(raw)) for method, raw in received] == [("session/update", params)] * 2


async def test_a_notification_leaves_at_once_even_if_the_loop_is_then_blocked() -> None:
    async with asyncio.timeout(10), against_raw() as (connection, _peer):
        _ = connection.notify(m.CANCEL, Cancel("s"))
        assert not connection.transport.out  # on its way before this turn of the loop ends


async def test_cancelling_a_close_does_not_stop_it() -> None:
    begun, cleaning, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_to_clean(asked: ReadTextFile) -> ReadTextFileResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await cleaned.wait()
        raise AssertionError("unreachable")

    router = Router()
    router.on_request(m.READ_TEXT_FILE, slow_to_clean)
    async with asyncio.timeout(10), against_raw(router) as (connection, peer):
        await peer.send(b'{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}')
        await begun.wait()
        closing = asyncio.create_task(connection.close())
        await cleaning.wait()
        closing.cancel()
        cleaned.set()
        await connection.wait_closed()
        await connection.close()
        assert connection.transport.lost is not None
