"""The network between a client and a remote agent: TLS, proxies, redirects, cookies, tokens, and waits with an end."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon.errors import ConnectionClosed, LocalProtocolError
from antiphon.transcript.entries import Message
from antiphon.transports import http
from antiphon.transports.asgi import AcpEndpoint, Admission, Refusal
from antiphon.transports.asgi.endpoint import respond
from antiphon.transports.asgi.heads import header_of
from antiphon.transports.remote import ConnectionRefused, CookieJar, RemoteAddress
from tests.limits import limit
from tests.transports.serving import cut_before_an_event, serve_demo, served
from tests.waits import idle, until

TLS = Path(__file__).parent / "tls"
CERTIFICATE = {"certificate": str(TLS / "server.pem"), "key": str(TLS / "server.key")}
PROFILES = ("http", "ws")


@pytest.fixture(autouse=True)
def _environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that opens tunnels, with the names of what it was asked for."""
    asked: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while data := await reader.read(65536):
                writer.write(data)

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, name, *_ = (await reader.readuntil(b"\r\n\r\n")).decode().split()
        asked.append(f"{method} {name}")
        host, _, port = name.rpartition(":")
        there, out = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        tasks.extend([asyncio.create_task(copy(reader, out)), asyncio.create_task(copy(there, writer))])

    server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("profile", PROFILES)
async def test_tls_with_an_authority_of_its_own_is_trusted_only_where_it_is_named(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(AcpEndpoint(serve_demo), **CERTIFICATE) as host:
        url = f"{profile}s://{host}/acp"
        with pytest.raises(ConnectionRefused, match=r"certificate of .* is not trusted") as refused:
            await antiphon.connect(url)
        assert "SSL_CERT_FILE" in refused.value.hint and not refused.value.status
        context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
        async with antiphon.connect(url, tls=context) as agent:
            assert (await agent.new_session(tmp_path)).id
        monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "authority.pem"))
        async with antiphon.connect(url) as agent:
            assert (await agent.new_session(tmp_path)).id


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_proxy_of_the_environment_is_used_but_not_for_hosts_that_are_excepted(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "authority.pem"))
    async with served(AcpEndpoint(serve_demo), **CERTIFICATE) as host, proxy() as (address, asked):
        monkeypatch.setenv("HTTPS_PROXY", address)
        async with antiphon.connect(f"{profile}s://{host}/acp") as agent:
            assert (await agent.new_session(tmp_path)).id
        assert asked and set(asked) == {f"CONNECT {host}"}
        asked.clear()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with antiphon.connect(f"{profile}s://{host}/acp"):
            assert asked == []


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_redirect_is_refused_and_the_token_goes_nowhere_else(profile: str) -> None:
    reached: list[str] = []

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    async def redirect(scope: Any) -> Refusal:
        return Refusal(307, "moved", [(b"location", f"{profile}://{other}/acp?code=secret".encode())])

    async with served(_without_lifespan(elsewhere)) as other, served(AcpEndpoint(admit=redirect)) as host:
        with pytest.raises(ConnectionRefused) as refused:
            await antiphon.connect(f"{profile}://{host}/acp", token="secret")
        assert refused.value.status == 307 and f"redirects to `{profile}://{other}/acp`" in str(refused.value)
        assert reached == [] and "secret" not in str(refused.value)


def _without_lifespan(app: Any) -> Any:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await AcpEndpoint(serve_demo)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return application


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_token_and_the_cookies_of_a_server_are_sent_with_every_request(profile: str, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    async def admit(scope: Any) -> Admission | Refusal:
        seen.append((header_of(scope, b"authorization"), header_of(scope, b"cookie")))
        cookie = [(b"set-cookie", b"acp_affinity=node-7; Path=/acp; HttpOnly"), (b"set-cookie", b"b=2")]
        return Admission(serve_demo, headers=cookie)

    async with (
        served(AcpEndpoint(admit=admit)) as host,
        antiphon.connect(f"{profile}://{host}/acp", token="t0ken", headers={"X-Team": "choir"}) as agent,
    ):
        await agent.new_session(tmp_path)
        await agent._link.kill(agent._link.connection)  # the next request opens another connection
        await agent.new_session(tmp_path)
    assert {token for token, _ in seen} == {"Bearer t0ken"}
    first = 2 if profile == "http" else 1  # a post is decided about again when its body is there
    assert {cookies for _, cookies in seen[:first]} == {""}
    assert {cookies for _, cookies in seen[first:]} == {"acp_affinity=node-7; b=2"}


async def test_a_token_that_is_wrong_is_refused_with_what_to_do() -> None:
    async def admit(scope: Any) -> Refusal:
        return Refusal(401, "who are you?")

    async with served(AcpEndpoint(admit=admit)) as host:
        for profile in PROFILES:
            with pytest.raises(ConnectionRefused, match="HTTP status 401") as refused:
                await antiphon.connect(f"{profile}://{host}/acp", token="wr0ng")
            assert "token" in refused.value.hint and "wr0ng" not in str(refused.value)
            assert not refused.value.recoverable


async def test_a_connection_belongs_to_the_principal_that_opened_it() -> None:
    async def admit(scope: Any) -> Admission | Refusal:
        return Admission(serve_demo, principal=header_of(scope, b"x-name"))

    import httpx

    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    async with served(AcpEndpoint(admit=admit)) as host, httpx.AsyncClient(base_url=f"http://{host}") as client:
        opened = await client.post("/acp", json=initialize, headers={"X-Name": "ann"})
        id = {"Acp-Connection-Id": opened.headers["acp-connection-id"]}
        listed = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
        foreign = {**id, "X-Name": "bob", "Accept": "text/event-stream"}
        assert (await client.post("/acp", json=listed, headers=foreign)).status_code == 404
        assert (await client.get("/acp", headers=foreign)).status_code == 404
        assert (await client.delete("/acp", headers=foreign)).status_code == 404
        assert (await client.post("/acp", json=listed, headers={**id, "X-Name": "ann"})).status_code == 202


async def test_a_server_that_never_answers_is_waited_for_no_longer_than_the_timeout() -> None:
    over = asyncio.Event()

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await over.wait()
        await respond(send, 500)

    async with served(_without_lifespan(silent)) as host:
        transport = await http.open_http(f"http://{host}/acp", timeout=0.2)
        await transport.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')
        async with asyncio.timeout(limit(30)):
            assert await transport.receive() is None
        assert isinstance(transport.lost, ConnectionRefused) and "did not answer" in str(transport.lost)
        over.set()
        await transport.close()


async def test_a_proxy_that_refuses_is_named_and_so_is_a_server_that_speaks_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for profile in PROFILES:
        with pytest.raises(ConnectionRefused) as refused:
            await antiphon.connect(f"{profile}s://example.invalid/acp")
        assert refused.value.hint and "407" in str(refused.value)
    server.close()
    await server.wait_closed()


def _cutting(app: Any, session: bool, cuts: int) -> Any:
    """Cut the stream of the connection, or those of sessions, after the first message on it, so many times."""
    left = cuts

    async def cutting(scope: Any, receive: Any, send: Any) -> None:
        nonlocal left
        if scope["type"] != "http" or scope["method"] != "GET" or bool(header_of(scope, b"acp-session-id")) != session:
            await app(scope, receive, send)
            return
        cut = asyncio.Event()

        async def sent(message: Any) -> None:
            await send(message)
            if left and b"data:" in message.get("body", b""):
                cut.set()
                await asyncio.Event().wait()

        serving = asyncio.ensure_future(app(scope, receive, sent))
        waiting = asyncio.ensure_future(cut.wait())
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if cut.is_set():
            left -= 1
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await send({"type": "http.response.body", "body": b""})

    return cutting


@pytest.mark.parametrize("session", [False, True])
async def test_a_stream_that_is_cut_is_opened_again_after_the_last_event(session: bool, tmp_path: Path) -> None:
    async with (
        asyncio.timeout(limit()),
        served(_cutting(AcpEndpoint(serve_demo), session, 3)) as host,
        antiphon.connect(f"http://{host}/acp") as agent,
    ):
        sessions = [await agent.new_session(tmp_path) for _ in range(3)]
        for each in sessions:
            await each.prompt("/many 20")
            said = [entry.text for entry in each.transcript.entries if isinstance(entry, Message)]
            assert said[-1] == "".join(f"{number} " for number in range(20))


@pytest.mark.parametrize("delivered", ["nothing", "the opening"])
async def test_a_stream_of_a_session_that_is_cut_before_its_first_event_loses_none(
    delivered: str, tmp_path: Path
) -> None:
    async with (
        asyncio.timeout(limit()),
        served(cut_before_an_event(AcpEndpoint(serve_demo), delivered=delivered)) as host,
        antiphon.connect(f"http://{host}/acp") as agent,
    ):
        session = await agent.new_session(tmp_path)
        await session.prompt("/many 20")
        said = [entry.text for entry in session.transcript.entries if isinstance(entry, Message)]
        assert said[-1] == "".join(f"{number} " for number in range(20))


async def test_a_stream_that_cannot_be_opened_any_more_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "STREAM_RETRIES", (0.0, 0.0))
    endpoint = AcpEndpoint(serve_demo)
    broken = asyncio.Event()

    async def breaking(scope: Any, receive: Any, send: Any) -> None:
        if broken.is_set() and scope["type"] == "http" and scope["method"] == "GET":
            await respond(send, 503, "the server fails")
        else:
            await endpoint(scope, receive, send)

    async with (
        asyncio.timeout(limit()),
        served(_cutting(breaking, True, 1)) as host,
        antiphon.connect(f"http://{host}/acp") as agent,
    ):
        session = await agent.new_session(tmp_path)
        broken.set()
        with pytest.raises(antiphon.AcpError):
            await session.prompt("/many 20")


# Headers.


@pytest.mark.parametrize(
    "given",
    [{"token": "a\r\nX-Other: 1"}, {"token": "tökén"}, {"headers": {"X-A": "b\nc"}}, {"headers": {"X-A\r\nB": "c"}}],
    ids=["line end", "accents", "value", "name"],
)
def test_what_cannot_stand_in_a_header_is_refused_without_showing_it(given: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError) as refused:
        RemoteAddress("ws://127.0.0.1:1/acp", **given)
    assert "X-Other" not in str(refused.value) and "tökén" not in str(refused.value) and refused.value.hint


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (['a="x\\012Evil: 1"; Path=/'], 'a="x\\012Evil: 1"'),
        (["a=1", "a=2; HttpOnly"], "a=2"),
        (["a=1; Max-Age=60", "a=; Max-Age=0"], ""),
        (["a=1", "b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "a=1"),
        (["a=1; Expires=nonsense"], "a=1"),
        ([f"a={'x' * 5000}", "b=2"], "b=2"),
    ],
    ids=["escapes", "set again", "deleted", "expired", "no time", "too large"],
)
def test_cookies_are_sent_as_they_came_until_the_server_deletes_them(headers: list[str], sent: str) -> None:
    jar = CookieJar()
    jar.store(headers)
    assert jar.header == sent


def test_a_server_cannot_fill_the_memory_with_cookies() -> None:
    jar = CookieJar()
    jar.store(f"name{number}=x" for number in range(1000))
    assert jar.header.count("=") == 64


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_proxy_of_the_environment_is_not_used_for_this_machine_where_it_could_read_the_token(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(AcpEndpoint(serve_demo)) as host, proxy() as (address, asked):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, address)
        async with antiphon.connect(f"{profile}://{host}/acp", token="secret") as agent:
            assert (await agent.new_session(tmp_path)).id
        assert asked == []


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_certificate_that_is_not_trusted_is_not_tried_again(profile: str) -> None:
    async with served(AcpEndpoint(serve_demo), **CERTIFICATE) as host:
        with pytest.raises(ConnectionRefused) as refused:
            await antiphon.connect(f"{profile}s://{host}/acp")
        assert refused.value.recoverable is False


async def test_a_tunnel_that_leads_nowhere_is_distinguished_from_a_server_that_speaks_something_else() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(ConnectionRefused, match="closed the connection before it answered") as refused:
        await RemoteAddress(f"ws://127.0.0.1:{port}/acp").open()
    assert refused.value.recoverable is True and "tunnel" in refused.value.hint
    server.close()


# A server over HTTP that does what a test says.


class Messages:
    """What arrives at the client."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self.why: ConnectionClosed | None = None

    def block_received(self, block: Any) -> None:
        self.found += [json.loads(line) for line in block.splitlines()]

    def connection_lost(self, error: ConnectionClosed) -> None:
        self.why = error


@asynccontextmanager
async def answered(answer: Any) -> AsyncIterator[tuple[http.HttpTransport, Messages]]:
    """A connection to a server whose answers to all but `initialize` are made by a function, which gets the scope and `send`."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive()).get("body", b"") if scope["method"] == "POST" else b""
        if b"initialize" in body:
            headers = [(b"acp-connection-id", b"c"), (b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"jsonrpc":"2.0","id":1,"result":{}}'})
        else:
            answering, ending = asyncio.ensure_future(answer(scope, send)), asyncio.ensure_future(over.wait())
            await asyncio.wait([answering, ending], return_when=asyncio.FIRST_COMPLETED)
            answering.cancel()
            ending.cancel()

    over = asyncio.Event()
    messages = Messages()
    async with asyncio.timeout(limit()), served(app) as host:
        transport = await http.open_http(f"http://{host}/acp", limit=100_000)
        transport.attach(messages)
        await transport.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')
        await until(lambda: messages.found)
        try:
            yield transport, messages
        finally:
            await transport.close()
            over.set()


async def stream(scope: Any, send: Any) -> None:
    """Answer a GET with a stream that stays open, a POST with 202."""
    status = 200 if scope["method"] == "GET" else 202
    headers = [(b"content-type", b"text/event-stream")] if status == 200 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(
        {"type": "http.response.body", "body": b": open\n\n" if status == 200 else b"", "more_body": status == 200}
    )
    if status == 200:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "session", ["sitzung-ü", "a\r\nX: 1", " a", "x" * 2000], ids=["accents", "lines", "space", "long"]
)
async def test_a_session_that_no_header_can_name_is_refused_and_the_connection_lives_on(session: str) -> None:
    async with answered(stream) as (transport, messages):
        params = {"sessionId": session}
        await transport.send(
            json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}).encode()
        )
        await transport.send(json.dumps({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).encode())
        await until(lambda: len(messages.found) == 2)
        assert messages.found[1]["error"]["code"] == -32602 and messages.found[1]["error"]["data"]["hint"]
        await until(lambda: not transport.unsent)
        assert transport.lost is None


async def test_an_answer_without_end_to_a_message_ends_the_connection_and_not_the_memory() -> None:
    async def flood(scope: Any, send: Any) -> None:
        if scope["method"] == "GET":
            await stream(scope, send)
            return
        await send({"type": "http.response.start", "status": 202, "headers": []})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})
        await asyncio.Event().wait()

    async with answered(flood) as (transport, messages):
        await transport.send(b'{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}')
        await until(lambda: messages.why)
        assert "larger than 100000 bytes" in str(messages.why)


async def test_a_stream_that_the_server_takes_for_open_is_tried_again_and_then_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "STREAM_RETRIES", (0.0, 0.0))
    tried = 0

    async def conflict(scope: Any, send: Any) -> None:
        nonlocal tried
        if scope["method"] == "GET" and header_of(scope, b"acp-session-id"):
            tried += 1
            await respond(send, 409, "there is a stream")
        else:
            await stream(scope, send)

    async with answered(conflict) as (transport, messages):
        await transport.send(b'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}')
        await until(lambda: messages.why)
        assert "409" in str(messages.why) and tried == 3


async def test_what_waits_to_be_sent_is_not_sent_after_the_connection_was_lost() -> None:
    posts = 0
    lose = asyncio.Event()

    async def slow(scope: Any, send: Any) -> None:
        nonlocal posts
        if scope["method"] == "GET":
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})
            await lose.wait()
            return
        posts += scope["method"] == "POST"
        await lose.wait()
        await until(lambda: messages.why)
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with answered(slow) as (transport, messages):
        for id in (2, 3):
            await transport.send(b'{"jsonrpc":"2.0","id":%d,"method":"session/list","params":{}}' % id)
        await until(lambda: posts)
        lose.set()
        await until(lambda: messages.why)
        await idle()
        assert posts == 1


async def test_a_stream_that_answers_a_message_and_stays_open_does_not_hold_up_the_next_one() -> None:
    posts = 0

    async def streamed(scope: Any, send: Any) -> None:
        nonlocal posts
        if scope["method"] != "POST":
            await stream(scope, send)
            return
        posts += 1
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = b'data: {"jsonrpc":"2.0","id":%d,"result":{}}\n\n' % (posts + 1)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await asyncio.Event().wait()

    async with answered(streamed) as (transport, messages):
        for id in (2, 3):
            await transport.send(b'{"jsonrpc":"2.0","id":%d,"method":"session/list","params":{}}' % id)
        await until(lambda: [each["id"] for each in messages.found] == [1, 2, 3])
