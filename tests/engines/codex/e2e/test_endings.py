"""How a turn ends: for a reason that the protocol has a word for, or with an error that says what to do."""

import socket

import pytest

from antiphon import v1
from antiphon.errors import AuthRequired, Code
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.model.steps import Fail
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH


@proves("stop.unreachable", on=BOTH)
async def test_a_model_that_cannot_be_reached_is_shown_and_the_turn_can_be_cancelled(at: Place) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        at.settings(address=f"http://127.0.0.1:{nobody.getsockname()[1]}")
        async with connected(at) as client:
            await client.open()
            turn = client.session.prompt("sing")
            words = ("network", "connect")
            await client.until(
                lambda: [
                    each for each in client.updates_of("notice") if any(word in str(each).lower() for word in words)
                ]
            )
            assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED


@proves("stop.expired-login", on=BOTH)
async def test_a_login_that_is_refused_is_the_error_for_signing_in(at: Place) -> None:
    at.model.otherwise = (Fail(401, "invalid_request_error", "your key is not known here", "invalid_api_key"),)
    async with connected(at) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.say("sing")
    assert caught.value.code == Code.AUTH_REQUIRED and caught.value.methods
