"""Attacks by what the gateway passes on and does for others: messages that a client writes for the agent, and requests of an agent."""

import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tests.gateway.processes import Gateway, Turn, call, prompt
from tests.limits import limit

__all__ = ["INNER", "SECRETS", "Attack"]


class Attack(NamedTuple):
    """Something that must not work."""

    check: str
    """What stops it: a name of `weakened.SWITCHES`."""
    gets_in: Callable[[Gateway], bool]
    limits: str = ""
    """Smaller limits for it, so that they are reached soon: names of `weakened.SWITCHES`."""


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


def key_as_the_python_sdk_calls_its_field(gateway: Gateway) -> bool:
    return "/bin/evil" in opened_with(gateway, f'"mcpServers":[],"mcp_servers":{PROGRAM}')


def key_that_is_repeated(gateway: Gateway) -> bool:
    return bool(opened_with(gateway, '"mcpServers":[],"x":{"y":1,"y":2}'))


def server_of_a_client_inside_our_network(gateway: Gateway) -> bool:
    server = '[{"type":"http","name":"x","url":"http://169.254.169.254/latest","headers":[]}]'
    return "169.254.169.254" in opened_with(gateway, f'"mcpServers":{server}')


def program_in_the_words_of_another_dialect(gateway: Gateway) -> bool:
    servers = '[{"name":"x","type":"local","transport":{"type":"stdio","command":"/bin/evil"}}]'
    return "/bin/evil" in opened_with(gateway, f'"mcpServers":{servers}')


def settings_of_the_agent_in_meta(gateway: Gateway) -> bool:
    meta = '{"claudeCode":{"options":{"extraArgs":{"settings":"evil"}}},"traceparent":"00-a-b-01"}'
    return "evil" in opened_with(gateway, f'"mcpServers":[],"_meta":{meta}')


def notification_in_the_place_of_a_request(gateway: Gateway) -> bool:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        root = str(gateway.directory / "root")
        session = call(opened, 1, "session/new", cwd=root, mcpServers=[])["result"]["sessionId"]
        evil = {"cwd": root, "mcpServers": json.loads(PROGRAM)}
        opened.send(json.dumps({"jsonrpc": "2.0", "method": "session/new", "params": evil}))
        asked = {"sessionId": session, "prompt": [{"type": "text", "text": "opened"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": asked}))
        while True:
            message = json.loads(opened.recv(timeout=limit()))
            content = message.get("params", {}).get("update", {}).get("content")
            if content:
                return "/bin/evil" in str(content["text"])


# The same in version 2, which is translated before the gateway looks at it.


def opened_in_version_2(gateway: Gateway, params: str) -> str:
    """Open a session with params as they are written, and return those that the agent got; empty if it got none."""
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=2, info={"name": "x", "version": "1"})
        cwd = json.dumps(str(gateway.directory / "root"))
        opened.send(f'{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{{"cwd":{cwd},{params}}}}}')
        made = json.loads(opened.recv(timeout=limit()))
        if "result" not in made:
            return ""
        prompt = {"sessionId": made["result"]["sessionId"], "prompt": [{"type": "text", "text": "opened"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt}))
        while True:
            update = json.loads(opened.recv(timeout=limit())).get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                return str(update["content"]["text"])


def program_of_a_client_of_version_2(gateway: Gateway) -> bool:
    server = '[{"type":"stdio","name":"x","command":"/bin/evil"}]'
    return "/bin/evil" in opened_in_version_2(gateway, f'"mcpServers":{server}')


def server_inside_our_network_in_version_2(gateway: Gateway) -> bool:
    server = '[{"type":"http","name":"x","url":"http://169.254.169.254/latest"}]'
    return "169.254.169.254" in opened_in_version_2(gateway, f'"mcpServers":{server}')


def settings_in_meta_of_version_2(gateway: Gateway) -> bool:
    meta = '{"claudeCode":{"options":{"extraArgs":{"settings":"evil"}}}}'
    return "evil" in opened_in_version_2(gateway, f'"_meta":{meta}')


def key_that_is_repeated_in_version_2(gateway: Gateway) -> bool:
    return bool(opened_in_version_2(gateway, '"x":{"y":1,"y":2}'))


def notification_of_version_2_in_the_place_of_a_request(gateway: Gateway) -> bool:
    """Whether an agent that looks at the method alone would sign out for everyone."""
    made = gateway.admin(action="create token", name="mallory", role="drive")
    with gateway.open_socket({"Authorization": f"Bearer {made['secret']}"}) as opened:
        call(opened, 0, "initialize", protocolVersion=2, info={"name": "x", "version": "1"})
        session = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"))["result"]["sessionId"]
        opened.send(json.dumps({"jsonrpc": "2.0", "method": "auth/logout", "params": {}}))
        asked = {"sessionId": session, "prompt": [{"type": "text", "text": "notified"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": asked}))
        while True:
            update = json.loads(opened.recv(timeout=limit())).get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                return "auth/logout" in str(update["content"]["text"])


# One token against another.


def refused_to_a_driver(gateway: Gateway, method: str, **params: object) -> int:
    """Send a request with a token of the role drive, and return the code of the error, or 0."""
    made = gateway.admin(action="create token", name="mallory", role="drive")
    with gateway.open_socket({"Authorization": f"Bearer {made['secret']}"}) as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        return int(call(opened, 1, method, **params).get("error", {}).get("code", 0))


def deleting_the_session_of_another(gateway: Gateway) -> bool:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        made = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
    return refused_to_a_driver(gateway, "session/delete", sessionId=made["result"]["sessionId"]) == 0


def changing_the_providers_of_the_agent(gateway: Gateway) -> bool:
    """Whether it reaches the agent, which does not know the method."""
    return (
        refused_to_a_driver(gateway, "providers/set", id="main", apiType="x", baseUrl="http://evil.example") == -32601
    )


def signing_in_by_the_method_of_version_2(gateway: Gateway) -> bool:
    """Whether it reaches the agent, which may speak both versions."""
    return refused_to_a_driver(gateway, "auth/login", methodId="account") == -32601


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


INNER: Final = [
    Attack("reduced_opening", program_of_a_client),
    Attack("reduced_opening", server_of_a_client_inside_our_network),
    Attack("reduced_opening", program_in_the_words_of_another_dialect),
    Attack("reduced_opening", settings_of_the_agent_in_meta),
    Attack("check_spelling", key_with_other_letters),
    Attack("check_spelling and reduced_opening", key_with_other_letters_in_a_server),
    Attack("check_spelling", key_with_letters_that_fold),
    Attack("check_spelling", key_as_the_python_sdk_calls_its_field),
    Attack("check_spelling", key_that_is_repeated),
    Attack("REQUESTS", notification_in_the_place_of_a_request),
    Attack("reduced_opening", program_of_a_client_of_version_2),
    Attack("reduced_opening", server_inside_our_network_in_version_2),
    Attack("reduced_opening", settings_in_meta_of_version_2),
    Attack("check_spelling", key_that_is_repeated_in_version_2),
    Attack("REQUESTS", notification_of_version_2_in_the_place_of_a_request),
    Attack("owner of a session", deleting_the_session_of_another),
    Attack("WHOLE_AGENT", changing_the_providers_of_the_agent),
    Attack("WHOLE_AGENT", signing_in_by_the_method_of_version_2),
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
