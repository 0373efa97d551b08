"""Signing in: what is offered, what is sent to a user who is not signed in, and what an API key and a logout do."""

import pytest

from antiphon.errors import AuthRequired
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.place import KEY, Place
from tests.engines.codex.versions import BOTH


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
