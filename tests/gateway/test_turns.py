"""Prompts and turns: they go on without their client, wait for each other, and are seen by all."""

from pathlib import Path
from typing import Any

import msgspec

from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.turns import RESPONSES_KEPT
from tests.gateway.peers import DRIVER, QUICK, HubClients, RawClient, stage
from tests.waits import idle, until

BOB = Principal("bob", AccessRole.DRIVE)


async def attach(client: RawClient, session: str, after: int = 0) -> dict[str, Any]:
    return await client.request("_antiphon/session/attach", {"sessionId": session, "after": after})


async def end(place: HubClients, count: int = 1, reason: str = "end_turn") -> None:
    """Let the agent answer a prompt."""
    place.agent.result((await place.agent.got("session/prompt", count))["id"], {"stopReason": reason})


async def test_a_prompt_goes_on_when_its_client_leaves_and_its_response_waits(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        await place.agent.got("session/prompt")
        place.agent.say(session, "one")
        await until(lambda: client.texts == ["one"])
        await client.leave()
        place.agent.say(session, "two")
        await end(place)
        assert not place.agent.received("session/cancel")
        again = await place.client(numbers=True)
        await attach(again, session)
        await until(lambda: any(each.get("method") == "_antiphon/session/turn_ended" for each in again.messages))
        assert again.texts == ["work", "one", "two"]
        ended = again.messages[-1]["params"]
        assert ended["result"] == {"stopReason": "end_turn"} and ended["from"] == "alice"


async def test_the_response_comes_after_the_updates_before_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        id = (await place.agent.got("session/prompt"))["id"]
        place.agent.say(session, *"abc")
        place.agent.result(id, {"stopReason": "end_turn", "later": 1.0})
        await client.response(asked)
        assert client.texts == ["a", "b", "c"]
        assert client.frames[-1] == b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn","later":1.0}}' % asked


async def test_a_prompt_with_a_name_is_known_by_it_on_another_connection(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        for name in ("first", "second"):
            text, meta = [{"type": "text", "text": name}], {"antiphon": {"prompt": name}}
            client.begin("session/prompt", {"sessionId": session, "prompt": text, "_meta": meta})
        await place.agent.got("session/prompt")
        await client.leave()
        again = await place.client(numbers=True)
        assert sorted((await attach(again, session))["prompts"]) == ["first", "second"]
        await end(place)
        await until(lambda: any(each.get("method") == "_antiphon/session/turn_ended" for each in again.messages))
        about = [
            each["params"] for each in again.messages if each.get("method", "").startswith("_antiphon/session/turn")
        ]
        assert [each["prompt"] for each in about[:2]] == ["first", "first"]
        message = next(each for each in again.messages if each.get("method") == "session/update")
        assert message["params"]["update"]["_meta"]["antiphon"]["prompt"] == "first"


async def test_a_client_with_numbers_learns_where_events_begin_and_the_roots(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        assert client.messages[0]["result"]["_meta"]["antiphon"]["roots"] == [str(tmp_path)]
        opened = await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert opened["_meta"]["antiphon"]["after"] == 0
        place.agent.say("s1", "one", "two")
        await until(lambda: client.texts == ["one", "two"])
        resumed = await client.request("session/resume", {"sessionId": "s1", "cwd": str(tmp_path)})
        assert resumed["_meta"]["antiphon"]["after"] == 2
        share = await place.client(Principal("guest", AccessRole.WATCH, frozenset({"key0"})))
        assert "roots" not in share.messages[0]["result"]["_meta"]["antiphon"]


async def test_two_clients_see_the_messages_of_each_other_and_who_sent_them(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        alice, bob = await place.client(), await place.client(BOB)
        session = await alice.new(tmp_path)
        await bob.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        alice.prompt(session, "from alice")
        await end(place)
        bob.prompt(session, "from bob")
        await end(place, 2)
        await until(lambda: alice.texts == ["from bob"] and bob.texts == ["from alice"])
        update = next(each for each in bob.messages if each.get("method") == "session/update")["params"]["update"]
        assert update["sessionUpdate"] == "user_message_chunk"
        assert update["_meta"]["antiphon"]["from"] == "alice"


async def test_prompts_of_one_session_wait_for_each_other(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        alice, bob = await place.client(), await place.client(BOB)
        session = await alice.new(tmp_path)
        here = place.hub.agents["demo"].sessions[session.encode()]
        first = alice.prompt(session, "1")
        await until(lambda: here.turns.running)
        second = bob.prompt(session, "2")
        await until(lambda: here.turns.queued == 1)
        third = alice.prompt(session, "3")
        await place.agent.got("session/prompt")
        await idle()
        assert len(place.agent.received("session/prompt")) == 1
        await end(place, 1)
        await alice.response(first)
        await end(place, 2)
        await bob.response(second)
        await end(place, 3)
        await alice.response(third)
        sent = [each["params"]["prompt"][0]["text"] for each in place.agent.received("session/prompt")]
        assert sent == ["1", "2", "3"]


async def test_turns_of_two_sessions_run_at_the_same_time(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        one, two = await client.new(tmp_path), await client.new(tmp_path)
        client.prompt(one, "1")
        client.prompt(two, "2")
        await place.agent.got("session/prompt", 2)


async def test_cancel_ends_the_turn_and_the_prompts_of_its_client_that_wait(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        alice, bob = await place.client(), await place.client(BOB)
        session = await alice.new(tmp_path)
        running = alice.prompt(session, "1")
        waiting, of_bob = alice.prompt(session, "2"), bob.prompt(session, "3")
        await place.agent.got("session/prompt")
        alice.notify("session/cancel", {"sessionId": session})
        await place.agent.got("session/cancel")
        assert (await alice.response(waiting))["result"] == {"stopReason": "cancelled"}
        await end(place, 1, "cancelled")
        assert (await alice.response(running))["result"] == {"stopReason": "cancelled"}
        await end(place, 2)
        assert (await bob.response(of_bob))["result"] == {"stopReason": "end_turn"}


async def test_a_cancelled_request_is_cancelled_at_the_agent_by_its_id_there(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        await (await place.client()).new(tmp_path)
        client = await place.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "1")
        there = (await place.agent.got("session/prompt"))["id"]
        client.notify("$/cancel_request", {"requestId": str(asked)})
        client.notify("$/cancel_request", {"requestId": asked})
        await place.agent.got("$/cancel_request")
        assert [each["params"] for each in place.agent.received("$/cancel_request")] == [{"requestId": there}]
        assert asked != there
        other = client.begin("_vendor/ask", {})
        there = (await place.agent.got("_vendor/ask"))["id"]
        client.notify("$/cancel_request", {"requestId": other})
        assert (await place.agent.got("$/cancel_request", 2))["params"] == {"requestId": there}


async def test_a_watcher_sees_everything_and_changes_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        driver, watcher = await place.client(), await place.client(Principal("eve", AccessRole.WATCH))
        session = await driver.new(tmp_path)
        await watcher.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        driver.prompt(session, "hello")
        await place.agent.got("session/prompt")
        place.agent.ask(1, session)
        await driver.asked()
        for method, params in (
            ("session/prompt", {"prompt": []}), ("session/set_mode", {"modeId": "x"}), ("session/close", {}), ("session/delete", {}),
            ("session/fork", {"cwd": str(tmp_path), "mcpServers": []}),
        ):  # fmt: skip
            assert (await watcher.refused(method, {"sessionId": session, **params}))["code"] == -32600
        assert (await watcher.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["code"] == -32600
        watcher.notify("session/cancel", {"sessionId": session})
        watcher.answer(driver.requests()[0]["id"], {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        await idle()
        assert watcher.texts == ["hello"] and not watcher.requests()
        assert not place.agent.received("session/cancel")
        assert not any("result" in msgspec.json.decode(line) for line in place.agent.lines)


async def test_a_share_sees_its_own_session_and_no_other(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        driver = await place.client()
        one, two = await driver.new(tmp_path), await driver.new(tmp_path)
        shared = await place.client(Principal("guest", AccessRole.DRIVE, frozenset({"key0"})))
        listed = await shared.request("session/list", {})
        assert [each["sessionId"] for each in listed["sessions"]] == [one]
        load = {"cwd": str(tmp_path), "mcpServers": []}
        await shared.request("session/load", {"sessionId": one, **load})
        foreign = await shared.refused("session/load", {"sessionId": two, **load})
        unknown = await shared.refused("session/load", {"sessionId": "nowhere", **load})
        assert foreign["code"] == unknown["code"] == -32002
        assert (await shared.refused("session/prompt", {"sessionId": two, "prompt": []}))["code"] == -32002
        assert (await shared.refused("session/new", load))["code"] == -32600


async def test_a_share_reaches_nothing_beyond_its_session_by_naming_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        driver = await place.client()
        session = await driver.new(tmp_path)
        shared = await place.client(Principal("guest", AccessRole.DRIVE, frozenset({"key0"})))
        await shared.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        for method in ("logout", "authenticate", "_vendor/set_address", "session/delete"):
            assert (await shared.refused(method, {"sessionId": session}))["code"] == -32600
            assert not place.agent.received(method)
        shared.notify("_vendor/reset", {"sessionId": session})
        shared.prompt(session, "hello")
        await place.agent.got("session/prompt")
        assert not place.agent.received("_vendor/reset")


async def test_what_is_sent_behind_a_prompt_reaches_the_agent_behind_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/set_mode"] = lambda params: {}
        client = await place.client()
        session = await client.new(tmp_path)
        place.journal.gate.clear()
        client.prompt(session, "work")
        modes = [client.begin("session/set_mode", {"sessionId": session, "modeId": mode}) for mode in ("a", "b", "c")]
        place.journal.gate.set()
        for chosen in modes:
            await client.response(chosen)
        received = map(msgspec.json.decode, place.agent.lines)
        about = [each["params"] for each in received if each["method"] in ("session/prompt", "session/set_mode")]
        assert [each.get("modeId", "prompt") for each in about] == ["prompt", "a", "b", "c"]
        await end(place)


async def test_too_many_prompts_of_one_principal_are_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, prompts_per_minute=2)) as place:
        alice, bob = await place.client(), await place.client(BOB)
        session = await alice.new(tmp_path)
        alice.prompt(session, "1")
        alice.prompt(session, "2")
        refused = await alice.refused("session/prompt", {"sessionId": session, "prompt": []})
        assert "too many prompts" in refused["message"] and refused["data"]["hint"]
        await end(place)
        bob.prompt(session, "3")
        await end(place, 2)
        await end(place, 3)


async def test_settings_that_a_client_changes_are_those_of_the_next_client(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        modes = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
        place.agent.answers |= {
            "session/set_mode": lambda params: {},
            "session/set_config_option": lambda params: {"configOptions": [1.0]},
        }
        client = await place.client()
        place.agent.answers["session/load"] = lambda params: {"modes": modes, "_meta": {}}
        loaded = await client.request("session/load", {"sessionId": "old", "cwd": str(tmp_path), "mcpServers": []})
        assert loaded["modes"] == modes
        await client.request("session/set_mode", {"sessionId": "old", "modeId": "b"})
        await client.request("session/set_config_option", {"sessionId": "old", "configId": "x", "value": "y"})
        other = await place.client()
        for method in ("session/load", "session/resume"):
            again = await other.request(method, {"sessionId": "old", "cwd": str(tmp_path), "mcpServers": []})
            assert again == {"modes": {**modes, "currentModeId": "b"}, "configOptions": [1.0]}
        assert len(place.agent.received("session/load")) == 1, "the gateway answers for a session that it has"


async def test_a_prompt_whose_session_is_closed_before_it_is_stored_is_never_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        here = place.hub.agents["demo"].sessions[session.encode()]
        await until(lambda: here.last == here.recorded)
        place.journal.gate.clear()
        client.prompt(session, "work")
        await until(lambda: here.row.turn)
        turn = here.turns.running
        closing = client.begin("session/close", {"sessionId": session})
        await until(lambda: turn is not None and turn.is_ended)
        place.journal.gate.set()
        assert "result" in await client.response(closing)
        await idle()
        assert not place.agent.received("session/prompt")


async def test_a_client_that_an_event_cannot_be_shown_to_costs_the_others_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        first, second = await place.client(), await place.client()
        session = await first.new(tmp_path)
        await attach(second, session)
        here = place.hub.agents["demo"].sessions[session.encode()]

        def broken(block: bytes) -> None:
            raise RuntimeError("broken")

        here.attachments[0].client.put_block = broken  # type: ignore[method-assign]
        place.agent.say(session, "one")
        await until(lambda: second.texts == ["one"] and first.is_lost)
        assert here.agent.uncommitted == 0


# A prompt with a name, sent again.


def named(session: str) -> dict[str, Any]:
    """The params of a prompt with a name."""
    text, meta = [{"type": "text", "text": "work"}], {"antiphon": {"prompt": "one of its kind"}}
    return {"sessionId": session, "prompt": text, "_meta": meta}


async def test_a_prompt_that_arrives_twice_on_two_connections_runs_once_and_both_get_the_response(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        old = await place.client(numbers=True)
        new = await place.client(msgspec.structs.replace(DRIVER, address="192.0.2.7"), numbers=True)
        session = await old.new(tmp_path)
        await new.request("_antiphon/session/attach", {"sessionId": session})
        asked = [client.begin("session/prompt", named(session)) for client in (new, old)]
        await end(place)
        for client, id in zip((new, old), asked, strict=True):
            assert (await client.response(id))["result"]["stopReason"] == "end_turn"
        late = await old.request("session/prompt", named(session))
        assert late["stopReason"] == "end_turn", "the response of the turn that has ended"
        assert len(place.agent.received("session/prompt")) == 1


async def test_a_prompt_that_waits_and_was_sent_again_is_cancelled_for_both_connections(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, queue=1)) as place:
        old, new = await place.client(numbers=True), await place.client(numbers=True)
        session = await old.new(tmp_path)
        first = old.prompt(session, "first")
        await place.agent.got("session/prompt")
        waits = old.begin("session/prompt", named(session))
        again = new.begin("session/prompt", named(session))
        assert "this name already" in (await new.refused("session/prompt", named(session)))["message"]
        new.notify("session/cancel", {"sessionId": session})
        for client, id in ((old, waits), (new, again)):
            assert (await client.response(id))["result"]["stopReason"] == "cancelled"
        await end(place, reason="cancelled")
        await old.response(first)
        assert (await old.request("session/prompt", named(session)))["stopReason"] == "cancelled"
        assert len(place.agent.received("session/prompt")) == 1


async def test_of_many_prompts_with_a_name_those_that_ended_last_are_known(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/prompt"] = lambda params: {"stopReason": "end_turn"}
        client = await place.client()
        session = await client.new(tmp_path)
        for number in (*range(RESPONSES_KEPT + 1), RESPONSES_KEPT, 0):
            meta = {"antiphon": {"prompt": f"number {number}"}}
            await client.request("session/prompt", {"sessionId": session, "prompt": [], "_meta": meta})
        assert len(place.agent.received("session/prompt")) == RESPONSES_KEPT + 2


async def test_prompts_of_a_token_that_is_good_no_longer_are_dropped_and_its_running_turn_goes_on(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        revoked = Principal("mallory", AccessRole.DRIVE, token_id="7")
        client, other = await place.client(revoked), await place.client(numbers=True)
        session = await client.new(tmp_path)
        await attach(other, session)
        running = client.prompt(session, "runs")
        await place.agent.got("session/prompt")
        dropped, kept = client.prompt(session, "waits"), other.prompt(session, "mine")

        def queues() -> list[list[str]]:
            shown = [each["params"] for each in other.messages if each.get("method") == "_antiphon/session/queue"]
            return [[each["text"] for each in params["queue"]] for params in shown]

        await until(lambda: queues()[-1:] == [["waits", "mine"]])
        place.hub.drop_prompts("7", "the token was revoked")
        await until(lambda: queues()[-1] == ["mine"])
        assert "the token was revoked" in (await client.response(dropped))["error"]["message"]
        await end(place)
        assert (await client.response(running))["result"] == {"stopReason": "end_turn"}
        await end(place, 2)
        assert (await other.response(kept))["result"]["stopReason"] == "end_turn"
        assert [each["params"]["prompt"][0]["text"] for each in place.agent.received("session/prompt")] == [
            "runs",
            "mine",
        ]
