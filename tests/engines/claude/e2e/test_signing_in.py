"""Signing in: what is offered, and what is said to who is not."""

import pytest

from antiphon import v1
from antiphon.errors import AuthRequired, Code
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.driving import Can, connected


@proves("auth.terminal", "auth.api-key")
async def test_ways_to_sign_in_are_offered(at: Place) -> None:
    async with connected(at, Can(terminal_login=True)) as client:
        methods = client.agent.auth_methods
    terminal = [each for each in methods if isinstance(each, v1.TerminalAuth)]
    assert len(terminal) >= 2 and all(each.args and each.args[0] == "--login" for each in terminal)
    assert [each for each in methods if not isinstance(each, v1.TerminalAuth) and "API key" in str(each)]


@proves("auth.required", on=BOTH)
async def test_who_is_not_signed_in_is_told_so_with_the_ways_to_do_it(at: Place) -> None:
    del at.environment["ANTHROPIC_API_KEY"]
    async with connected(at) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.say("sing")
        assert client.updates_of("agent_message_chunk") == []
    assert caught.value.code == Code.AUTH_REQUIRED and caught.value.methods and at.model.asked == []
