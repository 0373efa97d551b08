"""A gateway behind Caddy, with the lines of docs/gateway.md. Its certificate is of an authority of its own, which no test has to reach.

Caddy sends a response for each request that it forwards, and the gateway counts those that it sees: never more.
"""

import asyncio
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.gateway.processes import HOSTILE, own_address, running
from tests.gateway.test_proxy import FORGED, HARMLESS, NAME, PAGE, SHAPES, Proxy, check_client, guesses_behind, wait_for
from tests.limits import limit
from tests.waits import until

CADDY: Final = shutil.which("caddy", path="/usr/sbin:/usr/bin:/usr/local/bin") or "caddy"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(CADDY) is None, reason="no Caddy here"),
]

AROUND: Final = """\
{{
    admin off
    skip_install_trust
    auto_https disable_redirects
}}
{block}
"""
TEST_LINES: Final = """\
    bind {address}
    tls internal
"""


def documented() -> str:
    """The lines for Caddy in the documentation."""
    found = re.search(r"^```caddy\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    return found[1]


@contextmanager
def proxied(directory: Path, address: str = "127.0.0.1") -> Iterator[Proxy]:
    """Start a gateway, and Caddy in front of it."""
    options = ("--behind-proxy", "--public-url", f"https://{NAME}")
    with running(directory, *options, agent=HOSTILE) as gateway:
        with socket.create_server((address, 0)) as free:
            port = free.getsockname()[1]
        lines = TEST_LINES.format(address=address)
        text = documented().replace(f"{NAME} {{\n", f"https://{NAME}:{port} {{\n{lines}")
        text = text.replace("127.0.0.1:8321", f"127.0.0.1:{gateway.port}")
        config = directory / "Caddyfile"
        config.write_text(AROUND.format(block=text), encoding="utf-8")
        env = {**os.environ, "HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
        command = [CADDY, "run", "--config", str(config), "--adapter", "caddyfile"]
        with (directory / "caddy.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
        try:
            wait_for((address, port), process)
            authority = directory / "caddy" / "pki" / "authorities" / "local" / "root.crt"
            asyncio.run(until(authority.exists))
            context = ssl.create_default_context(cafile=str(authority))
            proxy = Proxy(gateway, (address, port), directory / "no log", context)
            asyncio.run(until(lambda: has_certificate(proxy)))
            yield proxy
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(limit())


def has_certificate(proxy: Proxy) -> bool:
    """Whether Caddy has made the certificate of the name, which it does while it listens already."""
    try:
        proxy.open().close()
    except ssl.SSLError:
        return False
    return True


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxied(tmp_path_factory.mktemp("caddy")) as proxy:
        yield proxy


def test_a_client_works_through_caddy(proxy: Proxy) -> None:
    check_client(proxy)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_request_reaches_the_gateway_inside_of_another(proxy: Proxy, shape: str) -> None:
    before = proxy.seen()
    answer = proxy.send(SHAPES[shape].encode("latin-1"))
    assert proxy.seen() - before - 1 <= answer.count(b"HTTP/1.1 ")  # the first question is counted too
    assert b" 200 " not in answer[:20] or shape in HARMLESS


def test_a_client_cannot_choose_its_address(tmp_path: Path) -> None:
    with proxied(tmp_path, own_address()) as proxy:
        assert b"429" in guesses_behind(proxy, "\r\n".join(FORGED[:3]).replace("{}", "{0}"))
