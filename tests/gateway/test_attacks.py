"""The attack table: each attack is tried on the gateway that people start, over sockets, and gets nowhere.

Then it is tried with its check switched off, and gets in: so it is that check which stops it, and the test can fail.
"""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from websockets.exceptions import ConnectionClosed

from antiphon.store.database import DirectoryLock
from tests.gateway.inner_attacks import INNER, SECRETS, Attack
from tests.gateway.load_attacks import LOAD
from tests.gateway.page_attacks import PAGE, waiting
from tests.gateway.processes import HOSTILE, INITIALIZE, ROOT, WEAKENED, Gateway, call, own_address, running
from tests.gateway.slow_attacks import SLOW
from tests.limits import limit

EVIL: Final = "http://evil.example"


# Pages of other sites.


def cross_site_websocket(gateway: Gateway) -> bool:
    return gateway.upgrade({**gateway.sign_in(), "Origin": EVIL}) == 101


def cross_site_post(gateway: Gateway) -> bool:
    headers = {**gateway.sign_in(), "Origin": EVIL}
    return gateway.ask("/api/admin", headers, method="POST", body={"action": "status"}).status == 200


def sandboxed_page(gateway: Gateway) -> bool:
    return gateway.upgrade({**gateway.sign_in(), "Origin": "null"}) == 101


def page_of_another_port(gateway: Gateway) -> bool:
    return gateway.upgrade({**gateway.sign_in(), "Origin": f"http://127.0.0.1:{gateway.port + 1}"}) == 101


def cross_site_picture(gateway: Gateway) -> bool:
    return gateway.ask("/metrics", {**gateway.sign_in(), "Sec-Fetch-Site": "cross-site"}).status == 200


def cookie_without_origin(gateway: Gateway) -> bool:
    return gateway.ask("/api/admin", gateway.sign_in(), method="POST", body={"action": "status"}).status == 200


def rebound_name(gateway: Gateway) -> bool:
    headers = {**gateway.bearer, "Host": f"evil.example:{gateway.port}", "Origin": f"{EVIL}:{gateway.port}"}
    return gateway.ask("/metrics", headers).status == 200


def name_that_begins_like_ours(gateway: Gateway) -> bool:
    return gateway.ask("/healthz", {"Host": "127.0.0.1.evil.example"}).status == 200


def name_below_localhost(gateway: Gateway) -> bool:
    """Whether a name is taken for this machine that some systems ask a DNS server for."""
    return gateway.ask("/healthz", {"Host": f"random.localhost:{gateway.port}"}).status == 200


def two_names(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        raw.sendall(head.encode())
        return b" 200 " in _all_of(raw)[:20]


# Tokens.


def no_token(gateway: Gateway) -> bool:
    return gateway.ask("/acp", method="POST", body=INITIALIZE).status == 200


def no_token_for_metrics(gateway: Gateway) -> bool:
    return gateway.ask("/metrics").status == 200


def wrong_token(gateway: Gateway) -> bool:
    return gateway.upgrade({"Authorization": f"Bearer {'x' * 43}"}) == 101


def token_of_another_gateway(gateway: Gateway) -> bool:
    with running(gateway.directory / "other") as other:
        return gateway.upgrade(other.bearer) == 101


def expired_token(gateway: Gateway) -> bool:
    secret = gateway.admin(action="create token", name="short", role="drive", lifetime=0.001)["secret"]
    return gateway.upgrade({"Authorization": f"Bearer {secret}"}) == 101


def token_in_the_address(gateway: Gateway) -> bool:
    return gateway.ask(f"/metrics?token={gateway.token}", gateway.bearer).status == 200


def second_use_of_a_launch_code(gateway: Gateway) -> bool:
    code = gateway.admin(action="launch")["code"]
    first, second = (gateway.ask("/api/login", gateway.origin, method="POST", body={"code": code}) for _ in range(2))
    assert first.status == 200
    return second.status == 200


def guesses(gateway: Gateway) -> bool:
    """Whether the seventh wrong token is looked at like the first."""
    answers = [gateway.ask("/metrics", {"Authorization": f"Bearer guess{each}"}) for each in range(7)]
    return {answer.status for answer in answers} == {401}


def guesses_from_made_up_addresses(gateway: Gateway) -> bool:
    def guess(each: int) -> int:
        headers = {"Authorization": f"Bearer guess{each}", "X-Forwarded-For": f"10.0.0.{each}"}
        return gateway.ask("/metrics", headers).status

    return {guess(each) for each in range(7)} == {401}


def guesses_of_codes_with_an_old_cookie(gateway: Gateway) -> bool:
    def guess(each: int) -> int:
        headers = {**gateway.origin, "Cookie": "antiphon=old"}
        return gateway.ask("/api/login", headers, method="POST", body={"code": f"guess{each}"}).status

    return {guess(each) for each in range(7)} == {401}


def watcher_as_admin(gateway: Gateway) -> bool:
    secret = gateway.admin(action="create token", name="watcher", role="watch")["secret"]
    headers = {"Authorization": f"Bearer {secret}"}
    return gateway.ask("/api/admin", headers, method="POST", body={"action": "create token"}).status == 200


# The sign-in over a WebSocket.


def browser_that_signs_in_later(gateway: Gateway) -> bool:
    return gateway.upgrade(gateway.origin) == 101


def fourth_try_to_sign_in(gateway: Gateway) -> bool:
    try:
        with gateway.open_socket({}) as opened:
            for each in range(4):
                call(opened, each, "authenticate", method="password", password="wrong")  # the same: no guess
    except ConnectionClosed:
        return False
    return True


# Sizes and times.


def large_headers(gateway: Gateway) -> bool:
    headers = {f"X-{each}": "x" * 8000 for each in range(9)}
    return gateway.ask("/healthz", headers).status == 200


def large_body(gateway: Gateway) -> bool:
    """Whether a body of a megabyte is read to its end before anything is known of its sender."""
    return gateway.ask("/api/login", method="POST", body={"code": "x" * 1_000_000}).status != 413


def large_message_before_the_sign_in(gateway: Gateway) -> bool:
    """Whether a megabyte is read from a socket that has shown no token."""
    with gateway.open_socket({}) as opened:
        opened.send("x" * 1_000_000)
        try:
            return bool(opened.recv(timeout=limit()))
        except ConnectionClosed:
            return False


def many_messages_before_the_sign_in(gateway: Gateway) -> bool:
    with gateway.open_socket({}) as opened:
        try:
            for each in range(40):
                call(opened, each, "x" * 4000)
        except ConnectionClosed:
            return False
    return True


def sockets_that_never_sign_in(gateway: Gateway) -> bool:
    """Whether one address gets any number of sockets without a token."""
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(gateway.open_socket({}))
        return gateway.upgrade({}) == 101


def connections_of_a_token_that_is_sent_later(gateway: Gateway) -> bool:
    made = gateway.admin(action="create token", name="greedy", role="drive")
    with ExitStack() as stack:
        for _ in range(32):
            stack.enter_context(gateway.open_socket({"Authorization": f"Bearer {made['secret']}"}))
        one_more = stack.enter_context(gateway.open_socket({}))
        return "result" in call(one_more, 0, "authenticate", method="oauth", token=made["secret"])


def revoked_token_that_goes_on(gateway: Gateway) -> bool:
    """Whether a client that does not read is still listened to after its token was revoked, because more waits for it."""
    made = gateway.admin(action="create token", name="slow reader", role="drive")
    before = len(gateway.admin(action="sessions")["sessions"])
    with gateway.open_socket({"Authorization": f"Bearer {made['secret']}"}) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        session = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])["result"]
        params = {"sessionId": session["sessionId"], "prompt": [{"type": "text", "text": "flood"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
        opened.recv(timeout=limit())  # and no more: the rest waits in the gateway
        gateway.until_turn_ends()
        gateway.admin(action="revoke", id=made["id"])
        with suppress(ConnectionClosed, OSError):
            new = {"cwd": str(gateway.directory / "root"), "mcpServers": []}
            opened.send(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "session/new", "params": new}))
            while True:
                opened.recv(timeout=limit())
    return len(gateway.admin(action="sessions")["sessions"]) > before + 1


# Cookies.


def cookie_that_is_the_token(gateway: Gateway) -> bool:
    """Whether what a browser keeps is good after it signed out."""
    answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"token": gateway.token})
    cookie = answer.headers["set-cookie"].partition(";")[0]
    gateway.ask("/api/login", {**gateway.origin, "Cookie": cookie}, method="DELETE")
    return gateway.ask("/metrics", {"Authorization": f"Bearer {cookie.partition('=')[2]}"}).status == 200


def browser_that_outlives_its_token(gateway: Gateway) -> bool:
    made = gateway.admin(action="create token", name="guest", role="watch")
    answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"token": made["secret"]})
    gateway.admin(action="revoke", id=made["id"])
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return gateway.ask("/metrics", {"Cookie": cookie}).status == 200


def signed_in_with(gateway: Gateway, secret: str) -> str:
    """Sign a browser in with a token, and return its cookie."""
    answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"token": secret})
    assert answer.status == 200
    return answer.headers["set-cookie"].partition(";")[0]


def share_that_becomes_many_browsers(gateway: Gateway) -> bool:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        root = str(gateway.directory / "root")
        session = call(opened, 1, "session/new", cwd=root, mcpServers=[])["result"]["sessionId"]
    share = gateway.admin(action="share", name="link", sessions=[session])
    for _ in range(34):
        signed_in_with(gateway, share["secret"])
    (listed,) = [each for each in gateway.admin(action="shares")["shares"] if each["id"] == share["id"]]
    return int(listed["browsers"]) > 32


def connections_of_the_browsers_of_a_token(gateway: Gateway) -> bool:
    made = gateway.admin(action="create token", name="greedy", role="drive")
    with ExitStack() as stack:
        for _ in range(32):
            stack.enter_context(gateway.open_socket({"Authorization": f"Bearer {made['secret']}"}))
        return gateway.upgrade({"Cookie": signed_in_with(gateway, made["secret"]), **gateway.origin}) == 101


# Ids and paths.


def connection_of_another_principal(gateway: Gateway) -> bool:
    opened = gateway.open_http()
    secret = gateway.admin(action="create token", name="other", role="drive")["secret"]
    headers = {"Authorization": f"Bearer {secret}", "Acp-Connection-Id": opened}
    body = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
    return gateway.ask("/acp", headers, method="POST", body=body).status == 202


def session_of_another_share(gateway: Gateway) -> bool:
    """Whether the holder of a share reads a session whose id it has guessed."""
    root = str(gateway.directory / "root")
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        mine, other = (call(opened, id, "session/new", cwd=root, mcpServers=[])["result"]["sessionId"] for id in (1, 2))
    share = gateway.admin(action="share", name="guest", sessions=[mine])
    with gateway.open_socket({"Authorization": f"Bearer {share['secret']}"}) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        assert "result" in call(opened, 1, "session/load", sessionId=mine, cwd=root, mcpServers=[])
        return "result" in call(opened, 2, "session/load", sessionId=other, cwd=root, mcpServers=[])


def directory_behind_a_link(gateway: Gateway) -> bool:
    outside = gateway.directory.parent / f"{gateway.directory.name}-outside"
    outside.mkdir(exist_ok=True)
    link = gateway.directory / "root" / "link"
    if not link.is_symlink():
        link.symlink_to(outside)
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        return "result" in call(opened, 1, "session/new", cwd=str(link), mcpServers=[])


# The way to the gateway.

LOGIN: Final = "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SMUGGLED: Final = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


def smuggles(gateway: Gateway, head: str, body: str = "0\r\n\r\n") -> bool:
    """Whether a request in the body of another, as one proxy or the next may forward it, is answered as if it stood alone."""
    with gateway.raw() as raw:
        length = len(body) + len(SMUGGLED)
        raw.sendall(f"{LOGIN}{head.format(length=length)}\r\n{body}{SMUGGLED}".encode("latin-1"))
        return b"\r\n\r\nok\n" in _all_of(raw)


def request_behind_chunks(gateway: Gateway) -> bool:
    return smuggles(gateway, "Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n")


def request_behind_chunks_and_a_length(gateway: Gateway) -> bool:
    return smuggles(gateway, "Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n")


def request_behind_a_bare_line_end(gateway: Gateway) -> bool:
    return smuggles(gateway, "X: a\nTransfer-Encoding: chunked\r\nContent-Length: {length}\r\n")


def address_of_another_host(gateway: Gateway) -> bool:
    """Whether a whole address as the target is served, which a proxy may take for the host that is meant."""
    with gateway.raw() as raw:
        raw.sendall(SMUGGLED.replace("/healthz", "http://evil.example/healthz").encode())
        return b"\r\n\r\nok\n" in _all_of(raw)


def past_the_proxy(gateway: Gateway) -> bool:
    """Whether another machine that is no proxy is served without TLS."""
    with (
        running(
            gateway.directory / "exposed",
            "--host",
            "0.0.0.0",
            "--behind-proxy",
            "198.51.100.1",
            without=gateway.without,
        ) as exposed,
        socket.create_connection((own_address(), exposed.port), timeout=limit()) as raw,
    ):
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return b" 200 " in _all_of(raw)[:20]


def token_for_the_program_that_has_the_old_port(gateway: Gateway) -> bool:
    """Whether a command sends the token to the address of a gateway that was killed."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        data = gateway.directory / "killed"
        with running(gateway.directory, "--data", str(data)):
            kept = json.loads((data / "address.json").read_bytes())
        ended = subprocess.Popen(["true"])
        ended.wait()
        kept |= {"pid": ended.pid, "url": f"http://127.0.0.1:{other.getsockname()[1]}"}
        (data / "address.json").write_text(json.dumps(kept), encoding="utf-8")
        with DirectoryLock(data):  # as a gateway has it that is being started
            command = [sys.executable, str(WEAKENED), gateway.without, "serve", "status", "--data", str(data)]
            asking = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})
            while not select.select([other], [], [], 0.05)[0]:
                if asking.poll() is not None:
                    return False
            with other.accept()[0] as caught:
                found = caught.recv(65536)
            asking.wait(limit())
            return b"Bearer" in found


ATTACKS: Final = [
    Attack("check_origin", cross_site_websocket),
    Attack("check_origin", cross_site_post),
    Attack("check_origin", sandboxed_page),
    Attack("check_origin", page_of_another_port),
    Attack("check_fetch_site", cross_site_picture),
    Attack("check_cookie", cookie_without_origin),
    Attack("check_host", rebound_name),
    Attack("check_host", name_that_begins_like_ours),
    Attack("check_host", name_below_localhost),
    Attack("check_headers", two_names),
    Attack("--no-auth", no_token),
    Attack("--no-auth", no_token_for_metrics),
    Attack("find", wrong_token),
    Attack("find", token_of_another_gateway),
    Attack("has_expired", expired_token),
    Attack("check_query", token_in_the_address),
    Attack("use_up", second_use_of_a_launch_code),
    Attack("check_failures", guesses),
    Attack("check_failures", guesses_of_codes_with_an_old_cookie),
    Attack("client_address", guesses_from_made_up_addresses),
    Attack("check_role", watcher_as_admin),
    Attack("may_sign_in_later", browser_that_signs_in_later),
    Attack("is_over", fourth_try_to_sign_in),
    Attack("check_headers,HEADER_LIMIT", large_headers),
    Attack("BODY_LIMIT", large_body),
    Attack("HELD", large_message_before_the_sign_in),
    Attack("HELD", many_messages_before_the_sign_in),
    Attack("has_too_many_unsigned", sockets_that_never_sign_in),
    Attack("has_too_many", connections_of_a_token_that_is_sent_later),
    Attack("abort", revoked_token_that_goes_on),
    Attack("token of a browser", cookie_that_is_the_token),
    Attack("parent of a token", browser_that_outlives_its_token),
    Attack("too_many_browsers", share_that_becomes_many_browsers),
    Attack("root of a token", connections_of_the_browsers_of_a_token),
    Attack("principal of a connection", connection_of_another_principal),
    Attack("sessions of a share", session_of_another_share),
    Attack("roots", directory_behind_a_link),
    *INNER,
    *SLOW,
    *PAGE,
    *LOAD,
    Attack("strict parser", request_behind_chunks),
    Attack("strict parser", request_behind_chunks_and_a_length),
    Attack("strict parser", request_behind_a_bare_line_end),
    Attack("is_path", address_of_another_host),
    Attack("check_peer", past_the_proxy),
    Attack("is_alive", token_for_the_program_that_has_the_old_port),
]
NAMES: Final = [attack.gets_in.__name__ for attack in ATTACKS]


CONFIG: Final = """\
[policy]
deny = ["Bash(env)"]
"""


@contextmanager
def attacked(directory: Path, *options: str, without: str = "nothing") -> Iterator[Gateway]:
    """A gateway with an agent that does what its prompts say, secrets in its environment, and a policy of its user."""
    config = directory / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(CONFIG, encoding="utf-8")
    env = {**SECRETS, "ANTIPHON_CONFIG_DIR": str(config)}
    with running(directory, "--root", str(directory), *options, without=without, env=env, agent=HOSTILE) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with attacked(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
def test_an_attack_gets_nowhere(gateway: Gateway, attack: Attack, tmp_path: Path) -> None:
    if attack.check in ("check_failures", "client_address", "is_over"):  # the address has to wait afterwards
        with attacked(tmp_path) as own:
            assert not attack.gets_in(own)
    elif attack.limits:
        with attacked(tmp_path, without=attack.limits) as own:
            assert not attack.gets_in(own)
    else:
        assert not attack.gets_in(gateway)


def test_wrong_tokens_of_others_do_not_keep_the_owner_out(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        assert not guesses(gateway)
        assert gateway.ask("/metrics", {"Authorization": f"Bearer {gateway.token}"}).status == 200


@pytest.mark.slow
@pytest.mark.prove  # it tests the table, not the gateway
@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
def test_with_its_check_switched_off_it_gets_in(attack: Attack, tmp_path: Path) -> None:
    options = (attack.check,) if attack.check.startswith("--") else ()
    names = [name for name in (attack.limits, "" if options else attack.check) if name]
    with attacked(tmp_path, *options, without=",".join(names) or "nothing") as gateway:
        assert attack.gets_in(gateway)


def _all_of(raw: socket.socket) -> bytes:
    found = b""
    while part := raw.recv(65536):
        found += part
    return found


# What has no yes or no.


def test_a_prompt_that_waits_is_dropped_when_its_token_expires_without_a_connection(gateway: Gateway) -> None:
    with waiting(gateway, lifetime=5) as (owner, _, request, _made):
        assert owner.until("_antiphon/session/queue")["params"]["queue"] == []
        owner.choose(request, "reject")
        owner.until(id="prompt")


@pytest.mark.slow
def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, without="short BODY_TIMEOUT") as gateway, gateway.raw() as raw:
        head = (
            "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        )
        raw.sendall(head.encode())
        assert b" 408 " in raw.recv(65536)[:20]


@pytest.mark.slow
def test_a_socket_that_does_not_sign_in_is_not_waited_for(tmp_path: Path) -> None:
    with (
        running(tmp_path, without="short LOGIN_TIMEOUT") as gateway,
        gateway.open_socket({}) as opened,
        pytest.raises(ConnectionClosed),
    ):
        opened.recv(timeout=limit())


def test_an_endless_head_is_cut_off(gateway: Gateway) -> None:
    sent = 0
    with gateway.raw() as raw:
        try:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            while sent < 64 * 1024 * 1024:
                raw.sendall(b"x" * 65536)
                sent += 65536
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 64 * 1024 * 1024


def test_length_and_chunks_together_are_refused(gateway: Gateway) -> None:
    with gateway.raw() as raw:
        head = "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        smuggled = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        raw.sendall(f"{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}".encode())
        answer = _all_of(raw)
        assert b" 400 " in answer[:20] and answer.count(b"HTTP/1.1") == 1


def test_a_revoked_token_ends_its_connections(gateway: Gateway) -> None:
    made = gateway.admin(action="create token", name="soon gone", role="drive")
    with gateway.open_socket({"Authorization": f"Bearer {made['secret']}"}) as opened:
        assert "result" in call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        gateway.admin(action="revoke", id=made["id"])
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=limit())
    assert gateway.upgrade({"Authorization": f"Bearer {made['secret']}"}) == 401


def test_the_token_is_in_no_log_and_no_error(gateway: Gateway) -> None:
    gateway.ask("/metrics", {"Authorization": "Bearer secret-in-a-log"})
    gateway.upgrade({"Sec-WebSocket-Protocol": f"acp.bearer.{gateway.token}", "Origin": EVIL})
    state = gateway.directory / "state"
    logs = b"".join(path.read_bytes() for path in state.rglob("*.log"))
    assert b"secret-in-a-log" not in logs and gateway.token.encode() not in logs
    entries = json.dumps(gateway.admin(action="audit"))
    assert "secret-in-a-log" not in entries and gateway.token not in entries and "login failed" in entries
