"""What a request shows to be let in, and what of a request that opens a session reaches the agent."""

from typing import cast

import msgspec
import pytest
from msgspec import Raw

from antiphon.gateway.access.checks import COOKIE, Access, AccessRules, secret_of
from antiphon.gateway.access.login import LoginTransport
from antiphon.gateway.access.messages import ClientRules, reduced_opening
from antiphon.transports.asgi.connections import Scope
from antiphon.transports.memory import memory_pair
from tests.rows import each_row


def shown(cookie: str) -> tuple[str, str]:
    scope: Scope = {"type": "http", "headers": [(b"cookie", cookie.encode())]}
    return secret_of(scope, AccessRules())


def test_the_cookie_of_this_gateway_is_found_among_others() -> None:
    name = AccessRules().cookie
    assert shown(f"a=b; {name}=secret; c") == ("secret", COOKIE)
    assert shown(f"x{name}=secret; {name}=") == ("", "")


def test_a_quoted_cookie_is_taken_as_it_is_written() -> None:
    """To take the quotes away, the standard library needs the square of the length: seconds for one header."""
    name = AccessRules().cookie
    assert shown(f'{name}="\\101"') == ('"\\101"', COOKIE)


def server(url: str, **more: object) -> dict[str, object]:
    return {"type": "http", "name": "x", "url": url, "headers": [], **more}


@each_row(
    "given",
    [
        server("http://evil.example"),
        server("http://evil.example\\@good.example"),
        server("http://good.example\\@evil.example"),
        server("http://evil.example\\.good.example"),
        server("http://good.example@evil.example"),
        server("http://evil.example@good.example"),
        server("http://good.example:80@evil.example"),
        server("http://good.example:@evil.example"),
        server("http://evil.example#@good.example"),
        server("http://evil.example?@good.example"),
        server("http://good.exa\tmple"),
        server("http://good.example\n"),
        server("http://good.example/\u0000"),
        server(" http://good.example"),
        server("http://good.example."),
        server("http://good\u3002example"),
        server("http://g\u03bfod.example"),
        server("http://\u24d6ood.example"),
        server("http://good.example%2eevil.example"),
        server("http://good%2eexample"),
        server("http://[fe80::1%25eth0]"),
        server("http://[::1]evil.example"),
        server("http://[good.example]"),
        server("http:good.example"),
        server("http:/good.example"),
        server("http:///good.example"),
        server("//good.example"),
        server("good.example"),
        server("file://good.example/etc/passwd"),
        server("ws://good.example"),
        server("http://good.example:port"),
        server("http://good.example:999999"),
        server("http://good.example", command="/bin/evil"),
        server("http://good.example", transport={"type": "stdio", "command": "/bin/evil"}),
        server("http://good.example", type="stdio"),
        server("http://good.example", type="remote"),
        {"name": "x", "url": "http://good.example"},
        {"name": "x", "command": "/bin/evil", "args": [], "env": []},
        {"name": "x", "type": "local", "cmd": ["/bin/evil"]},
        {"name": "x", "transport": {"type": "stdio", "command": "/bin/evil"}},
        {"name": "x", "type": "acp", "serverId": "s", "command": "/bin/evil"},
        {"name": "x", "type": ["http"], "url": "http://good.example"},
        {"name": "x"},
    ],
)
def test_an_mcp_server_that_can_be_read_in_two_ways_or_is_elsewhere_is_left_out(given: dict[str, object]) -> None:
    assert reduced(given) == ([], ["x"])


@each_row(
    "given",
    [
        server("http://good.example"),
        server("https://GOOD.example:8443/mcp?a=b#c"),
        server("https://good.example/a@b:c/[d]", headers=[{"name": "Authorization", "value": "t"}]),
        server("http://[::1]:8080/sse", type="sse"),
        server("http://192.0.2.7/"),
        {"type": "acp", "name": "x", "serverId": "s"},
    ],
)
def test_an_mcp_server_at_a_host_that_is_named_reaches_the_agent_as_it_is_written(given: dict[str, object]) -> None:
    assert reduced(given) == ([given], [])


def reduced(given: dict[str, object]) -> tuple[list[object], list[str]]:
    """What the agent gets of one MCP server, and what is left out."""
    rules = ClientRules(frozenset({"good.example", "::1", "192.0.2.7"}))
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"mcpServers": [given]}})
    opening = reduced_opening(line, [Raw(msgspec.json.encode(given))], rules)
    return msgspec.json.decode(opening.line)["params"]["mcpServers"], opening.left_out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"id":1,"method":"\xff"}', -32700),
        (b'{"id":1,"method":"authenticate","params":{"methodId":"\xff"}}', -32000),
    ],
)
async def test_a_client_that_has_not_signed_in_and_sends_no_utf_8_gets_an_error(
    line: bytes, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, _ = memory_pair()
    monkeypatch.setattr(inner, "flush_soon", lambda: None)  # what is sent stays to be read here
    # Without a token nothing is asked of the access.
    transport = LoginTransport(inner, cast("Access", None), "127.0.0.1", lambda token: "")
    transport.block_received(line + b"\n")
    assert msgspec.json.decode(bytes(inner.out))["error"]["code"] == code
    assert not transport.signed_in.done()
