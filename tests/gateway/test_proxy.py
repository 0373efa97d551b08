"""A gateway behind nginx, with the configuration of docs/gateway.md: what a proxy and a server may read differently gets nowhere.

nginx writes a line for each request that it forwards, and the gateway counts those that it sees: never more. So no request reaches the
gateway inside of another.
"""

import asyncio
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import h2.config
import h2.connection
import h2.events
import pytest
from websockets.sync.client import connect

from tests.gateway.processes import HOSTILE, ROOT, Gateway, call, own_address, running
from tests.limits import limit
from tests.waits import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin") is None, reason="no nginx here"),
]

NGINX: Final = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin") or "nginx"
NAME: Final = "agents.example.org"
TLS: Final = ROOT / "tests" / "transports" / "tls"
PAGE: Final = ROOT / "docs" / "gateway.md"
AROUND: Final = """\
daemon off;
master_process off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{}}
http {{
    log_format forwarded '$upstream_addr $request';
    access_log {directory}/access.log forwarded;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
{block}
}}
"""


class Proxy:
    """A proxy that runs in front of a gateway."""

    def __init__(self, gateway: Gateway, address: tuple[str, int], log: Path, context: ssl.SSLContext) -> None:
        self.gateway = gateway
        self.address = address
        self.context = context
        context.check_hostname = False
        self._log = log

    def open(self, *protocols: str) -> ssl.SSLSocket:
        """A connection over TLS to the proxy."""
        self.context.set_alpn_protocols([*(protocols or ("http/1.1",))])
        opened = socket.create_connection(self.address, timeout=limit())
        return self.context.wrap_socket(opened, server_hostname=NAME)

    def send(self, request: bytes) -> bytes:
        """Send bytes, and return all that comes back."""
        with self.open() as opened:
            opened.sendall(request)
            found = b""
            try:
                while part := opened.recv(65536):
                    found += part
            except (ConnectionResetError, ssl.SSLError):
                pass
            return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Check that the gateway sees no more requests than are forwarded in the block."""
        seen, forwarded = self.seen(), self._forwarded()
        yield
        expected = self.seen() - seen - 1  # the first question is counted too
        asyncio.run(until(lambda: self._forwarded() - forwarded >= expected))  # nginx writes a line when all is sent

    def _forwarded(self) -> int:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return sum(not line.startswith("-") for line in lines)

    def seen(self) -> int:
        """Return how many requests the gateway has answered, this question not yet among them."""
        text = self.gateway.ask("/metrics", self.gateway.bearer).body.decode()
        return int(sum(float(each) for each in re.findall(r"^antiphon_requests_total\{.*\} (\S+)$", text, re.M)))


@contextmanager
def proxied(
    directory: Path, *, block: str = "", without: str = "nothing", address: str = "127.0.0.1"
) -> Iterator[Proxy]:
    """Start a gateway, and nginx in front of it."""
    options = ("--behind-proxy", "--public-url", f"https://{NAME}")
    with running(directory, *options, without=without, agent=HOSTILE) as gateway:
        with socket.create_server((address, 0)) as free:
            port = free.getsockname()[1]
        text = (block or documented()).replace("listen 443", f"listen {address}:{port}")
        text = text.replace("127.0.0.1:8321", f"127.0.0.1:{gateway.port}")
        text = text.replace("/etc/ssl/agents.pem", str(TLS / "server.pem"))
        text = text.replace("/etc/ssl/agents.key", str(TLS / "server.key"))
        config = directory / "nginx.conf"
        config.write_text(AROUND.format(directory=directory, block=text), encoding="utf-8")
        (directory / "access.log").touch()
        process = subprocess.Popen([NGINX, "-c", str(config), "-e", str(directory / "error.log")])
        try:
            wait_for((address, port), process)
            context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
            yield Proxy(gateway, (address, port), directory / "access.log", context)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(limit())


def documented() -> str:
    """The block for nginx in the documentation."""
    found = re.search(r"^```nginx\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    return found[1]


def wait_for(address: tuple[str, int], process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            socket.create_connection(address, timeout=limit()).close()
        except ConnectionRefusedError:
            continue
        return
    raise AssertionError("the proxy does not start")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxied(tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


def test_a_client_works_through_the_proxy(tmp_path: Path) -> None:
    with proxied(tmp_path) as proxy:
        check_client(proxy)


def check_client(proxy: Proxy) -> None:
    url = f"wss://{NAME}/acp"
    raw = socket.create_connection(proxy.address, timeout=limit())
    headers = {**proxy.gateway.bearer, "Origin": f"https://{NAME}"}
    with connect(url, sock=raw, ssl=proxy.context, additional_headers=headers, proxy=None) as opened:
        assert "result" in call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
    connects = [each for each in proxy.gateway.admin(action="audit")["entries"] if each["action"] == "connect"]
    assert connects[-1]["address"] == "127.0.0.1"


HEAD: Final = f"POST /api/login HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nConnection: close\r\n"
SECOND: Final = f"POST /api/admin HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n"
LENGTH: Final = len(SECOND) + 5
SHAPES: Final = {
    "a length, then chunks": f"{HEAD}Content-Length: {LENGTH}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    "chunks, then a length": f"{HEAD}Transfer-Encoding: chunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "two lengths": f"{HEAD}Content-Length: 0\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}",
    "a list of lengths": f"{HEAD}Content-Length: 0, {len(SECOND)}\r\n\r\n{SECOND}",
    "a length with a sign": f"{HEAD}Content-Length: +{len(SECOND)}\r\n\r\n{SECOND}",
    "two encodings": f"{HEAD}Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    "a list of encodings": f"{HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{SECOND}",
    "an encoding that is nearly one": f"{HEAD}Transfer-Encoding: xchunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "a space before the colon": f"{HEAD}Transfer-Encoding : chunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "an underscore": f"{HEAD}Transfer_Encoding: chunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "a folded line": f"{HEAD}Transfer-Encoding:\r\n chunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "a bare CR": f"{HEAD}X: a\rTransfer-Encoding: chunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "a bare LF": f"{HEAD}X: a\nTransfer-Encoding: chunked\r\nContent-Length: {LENGTH}\r\n\r\n0\r\n\r\n{SECOND}",
    "a NUL": f"{HEAD}X: a\x00\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}",
    "a size of a chunk with a prefix": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{SECOND}",
    "an extension of a chunk with a line end": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n0;a\n\r\n\r\n{SECOND}",
    "a size of a chunk that overflows": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{'f' * 17}\r\n\r\n{SECOND}",
    "a body of a GET": f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}",
    "two hosts": f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "an upgrade to HTTP/2": f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
    f"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n{SECOND}",
    "an upgrade that fails": f"GET /acp HTTP/1.1\r\nHost: {NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    f"Sec-WebSocket-Version: 777\r\nSec-WebSocket-Key: x\r\n\r\n{SECOND}",
}  # fmt: skip


HARMLESS: Final = ("a body of a GET", "an upgrade to HTTP/2")
"""Shapes of a request that may be answered, as long as it is one."""


@pytest.mark.parametrize("shape", SHAPES)
def test_no_request_reaches_the_gateway_inside_of_another(proxy: Proxy, shape: str) -> None:
    with proxy.watched():
        answer = proxy.send(SHAPES[shape].encode("latin-1"))
    assert b" 200 " not in answer[:20] or shape in HARMLESS


def test_another_host_is_refused_however_it_is_named(proxy: Proxy) -> None:
    with proxy.watched():
        for target, host in (
            ("http://evil.example/healthz", NAME),
            ("/healthz", "evil.example"),
            ("//evil.example/", NAME),
        ):
            answer = proxy.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert b" 200 " not in answer[:20], (target, host)
        ours = f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n"
        assert b" 200 " in proxy.send(ours.encode())[:20]


Fields = Sequence[tuple[bytes, bytes]]
DOWNGRADES: Final[dict[str, tuple[Fields, bytes]]] = {
    "an encoding": ([(b"transfer-encoding", b"chunked")], b"0\r\n\r\n" + SECOND.encode()),
    "a wrong length": ([(b"content-length", b"0")], SECOND.encode()),
    "two lengths": ([(b"content-length", b"0"), (b"content-length", b"5")], b"12345" + SECOND.encode()),
    "a line end in a value": ([(b"x", b"a\r\nTransfer-Encoding: chunked")], b"0\r\n\r\n" + SECOND.encode()),
    "a line end in a name": ([(b"x: a\r\nTransfer-Encoding", b"chunked")], b"0\r\n\r\n" + SECOND.encode()),
    "a second host": ([(b"host", b"evil.example")], b"{}"),
    "a connection header": ([(b"connection", b"transfer-encoding"), (b"transfer-encoding", b"chunked")], b"{}"),
}


@pytest.mark.parametrize("shape", DOWNGRADES)
def test_no_request_of_http2_becomes_two_of_http1(proxy: Proxy, shape: str) -> None:
    fields, body = DOWNGRADES[shape]
    two = h2.connection.H2Connection(
        h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
    )
    with proxy.watched(), proxy.open("h2") as opened:
        assert opened.selected_alpn_protocol() == "h2"
        two.initiate_connection()
        head = [
            (b":method", b"POST"),
            (b":path", b"/api/login"),
            (b":scheme", b"https"),
            (b":authority", NAME.encode()),
        ]
        two.send_headers(1, [*head, (b"content-type", b"application/json"), *fields])
        two.send_data(1, body, end_stream=True)
        opened.sendall(two.data_to_send())
        is_over = False
        while not is_over:
            try:
                arrived = opened.recv(65536)
            except (ConnectionResetError, ssl.SSLError):
                break
            ends = (h2.events.StreamEnded, h2.events.StreamReset, h2.events.ConnectionTerminated)
            is_over = not arrived or any(isinstance(event, ends) for event in two.receive_data(arrived))


def guesses_behind(proxy: Proxy, forged: str) -> set[bytes]:
    """The statuses of seven wrong tokens, each with another address in a header."""
    found = set()
    for each in range(7):
        head = f"GET /metrics HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer guess{each}\r\nConnection: close\r\n"
        found.add(proxy.send(f"{head}{forged.format(each)}\r\n\r\n".encode())[9:12])
    return found


FORGED: Final = (
    "X-Forwarded-For: 10.0.0.{}",
    "X-Real-IP: 10.0.0.{}",
    "Forwarded: for=10.0.0.{}",
    "X-Forwarded-For: 10.0.0.{}, 127.0.0.1",
)


@pytest.mark.parametrize("forged", FORGED)
def test_a_client_cannot_choose_its_address(tmp_path: Path, forged: str) -> None:
    with proxied(tmp_path) as proxy:
        assert b"429" in guesses_behind(proxy, forged)


ADDED: Final = "$proxy_add_x_forwarded_for"


@pytest.mark.parametrize("without", ["nothing", "client_address"])
def test_of_a_list_of_addresses_the_proxys_own_counts(tmp_path: Path, without: str) -> None:
    block = documented().replace("X-Forwarded-For $remote_addr", f"X-Forwarded-For {ADDED}")
    with proxied(tmp_path, block=block, without=without, address=own_address()) as proxy:
        throttled = b"429" in guesses_behind(proxy, "X-Forwarded-For: 10.0.0.{}")
        assert throttled is (without == "nothing")
