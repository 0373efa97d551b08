"""The endpoint on another ASGI server, with TLS and HTTP/2: a client by hand goes through a whole conversation on one connection."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from antiphon.transports.asgi import AcpEndpoint
from antiphon.transports.asgi.http2 import is_end
from tests.limits import limit
from tests.transports.serving import serve_demo
from tests.transports.test_asgi import INITIALIZE, Events, Json, RawClient, new, prompt
from tests.transports.test_network import TLS

pytestmark = [pytest.mark.slow, pytest.mark.prove]


@asynccontextmanager
async def on_hypercorn(app: Any) -> AsyncIterator[str]:
    """Serve an application with HTTP/2 and TLS, and give its host and port."""
    from hypercorn.asyncio import serve
    from hypercorn.config import Config, Sockets

    config, over = Config(), asyncio.Event()
    config.certfile, config.keyfile = str(TLS / "server.pem"), str(TLS / "server.key")
    config.bind, config.alpn_protocols, config.graceful_timeout = ["127.0.0.1:0"], ["h2"], 1.0
    config.errorlog = config.accesslog = None
    sockets: Sockets = config.create_sockets()
    sockets.secure_sockets[0].listen()  # now: it is connected to before the server has started
    config.create_sockets = lambda: sockets  # type: ignore[method-assign]  # its port is asked for below
    serving = asyncio.create_task(serve(app, config, shutdown_trigger=over.wait))
    try:
        yield f"127.0.0.1:{sockets.secure_sockets[0].getsockname()[1]}"
    finally:
        over.set()
        await serving


async def next_message(events: Events, method: str) -> Json:
    """The next message of this method."""
    while True:
        _, message = await events.next()
        if message.get("method") == method:
            return message


async def test_prompts_permission_cancel_load_and_two_sessions_at_once_over_one_http2_connection(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")
    context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
    async with (
        asyncio.timeout(limit(60)),
        on_hypercorn(AcpEndpoint(serve_demo)) as host,
        httpx.AsyncClient(
            base_url=f"https://{host}", http2=True, http1=False, verify=context, timeout=limit(30),
            limits=httpx.Limits(max_connections=1),
        ) as client,
    ):  # fmt: skip
        raw = RawClient(client)
        await raw.open()
        async with raw.stream() as connection:
            first, second = [(await _opened(raw, connection, number, tmp_path)) for number in (1, 2)]
            async with raw.stream(first) as one, raw.stream(second) as two:
                answer = await raw.post(prompt(3, first, "/run echo la"), first)
                assert (answer.status_code, answer.http_version) == (202, "HTTP/2")
                await raw.post(prompt(4, second, "/slow 1000"), second)
                request = await next_message(one, "session/request_permission")
                option = next(each for each in request["params"]["options"] if each["kind"] == "allow_once")
                outcome = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
                await raw.post({"jsonrpc": "2.0", "id": request["id"], "result": outcome})
                assert (await one.response(3))["result"]["stopReason"] == "end_turn"
                await next_message(two, "session/update")
                await raw.post({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": second}}, second)
                assert (await two.response(4))["result"]["stopReason"] == "cancelled"
        await client.delete("/acp", headers={"Acp-Connection-Id": raw.id})
        raw.id = ""
        await raw.open()
        async with raw.stream(), raw.stream(first) as one:
            load = {"sessionId": first, "cwd": str(tmp_path), "mcpServers": []}
            await raw.post({"jsonrpc": "2.0", "id": 5, "method": "session/load", "params": load}, first)
            assert (await next_message(one, "session/update"))["params"]["sessionId"] == first
            assert "result" in await one.response(5)


async def _opened(raw: RawClient, connection: Events, id: int, cwd: Any) -> str:
    await raw.post(new(id, cwd))
    session: str = (await connection.response(id))["result"]["sessionId"]
    return session


async def test_a_certificate_that_cannot_be_used_is_an_error_at_once(tmp_path: Any) -> None:
    from antiphon.transports.asgi.http2 import listen_http2

    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate", encoding="utf-8")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="PEM"):
            async with listen_http2(AcpEndpoint(serve_demo), listening, certificate=str(bad), key=str(bad)):
                raise AssertionError("it said that it serves")


async def test_a_server_that_says_it_serves_can_be_reached() -> None:
    from antiphon.transports.asgi.http2 import listen_http2

    context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        async with (
            asyncio.timeout(limit(60)),
            listen_http2(
                AcpEndpoint(serve_demo), listening, certificate=str(TLS / "server.pem"), key=str(TLS / "server.key")
            ),
            httpx.AsyncClient(base_url=f"https://{host}", http2=True, verify=context, timeout=limit(30)) as client,
        ):
            assert (await client.post("/acp", json=INITIALIZE)).status_code == 200


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (asyncio.CancelledError(), True),
        (ssl.SSLError("application data after close notify"), True),
        (ExceptionGroup("of a server", [ConnectionResetError(), ssl.SSLError()]), True),
        (ExceptionGroup("of a server", [ConnectionResetError(), ValueError()]), False),
        (ValueError(), False),
        (None, False),
    ],
)
def test_the_end_of_a_connection_is_not_reported_as_an_error_and_all_else_is(
    error: BaseException | None, is_one: bool
) -> None:
    assert is_end(error) is is_one
