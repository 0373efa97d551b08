"""One walk through the methods of the extension, with the gateway that people start, over a WebSocket as a page has it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.sync.client import ClientConnection

from tests.gateway.processes import Gateway, call, running
from tests.limits import limit


class PageClient:
    """A connection with numbers."""

    def __init__(self, opened: ClientConnection) -> None:
        self._opened = opened
        self._id = 0
        self.methods: list[str] = []
        about = self("initialize", protocolVersion=1, clientCapabilities={}, _meta={"antiphon": {"numbers": True}})
        self.methods = about["_meta"]["antiphon"]["methods"]

    def __call__(self, called: str, /, **params: object) -> Any:
        """Send a request and return its result."""
        answer = self.answer(called, **params)
        assert "result" in answer, answer
        return answer["result"]

    def answer(self, called: str, /, **params: object) -> Any:
        self._id += 1
        return call(self._opened, self._id, called, **params)

    def gateway(self, name: str, /, **params: object) -> Any:
        return self(f"_antiphon/gateway/{name}", **params)

    def until(self, method: str) -> Any:
        """Return the params of the next notification of a method."""
        while True:
            message = json.loads(self._opened.recv(timeout=limit()))
            if message.get("method") == method:
                return message["params"]

    def prompt(self, session: str, text: str) -> Any:
        return self("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("gateway")
    with running(directory) as gateway:
        yield gateway


def root(gateway: Gateway) -> str:
    return str(gateway.directory / "root")


def bearer(secret: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_a_page_lists_opens_reads_and_changes_sessions(gateway: Gateway) -> None:
    (gateway.directory / "root" / "notes.txt").write_text("x", encoding="utf-8")
    with gateway.open_socket() as one, gateway.open_socket() as other:
        page, list_of_sessions = PageClient(one), PageClient(other)
        about = page.gateway("info")
        assert about["role"] == "admin" and about["agents"][0]["default"] and about["roots"] == [root(gateway)]
        assert page.gateway("directories")["path"] == root(gateway)
        list_of_sessions("_antiphon/sessions/follow")
        session = page("session/new", cwd=root(gateway), mcpServers=[])["sessionId"]
        page.prompt(session, "hello there")
        while list_of_sessions.until("_antiphon/sessions/changed")["session"]["text"] != "hello there":
            pass
        (row,) = page("_antiphon/sessions/list", query="hello")["sessions"]
        assert (row["sessionId"], row["state"]) == (session, "idle") and row["number"] > 2
        state = page("_antiphon/session/attach", sessionId=session, last=5)
        assert state["number"] >= state["after"] and state["queue"] == []
        history = page("_antiphon/session/read", sessionId=session, before=state["number"] + 1, limit=1000)
        (begun,) = [each for each in history["events"] if each["method"] == "_antiphon/session/turn_started"]
        assert history["after"] == 0 and begun["params"]["time"] > 1e9
        page("_antiphon/session/rename", sessionId=session, title="Greeting")
        assert page("_antiphon/session/changes", sessionId=session) == {"changes": []}
        exported = page("_antiphon/session/export", sessionId=session, format="markdown")
        assert exported["name"] == "Greeting.md" and "hello there" in exported["text"]
        assert page("_antiphon/session/files", sessionId=session, query="nts")["files"][0]["path"] == "notes.txt"
        refused = page.answer("_antiphon/session/cancel_prompt", sessionId=session, prompt="x")["error"]
        assert "waits" in refused["message"]
        while not (found := page("_antiphon/sessions/search", query="hello")["matches"]):
            pass
        assert found[0]["sessionId"] == session
        page("session/delete", sessionId=session)
        assert list_of_sessions.until("_antiphon/sessions/removed")["sessionId"] == session


def test_every_method_is_named_and_known(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        page = PageClient(opened)
        for method in page.methods:
            error = page.answer(method, sessionId="none", action="?").get("error", {})
            assert error.get("code") != -32601, method


def test_a_link_to_a_session_opens_it_and_nothing_else(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        page = PageClient(opened)
        shared, other = (page("session/new", cwd=root(gateway), mcpServers=[])["sessionId"] for _ in range(2))
        made = page("_antiphon/session/share", sessionId=shared, name="Bob", role="drive", lifetime=60)
        url = urlsplit(made["url"])
        secret, _, place = url.fragment.removeprefix("token=").partition("&to=")
        assert f"{url.scheme}://{url.netloc}" == gateway.place["url"] and place.endswith(f"/{shared}")
        assert made["qr"]["size"] == len(made["qr"]["rows"]) == len(made["qr"]["rows"][0]) >= 21
        with gateway.open_socket(bearer(secret)) as theirs:
            guest = PageClient(theirs)
            assert [row["sessionId"] for row in guest("_antiphon/sessions/list")["sessions"]] == [shared]
            assert guest("_antiphon/session/attach", sessionId=shared, last=10)["after"] == 0
            for name, params in (("share", {"sessionId": shared}), ("read", {"sessionId": other, "before": 5})):
                assert "error" in guest.answer(f"_antiphon/session/{name}", **params)
            for name in ("admin", "launch", "directories"):
                assert "error" in guest.answer(f"_antiphon/gateway/{name}", action="status")
        page.gateway("admin", action="revoke", id=made["id"])
    assert gateway.upgrade(bearer(secret)) == 401


def signed_in(gateway: Gateway, url: str) -> Any:
    """Sign a browser in with the code of an address, and return what it is."""
    code = urlsplit(url).fragment.removeprefix("code=")
    answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"code": code})
    return {"status": answer.status, **(answer.json if answer.status == 200 else {}), "headers": answer.headers}


def test_a_device_gets_no_more_than_the_token_that_invited_it_and_no_longer(gateway: Gateway) -> None:
    token = gateway.admin(action="create token", name="alice", role="drive", lifetime=3600)
    with gateway.open_socket(bearer(token["secret"])) as opened:
        page = PageClient(opened)
        assert "role admin" in page.answer("_antiphon/gateway/launch", role="admin")["error"]["message"]
        assert "error" in page.answer("_antiphon/gateway/admin", action="status")
        made = page.gateway("launch")
        watching = page.gateway("launch", role="watch")
        late = page.gateway("launch")
        device = signed_in(gateway, made["url"])
        assert (device["role"], device["name"]) == ("drive", "alice") and device["expires"] < token["expires"] + 1
        assert signed_in(gateway, made["url"])["status"] == 401, "it is good once"
        assert signed_in(gateway, watching["url"])["role"] == "watch"
        cookie = {"Cookie": device["headers"]["set-cookie"].partition(";")[0], **gateway.origin}
        assert gateway.upgrade(cookie) == 101
    gateway.admin(action="revoke", id=token["id"])
    assert gateway.upgrade(cookie) == 401 and signed_in(gateway, late["url"])["status"] == 401


def test_an_admin_sees_the_agents_and_how_the_gateway_is(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        page = PageClient(opened)
        page("session/new", cwd=root(gateway), mcpServers=[])
        status = page.gateway("admin", action="status")
        (agent,) = status["agents"]
        assert agent["state"] == "running" and agent["processes"] >= 1 and agent["memory"] > 1_000_000
        assert status["health"] == "ok" and status["uptime"] > 0 and status["version"][0].isdigit()
        assert page.gateway("admin", action="sessions")["sessions"][0]["cwd"] == root(gateway)
        refused = page.answer("_antiphon/gateway/admin", action="dance")["error"]
        assert "dance" in refused["message"] and "status" in refused["data"]["hint"]


def test_a_gateway_behind_a_unix_socket_makes_no_links(tmp_path: Path) -> None:
    from websockets.sync.client import unix_connect

    path = str(tmp_path / "socket")
    with running(tmp_path, "--unix", path) as gateway:
        with unix_connect(path, "ws://localhost/acp", additional_headers=gateway.bearer) as opened:
            refused = PageClient(opened).answer("_antiphon/gateway/launch")["error"]
        assert "no browser reaches" in refused["message"] and refused["data"]["hint"]
