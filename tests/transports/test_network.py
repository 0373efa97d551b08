"""The network between a client and a remote agent: TLS, proxies, redirects, cookies, tokens, and waits with an end."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon.transcript.entries import Message
from antiphon.transports import http
from antiphon.transports.asgi import AcpEndpoint, Admission, Refusal
from antiphon.transports.asgi.endpoint import respond
from antiphon.transports.asgi.heads import header_of
from antiphon.transports.remote import ConnectionRefused
from tests.limits import limit
from tests.transports.serving import serve_demo, served

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
    assert seen[0][1] == "" and {cookies for _, cookies in seen[1:]} == {"acp_affinity=node-7; b=2"}


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
