"""How a turn ends: for good reasons, and with errors that say what went wrong."""

import time
from typing import Any

import pytest

from antiphon import v1
from antiphon.errors import AuthRequired, Code, RequestRefused
from tests.engines.claude.model.steps import Call, Fail, Gate, Text, Wait
from tests.engines.claude.place import BY_SUBSCRIPTION, Place
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.claude.stand_in_lines import RESULT, stand_in_plays
from tests.engines.claude.versions import BOTH
from tests.engines.client import Client, connected

AT_ONCE = (("retry-after", "0"),)
"""For failures that are tried again: not later than now."""


MOMENTS = 9e17, -9e17, 1e300, 9_999_999_999_999
"""Far away, long ago, never, and in milliseconds."""


async def refused(client: Client, *, text: str = "sing") -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await client.say(text)
    return caught.value


def data(error: RequestRefused) -> dict[str, Any]:
    assert isinstance(error.data, dict)
    return error.data


@proves("stop.max-turns")
async def test_too_many_requests_in_a_turn_end_with_max_turn_requests(at: Place) -> None:
    at.environment["CLAUDE_CODE_MAX_TURNS"] = "1"
    at.model.otherwise = (Call("Bash", {"command": "true", "description": "Nothing"}),)
    async with connected(at) as client:
        reply = await client.say("go round in circles")
    assert reply.stop == "max_turn_requests"


@proves("stop.usage-limit", "stop.expired-login", "auth.required", on=BOTH)
async def test_a_usage_limit_names_when_it_is_over_and_an_expired_login_asks_for_a_new_one(at: Place) -> None:
    at.environment |= BY_SUBSCRIPTION
    over = int(time.time()) + 7200
    limit = {"status": "rejected", "reset": str(over), "representative-claim": "five_hour", "5h-reset": str(over)}
    headers = tuple((f"anthropic-ratelimit-unified-{name}", value) for name, value in limit.items())
    at.model.otherwise = (Fail(429, "rate_limit_error", "the hall is full", headers),)
    async with connected(at) as client:
        error = await refused(client)
        at.model.otherwise = (Fail(401, "authentication_error", "the token has expired", AT_ONCE),)
        with pytest.raises(AuthRequired) as caught:
            await client.say("sing again")
    assert data(error)["kind"] == "usage_limit" and "limit" in error.message
    assert time.strftime("%H:%M", time.gmtime(over)) in str(data(error)["resetsAt"])
    assert caught.value.code == Code.AUTH_REQUIRED and caught.value.methods


@proves("stop.connection")
async def test_a_model_that_cannot_be_reached_is_an_error(at: Place) -> None:
    at.environment |= {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "CLAUDE_CODE_MAX_RETRIES": "0"}
    async with connected(at) as client:
        error = await refused(client)
    assert data(error)["kind"] == "connection"


@proves("stop.end-turn", "stop.overloaded", on=BOTH)
async def test_prompts_get_their_own_ends_at_once_one_after_the_other_and_after_an_overload(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("the first "), Wait(gate), Text("ends"))
    async with connected(at) as client:
        await client.open()
        first = client.session.prompt("one")
        await gate.is_reached()
        second = client.session.prompt("two")
        await client.until(lambda: any("two" in str(each) for each in client.sent))
        gate.open()
        assert (await first).stop_reason is (await second).stop_reason is v1.StopReason.END_TURN
        assert client.all_text == "the first endsecho: two"

        at.model.answers(Fail(529, "overloaded_error", "too many singers", AT_ONCE))  # it comes back
        reply = await client.say("three")
        assert reply.text == "echo: three" and reply.stop == "end_turn" and reply.notices
    assert [asked.prompt for asked in at.model.asked] == ["one", "two", "three", "three"]


@proves("stop.usage-limit", on=[STAND_IN])
async def test_a_limit_that_ends_at_no_moment_at_all_is_still_the_end_of_the_prompt(at: Place) -> None:
    failed = {**RESULT, "is_error": True, "result": "You've hit your limit", "api_error_status": 429}
    infos = [{"status": "rejected", "resetsAt": moment, "rateLimitType": "five_hour"} for moment in MOMENTS]
    turns = [[{"type": "rate_limit_event", "rate_limit_info": info}, failed] for info in infos]
    stand_in_plays(at, *turns, [RESULT])
    async with connected(at) as client:
        for _ in MOMENTS:
            error = await refused(client)
            assert "limit" in error.message and data(error)["kind"] == "usage_limit"
        assert (await client.say("again")).stop == "end_turn"
