"""Signing in: what is offered, what is said to who is not, and what an API key and a logout do."""

import pytest

from antiphon import v1
from antiphon.errors import AuthRequired, Code
from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import Can, connected
from tests.engines.codex.place import KEY, Place
from tests.engines.codex.versions import BOTH


@proves("auth.ways")
async def test_ways_to_sign_in_are_offered(at: Place) -> None:
    async with connected(at, Can(terminal_login=True)) as client:
        methods = client.agent.auth_methods
    terminal = [each for each in methods if isinstance(each, v1.TerminalAuth)]
    assert terminal and all("ChatGPT" in each.name and each.args and each.args[0] == "--login" for each in terminal)
    assert [each for each in methods if isinstance(each, v1.AgentAuth) and "API key" in each.name]


@proves("auth.required", on=BOTH)
async def test_who_is_not_signed_in_is_told_so_with_the_ways_to_do_it(at: Place) -> None:
    at.wants_login()
    async with connected(at) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.open()
    assert caught.value.code == Code.AUTH_REQUIRED and caught.value.methods and at.model.asked == []


@proves("auth.api-key", "auth.logout", on=BOTH)
async def test_an_api_key_signs_in_and_a_logout_ends_it(at: Place) -> None:
    at.wants_login()
    at.environment["OPENAI_API_KEY"] = KEY
    async with connected(at) as client:
        with pytest.raises(AuthRequired):
            await client.open()
        await client.agent.authenticate("api-key")
        assert (await client.say("hello")).text == "echo: hello"
        assert at.model.last.headers["authorization"] == f"Bearer {KEY}"
        await client.agent.logout()
        with pytest.raises(AuthRequired):
            await client.open()
    assert KEY not in "".join(path.read_text(errors="replace") for path in at.codex_home.rglob("*.json"))
