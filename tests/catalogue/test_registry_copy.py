"""A registry from a file or from a real server on this machine, and the copy that is kept of it."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from antiphon.catalogue import registry_copy as fetching
from antiphon.catalogue.agents import find, kept_registry
from antiphon.catalogue.registry import RegistryProblem
from antiphon.catalogue.registry_copy import cache_file, fetch, forget, keep, kept
from tests.catalogue.test_registry import agent, registry
from tests.rows import each_row

GOOD = registry(agent("lute"))


class Pages(BaseHTTPRequestHandler):
    """Pages by their paths."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/good":
            self.answer(200, GOOD)
        elif path == "/moved":
            self.answer(302, b"", Location="/good")
        elif path == "/away":
            self.answer(302, b"", Location="http://example.org/registry.json")
        elif path == "/file":
            self.answer(302, b"", Location="file:///etc/passwd")
        elif path == "/round":
            self.answer(302, b"", Location="/round")
        elif path == "/large":
            self.answer(200, b" " * (fetching.MAX_REGISTRY + 1))
        elif path == "/slow":
            self.send_response(200)
            self.end_headers()
            self.server.released.wait(30)  # type: ignore[attr-defined]
        else:
            self.answer(404, b"nothing here")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # who has enough goes
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as http:
        http.released = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}"
        finally:
            http.released.set()  # type: ignore[attr-defined]
            http.shutdown()
            thread.join(10)


@pytest.mark.parametrize("path", ["/good", "/moved", "/good?x=1"])
def test_a_registry_is_fetched_from_this_machine(server: str, path: str) -> None:
    assert fetch(server + path) == GOOD


def test_a_proxy_is_not_asked_about_this_machine(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetch(f"{server}/good") == GOOD


@pytest.mark.parametrize("path", ["/missing", "/away", "/file", "/round", "/large"])
def test_what_cannot_be_fetched_is_reported_in_a_sentence(server: str, path: str) -> None:
    with pytest.raises(RegistryProblem, match="\nhint: "):
        fetch(server + path)


def test_a_server_that_does_not_end_is_not_waited_for(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "FETCH_LIMIT", 0.2)
    with pytest.raises(RegistryProblem, match="took more than"):
        fetch(f"{server}/slow")


@each_row(
    "url",
    [
        "http://example.org/registry.json",
        "http://127.0.0.1.example.org/x",
        "http://127.0.0.1@example.org/x",
        "ftp://example.org/x",
        "file:///etc/passwd",
        "https://user:s3cret@example.org/x",
        "https://example.org/x y?s3cret",
        "http://[::1/s3cret",
        "://x?s3cret",
    ],
)
def test_other_addresses_are_refused_without_their_secrets(url: str) -> None:
    with pytest.raises(RegistryProblem, match="not fetched") as caught:
        fetch(url)
    assert "s3cret" not in str(caught.value)


def test_a_file_is_read(place: Path) -> None:
    (place / "work" / "registry.json").write_bytes(GOOD)
    assert fetch("registry.json") == fetch(str(place / "work" / "registry.json")) == GOOD
    for other in ("nothing.json", ".", "/dev/zero"):
        with pytest.raises(RegistryProblem, match="\nhint: "):
            fetch(other)


def test_a_copy_is_kept_and_found_and_forgotten(place: Path) -> None:
    assert kept() is None and kept_registry().agents == {}
    keep("https://example.org/registry.json?token=s3cret", GOOD)
    copy = kept()
    assert copy is not None and copy.source == "https://example.org/registry.json"
    assert list(copy.read().agents) == ["lute"] and find("lute", registry=kept_registry()).name == "lute"
    assert "s3cret" not in cache_file().read_text(encoding="utf-8")
    assert forget() and not forget() and kept() is None


def test_what_is_not_a_registry_leaves_the_copy_as_it_is(place: Path) -> None:
    keep("x.json", GOOD)
    before = cache_file().read_bytes()
    with pytest.raises(RegistryProblem):
        keep("y.json", b"<html>")
    assert cache_file().read_bytes() == before


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"source":"x","readAt":"y","registry":7}', b"\xff"])
def test_a_damaged_copy_is_reported_and_counts_as_none(place: Path, damage: bytes) -> None:
    cache_file().parent.mkdir(parents=True, exist_ok=True)
    cache_file().write_bytes(damage)
    with pytest.raises(RegistryProblem, match="--forget"):
        kept()
    assert kept_registry().agents == {}


def test_the_copy_has_the_time_when_it_was_made(place: Path) -> None:
    keep("x.json", GOOD)
    stored = json.loads(cache_file().read_bytes())
    assert stored["source"] == str(place / "work" / "x.json") and stored["readAt"].endswith("+00:00")
