"""The attack table: each attack is tried on the gateway that people start, over sockets, and gets nowhere.

Then it is tried with its check switched off, and gets in: so it is that check which stops it, and the test can fail.
"""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from websockets.exceptions import ConnectionClosed

from tests.gateway.processes import HOSTILE, Gateway, Turn, call, prompt, running
from tests.limits import limit

EVIL: Final = "http://evil.example"
INITIALIZE: Final = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}  # fmt: skip


class Attack(NamedTuple):
    """Something that must not work."""

    check: str
    """What stops it: a name of `weakened.SWITCHES`."""
    gets_in: Callable[[Gateway], bool]


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


# Ids and paths.


def connection_of_another_principal(gateway: Gateway) -> bool:
    opened = gateway.ask("/acp", gateway.bearer, method="POST", body=INITIALIZE)
    assert opened.status == 200, opened
    secret = gateway.admin(action="create token", name="other", role="drive")["secret"]
    headers = {"Authorization": f"Bearer {secret}", "Acp-Connection-Id": opened.headers["acp-connection-id"]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
    return gateway.ask("/acp", headers, method="POST", body=body).status == 202


def directory_behind_a_link(gateway: Gateway) -> bool:
    outside = gateway.directory.parent / f"{gateway.directory.name}-outside"
    outside.mkdir(exist_ok=True)
    link = gateway.directory / "root" / "link"
    if not link.is_symlink():
        link.symlink_to(outside)
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        return "result" in call(opened, 1, "session/new", cwd=str(link), mcpServers=[])


# Messages that a client writes for the agent, past the gateway.


def opened_with(gateway: Gateway, params: str) -> str:
    """Open a session with params as they are written, and return those that the agent got; empty if it got none."""
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        cwd = json.dumps(str(gateway.directory / "root"))
        opened.send(f'{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{{"cwd":{cwd},{params}}}}}')
        made = json.loads(opened.recv(timeout=limit()))
        if "result" not in made:
            return ""
        prompt = {"sessionId": made["result"]["sessionId"], "prompt": [{"type": "text", "text": "opened"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt}))
        while True:
            message = json.loads(opened.recv(timeout=limit()))
            content = message.get("params", {}).get("update", {}).get("content")
            if content:
                return str(content["text"])


PROGRAM: Final = '[{"name":"x","command":"/bin/evil","args":[],"env":[]}]'


def program_of_a_client(gateway: Gateway) -> bool:
    return "/bin/evil" in opened_with(gateway, f'"mcpServers":{PROGRAM}')


def key_with_other_letters(gateway: Gateway) -> bool:
    return "/bin/evil" in opened_with(gateway, f'"mcpServers":[],"MCPservers":{PROGRAM}')


def key_with_other_letters_in_a_server(gateway: Gateway) -> bool:
    return "/bin/evil" in opened_with(gateway, f'"mcpServers":{PROGRAM.replace("command", "Command")}')


def key_with_letters_that_fold(gateway: Gateway) -> bool:
    return "/bin/evil" in opened_with(gateway, f'"mcpServers":[],"mcp\u017fervers":{PROGRAM}')


def key_that_is_repeated(gateway: Gateway) -> bool:
    return bool(opened_with(gateway, '"mcpServers":[],"x":{"y":1,"y":2}'))


def server_of_a_client_inside_our_network(gateway: Gateway) -> bool:
    server = '[{"type":"http","name":"x","url":"http://169.254.169.254/latest","headers":[]}]'
    return "169.254.169.254" in opened_with(gateway, f'"mcpServers":{server}')


def settings_of_the_agent_in_meta(gateway: Gateway) -> bool:
    meta = '{"claudeCode":{"options":{"extraArgs":{"settings":"evil"}}},"traceparent":"00-a-b-01"}'
    return "evil" in opened_with(gateway, f'"mcpServers":[],"_meta":{meta}')


# An agent that uses what the gateway does for it.


def agent_does(gateway: Gateway, *wanted: tuple[str, Mapping[str, object]], option: str = "allow") -> Turn:
    """Let the agent send these requests in the directory that has everything in it, and answer what people are asked."""
    text = json.dumps([{"method": method, "params": params} for method, params in wanted])
    with gateway.open_socket() as opened:
        return prompt(opened, text, gateway.directory, option=option)


def agent_reads_the_token(gateway: Gateway) -> bool:
    path = str(gateway.directory / "data" / "token")
    return "result" in agent_does(gateway, ("fs/read_text_file", {"path": path})).results[0]


def agent_reads_the_token_behind_a_link(gateway: Gateway) -> bool:
    link = gateway.directory / "root" / "harmless"
    if not link.is_symlink():
        link.symlink_to(gateway.directory / "data")
    return "result" in agent_does(gateway, ("fs/read_text_file", {"path": str(link / "token")})).results[0]


def agent_writes_our_config(gateway: Gateway) -> bool:
    path = str(gateway.directory / "config" / "config.toml")
    return "result" in agent_does(gateway, ("fs/write_text_file", {"path": path, "content": "x"})).results[0]


def agent_reads_a_key(gateway: Gateway) -> bool:
    key = gateway.directory / "root" / ".ssh" / "id_ed25519"
    key.parent.mkdir(exist_ok=True)
    key.write_text("key", encoding="utf-8")
    return "result" in agent_does(gateway, ("fs/read_text_file", {"path": str(key)})).results[0]


def agent_writes_a_hook(gateway: Gateway) -> bool:
    path = str(gateway.directory / "root" / ".git" / "hooks" / "pre-commit")
    return "result" in agent_does(gateway, ("fs/write_text_file", {"path": path, "content": "x"})).results[0]


def agent_runs_in_our_data(gateway: Gateway) -> bool:
    wanted = {"command": "pwd", "cwd": str(gateway.directory / "data")}
    return "result" in agent_does(gateway, ("terminal/create", wanted)).results[0]


def session_in_our_data(gateway: Gateway) -> bool:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        return "result" in call(opened, 1, "session/new", cwd=str(gateway.directory / "data"), mcpServers=[])


def command_that_is_denied(gateway: Gateway) -> bool:
    """Whether people are asked about, and so can be made to allow, what the policy of the user denies."""
    turn = agent_does(gateway, ("terminal/create", {"command": "env", "args": []}))
    return bool(turn.asked) or "result" in turn.results[0]


def variable_that_is_not_shown(gateway: Gateway) -> bool:
    """Whether a command gets a variable that decides what runs, and people who allow it do not see that."""
    env = [{"name": "LD_PRELOAD", "value": "/tmp/evil.so"}]
    wanted = {"command": "printf", "args": ["a b", "c"], "env": env, "cwd": str(gateway.directory / "root")}
    turn = agent_does(gateway, ("terminal/create", wanted), option="reject")
    return "/tmp/evil.so" not in turn.asked[0]["toolCall"]["title"]


def text_that_is_not_shown(gateway: Gateway) -> bool:
    path = str(gateway.directory / "root" / "setup.py")
    turn = agent_does(gateway, ("fs/write_text_file", {"path": path, "content": "import evil"}), option="reject")
    return "import evil" not in json.dumps(turn.asked)


def words_that_look_like_others(gateway: Gateway) -> bool:
    """Whether `rm 'a b'` looks like `rm a b`, and text that turns around like what it is not."""
    wanted = {"command": "rm", "args": ["a b", "\u202etxt.exe"], "cwd": str(gateway.directory / "root")}
    title = agent_does(gateway, ("terminal/create", wanted), option="reject").asked[0]["toolCall"]["title"]
    return "'a b'" not in title or "\u202e" in title


SECRETS: Final = {
    "DATABASE_URL": "postgres://me:pw@host",
    "MYSQL_PWD": "pw",
    "AWS_ACCESS_KEY_ID": "id",
    "GH_TOKEN": "t",
}


def secrets_in_a_command(gateway: Gateway) -> bool:
    """Whether a command that the agent runs has variables of the gateway that no list of secrets has."""
    wanted = {"command": "printenv", "args": [*SECRETS], "cwd": str(gateway.directory / "root")}
    output = agent_does(gateway, ("terminal/create", wanted)).results[1]["result"]["output"]
    return any(secret in output for secret in SECRETS.values())


def secrets_in_the_agent(gateway: Gateway) -> bool:
    with gateway.open_socket() as opened:
        found = prompt(opened, "environment", gateway.directory / "root").results
    return any(name in found for name in SECRETS)


ATTACKS: Final = [
    Attack("check_origin", cross_site_websocket),
    Attack("check_origin", cross_site_post),
    Attack("check_origin", sandboxed_page),
    Attack("check_origin", page_of_another_port),
    Attack("check_fetch_site", cross_site_picture),
    Attack("check_cookie", cookie_without_origin),
    Attack("check_host", rebound_name),
    Attack("check_host", name_that_begins_like_ours),
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
    Attack("check_headers", large_headers),
    Attack("BODY_LIMIT", large_body),
    Attack("HELD", large_message_before_the_sign_in),
    Attack("HELD", many_messages_before_the_sign_in),
    Attack("has_too_many_unsigned", sockets_that_never_sign_in),
    Attack("has_too_many", connections_of_a_token_that_is_sent_later),
    Attack("abort", revoked_token_that_goes_on),
    Attack("token of a browser", cookie_that_is_the_token),
    Attack("parent of a token", browser_that_outlives_its_token),
    Attack("principal of a connection", connection_of_another_principal),
    Attack("roots", directory_behind_a_link),
    Attack("reduced_opening", program_of_a_client),
    Attack("reduced_opening", server_of_a_client_inside_our_network),
    Attack("reduced_opening", settings_of_the_agent_in_meta),
    Attack("check_spelling", key_with_other_letters),
    Attack("check_spelling", key_with_other_letters_in_a_server),
    Attack("check_spelling", key_with_letters_that_fold),
    Attack("check_spelling", key_that_is_repeated),
    Attack("why_closed", agent_reads_the_token),
    Attack("why_closed", agent_reads_the_token_behind_a_link),
    Attack("why_closed", agent_writes_our_config),
    Attack("why_closed", agent_reads_a_key),
    Attack("why_closed", agent_writes_a_hook),
    Attack("why_closed", agent_runs_in_our_data),
    Attack("why_closed", session_in_our_data),
    Attack("policy of the user", command_that_is_denied),
    Attack("what people are shown", variable_that_is_not_shown),
    Attack("what people are shown", text_that_is_not_shown),
    Attack("what people are shown", words_that_look_like_others),
    Attack("environment", secrets_in_a_command),
    Attack("environment", secrets_in_the_agent),
]
NAMES: Final = [attack.gets_in.__name__ for attack in ATTACKS]


CONFIG: Final = """\
[policy]
deny = ["Bash(env)"]
"""


@contextmanager
def attacked(directory: Path, *options: str, without: str = "nothing") -> Iterator[Gateway]:
    """A gateway with an agent that does what it is told, secrets in its environment, and a policy of its user."""
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
    else:
        assert not attack.gets_in(gateway)


def test_wrong_tokens_of_others_do_not_keep_the_owner_out(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        assert not guesses(gateway)
        assert gateway.ask("/metrics", {"Authorization": f"Bearer {gateway.token}"}).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
def test_with_its_check_switched_off_it_gets_in(attack: Attack, tmp_path: Path) -> None:
    options = (attack.check,) if attack.check.startswith("--") else ()
    with attacked(tmp_path, *options, without="nothing" if options else attack.check) as gateway:
        assert attack.gets_in(gateway)


def _all_of(raw: socket.socket) -> bytes:
    found = b""
    while part := raw.recv(65536):
        found += part
    return found


# What has no yes or no.


@pytest.mark.slow
def test_a_head_that_does_not_end_is_not_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, without="short HEAD_TIMEOUT") as gateway, gateway.raw() as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127")
        assert b" 408 " in _all_of(raw)[:20]


@pytest.mark.slow
def test_a_connection_without_a_request_is_not_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, without="short HEAD_TIMEOUT") as gateway, gateway.raw() as raw:
        assert b" 408 " in _all_of(raw)[:20]


@pytest.mark.slow
def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, without="short BODY_TIMEOUT") as gateway, gateway.raw() as raw:
        head = (
            "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        )
        raw.sendall(head.encode())
        assert b" 408 " in raw.recv(65536)[:20]


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
