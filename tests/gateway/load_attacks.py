"""Attacks by load and by races: work that keeps all others waiting, and what changes between a check and what it allowed."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Final

from websockets.sync.client import ClientConnection

from tests.gateway.inner_attacks import Attack, refused_to_a_driver
from tests.gateway.processes import INITIALIZE, Gateway, call
from tests.limits import limit

__all__ = ["LOAD"]

LINE: Final = '{"jsonrpc":"2.0","method":"x"}\n'
SERVED: Final = 5
"""Requests of others that are answered while a large frame is handled; they take a hundredth of its time."""


def token_of(gateway: Gateway, role: str, name: str = "mallory") -> tuple[int, dict[str, str]]:
    """Return the number of a new token, and the header that has it."""
    made = gateway.admin(action="create token", name=name, role=role)
    return int(made["id"]), {"Authorization": f"Bearer {made['secret']}"}


# Work that others wait for.


def answered_meanwhile(busy: ClientConnection, other: ClientConnection) -> int:
    """Return how many requests of another client are answered before the response that a client waits for."""
    for count in range(SERVED + 1):
        try:
            busy.recv(timeout=0)
            return count
        except TimeoutError:
            call(other, 100 + count, "initialize")  # refused at once
    return SERVED


def frame_of_many_messages(gateway: Gateway, version: int = 1) -> bool:
    """Whether one client that may only watch keeps all others waiting with one frame."""
    with gateway.open_socket(token_of(gateway, "watch")[1]) as busy, gateway.open_socket() as other:
        call(other, 0, "initialize", protocolVersion=1, clientCapabilities={})
        call(busy, 0, "initialize", protocolVersion=version, info={"name": "x", "version": "1"})
        first, last = (
            json.dumps({"jsonrpc": "2.0", "id": id, "method": "initialize"}) + "\n" for id in (1, 2)
        )  # refused
        busy.send(first + LINE * 120_000 + last)
        busy.recv(timeout=limit())  # to the first: from now on the frame is handled
        return answered_meanwhile(busy, other) < SERVED


def frame_of_many_messages_of_version_2(gateway: Gateway) -> bool:
    return frame_of_many_messages(gateway, 2)


def message_of_many_parts(gateway: Gateway) -> bool:
    with gateway.open_socket(token_of(gateway, "watch")[1]) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        return "parts" not in call(opened, 1, "session/list", x=[{}] * 150_000).get("error", {}).get("message", "")


def path_that_is_followed_for_long(gateway: Gateway) -> bool:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        cwd = str(gateway.directory / "root") + "/a/.." * 1000
        return "result" in call(opened, 1, "session/new", cwd=cwd, mcpServers=[])


def many_directories(gateway: Gateway) -> bool:
    root = str(gateway.directory / "root")
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        more = {"cwd": root, "mcpServers": [], "additionalDirectories": [root] * 100}
        return "result" in call(opened, 1, "session/new", **more)


def many_servers(gateway: Gateway) -> bool:
    servers = [{"type": "acp", "name": str(each)} for each in range(200)]
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        return "result" in call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=servers)


def sessions_of_one_token(gateway: Gateway) -> bool:
    """Whether one token opens as many sessions as it likes, so that there is no room for those of others."""
    with gateway.open_socket(token_of(gateway, "drive")[1]) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        root = str(gateway.directory / "root")
        return all("result" in call(opened, each, "session/new", cwd=root, mcpServers=[]) for each in range(1, 6))


def settings_that_fill_the_audit_log(gateway: Gateway) -> bool:
    """Whether a token writes as many entries as it likes. Each stands there for a year."""
    with gateway.open_socket(token_of(gateway, "drive")[1]) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        made = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])["result"]
        answers = [call(opened, 2 + each, "session/set_mode", modeId="x", **made) for each in range(5)]
        return all(answer["error"]["code"] == -32601 for answer in answers)  # the agent does not know the method


def prompts_that_wait_in_memory(gateway: Gateway) -> bool:
    with gateway.open_socket(token_of(gateway, "drive")[1]) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        made = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])["result"]
        asks = json.dumps([{"method": "terminal/create", "params": {"command": "ls"}}])

        def send(id: int, text: str, more: str = "") -> None:
            blocks = [{"type": "text", "text": each} for each in (text, more)]
            params = {**made, "prompt": blocks}
            opened.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}))

        send(2, asks)
        while "session/request_permission" not in str(opened.recv(timeout=limit())):
            pass  # from now on the agent waits for an answer
        for id in (3, 4, 5):
            send(id, "environment", "x" * 60_000)
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 6, "method": "session/list", "params": {}}))
        refused = 0
        while (message := json.loads(opened.recv(timeout=limit()))).get("id") != 6:
            refused += "error" in message
        opened.send(json.dumps({"jsonrpc": "2.0", "method": "session/cancel", "params": made}))
        return not refused


# What changes while a request is on its way.


def begun_post(gateway: Gateway, stack: ExitStack, path: str, headers: dict[str, str], size: int) -> socket.socket:
    """Send the head of a post, and return when the gateway has looked at it and waits for the body."""
    raw = stack.enter_context(gateway.raw())
    given = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(size), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**given, "Expect": "100-continue"}.items())
    raw.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
    assert b" 100 " in raw.recv(65536)
    return raw


def status_of(raw: socket.socket) -> int:
    response = HTTPResponse(raw)
    response.begin()
    return response.status


def request_that_ends_after_its_token_was_revoked(gateway: Gateway) -> bool:
    id, headers = token_of(gateway, "admin")
    body = json.dumps({"action": "create token", "role": "admin"}).encode()
    with ExitStack() as stack:
        raw = begun_post(gateway, stack, "/api/admin", headers, len(body))
        gateway.admin(action="revoke", id=id)
        raw.sendall(body)
        return status_of(raw) == 200


def browser_that_signs_in_while_its_token_is_revoked(gateway: Gateway) -> bool:
    made = gateway.admin(action="create token", name="mallory", role="drive")
    cookies: list[str] = []

    def sign_in() -> None:
        while True:
            answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"token": made["secret"]})
            if answer.status != 200:
                return
            cookies.append(answer.headers["set-cookie"].partition(";")[0])

    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(sign_in) for _ in range(8)]
        while len(cookies) < 8:
            gateway.ask("/healthz")
        gateway.admin(action="revoke", id=made["id"])
        for each in tries:
            each.result()
    return any(gateway.ask("/metrics", {"Cookie": cookie}).status == 200 for cookie in cookies[-8:])


def connections_that_are_opened_together(gateway: Gateway) -> bool:
    """Whether one token gets more connections than it may have, because all of them were looked at before the first was open."""
    headers, body = token_of(gateway, "watch")[1], json.dumps(INITIALIZE).encode()
    with ExitStack() as stack:
        begun = [begun_post(gateway, stack, "/acp", headers, len(body)) for _ in range(40)]
        for raw in begun:
            raw.sendall(body)
        return [status_of(raw) for raw in begun].count(200) > 32


# One token as another, and an agent as the gateway.


def browser_that_deletes_the_session_of_another(gateway: Gateway) -> bool:
    sockets = []
    with ExitStack() as stack:
        for role in ("admin", "drive"):
            code = gateway.admin(action="launch", role=role)["code"]
            answer = gateway.ask("/api/login", gateway.origin, method="POST", body={"code": code})
            cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0], **gateway.origin}
            opened = stack.enter_context(gateway.open_socket(cookie))
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
            sockets.append(opened)
        made = call(sockets[0], 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
        return "result" in call(sockets[1], 1, "session/delete", sessionId=made["result"]["sessionId"])


def signing_the_agent_in(gateway: Gateway) -> bool:
    """Whether it reaches the agent, which does not know the method: the prompts of all would go to that account."""
    return refused_to_a_driver(gateway, "authenticate", methodId="key", _meta={"api-key": "x"}) == -32601


def sent_by_the_agent(gateway: Gateway, line: str) -> str:
    """Have the agent send a line, and return all that a client with numbers gets in that turn."""
    with gateway.open_socket() as opened:
        numbers = {"antiphon": {"numbers": True}}
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={}, _meta=numbers)
        made = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])["result"]
        text = json.dumps([{"line": line.replace("SESSION", made["sessionId"])}])
        params = {"sessionId": made["sessionId"], "prompt": [{"type": "text", "text": text}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
        got = []
        while True:
            got.append(str(opened.recv(timeout=limit())))
            if json.loads(got[-1]).get("id") == 2:
                return "\n".join(each for each in got if "user_message_chunk" not in each)


def agent_that_speaks_as_the_gateway(gateway: Gateway) -> bool:
    """Whether an agent can say that a session of others is gone, or who has answered."""
    line = '{"jsonrpc":"2.0","method":"_antiphon/sessions/removed","params":{"agent":"other"}}'
    return "_antiphon/sessions/removed" in sent_by_the_agent(gateway, line)


def agent_that_speaks_as_the_gateway_in_a_second_method(gateway: Gateway) -> bool:
    head = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"SESSION"}'
    line = f'{head},"method":"_antiphon/session/resolved"}}'
    return "_antiphon/session/resolved" in sent_by_the_agent(gateway, line)


LOAD: Final = [
    Attack("SLICE", frame_of_many_messages),
    Attack("SLICE", frame_of_many_messages_of_version_2),
    Attack("has_too_many_parts", message_of_many_parts),
    Attack("is_too_long", path_that_is_followed_for_long),
    Attack("DIRECTORIES", many_directories),
    Attack("SERVERS", many_servers),
    Attack("has_too_many_sessions", sessions_of_one_token, "few token sessions"),
    Attack("has_done_often", settings_that_fill_the_audit_log, "few changes"),
    Attack("waits_too_much", prompts_that_wait_in_memory, "little room for prompts"),
    Attack("was_revoked", request_that_ends_after_its_token_was_revoked),
    Attack("was_revoked", browser_that_signs_in_while_its_token_is_revoked, "slow sign-in"),
    Attack("has_too_many", connections_that_are_opened_together),
    Attack("own_name", browser_that_deletes_the_session_of_another),
    Attack("WHOLE_AGENT", signing_the_agent_in),
    Attack("is_ours", agent_that_speaks_as_the_gateway),
    Attack("is_ours", agent_that_speaks_as_the_gateway_in_a_second_method),
]
