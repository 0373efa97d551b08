"""The gateway is the agent of its clients, and keeps the rules of one: what a client cannot show it does not get, what is closed is closed."""

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from antiphon.gateway.base import AccessRole, Principal
from tests.gateway.peers import RawClient, Stage, stage
from tests.gateway.test_requests import answers
from tests.gateway.test_sockets import gateway
from tests.gateway.test_turns import attach
from tests.limits import limit
from tests.transports.test_asgi import RawClient as HttpClient
from tests.transports.test_asgi import new, prompt
from tests.waits import until

SWITCH: dict[str, Any] = {"id": "loud", "name": "Loud", "type": "boolean", "currentValue": True}
CHOICE: dict[str, Any] = {"id": "pace", "name": "Pace", "type": "select", "currentValue": "slow", "options": []}


async def test_options_that_are_switches_reach_only_clients_that_show_them(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/set_config_option"] = lambda params: {"configOptions": [SWITCH, CHOICE]}
        plain = await place.client()
        full = await place.client(session={"configOptions": {"boolean": {}}})
        session = await plain.new(tmp_path)
        await attach(full, session)
        wanted = {"sessionId": session, "configId": "loud", "type": "boolean", "value": True}
        assert (await plain.request("session/set_config_option", wanted))["configOptions"] == [CHOICE]
        assert (await full.request("session/set_config_option", wanted))["configOptions"] == [SWITCH, CHOICE]
        asked = plain.prompt(session, "go")
        sent = await place.agent.got("session/prompt")
        update = {"sessionUpdate": "config_option_update", "configOptions": [CHOICE, SWITCH]}
        params = {"sessionId": session, "update": update}
        place.agent.say(session, 'the word "boolean" is a word')
        place.agent.send(msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params}))
        place.agent.result(sent["id"], {"stopReason": "end_turn"})
        await plain.response(asked)
        for client, shown in ((plain, [CHOICE]), (full, [CHOICE, SWITCH])):
            found = [each["configOptions"] for each in settings_shown(client) if "configOptions" in each]
            assert found == [[CHOICE] if client is plain else [SWITCH, CHOICE], shown]
            assert 'the word "boolean" is a word' in client.texts


MODES: dict[str, Any] = {"currentModeId": "ask", "availableModes": [{"id": id, "name": id} for id in ("ask", "plan")]}
MODELS: dict[str, Any] = {
    "currentModelId": "m1",
    "availableModels": [{"modelId": id, "name": id} for id in ("m1", "m2")],
}
FAST: dict[str, Any] = {**CHOICE, "currentValue": "fast"}
CHOSEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "session/set_mode": ({"modeId": "plan"}, {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
    "session/set_model": ({"modelId": "m2"}, {"sessionUpdate": "current_model_update", "currentModelId": "m2"}),
    "session/set_config_option": (
        {"configId": "pace", "value": "fast"},
        {"sessionUpdate": "config_option_update", "configOptions": [FAST]},
    ),
}


def settings_shown(client: RawClient) -> list[dict[str, Any]]:
    """The updates of settings that a client got, without what the gateway says about them."""
    updates = [each["params"]["update"] for each in client.messages if each.get("method") == "session/update"]
    return [each for each in updates if each["sessionUpdate"].startswith(("current_", "config_"))]


async def opened_by_two(place: Stage, tmp_path: Path) -> tuple[RawClient, RawClient, str]:
    """A session with settings, whose agent answers a change of them when the test says so, and its two clients."""
    settings = {"modes": MODES, "models": MODELS, "configOptions": [CHOICE]}
    place.agent.answers["session/new"] = lambda params: {"sessionId": "s", **settings}
    client, other = await place.client(), await place.client(numbers=True)
    session = await client.new(tmp_path)
    await attach(other, session)
    return client, other, session


@pytest.mark.parametrize("method", CHOSEN)
async def test_a_setting_that_one_client_changes_reaches_the_others_and_is_stored(tmp_path: Path, method: str) -> None:
    async with stage(tmp_path) as place:
        client, other, session = await opened_by_two(place, tmp_path)
        wanted, update = CHOSEN[method]
        place.agent.answers[method] = lambda params: {"configOptions": [FAST]} if "configId" in params else {}
        await client.request(method, {"sessionId": session, **wanted})
        await until(lambda: settings_shown(other))
        assert settings_shown(other) == settings_shown(client) == [update]
        (event,) = [each for each in other.messages if each.get("method") == "session/update"]
        late = await place.client(numbers=True)
        await attach(late, session, after=event["params"]["_meta"]["antiphon"]["number"] - 1)
        await until(lambda: settings_shown(late) == [update])
        await client.request(method, {"sessionId": session, **wanted})
        place.agent.say(session, "done")
        await until(lambda: other.texts == ["done"])
        assert settings_shown(other) == [update], "what is as it was is not shown again"


@pytest.mark.parametrize("method", CHOSEN)
@pytest.mark.parametrize("is_first", [True, False])
async def test_an_update_of_the_agent_about_a_setting_is_not_contradicted(
    tmp_path: Path, method: str, is_first: bool
) -> None:
    async with stage(tmp_path) as place:
        client, other, session = await opened_by_two(place, tmp_path)
        wanted, update = CHOSEN[method]
        change = client.begin(method, {"sessionId": session, **wanted})
        there = (await place.agent.got(method))["id"]
        result = {"configOptions": [FAST]} if "configId" in wanted else {}
        if not is_first:
            place.agent.result(there, result)
        place.agent.notify("session/update", {"sessionId": session, "update": {**update, "future": 1}})
        if is_first:
            place.agent.result(there, result)
        await client.response(change)
        place.agent.say(session, "done")
        await until(lambda: other.texts == ["done"])
        own = {**update, "future": 1}
        assert settings_shown(other) == ([own] if is_first else [update, own])


async def test_a_mode_that_the_agent_takes_in_place_of_the_requested_one_counts(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, other, session = await opened_by_two(place, tmp_path)
        change = client.begin("session/set_mode", {"sessionId": session, "modeId": "plan"})
        there = (await place.agent.got("session/set_mode"))["id"]
        own = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
        place.agent.notify("session/update", {"sessionId": session, "update": own})
        place.agent.result(there, {})
        await client.response(change)
        place.agent.say(session, "done")
        await until(lambda: other.texts == ["done"])
        assert settings_shown(other) == [own]
        assert (await attach(await place.client(), session))["settings"]["modes"]["currentModeId"] == "ask"


async def test_an_error_of_one_client_leaves_the_request_to_the_other(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        first, second = await place.client(), await place.client()
        session = await first.new(tmp_path)
        await attach(second, session)
        first.prompt(session, "go")
        await place.agent.got("session/prompt")
        place.agent.ask(7, session)
        asked, other = await first.asked(), await second.asked()
        error = {"code": -32603, "message": "no screen"}
        first.send(msgspec.json.encode({"jsonrpc": "2.0", "id": asked["id"], "error": error}))
        second.choose(other)
        await until(lambda: answers(place.agent))
        assert msgspec.json.decode(answers(place.agent)[0])["result"]["outcome"]["outcome"] == "selected"


async def test_a_closed_session_takes_prompts_again_once_it_is_loaded(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/prompt"] = lambda params: {"stopReason": "end_turn"}
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        session = await client.new(tmp_path)
        await client.response(client.prompt(session, "one"))
        await client.request("session/close", {"sessionId": session})
        error = (await client.response(client.prompt(session, "two")))["error"]
        assert "is closed" in error["message"]
        await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert "result" in await client.response(client.prompt(session, "three"))
        assert len(place.agent.received("session/prompt")) == 2


async def test_a_session_that_is_not_there_is_deleted_already(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        for _ in range(2):
            assert await client.request("session/delete", {"sessionId": session}) == {}


async def test_a_session_that_only_the_agent_has_is_deleted_there(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"sessionCapabilities": {"delete": {}}}
        place.agent.answers["session/delete"] = lambda params: {}
        client = await place.client(Principal("owner", AccessRole.ADMIN))
        assert await client.request("session/delete", {"sessionId": "from before"}) == {}
        assert place.agent.received("session/delete")[-1]["params"] == {"sessionId": "from before"}


async def test_a_session_that_is_loaded_again_over_http_repeats_no_response(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (_, host),
        httpx.AsyncClient(base_url=f"http://{host}", timeout=limit(20)) as http,
    ):
        raw = HttpClient(http)
        await raw.open()
        async with raw.stream() as events:
            await raw.post(new(1, tmp_path))
            session = (await events.response(1))["result"]["sessionId"]
        async with raw.stream(session) as events:
            await raw.post(prompt(2, session, "hello"), session)
            await events.response(2)
            load = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
            await raw.post({"jsonrpc": "2.0", "id": 3, "method": "session/load", "params": load}, session)
            while (message := (await events.next())[1]).get("id") != 3:
                assert message.get("id") != 2
