"""`antiphon serve` as people start it: what it prints, how clients get in, and how it ends."""

import json
import os
import shlex
import signal
import sqlite3
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect, unix_connect

from tests import prepared
from tests.gateway.processes import DEMO, HOSTILE, INITIALIZE, Gateway, call, prompt, running
from tests.limits import limit

pytestmark = pytest.mark.slow  # each starts a gateway


def control(gateway: Gateway, *words: str) -> Any:
    """Run a subcommand with `--json`."""
    done = prepared.run("serve", *words, "--data", str(gateway.directory / "data"), "--json", timeout=limit())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def program(*words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the program as people do, in a process of its own."""
    command = [sys.executable, "-m", "antiphon", *words]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=limit(), check=False, cwd=cwd
    )


@pytest.fixture
def gateway(tmp_path: Path) -> Any:
    with running(tmp_path) as gateway:
        yield gateway


# Getting in.


def test_a_browser_signs_in_with_the_printed_code(gateway: Gateway) -> None:
    assert gateway.ask("/api/login").status == 401
    answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"code": gateway.code})
    cookie = answer.headers["set-cookie"]
    assert answer.json["role"] == "admin" and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    session = {"Cookie": cookie.partition(";")[0]}
    assert gateway.ask("/api/login", session).json == answer.json, "a page cannot read its cookie, and has to ask"
    with gateway.open_socket({**session, **gateway.origin}) as opened:
        assert call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})["result"]["protocolVersion"] == 1
    assert gateway.ask("/api/login", {**session, **gateway.origin}, method="DELETE").status == 204
    assert gateway.ask("/metrics", session).status == 401


def test_a_subprotocol_carries_the_token_of_a_page(gateway: Gateway) -> None:
    offered = f"acp.bearer.{gateway.token}"
    url = f"ws://127.0.0.1:{gateway.port}/acp"
    with connect(url, subprotocols=[offered], additional_headers=gateway.origin, proxy=None) as opened:  # type: ignore[list-item]
        assert opened.subprotocol == offered
        assert "result" in call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})


def test_a_run_without_a_token_ends_with_how_to_give_one(gateway: Gateway) -> None:
    done = program("run", "--agent", f"ws://127.0.0.1:{gateway.port}/acp", "hello")
    hint = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and hint.startswith("hint: ") and "--token-file" in hint and "ANTIPHON_TOKEN" in hint


@pytest.mark.parametrize("how", [("password", "password"), ("oauth", "token")])
def test_a_program_that_sets_no_header_sends_its_token_with_authenticate(
    gateway: Gateway, how: tuple[str, str]
) -> None:
    method, field = how
    with gateway.open_socket({}) as opened:
        refused = call(opened, 1, "session/list")["error"]
        assert refused["code"] == -32000 and (refused["data"]["recoverable"], refused["data"]["action"]) == (
            True,
            "sign in",
        )
        offered = call(opened, 2, "initialize", protocolVersion=1, clientCapabilities={})
        assert [each["id"] for each in offered["result"]["authMethods"]] == ["password", "oauth"]
        assert "error" in call(opened, 3, "authenticate", **{"method": method, field: "wrong"})
        assert "error" in call(opened, 4, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
        assert call(opened, 5, "authenticate", **{"method": method, field: gateway.token})["result"] == {}
        made = call(opened, 6, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
        assert made["result"]["sessionId"]


def test_what_is_sent_right_behind_the_token_is_answered(gateway: Gateway) -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
        {"jsonrpc": "2.0", "id": 2, "method": "authenticate", "params": {"method": "oauth", "token": gateway.token}},
        {"jsonrpc": "2.0", "id": 3, "method": "session/list", "params": {}},
    ]
    with gateway.open_socket({}) as opened:
        opened.send("\n".join(map(json.dumps, messages)) + "\n")
        answers = [json.loads(opened.recv(timeout=limit())) for _ in range(3)]
        assert [answer["id"] for answer in answers] == [1, 2, 3] and all("result" in answer for answer in answers)


def test_a_client_that_signed_in_learns_that_the_agent_does_not_start(tmp_path: Path) -> None:
    with running(tmp_path, agent=("false",)) as gateway, gateway.open_socket({}) as opened:
        assert "result" in call(opened, 1, "initialize", protocolVersion=1, clientCapabilities={})
        assert call(opened, 2, "authenticate", method="oauth", token=gateway.token)["result"] == {}
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=limit())


def test_fields_behind_a_body_are_refused(gateway: Gateway) -> None:
    head = f"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nContent-Type: application/json\r\n"
    with gateway.raw() as opened:
        opened.sendall(
            f"{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n".encode()
        )
        with opened.makefile("rb") as answer:
            assert b" 400 " in answer.readline()


# Roles and shares.


def test_a_share_is_for_its_sessions_and_ends_with_them(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
    (session,) = control(gateway, "sessions")["sessions"]
    share = control(gateway, "shares", "--create", session["key"][:8], "--name", "for Ann", "--for", "1h")
    assert (share["role"], share["sessions"]) == ("watch", [session["key"]])
    headers = {"Authorization": f"Bearer {share['secret']}"}
    assert gateway.upgrade(headers) == 101
    assert gateway.ask("/metrics", headers).status == 403, "it is for sessions, not for the gateway"
    (deleted,) = control(gateway, "sessions", "delete", session["key"])["deleted"]
    assert deleted["key"] == session["key"] and control(gateway, "sessions")["sessions"] == []
    assert gateway.upgrade(headers) == 401


def test_a_guest_gets_a_command_that_follows_the_session(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
    (session,) = control(gateway, "sessions")["sessions"]
    made = program("serve", "shares", "--create", session["key"][:8], "--data", str(gateway.directory / "data"))
    first, second = made.stderr.splitlines()
    address = second.removeprefix("in a browser: ")
    target = f"/session/{session['agent']}/{session['session_id']}"
    assert address == f"http://127.0.0.1:{gateway.port}/#token={made.stdout.strip()}&to={target}"
    given = shlex.split(first.partition(": ")[2])
    (gateway.directory / "FILE").write_text(made.stdout, encoding="utf-8")
    done = program("run", *given[2:], "hello", cwd=gateway.directory)
    assert given[:2] == ["antiphon", "chat"] and "may only watch" in done.stderr, "it found the session"
    done = program("run", *given[2:6], "hello", cwd=gateway.directory)
    assert "may open no session" in done.stderr and "--resume ID" in done.stderr.splitlines()[-1]


def test_tokens_are_made_listed_and_revoked(gateway: Gateway) -> None:
    made = control(gateway, "tokens", "--create", "laptop", "--role", "watch")
    assert gateway.ask("/metrics", {"Authorization": f"Bearer {made['secret']}"}).status == 200
    listed = {token["name"]: token for token in control(gateway, "tokens")["tokens"]}
    assert listed["laptop"]["role"] == "watch" and "secret" not in listed["laptop"] and "digest" not in listed["laptop"]
    control(gateway, "tokens", "--revoke", str(made["id"]))
    assert gateway.ask("/metrics", {"Authorization": f"Bearer {made['secret']}"}).status == 401


def test_what_an_agent_calls_a_session_does_nothing_to_the_terminal_that_lists_it(tmp_path: Path) -> None:
    with running(tmp_path) as gateway, gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
    with sqlite3.connect(tmp_path / "data" / "gateway.sqlite3") as database:
        database.execute("UPDATE session SET title = ?", ("\x1b]0;owned\x07a\nb",))
    database.close()
    for words in (["sessions"], ["sessions", "delete", control(gateway, "sessions")["sessions"][0]["key"]]):
        done = program("serve", *words, "--data", str(tmp_path / "data"))
        assert "a" in done.stdout and done.stdout.count("\n") == 1 and done.stdout[:-1].isprintable(), words


def test_metrics_are_for_prometheus(gateway: Gateway) -> None:
    gateway.ask("/healthz")
    text = gateway.ask("/metrics", gateway.bearer).body.decode()
    assert "antiphon_clients 0.0" in text and 'antiphon_requests_total{kind="http",status="200"}' in text


def test_health_says_nothing_but_its_state(gateway: Gateway) -> None:
    answer = gateway.ask("/healthz")
    assert (answer.status, answer.body) == (200, b"ok\n") and "server" not in answer.headers


def test_another_path_is_nothing(gateway: Gateway) -> None:
    assert gateway.ask("/agents/nobody/acp", gateway.bearer).status == 404
    assert gateway.ask("/acp/../metrics").status in (400, 401, 404)
    assert gateway.upgrade(gateway.bearer, "/elsewhere") == 403


# Where it listens.


def test_a_unix_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    path = f"/tmp/antiphon-test-{os.getpid()}.sock"  # a path of a test is longer than a socket may have
    with running(tmp_path, "--unix", path) as gateway:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with unix_connect(path, "ws://localhost/acp", additional_headers=gateway.bearer) as opened:
            assert "result" in call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        status = control(gateway, "status")
        assert (status["state"], status["unix"]) == ("running", f"unix://{path}") and "url" not in status
        done = program("serve", "status", "--launch", "--data", str(gateway.directory / "data"))
        assert done.returncode == 1 and "no browser reaches" in done.stderr and "hint:" in done.stderr
    assert not os.path.exists(path)


def test_status_has_where_it_is_and_another_address_that_signs_a_browser_in(gateway: Gateway) -> None:
    status = control(gateway, "status", "--launch")
    assert status["url"] == f"http://127.0.0.1:{gateway.port}"
    page, _, code = status["page"].partition("/#code=")
    assert page == status["url"]
    assert gateway.ask("/api/login", gateway.origin, method="POST", body={"code": code}).status == 200


def test_http2_serves_both_profiles_over_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with running(tmp_path, "--http2", "--tls-cert", str(cert), "--tls-key", str(key)) as gateway:
        context = ssl.create_default_context(cafile=cert)
        url = f"https://localhost:{gateway.port}"
        with httpx.Client(http2=has_h2(), verify=context, trust_env=False, timeout=limit()) as client:
            answer = client.post(f"{url}/acp", json=INITIALIZE, headers=gateway.bearer)
            assert answer.status_code == 200 and answer.headers["acp-connection-id"]
            page, head = client.get(url), client.head(url)
            assert page.status_code == head.status_code == 200 and int(head.headers["content-length"]) > 0 == len(
                head.content
            )
            code = client.post(f"{url}/api/login", json={"code": gateway.code})
            assert code.headers["set-cookie"].startswith("__Host-antiphon=") and "Secure" in code.headers["set-cookie"]
        context = ssl.create_default_context(cafile=cert)  # httpx has set the other one to HTTP/2
        with connect(
            f"wss://localhost:{gateway.port}/acp", ssl=context, additional_headers=gateway.bearer, proxy=None
        ) as opened:
            assert "result" in call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        assert control(gateway, "status")["state"] == "running"


def test_a_client_over_tls_that_is_still_there_at_the_end_is_no_error(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    with running(tmp_path, "--http2", "--tls-cert", str(cert), "--tls-key", str(key)) as gateway:
        url = f"wss://localhost:{gateway.port}/acp"
        context = ssl.create_default_context(cafile=cert)
        with connect(url, ssl=context, additional_headers=gateway.bearer, proxy=None) as opened:
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
            gateway.process.send_signal(signal.SIGTERM)
            assert gateway.process.stderr is not None and gateway.process.stderr.read() == ""


def has_h2() -> bool:
    """Whether httpx can speak HTTP/2 here: hypercorn brings the package along."""
    import importlib.util

    return importlib.util.find_spec("h2") is not None


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--host", "0.0.0.0"), "needs TLS"),
        (("--host", "192.0.2.1"), "needs TLS"),
        (("--host", "example.org"), "needs TLS"),
        (("--host", "0.0.0.0", "--no-auth", "--behind-proxy"), "needs a token"),
        (("--no-auth", "--behind-proxy"), "this machine alone"),
        (("--tls-cert", "x.pem"), "certificate and its key"),
        (("--http2",), "needs TLS"),
        (("--behind-proxy", "here"), "takes addresses"),
    ],
)
def test_what_would_be_open_to_others_is_not_started(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    done = program("serve", "--port", "0", "--data", str(tmp_path / "data"), *words, "--", "cat")
    assert done.returncode == 1 and reason in done.stderr and "hint:" in done.stderr
    assert not (tmp_path / "data").exists()


# The start and the end.


def test_a_second_gateway_on_the_same_data_is_refused(gateway: Gateway) -> None:
    done = program("serve", "--port", "0", "--data", str(gateway.directory / "data"), "--", "cat")
    assert done.returncode == 1 and "in use by another Antiphon" in done.stderr


def test_the_files_of_a_gateway_are_for_its_user_alone(gateway: Gateway) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (gateway.directory / "data").iterdir()}
    assert {"token", "address.json", "gateway.sqlite3"} <= modes.keys() and set(modes.values()) == {0o600}


def test_tokens_outlive_the_gateway_and_its_address_does_not(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        token = gateway.token
        secret = control(gateway, "tokens", "--create", "phone")["secret"]
    assert not (tmp_path / "data" / "address.json").exists()
    assert control(gateway, "status")["state"] == "stopped"
    with running(tmp_path) as gateway:
        assert gateway.token == token
        assert gateway.upgrade({"Authorization": f"Bearer {secret}"}) == 101


def test_a_signal_lets_the_turn_end_and_closes_every_connection(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        gateway.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=limit())
        assert (opened.close_code, opened.close_reason) == (1001, "the server is shutting down")
    assert gateway.process.wait(limit()) == 0


def test_a_client_sees_why_its_connection_ends(gateway: Gateway) -> None:
    secret = gateway.admin(action="create token", name="short", role="drive", lifetime=3)["secret"]
    with gateway.open_socket({"Authorization": f"Bearer {secret}"}) as opened:
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=limit())
        assert (opened.close_code, opened.close_reason) == (1008, "the token has expired")
    with gateway.open_socket({}) as opened:
        for id in range(3):
            assert "error" in call(opened, id, "authenticate", method="password", password="wrong")
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=limit())
        assert opened.close_code == 1008 and "too many wrong tokens" in str(opened.close_reason)


def test_a_second_signal_ends_the_turn_and_its_client_gets_the_response(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        root = str(gateway.directory / "root")
        session = call(opened, 1, "session/new", cwd=root, mcpServers=[])["result"]["sessionId"]
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "/slow 1000"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
        while "agent_message_chunk" not in opened.recv(timeout=limit()):
            pass
        gateway.process.send_signal(signal.SIGTERM)
        assert any(gateway.ask("/healthz").status == 503 for _ in range(1000)), "it drains"
        assert gateway.process.stderr is not None
        assert gateway.process.stderr.readline().startswith("waiting for a turn to end")
        gateway.process.send_signal(signal.SIGTERM)
        while (message := json.loads(opened.recv(timeout=limit()))).get("id") != 2:
            pass
        assert message["error"]["data"]["antiphon"] == {"interrupted": True}
    assert gateway.process.wait(limit()) == 0


def test_a_signal_while_it_starts_ends_it_in_order(tmp_path: Path) -> None:
    with running(tmp_path, without="signal while starting") as gateway:
        assert gateway.process.wait(limit()) == 0
    assert not (tmp_path / "data" / "address.json").exists()


def test_the_agent_gets_no_secret_of_the_gateway(tmp_path: Path) -> None:
    secrets = {"MY_API_TOKEN": "s3cret", "LD_PRELOAD": "", "AWS_SECRET_ACCESS_KEY": "s3cret"}
    with running(tmp_path, env=secrets) as gateway, gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        children = Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children")
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in _tree(children)]
        assert environments and not any(b"s3cret" in environment for environment in environments)


def _tree(children: Path) -> list[str]:
    found = children.read_text(encoding="utf-8").split() if children.exists() else []
    return [each for pid in found for each in (pid, *_tree(Path(f"/proc/{pid}/task/{pid}/children")))]


def test_a_backup_is_written_while_it_runs(gateway: Gateway, tmp_path: Path) -> None:
    target = tmp_path / "copies" / "gateway.sqlite3"
    assert control(gateway, "backup", str(target)) == {"file": str(target)}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_the_unit_starts_this_gateway(tmp_path: Path) -> None:
    done = program("serve", "--port", "9000", "--data", "data", "unit", cwd=tmp_path)
    where = tmp_path.resolve()
    assert f"serve --port 9000 --data {where}/data --root {where}\n" in done.stdout, "a service starts elsewhere"
    assert f"WorkingDirectory={where}\n" in done.stdout and "KillMode=mixed" in done.stdout


def test_the_code_that_signs_a_browser_in_is_printed_to_a_terminal_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon", "serve", "--port", "0", "--data", str(tmp_path / "data"), "--", "cat"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=tmp_path)
    assert process.stdout is not None
    with process.stdout:
        lines = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(limit()) == 0
    assert lines[0].startswith("page") and "code=" not in "".join(lines), "a service prints into a log"


def printed(tmp_path: Path, *words: str) -> dict[str, str]:
    """What a gateway prints when it starts, by the first word of each line."""
    command = [sys.executable, "-m", "antiphon", "serve", "--data", str(tmp_path / "the data"), *words]
    process = subprocess.Popen(
        [*command, "--", *DEMO], stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=tmp_path
    )
    assert process.stdout is not None
    with process.stdout:
        found: dict[str, str] = {}
        while "chat" not in found:
            name, _, value = process.stdout.readline().partition(" ")
            found[name or "more"] = value.strip()
        run = shlex.split(found["chat"].replace(" chat ", " run "))
        done = subprocess.run(
            [*run, "/think songs"], capture_output=True, text=True, encoding="utf-8", timeout=limit(), cwd=tmp_path
        )
        assert (done.returncode, done.stdout) == (0, "I have thought about songs.\n"), done.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(limit()) == 0
    return found


def test_the_printed_command_works_where_the_program_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = printed(tmp_path, "--port", "0")
    assert "serve status --launch --data" in found["more"]


def test_the_printed_command_works_over_a_unix_socket_and_so_does_the_path_of_another_agent(tmp_path: Path) -> None:
    path = f"/tmp/antiphon-test-{os.getpid()}.sock"  # a path of a test is longer than a socket may have
    assert f"unix://{path} " in printed(tmp_path, "--unix", path)["agent"]
    with running(tmp_path, "--unix", path) as gateway:
        assert _run(gateway, f"unix://{path}:/agents/agent/acp").returncode == 0
        missing = _run(gateway, f"unix://{path}:/agents/nothing/acp")
    assert missing.returncode == 1 and f"unix://{path}" in missing.stderr


def _run(gateway: Gateway, address: str) -> "subprocess.CompletedProcess[str]":
    words = ["run", "--token-file", str(gateway.place["token_file"]), "--agent", address, "/think songs"]
    return program(*words, cwd=gateway.directory / "root")


def test_the_audit_log_says_who_decided_what_and_from_where(tmp_path: Path) -> None:
    asks = {"method": "terminal/create", "params": {"command": "true", "cwd": str(tmp_path / "root")}}
    with running(tmp_path, agent=HOSTILE) as gateway:
        with gateway.open_socket() as opened:
            prompt(opened, json.dumps([asks]), tmp_path / "root")
        log = gateway.admin(action="audit")
        (answer,) = [entry for entry in log["entries"] if entry["action"] == "answer"]
        assert (answer["actor"], answer["address"]) == ("owner", "127.0.0.1")
        assert answer["detail"] == "session/request_permission: reject" and log["broken"] is None
    with sqlite3.connect(tmp_path / "data" / "gateway.sqlite3") as database:
        database.execute("DELETE FROM audit WHERE id > ?", (answer["id"],))
    database.close()
    done = program("serve", "status", "--data", str(tmp_path / "data"), "--json")
    assert json.loads(done.stdout)["audit_is_whole"] is False, "its end was cut off"


def test_a_gateway_with_a_certificate_of_an_authority_is_asked(tmp_path: Path) -> None:
    tls = Path(__file__).parents[1] / "transports" / "tls"
    with running(tmp_path, "--tls-cert", str(tls / "server.pem"), "--tls-key", str(tls / "server.key")) as gateway:
        assert control(gateway, "status")["state"] == "running"


def test_the_limits_can_be_changed(tmp_path: Path) -> None:
    options = ("--limit", "message=64K", "--limit", "prompts-per-minute=1", "--limit", "answer=1s")
    asks = {"method": "terminal/create", "params": {"command": "true", "cwd": str(tmp_path / "root")}}
    with running(tmp_path, *options, agent=HOSTILE) as gateway, gateway.open_socket() as opened:
        made = prompt(opened, json.dumps([asks]), tmp_path / "root", option=None)
        assert made.asked and "error" in made.results[0], "nothing answered, and it was rejected"
        again = {"sessionId": "s1", "prompt": [{"type": "text", "text": "[]"}]}
        assert "error" in call(opened, 5, "session/prompt", **again)
        opened.send("x" * 70_000)
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=limit())


@pytest.mark.parametrize("wrong", ["message=1G", "message=x", "nothing=1", "queue=0"])
def test_a_limit_that_makes_no_sense_is_refused(wrong: str, tmp_path: Path) -> None:
    done = program("serve", "--data", str(tmp_path), "--limit", wrong)
    assert done.returncode == 2 and "--limit" in done.stderr
