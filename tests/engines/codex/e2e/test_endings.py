"""How a turn ends: for a reason that the protocol has a word for, or with an error that says what to do."""

import socket

import pytest

from antiphon import v1
from antiphon.errors import AuthRequired, Code, RequestRefused
from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import connected
from tests.engines.codex.model.steps import Broken, Fail, Step
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Cut, Stop, Text


async def fails(at: Place, *answer: Step) -> RequestRefused:
    """The error of a prompt that the model always answers like this; the next one works."""
    at.model.otherwise = answer
    async with connected(at) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.say("sing")
        at.model.otherwise = None
        assert (await client.say("go on")).text == "echo: go on"
    return caught.value


def kind_of(error: RequestRefused) -> str:
    assert isinstance(error.data, dict) and error.hint and "\n" not in error.message, error.data
    return str(error.data["kind"])


@proves("stop.max-tokens", on=BOTH)
async def test_an_answer_that_is_too_long_ends_with_max_tokens(at: Place) -> None:
    at.model.answers(Text("la la la"), Stop("max_output_tokens"))
    async with connected(at) as client:
        told = await client.say("sing")
        assert told.stop == "max_tokens" and told.text == "la la la"


@proves("stop.refusal", on=BOTH)
async def test_an_answer_that_a_filter_stops_ends_with_refusal(at: Place) -> None:
    at.model.otherwise = (Text("la"), Stop("content_filter"))
    async with connected(at) as client:
        told = await client.say("sing")
        assert told.stop == "refusal" and told.text == "la"


@proves("stop.server-error", "turn.notices", on=BOTH)
async def test_an_error_of_the_server_is_told_while_it_is_tried_again_then_is_an_error(at: Place) -> None:
    at.model.otherwise = (Text("half a "), Broken("server_error", "the choir is gone"))
    async with connected(at) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.say("sing")
        notices = client.updates_of("notice")
        said = "".join(each["content"]["text"] for each in client.updates_of("agent_message_chunk"))
    assert "the choir is gone" in caught.value.message and notices and said == "half a "


@proves("stop.server-error")
async def test_an_error_500_is_an_error_of_the_server(at: Place) -> None:
    assert kind_of(await fails(at, Fail(500))) == "server_error"


@proves("stop.overloaded", on=BOTH)
async def test_overload_is_an_error_that_says_so(at: Place) -> None:
    error = await fails(at, Fail(503, "server_error", "too many singers", "server_is_overloaded"))
    assert kind_of(error) == "overloaded"


@proves("stop.rate-limit")
async def test_too_many_requests_are_an_error_that_says_so(at: Place) -> None:
    assert kind_of(await fails(at, Fail(429, "requests", "too fast", "rate_limit_exceeded"))) == "rate_limit"


@proves("stop.usage-limit", on=BOTH)
async def test_a_usage_limit_is_an_error_that_says_so(at: Place) -> None:
    error = await fails(at, Fail(429, "usage_limit_reached", "enough for today", more={"resets_in_seconds": 3600}))
    assert kind_of(error) == "usage_limit"


@proves("stop.model-not-found", on=BOTH)
async def test_a_model_that_does_not_exist_is_an_error_that_says_so(at: Place) -> None:
    error = await fails(at, Fail(404, "invalid_request_error", "no such model", "model_not_found"))
    assert kind_of(error) == "model_not_found"


@proves("stop.prompt-too-long", on=BOTH)
async def test_a_prompt_that_is_too_long_is_an_error_that_says_so(at: Place) -> None:
    error = await fails(at, Broken("context_length_exceeded", "Your input exceeds the context window of this model."))
    assert kind_of(error) == "prompt_too_long"


@proves("stop.bad-request")
async def test_a_request_that_the_model_refuses_is_an_error_with_its_words(at: Place) -> None:
    error = await fails(at, Fail(400, "invalid_request_error", "no such chord"))
    assert kind_of(error) == "invalid_request" and "no such chord" in error.message and "{" not in error.message


@proves("stop.connection", on=BOTH)
async def test_a_stream_that_keeps_breaking_is_an_error_that_says_so(at: Place) -> None:
    assert kind_of(await fails(at, Text("half a "), Cut())) == "connection"


@proves("stop.unreachable", on=BOTH)
async def test_a_model_that_cannot_be_reached_is_told_and_the_turn_can_be_cancelled(at: Place) -> None:
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
