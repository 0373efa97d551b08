"""How a turn ends: for a reason that the protocol has a word for, or with an error that says what to do."""

from typing import Any, NamedTuple

import pytest

from antiphon import v1
from antiphon.errors import AuthRequired, Code, RequestRefused
from tests.engines.claude.model import steps as claude
from tests.engines.client import Can, connected
from tests.engines.codex.model import steps as codex
from tests.engines.model.steps import Cut, Stop, Text
from tests.engines.places import Place
from tests.engines.subjects import proves

CHORD, GONE = "no such chord", "the choir is gone"
TOO_LONG = "prompt is too long: 1200000 tokens > 1000000 maximum"
AT_ONCE = (("retry-after", "0"),)
"""For failures that are tried again: not later than now."""


class Failure(NamedTuple):
    """The kind of an error, what the model answers then, and how often the CLI tries it again, which the user is shown."""

    kind: str
    answer: tuple[Any, ...]
    retries: int = 0
    words: str = ""
    """What of the model's own words the error has."""


FAILURES = {
    "claude": [
        Failure("invalid_request", (claude.Fail(400, "invalid_request_error", CHORD),), words=CHORD),
        Failure("overloaded", (claude.Fail(529, "overloaded_error", "too many singers", AT_ONCE),), retries=2),
        Failure("model_not_found", (claude.Fail(404, "not_found_error", "model: no-such-model"),)),
        Failure("prompt_too_long", (claude.Fail(400, "invalid_request_error", TOO_LONG),)),
    ],
    "codex": [
        Failure("invalid_request", (codex.Fail(400, "invalid_request_error", CHORD),), words=CHORD),
        Failure("overloaded", (codex.Fail(503, "server_error", "too many singers", "server_is_overloaded"),)),
        Failure("model_not_found", (codex.Fail(404, "invalid_request_error", "no such model", "model_not_found"),)),
        Failure(
            "prompt_too_long", (codex.Broken("context_length_exceeded", "Your input exceeds the context window."),)
        ),
        Failure("server_error", (codex.Fail(500),)),
        Failure("connection", (Text("half a "), codex.Broken("server_error", GONE)), retries=1, words=GONE),
        Failure("rate_limit", (codex.Fail(429, "requests", "too fast", "rate_limit_exceeded"),)),
        Failure("usage_limit", (codex.Fail(429, "usage_limit_reached", "enough", more={"resets_in_seconds": 3600}),)),
        Failure("connection", (Text("half a "), Cut()), retries=1),
    ],
}

STOPS = {
    "claude": {"max_tokens": "max_tokens", "refusal": "refusal"},
    "codex": {"max_tokens": "max_output_tokens", "refusal": "content_filter"},
}
"""Stop reason → what the model of each says then."""


def kind_of(error: RequestRefused) -> str:
    """Return what kind of error it is, which has a hint and says it in one line."""
    assert isinstance(error.data, dict) and error.hint and "\n" not in error.message, error.data
    return str(error.data["kind"])


@proves(
    "stop.end-turn",
    "stop.max-tokens",
    "stop.refusal",
    "stop.overloaded",
    "stop.model-not-found",
    "stop.prompt-too-long",
    "turn.notices",
    claude=["stop.api-error"],
    codex=["stop.bad-request", "stop.server-error", "stop.rate-limit", "stop.usage-limit", "stop.connection"],
)
async def test_a_turn_ends_for_its_reason_or_with_an_error_of_its_kind_and_the_next_prompt_works(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        for failure in FAILURES[at.engine]:
            at.model.otherwise = failure.answer
            notices, printed = len(client.updates_of("notice")), len(client.all_text)
            with pytest.raises(RequestRefused) as caught:
                await client.say(f"sing: {failure.kind}")
            assert kind_of(caught.value) == failure.kind and caught.value.code != Code.AUTH_REQUIRED
            texts = [each.text for each in failure.answer if isinstance(each, Text)]
            assert client.all_text[printed:] == "".join(
                texts
            )  # an error is not an answer of the model, and nothing is sent twice
            assert len(client.updates_of("notice")) - notices >= failure.retries, failure.kind
            assert failure.words in caught.value.message and "{" not in caught.value.message
            at.model.otherwise = None
            assert (await client.say(f"go on after {failure.kind}")).text == f"echo: go on after {failure.kind}"

        for reason, word in STOPS[at.engine].items():
            at.model.otherwise = (Text("la la "), Stop(word))
            reply = await client.say("sing for ever")
            assert reply.stop == reason and (reply.text.startswith("la la ") or reason == "refusal")
        at.model.otherwise = None
        assert (await client.say("go on")).stop == "end_turn"


@proves("auth.required", claude=["auth.terminal", "auth.api-key"], codex=["auth.ways"])
async def test_a_user_that_is_not_signed_in_is_offered_the_ways_to_sign_in(at: Place) -> None:
    at.signs_out()
    async with connected(at, Can(terminal_login=True)) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.say("sing")
        methods = client.agent.auth_methods
        assert client.updates_of("agent_message_chunk") == [] and at.model.asked == []
    assert caught.value.code == Code.AUTH_REQUIRED and caught.value.methods
    terminal = [each for each in methods if isinstance(each, v1.TerminalAuth)]
    assert terminal and all(each.args and each.args[0] == "--login" for each in terminal)
    assert len(terminal) >= 2 if at.engine == "claude" else all("ChatGPT" in each.name for each in terminal)
    assert [each for each in methods if not isinstance(each, v1.TerminalAuth) and "API key" in str(each)]
